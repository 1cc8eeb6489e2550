#!/usr/bin/env python3
"""Measures Addend and packages that explain models, on one PyTorch; see README.md.

Each method explains each model in a process of its own: first once, which tells whether it can and its memory, then by turns
with plain runs of the model, then samples that tell how good its contributions are. Results go into DIR/MODEL.json, beside
those of other methods that are there already.
"""

import paths  # noqa: F401  (first)

import argparse
import functools
import importlib
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy
import torch

import arithmetic
import metrics
import order
import processes
from questions import NotFor

ROUNDS = 5
# One turn takes at least so long: what is faster runs several times in it.
TURN_SECONDS = 0.02
# A method that takes longer has no further turns.
ONCE_SECONDS = 4
LIBRARIES = ("transformers", "timm", "numpy")


def parse_arguments():
    import models

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", nargs="+", default=order.PACKAGES, metavar="NAME",
                        help="only methods whose names begin so (default: all)")
    parser.add_argument("--model", nargs="+", choices=models.MODELS, default=list(models.MODELS), metavar="NAME")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where results are and go")
    parser.add_argument("--networks", type=Path, required=True, metavar="FOLDER", help="keeps what was trained")
    parser.add_argument("--samples", type=int, default=models.SAMPLES, help="of each model (default: %(default)d)")
    parser.add_argument("--quantus", type=int, default=3, metavar="SAMPLES",
                        help="that Quantus judges, which runs the model some hundred times for each (default: %(default)d)")
    parser.add_argument("--seconds", type=float, default=4, help="for the samples of a method (default: %(default)g)")
    parser.add_argument("--limit", type=float, default=10, metavar="SECONDS",
                        help="of the processor, for one run (default: %(default)g)")
    parser.add_argument("--memory", type=float, default=12, metavar="GIB", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.networks.mkdir(parents=True, exist_ok=True)
    import models

    metrics_of_quantus()  # imported before any process is copied

    for name in arguments.model:
        path = arguments.out / (name + ".json")
        results = json.loads(path.read_text()) if path.exists() else {}
        if name in models.TASKS:
            # In a process of its own: autograd does not survive the copies of a process.
            processes.in_child(lambda: models.train(name, arguments.networks) or {}, 100 * arguments.limit)
        case = models.MODELS[name](arguments.samples, arguments.networks)
        results.update(title=case.title, parts=case.question(0).units, samples=len(case.inputs))
        found = results.setdefault("methods", {})
        for method in methods_of(arguments.method):
            # Packages that could not be imported have their name in place of methods.
            found.pop(method.split()[0], None)
            found[method] = measured(case, method, arguments)
            processes.say("%-24s %-30s %s" % (name, method, told(found[method])))
            results["methods"] = {own: found[own] for own in sorted(found, key=place)}
            write(path, results)
    return 0


def package(name):
    return imported(order.MODULES[name])


def metrics_of_quantus():
    return imported("quantus_metrics")


@functools.lru_cache
def imported(name):
    """A module, or why it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        return processes.reason_of(error, 0)


def methods_of(wanted):
    """Names of methods; of a package that cannot be imported, its own name."""
    for name in order.PACKAGES:
        if any(one.startswith(name) or name.startswith(one) for one in wanted):
            module = package(name)
            for method in [name] if isinstance(module, str) else module.METHODS:
                if method.startswith(tuple(wanted)) or method == name:
                    yield method


def place(method):
    return order.PACKAGES.index(method.split()[0])


def measured(case, method, arguments):
    module = package(method.split()[0])
    entry = {"versions": versions(module), "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "load": load()}
    if isinstance(module, str):
        return {**entry, "reason": module}
    return {**entry, **processes.in_child(lambda: alone(case, module.METHODS[method], arguments), arguments.limit)}


def versions(module):
    from importlib.metadata import PackageNotFoundError, version

    found = {"torch": torch.__version__.partition("+")[0]}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found if isinstance(module, str) else {"own": module.VERSION, **found}


def load():
    return round(os.getloadavg()[0], 1)


def alone(case, maker, arguments):
    """All that is found out about one method, in a process of its own; a reason where it cannot."""
    # Packages print, which is no result.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        torch.manual_seed(0)
        numpy.random.seed(0)
        explain = maker(case)
        question = case.question(0)
        plain = torch.no_grad()(lambda: case.model(question.x))
        for _ in range(3):
            plain()
        _, _, plain_peak = processes.first_run(plain, arguments.limit)
        _, first, peak = processes.first_run(lambda: explain(question), arguments.limit)
        found = {"peak_mib": peak, "plain_peak_mib": plain_peak}
        found.update(turns(plain, lambda: explain(question), first))
        found.update(quality(case, explain, arguments, first["processor"]))
        return found
    except NotFor as error:
        return {"reason": str(error)}
    except Exception as error:
        return {"reason": processes.reason_of(error, arguments.memory)}


def turns(plain, run, first):
    """Times of plain runs and of a method that take turns, and the ratio of each pair."""
    if first["processor"] > ONCE_SECONDS:
        times = [(first, repeated(plain))]
    else:
        # The first run has what is only done once.
        times = [(repeated(run), repeated(plain)) for _ in range(ROUNDS)]
    return {
        key: {
            "ratio": arithmetic.summary([own[key] / other[key] for own, other in times]),
            "ms": 1e3 * statistics.median(own[key] for own, _ in times),
            "plain_ms": 1e3 * statistics.median(other[key] for _, other in times),
        }
        for key in ("clock", "processor")
    }


def repeated(run):
    """Seconds of one run, as the mean of as many as one turn has."""
    total, count = {"clock": 0.0, "processor": 0.0}, 0
    while total["processor"] < TURN_SECONDS:
        spent = processes.spent(run)
        count += 1
        for key in total:
            total[key] += spent[key]
    return {key: seconds / count for key, seconds in total.items()}


def quality(case, explain, arguments, once):
    """How good the contributions are, of as many samples as there is time for; one takes about `once`."""
    deadline = time.process_time() + arguments.seconds
    errors, value_errors, curves, causes, roles, judged = [], [], [], [], [], []
    for sample in range(len(case.inputs)):
        if sample and time.process_time() > deadline:
            break
        question = case.question(sample)
        explanation = explain(question)
        value, start = question.move()
        total = float(explanation.units.sum()) + explanation.outside
        errors.append(abs(total - (value - start)) / abs(value - start))
        value_errors.append(abs(total - value) / abs(value))
        if not explanation.of_units:
            continue
        curves.append(metrics.aopc(scores(question, explanation.units)))
        if case.roles is not None:
            causes.append(explanation.units.numpy())
            roles.append(case.roles[sample].numpy())
    found = {
        "explained": len(errors),
        "aim": explanation.aim,
        "completeness_error": statistics.median(errors),
        "completeness_error_worst": max(errors),
        "value_error": statistics.median(value_errors),
    }
    if curves:
        found["faithfulness"] = float(metrics.faithfulness(curves)[0])
        if arguments.quantus:
            found["quantus"] = quantus(case, explain, arguments, once)
    if causes:
        found["causes"] = metrics.mean_found(causes, roles)
    return found


def scores(question, contributions):
    """The output without the best parts, and of them alone, [2, fractions]."""
    kept = metrics.kept_units(contributions)
    rows = torch.from_numpy(kept.reshape(-1, question.units)).float()
    with torch.no_grad():
        return question.outputs(question.moved(rows)).double().view(kept.shape[:2]).numpy()


def quantus(case, explain, arguments, once):
    """Medians over samples of the metrics of Quantus; a reason where it cannot."""
    quantus_metrics = metrics_of_quantus()
    if isinstance(quantus_metrics, str):
        return {"reason": quantus_metrics}
    deadline, rows = time.process_time() + arguments.seconds, []
    for sample in range(min(arguments.quantus, len(case.inputs))):
        question = case.question(sample)
        try:
            rows.append(quantus_metrics.measure(explain, question, explain(question).units, 20 * once < arguments.seconds))
        except Exception as error:
            return {"reason": processes.reason_of(error, 0)}
        if time.process_time() > deadline:
            break
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0] if all(key in row for row in rows)}
    return {"version": quantus_metrics.VERSION, "samples": len(rows), **medians}


def told(entry):
    if "reason" in entry:
        return entry["reason"]
    return "%8.1f plain runs  %7.1f MiB  error %.1e" % (
        entry["clock"]["ratio"]["median"], entry["peak_mib"], entry["completeness_error"]
    )


def write(path, results):
    """Six digits of each number, and null for NaN or infinity."""
    rounded = json.loads(
        json.dumps(results), parse_float=lambda text: float("%.6g" % float(text)), parse_constant=lambda _: None
    )
    path.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

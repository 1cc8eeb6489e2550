#!/usr/bin/env python3
"""Measures how faithful contributions are on the example models with their held-out samples; see README.md."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy
import torch

sys.path.append(str(Path(__file__).resolve().parents[1]))

import checkouts  # noqa: E402
import machine  # noqa: E402
import methods  # noqa: E402
import metrics  # noqa: E402
import subjects  # noqa: E402

SEED = 20240503
DRAWS = 1000
MARGIN = 0.01
COMPARED_WITH = "integrated gradients"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200, help="of each model (default: 200)")
    parser.add_argument("--captum", type=Path, metavar="FOLDER", help="a checkout of Captum: a check of our own gradients")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where tables of them go, too")
    return parser.parse_args()


def make_methods(subject, captum):
    """By name, in the order of tables."""
    made = {
        "Addend faithful": methods.Addend(subject, "faithful"),
        "Addend fast": methods.Addend(subject, "fast"),
        COMPARED_WITH: methods.IntegratedGradients(subject),
        "occlusion": methods.Occlusion(subject),
        "input x gradient": methods.InputXGradient(subject),
        "random": methods.Random(subject, SEED),
    }
    if captum:
        made["Captum integrated gradients"] = methods.CaptumIntegratedGradients(subject, captum)
    return made


def measure(subject, captum):
    """The results of one subject."""
    with torch.no_grad():
        outputs = subject.model(subject.inputs)
        empty = subject.model(subject.baseline)[0]
    predicted = outputs.argmax(-1)
    count = len(subject.inputs)
    curves, contributions, seconds = {}, {}, {}
    for name, method in make_methods(subject, captum).items():
        start = time.process_time()
        contributions[name] = [method(sample, int(predicted[sample])) for sample in range(count)]
        seconds[name] = (time.process_time() - start) / count
        curves[name] = metrics.aopc(
            [scores(subject, row, int(predicted[row]), values) for row, values in enumerate(contributions[name])]
        )
        say("  %-28s F %.3f" % (name, metrics.faithfulness(curves[name])[0]))
    gaps = [float(methods.centred(outputs[row] - empty, int(predicted[row]))) for row in range(count)]
    result = {
        "units": subject.what,
        "samples": count,
        "mean_units": float(numpy.mean([subject.units(row) for row in range(count)])),
        "accuracy": float((predicted == subject.classes).double().mean()),
        "mean_gap": float(numpy.mean(gaps)),
        "methods": compare(curves),
    }
    for name, entry in result["methods"].items():
        entry["completeness_error"] = metrics.completeness_error([sum(row) for row in contributions[name]], gaps)
        entry["processor_ms_per_sample"] = 1e3 * seconds[name]
    if captum:
        result["largest_difference_to_captum"] = float(
            max(
                abs(own - theirs).max()
                for own, theirs in zip(contributions[COMPARED_WITH], contributions["Captum integrated gradients"])
            )
        )
    return result


def scores(subject, sample, target, contributions):
    """The score of the sample without its best units, and of them alone, [2, fractions]."""
    kept = metrics.kept_units(contributions)
    with torch.no_grad():
        outputs = subject.model(subject.variants(sample, kept))
    return methods.centred(outputs.double(), target).view(kept.shape[:2]).numpy()


def compare(curves):
    """F, deletion and insertion with intervals, and the difference to integrated gradients, in pairs."""
    count = len(curves[COMPARED_WITH])
    rows = metrics.draws(count, DRAWS, SEED)
    drawn = {name: metrics.faithfulness(samples[rows]) for name, samples in curves.items()}
    other = metrics.faithfulness(curves[COMPARED_WITH])[0]
    entries = {}
    for name, samples in curves.items():
        value, deletion, insertion = metrics.faithfulness(samples)
        entries[name] = {
            "faithfulness": float(value),
            "faithfulness_interval": metrics.interval(drawn[name][:, 0]),
            "deletion_aopc": float(deletion),
            "deletion_interval": metrics.interval(drawn[name][:, 1]),
            "insertion_aopc": float(insertion),
            "insertion_interval": metrics.interval(drawn[name][:, 2]),
            "difference": float(value - other),
            "difference_interval": metrics.interval(drawn[name][:, 0] - drawn[COMPARED_WITH][:, 0]),
        }
    return entries


def table(results):
    """The results in Markdown."""
    facts = results["machine"]
    yield "# Faithfulness on the example models"
    yield ""
    yield "What the columns are: README.md. Made by measure.py on %s; Addend %s (%s), PyTorch %s, %s." % (
        facts["date"], facts["addend"], facts["commit"], facts["torch"], facts["processor"],
    )
    for name, result in results["subjects"].items():
        yield ""
        yield "## %s: %d samples of %s" % (name, result["samples"], units_told(result))
        yield ""
        yield "| method | F | deletion | insertion | F over integrated gradients | completeness error | ms |"
        yield "|---|---|---:|---:|---|---:|---:|"
        for method, entry in result["methods"].items():
            yield "| %s | %.3f [%.3f, %.3f] | %.3f | %.3f | %s | %s | %.1f |" % (
                method, entry["faithfulness"], *entry["faithfulness_interval"],
                entry["deletion_aopc"], entry["insertion_aopc"],
                "" if method == COMPARED_WITH
                else "%+.3f [%+.3f, %+.3f]" % (entry["difference"], *entry["difference_interval"]),
                "" if method == "random" else "%.1e" % entry["completeness_error"],
                entry["processor_ms_per_sample"],
            )
    yield ""
    missed = results["missed"]
    yield (
        "`faithful` is more than %g below integrated gradients on: %s." % (MARGIN, ", ".join(missed)) if missed
        else "`faithful` is within %g of integrated gradients, or above, on each." % MARGIN
    )


def units_told(result):
    return result["units"] if result["units"][0].isdigit() else "%.0f %s on average" % (
        result["mean_units"], result["units"],
    )


def write(path, results):
    """What there is so far: a run takes minutes."""
    if path:
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown)
    captum = checkouts.captum(arguments.captum) if arguments.captum else None
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "seed": SEED, "bootstrap_draws": DRAWS, "margin": MARGIN, "subjects": {}}
    start = time.monotonic()
    for subject in subjects.all_subjects(arguments.samples):
        say(subject.name)
        results["subjects"][subject.name] = measure(subject, captum)
        write(arguments.json, results)
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    results["missed"] = [
        name for name, result in results["subjects"].items()
        if result["methods"]["Addend faithful"]["difference"] < -MARGIN
    ]
    write(arguments.json, results)
    text = "\n".join(table(results))
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

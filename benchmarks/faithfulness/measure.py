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
OURS = "Addend faithful"
COMPARED_WITH = "integrated gradients"
SUMLESS = ("random", "attention rollout")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200, help="of each model (default: 200)")
    parser.add_argument("--captum", type=Path, metavar="FOLDER", help="a checkout of Captum: a check of our own gradients")
    add_outputs(parser)
    return parser.parse_args()


def add_outputs(parser):
    """The options that say where `publish` writes."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where tables of them go, too")


def make_methods(subject, captum=None, policies=methods.POLICIES):
    """The methods by name, in the order of tables."""
    made = {name: methods.Addend(subject, policy) for name, policy in policies.items()}
    made[COMPARED_WITH] = methods.IntegratedGradients(subject)
    made["occlusion"] = methods.Occlusion(subject)
    made["input x gradient"] = methods.InputXGradient(subject)
    made["random"] = methods.Random(subject, SEED)
    if captum:
        made["Captum integrated gradients"] = methods.CaptumIntegratedGradients(subject, captum)
    return made


def measure(subject, captum):
    """The results of one subject."""
    with torch.no_grad():
        outputs = subject.model(subject.inputs)
        empty = subject.model(subject.baselines)
    predicted = outputs.argmax(-1)
    count = len(subject.inputs)
    gaps = [float(methods.centred(outputs[row] - empty[row], int(predicted[row]))) for row in range(count)]
    result = {
        "name": subject.name,
        "start": subject.start,
        "units": subject.what,
        "samples": count,
        "mean_units": float(numpy.mean([subject.units(row) for row in range(count)])),
        "accuracy": float((predicted == subject.classes).double().mean()),
        "mean_gap": float(numpy.mean(gaps)),
    }
    curves, contributions, facts = {}, {}, {}
    for name, method in make_methods(subject, captum).items():
        start = time.process_time()
        contributions[name] = [method(sample, int(predicted[sample])) for sample in range(count)]
        facts[name] = {
            "conditioning": metrics.conditioning(contributions[name], gaps),
            "leftover": metrics.leftover(contributions[name], gaps),
            "processor_ms_per_sample": 1e3 * (time.process_time() - start) / count,
        }
        curves[name] = curve(subject, predicted, contributions[name], subject.baselines)
        if subject.natural is not None:
            natural = curve(subject, predicted, contributions[name], subject.natural)
            facts[name]["faithfulness_natural"] = float(metrics.faithfulness(natural)[0])
        say("  %-28s F %.3f" % (name, metrics.faithfulness(curves[name])[0]))
    result["methods"] = {name: {**entry, **facts[name]} for name, entry in compare(curves).items()}
    if captum:
        result["largest_difference_to_captum"] = float(
            max(
                abs(own - theirs).max()
                for own, theirs in zip(contributions[COMPARED_WITH], contributions["Captum integrated gradients"])
            )
        )
    return result


def curve(subject, predicted, contributions, baselines):
    """AOPC of the rankings by contributions; removed units become what they are in the baselines."""
    return metrics.aopc(
        [scores(subject, row, int(predicted[row]), values, baselines) for row, values in enumerate(contributions)]
    )


def scores(subject, sample, target, contributions, baselines):
    """The score of the sample without its best units, and of them alone, [2, fractions]."""
    kept = metrics.kept_units(contributions)
    with torch.no_grad():
        outputs = subject.model(subject.variants(sample, kept, baselines))
    return methods.centred(outputs.double(), target).view(kept.shape[:2]).numpy()


def compare(curves):
    """F, deletion, insertion with intervals; differences in pairs: to integrated gradients, of `faithful` to others."""
    count = len(curves[COMPARED_WITH])
    rows = metrics.draws(count, DRAWS, SEED)
    drawn = {name: metrics.faithfulness(samples[rows]) for name, samples in curves.items()}
    own, other = (metrics.faithfulness(curves[name])[0] for name in (OURS, COMPARED_WITH))
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
            "faithful_over": float(own - value),
            "faithful_over_interval": metrics.interval(drawn[OURS][:, 0] - drawn[name][:, 0]),
        }
    return entries


def table(results):
    """The results in Markdown."""
    yield from heading("Faithfulness on the example models", "measure.py", results)
    for result in results["subjects"]:
        yield ""
        yield "## %s: %d samples of %s" % (told(result), result["samples"], units_told(result))
        yield ""
        yield "| method | F | deletion | insertion | F natural | F over integrated gradients | %s |" % (
            "parts over the move | leftover | ms"
        )
        yield "|---|---|---:|---:|---:|---|---:|---:|---:|"
        for method, entry in result["methods"].items():
            yield "| %s | %.3f [%.3f, %.3f] | %.3f | %.3f | %.3f | %s | %s | %.1f |" % (
                method, entry["faithfulness"], *entry["faithfulness_interval"],
                entry["deletion_aopc"], entry["insertion_aopc"],
                entry.get("faithfulness_natural", entry["faithfulness"]),
                "" if method == COMPARED_WITH
                else "%+.3f [%+.3f, %+.3f]" % (entry["difference"], *entry["difference_interval"]),
                sums_told(method, entry),
                entry["processor_ms_per_sample"],
            )
    yield ""
    missed = results["missed"]
    yield (
        "`faithful` is more than %g below integrated gradients on: %s." % (MARGIN, "; ".join(missed)) if missed
        else "`faithful` is within %g of integrated gradients, or above, on each." % MARGIN
    )


def sums_told(method, entry):
    """Conditioning and leftover, in two cells, of a method that has a sum in mind."""
    if method in SUMLESS:
        return " | "
    return "%.2f | %s" % (entry["conditioning"], metrics.share(entry["leftover"]))


def told(result):
    return "%s, from %s" % (result["name"], result["start"])


def units_told(result):
    return result["units"] if result["units"][0].isdigit() else "%.0f %s on average" % (
        result["mean_units"], result["units"],
    )


def heading(title, script, results):
    """How a page begins."""
    facts = results["machine"]
    yield "# " + title
    yield ""
    yield "What the columns are: README.md. Made by %s on %s; Addend %s (%s), PyTorch %s, %s." % (
        script, facts["date"], facts["addend"], facts["commit"], facts["torch"], facts["processor"],
    )


def publish(arguments, results, table):
    """Writes all results, and shows a table of them, which goes where it was asked for, too."""
    write(arguments.json, results)
    text = "\n".join(table(results))
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n", encoding="utf-8")


def write(path, results):
    """Writes the results so far, since a run takes minutes; six digits of each number, and null for NaN or infinity."""
    if path:
        rounded = json.loads(
            json.dumps(results), parse_float=lambda text: float("%.6g" % float(text)), parse_constant=lambda _: None
        )
        path.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown)
    captum = checkouts.captum(arguments.captum) if arguments.captum else None
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "seed": SEED, "bootstrap_draws": DRAWS, "margin": MARGIN, "subjects": []}
    start = time.monotonic()
    for subject in subjects.all_subjects(arguments.samples):
        say("%s, from %s" % (subject.name, subject.start))
        results["subjects"].append(measure(subject, captum))
        write(arguments.json, results)
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    results["missed"] = [
        told(result) for result in results["subjects"] if result["methods"][OURS]["difference"] < -MARGIN
    ]
    publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures how well contributions tell causes that are known, on small networks that it trains; see README.md."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy
import torch

import aims
import measure
import methods
import metrics
import subjects
import truths

import machine  # on the path that `measure` adds


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200, help="of each task (default: 200)")
    parser.add_argument("--seeds", type=int, default=3, help="networks of each task (default: 3)")
    parser.add_argument(
        "--task", action="append", metavar="NAME",
        help="only tasks whose names begin so; the file of --json, if there is one, keeps what it says of the others",
    )
    parser.add_argument("--networks", type=Path, metavar="FOLDER", help="keeps what was trained, for the next run")
    measure.add_outputs(parser)
    return parser.parse_args()


def make_methods(subject):
    """The methods by name, in the order of tables."""
    made = measure.make_methods(subject, policies={**methods.POLICIES, **methods.IN_SEGMENTS})
    made["sampled Shapley"] = methods.SampledShapley(subject, measure.SEED)
    if methods.softmaxes(subject.model):
        made["attention rollout"] = methods.AttentionRollout(subject)
    return made


def measured_before(arguments):
    """The results of tasks by name that stand in the file of --json, where only some tasks are to be measured."""
    if not arguments.task or not arguments.json or not arguments.json.exists():
        return {}
    return {result["name"]: result for result in json.loads(arguments.json.read_text(encoding="utf-8"))["tasks"]}


def measure_task(task, arguments):
    """The results of all networks of a task."""
    result = {
        "name": task.name,
        "units": task.what,
        "causes": int((task.draw(1, torch.Generator().manual_seed(0)).roles == metrics.CAUSE).sum()),
        "samples": arguments.samples,
        "date": machine.facts()["date"],
    }
    seeds = truths.SEEDS[: arguments.seeds]
    networks = [measure_network(task, seed, arguments.samples, arguments.networks) for seed in seeds]
    return {**result, "same": aims.take_repeated(networks), "networks": networks}


def measure_network(task, seed, samples, folder):
    """The results of one network, from each baseline of its task."""
    network, trained = truths.load_or_train(task, seed, folder)
    drawn = task.draw(samples, torch.Generator().manual_seed(truths.HELD_OUT + seed))
    result = {
        **trained,
        "accuracy": truths.accuracy(network, drawn),
        "accuracy_of_needed": truths.accuracy_of_needed(task, network, drawn),
        "starts": [],
    }
    for start in task.starts:
        measure.say(" from %s" % start)
        subject = subject_of(task, network, drawn, start)
        result["starts"].append({"start": start, "methods": measure_start(subject, drawn)})
    return result


def subject_of(task, network, drawn, start):
    """A network with the samples of its task, from one baseline."""
    with torch.no_grad():
        inputs = network.embed(drawn.inputs)
        baseline, natural = (task.start(name, network, drawn.inputs) for name in (start, task.starts[0]))
    return subjects.Subject(
        task.name, task.what, start, network, inputs, task.labels(len(inputs)), baseline, drawn.classes,
        natural=None if start == task.starts[0] else natural,
    )


def measure_start(subject, drawn):
    """The results of one baseline, by method."""
    with torch.no_grad():
        moves = subject.model(subject.inputs) - subject.model(subject.baselines)
    targets = drawn.classes.tolist()
    gaps = [float(methods.centred(move, target)) for move, target in zip(moves, targets)]
    facts, curves = {}, {}
    for name, method in make_methods(subject).items():
        start = time.process_time()
        contributions = [method(sample, target) for sample, target in enumerate(targets)]
        seconds = time.process_time() - start
        facts[name] = {
            **metrics.mean_found(contributions, drawn.roles.numpy()),
            "conditioning": metrics.conditioning(contributions, gaps),
            "leftover": metrics.leftover(contributions, gaps),
            "processor_ms_per_sample": 1e3 * seconds / len(targets),
        }
        curves[name] = measure.curve(subject, drawn.classes, contributions, subject.baselines)
        values = metrics.faithfulness(curves[name]).tolist()
        facts[name].update(zip(("faithfulness", "deletion_aopc", "insertion_aopc"), values))
        if subject.natural is not None:
            natural = measure.curve(subject, drawn.classes, contributions, subject.natural)
            facts[name]["faithfulness_natural"] = float(metrics.faithfulness(natural)[0])
        measure.say("  %-40s first %.3f" % (name, facts[name]["cause_first"]))
    rows = metrics.draws(len(targets), measure.DRAWS, measure.SEED)
    drawn_of = {name: metrics.faithfulness(samples[rows])[:, 0] for name, samples in curves.items()}
    for name in facts:
        facts[name]["difference"] = facts[name]["faithfulness"] - facts[measure.COMPARED_WITH]["faithfulness"]
        facts[name]["difference_deviation"] = float((drawn_of[name] - drawn_of[measure.COMPARED_WITH]).std())
    return facts


def table(results):
    """The results in Markdown."""
    yield from measure.heading("Causes that are known", "measure_truths.py", results)
    yield ""
    yield from aims.table(results)
    for result in results["tasks"]:
        networks = result["networks"]
        yield ""
        yield "## %s: %d networks, of each %d samples of %s" % (
            result["name"], len(networks), result["samples"], result["units"],
        )
        yield ""
        yield "Measured on %s. %s %% of the samples answered after %s steps; %s %% with all parts removed that cannot matter." % (
            result["date"],
            percents(networks, "accuracy"),
            listed([str(network["steps"]) for network in networks]),
            percents(networks, "accuracy_of_needed"),
        )
        for kept in dict.fromkeys(result["same"].values()):
            repeating = [name for name, same in result["same"].items() if same == kept]
            yield "The same as %s, in all numbers: %s." % (kept, "; ".join(repeating))
        yield ""
        yield "| from | method | cause first | cause or pointer | needed first | on causes | %s |" % (
            "cannot matter | largest of these | F | F natural | parts over the move | leftover | ms"
        )
        yield "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        for place, part in enumerate(networks[0]["starts"]):
            for method in part["methods"]:
                yield row(part["start"], method, aims.entries(result, method, place))


def row(start, method, found):
    """Means over networks; of how often the cause is first, also the least."""
    keys = set.intersection(*(set(entry) for entry in found))
    mean = {key: numpy.mean([entry[key] for entry in found]) for key in keys}
    return "| %s | %s | %.1f %% (%.1f) | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.3f | %.3f | %.3f | %s | %.1f |" % (
        start, method, 100 * mean["cause_first"], 100 * min(entry["cause_first"] for entry in found),
        100 * mean["cause_or_pointer_first"], 100 * mean["needed_first"], 100 * mean["on_causes"],
        100 * mean["on_what_cannot_matter"], mean["largest_of_these"],
        mean["faithfulness"], mean.get("faithfulness_natural", mean["faithfulness"]),
        measure.sums_told(method, mean), mean["processor_ms_per_sample"],
    )


def percents(networks, key):
    return listed(["%.1f" % (100 * network[key]) for network in networks])


def listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown, arguments.networks and arguments.networks / "network")
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "tasks": []}
    measured, names = measured_before(arguments), [task.name for task in truths.all_tasks()]
    start = time.monotonic()
    for task in truths.all_tasks():
        if arguments.task and not task.name.startswith(tuple(arguments.task)):
            continue
        measure.say(task.name)
        measured[task.name] = measure_task(task, arguments)
        results["tasks"] = [measured[name] for name in names if name in measured]
        measure.write(arguments.json, results)
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    measure.publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures how well contributions tell causes that are known, on small networks that it trains; see README.md."""

import argparse
import sys
import time
from pathlib import Path

import numpy
import torch

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
    parser.add_argument("--task", action="append", metavar="NAME", help="only tasks whose names begin so")
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
    facts = {}
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
        curve = measure.curve(subject, drawn.classes, contributions, subject.baselines)
        facts[name].update(zip(("faithfulness", "deletion_aopc", "insertion_aopc"), metrics.faithfulness(curve).tolist()))
        if subject.natural is not None:
            natural = measure.curve(subject, drawn.classes, contributions, subject.natural)
            facts[name]["faithfulness_natural"] = float(metrics.faithfulness(natural)[0])
        measure.say("  %-28s first %.3f" % (name, facts[name]["cause_first"]))
    return facts


def table(results):
    """The results in Markdown."""
    yield from measure.heading("Causes that are known", "measure_truths.py", results)
    for result in results["tasks"]:
        networks = result["networks"]
        yield ""
        yield "## %s: %d networks, of each %d samples of %s" % (
            result["name"], len(networks), result["samples"], result["units"],
        )
        yield ""
        yield "%s %% of the samples answered after %s steps; %s %% with all parts removed that cannot matter." % (
            percents(networks, "accuracy"),
            listed([str(network["steps"]) for network in networks]),
            percents(networks, "accuracy_of_needed"),
        )
        yield ""
        yield "| from | method | cause first | cause or pointer | needed first | on causes | %s |" % (
            "cannot matter | largest of these | F | F natural | parts over the move | leftover | ms"
        )
        yield "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        for part in networks[0]["starts"]:
            for method in part["methods"]:
                yield row(part["start"], method, entries(networks, part["start"], method))


def entries(networks, start, method):
    """The findings of one method from one baseline, by network."""
    parts = [part for network in networks for part in network["starts"] if part["start"] == start]
    return [part["methods"][method] for part in parts]


def row(start, method, found):
    """Means over networks; of how often the cause is first, also the least."""
    mean = {key: numpy.mean([entry[key] for entry in found]) for key in found[0]}
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
    start = time.monotonic()
    for task in truths.all_tasks():
        if arguments.task and not task.name.startswith(tuple(arguments.task)):
            continue
        measure.say(task.name)
        results["tasks"].append({"name": task.name, "units": task.what, "samples": arguments.samples, "networks": []})
        for seed in truths.SEEDS[: arguments.seeds]:
            measured = measure_network(task, seed, arguments.samples, arguments.networks)
            results["tasks"][-1]["networks"].append(measured)
            measure.write(arguments.json, results)
    results["load_at_end"] = machine.load()
    results["seconds"] = round(time.monotonic() - start, 1)
    measure.publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures what pieces of the line from baseline to input do to contributions whose causes are known; see README.md."""

import argparse
import sys
from pathlib import Path

import numpy
import torch

import measure
import measure_truths
import methods
import metrics
import truths

import machine  # on the path that `measure` adds

TASKS = ("retrieval, encoder", "retrieval, decoder")
SEGMENTS = (1, 2, 4, 8, 16)
SHARED = {"content first": {"preset": "faithful"}, "by half": methods.POLICIES["Addend faithful, by half"]}
HELD = "integrated gradients, attention held"
POINTS = 16  # the line is looked at between so many pieces


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100, help="of each network (default: 100)")
    parser.add_argument("--networks", type=Path, metavar="FOLDER", help="keeps what was trained, for the next run")
    measure.add_outputs(parser)
    return parser.parse_args()


def measure_network(task, seed, samples, folder):
    """Findings of the contributions, by method, and how the network goes along the line."""
    network, _ = truths.load_or_train(task, seed, folder)
    drawn = task.draw(samples, torch.Generator().manual_seed(truths.HELD_OUT + seed))
    subject = measure_truths.subject_of(task, network, drawn, task.starts[0])
    made = {
        "%s, %d" % (shared, segments): methods.Addend(subject, {**policy, "segments": segments})
        for shared, policy in SHARED.items()
        for segments in SEGMENTS
    }
    made[measure.COMPARED_WITH] = methods.IntegratedGradients(subject)
    made[HELD] = methods.IntegratedGradientsOfContent(subject)
    contributions = {
        name: numpy.array([method(*pair) for pair in enumerate(drawn.classes.tolist())]) for name, method in made.items()
    }
    limit = contributions[measure.COMPARED_WITH]
    return {
        "seed": seed,
        "methods": {
            name: {
                **metrics.mean_found(rows, drawn.roles.numpy()),
                "distance": float(numpy.abs(rows - limit).sum() / numpy.abs(limit).sum()),
            }
            for name, rows in contributions.items()
        },
        "line": line(subject, drawn),
    }


def line(subject, drawn):
    """Means over the samples: how much of the move is made, and how much attention the last token pays to what cannot
    matter (over heads and layers), at POINTS + 1 points; and the lengths of the ways of both and of all attention,
    relative to the straight ones."""
    made, idle, detours = [], [], []
    for sample, target in enumerate(drawn.classes.tolist()):
        begin, end = subject.baselines[sample], subject.inputs[sample]
        points = torch.stack([begin + point / POINTS * (end - begin) for point in range(POINTS + 1)])
        outputs, weights = methods.run_with_attention(subject.model, points)
        scores = methods.centred(outputs.double(), target).numpy()
        attention = torch.stack(weights, 1).double().numpy()  # [points, layers, heads, from, to]
        made.append((scores - scores[0]) / (scores[-1] - scores[0]))
        idle.append(attention[..., -1, drawn.roles[sample].numpy() == metrics.CANNOT_MATTER].sum(-1).mean((1, 2)))
        detours.append([detour(scores[:, None]), detour(attention.reshape(POINTS + 1, -1))])
    return {
        "move_made": numpy.median(made, 0).tolist(),
        "attention_to_what_cannot_matter": numpy.mean(idle, 0).tolist(),
        "detour_of_score": float(numpy.mean(detours, 0)[0]),
        "detour_of_attention": float(numpy.mean(detours, 0)[1]),
    }


def detour(points):
    """How long the way over the points [points, dimensions] is, relative to the straight one from first to last."""
    return numpy.linalg.norm(numpy.diff(points, axis=0), axis=1).sum() / numpy.linalg.norm(points[-1] - points[0])


def table(results):
    """The results in Markdown."""
    yield from measure.heading("Segments", "measure_segments.py", results)
    for result in results["tasks"]:
        networks = result["networks"]
        yield ""
        yield "## %s: %d networks, of each %d samples, from the %s" % (
            result["name"], len(networks), result["samples"], result["start"],
        )
        yield ""
        yield "| method, segments | cause first | needed first | on causes | cannot matter | distance |"
        yield "|---|---|---:|---:|---:|---:|"
        for method in networks[0]["methods"]:
            found = [network["methods"][method] for network in networks]
            mean = {key: numpy.mean([entry[key] for entry in found]) for key in found[0]}
            yield "| %s | %.1f %% (%.1f) | %.1f %% | %.1f %% | %.1f %% | %.1f %% |" % (
                method, 100 * mean["cause_first"], 100 * min(entry["cause_first"] for entry in found),
                100 * mean["needed_first"], 100 * mean["on_causes"], 100 * mean["on_what_cannot_matter"],
                100 * mean["distance"],
            )
        lines = [network["line"] for network in networks]
        yield ""
        yield "Along the line, at 0, 1/4, 1/2, 3/4 and 1:"
        yield ""
        yield "- of the move are made %s;" % quarters(lines, "move_made")
        yield "- the last token pays %s of its attention to what cannot matter;" % quarters(
            lines, "attention_to_what_cannot_matter"
        )
        yield "- the way of the score is %.2f times as long as the straight one, that of all attention weights %.2f times." % (
            numpy.mean([entry["detour_of_score"] for entry in lines]),
            numpy.mean([entry["detour_of_attention"] for entry in lines]),
        )


def quarters(lines, key):
    mean = numpy.mean([entry[key] for entry in lines], 0)
    return measure_truths.listed(["%.0f %%" % (100 * value) for value in mean[:: POINTS // 4]])


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown, arguments.networks and arguments.networks / "network")
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "tasks": []}
    for task in truths.all_tasks():
        if task.name not in TASKS:
            continue
        measure.say(task.name)
        networks = [measure_network(task, seed, arguments.samples, arguments.networks) for seed in truths.SEEDS]
        results["tasks"].append(
            {"name": task.name, "samples": arguments.samples, "start": task.starts[0], "networks": networks}
        )
        measure.write(arguments.json, results)
    results["load_at_end"] = machine.load()
    measure.publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

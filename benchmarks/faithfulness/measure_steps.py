#!/usr/bin/env python3
"""Measures what steps do to contributions: networks of known causes whose layers round what they read to a grid, which is
fixed or found at run time, with each step shared by what crosses it, and with steps left over; see README.md."""

import argparse
import contextlib
import sys
from pathlib import Path

import numpy
import torch
from torch import nn

import measure
import measure_truths
import methods
import metrics
import truths

import machine  # on the path that `measure` adds

GRIDS = ((8, "fixed"), (4, "fixed"), (8, "found"), (4, "found"))  # bits, and whether each run finds its own
CHOICES = {
    "steps shared": {"preset": "faithful"},
    "steps left over": {"preset": "faithful", "overrides": {"aten::round": {"nonlinearity": "gradient"}}},
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100, help="of each task (default: 100)")
    parser.add_argument("--task", action="append", metavar="NAME", help="tasks whose names begin so (default: table, image)")
    parser.add_argument("--networks", type=Path, metavar="FOLDER", help="keeps what was trained, for the next run")
    measure.add_outputs(parser)
    return parser.parse_args()


class Rounding:
    """A hook before a layer: what it reads, rounded to 2**bits - 1 steps from its smallest number to its largest, or to
    those of the first call."""

    def __init__(self, bits, fixed):
        self._steps = 2**bits - 1
        self._fixed = fixed
        self._scales = {}

    def __call__(self, module, arguments):
        x = arguments[0]
        scale = (x.max().clamp(min=0) - x.min().clamp(max=0)) / self._steps
        if self._fixed:
            scale = self._scales.setdefault(module, float(scale))
        return ((x / scale).round() * scale, *arguments[1:])


def rounded(network, bits, grid):
    """A context in which every layer of a network reads rounded numbers; no bits: as they are."""
    stack = contextlib.ExitStack()
    if bits:
        hook = Rounding(bits, grid == "fixed")
        for layer in network.modules():
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                stack.enter_context(layer.register_forward_pre_hook(hook))
    return stack


def measure_start(task, network, drawn, start):
    """The results of one network from one baseline, by grid and choice."""
    subject = measure_truths.subject_of(task, network, drawn, start)
    targets = drawn.classes.tolist()
    smooth, facts = None, []
    for bits, grid in ((None, "none"), *GRIDS):
        with rounded(network, bits, grid), torch.no_grad():
            subject.model(torch.cat([subject.inputs, subject.baselines]))  # what fixes a grid
            moves = subject.model(subject.inputs) - subject.model(subject.baselines)
            gaps = [float(methods.centred(move, target)) for move, target in zip(moves, targets)]
            right = truths.accuracy(network, drawn)
            for name, policy in CHOICES.items() if bits else [("not rounded", CHOICES["steps shared"])]:
                method = methods.Addend(subject, policy)
                found = [method(sample, target) for sample, target in enumerate(targets)]
                smooth = found if smooth is None else smooth
                facts.append({
                    "bits": bits,
                    "grid": grid,
                    "choice": name,
                    "accuracy": right,
                    **metrics.mean_found(found, drawn.roles.numpy()),
                    "leftover": metrics.leftover(found, gaps),
                    "like_smooth": float(numpy.mean([alike(*pair) for pair in zip(found, smooth)])),
                })
                measure.say("  %s %s, %s first %.3f" % (bits, grid, name, facts[-1]["cause_first"]))
    return facts


def alike(a, b):
    """The cosine of two rows of contributions; 0 where one of them is zero."""
    size = numpy.linalg.norm(a) * numpy.linalg.norm(b)
    return float(a @ b / size) if size else 0.0


def table(results):
    """The results in Markdown."""
    yield from measure.heading("Steps", "measure_steps.py", results)
    yield ""
    yield "| network | from | grid | steps | right | cause first | cannot matter | like those of the smooth network | leftover |"
    yield "|---|---|---|---|---:|---:|---:|---:|---:|"
    for result in results["tasks"]:
        for part in result["starts"]:
            for one in part["choices"]:
                grid = "%d bits, %s" % (one["bits"], one["grid"]) if one["bits"] else "none"
                yield "| %s | %s | %s | %s | %.1f %% | %.1f %% | %.1f %% | %.3f | %s |" % (
                    result["name"], part["start"], grid, one["choice"],
                    100 * one["accuracy"], 100 * one["cause_first"], 100 * one["on_what_cannot_matter"],
                    one["like_smooth"], metrics.share(one["leftover"]),
                )


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown, arguments.networks and arguments.networks / "network")
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "tasks": []}
    chosen = tuple(arguments.task or ("table", "image"))
    for task in truths.all_tasks():
        if not task.name.startswith(chosen):
            continue
        measure.say(task.name)
        network, _ = truths.load_or_train(task, truths.SEEDS[0], arguments.networks)
        drawn = task.draw(arguments.samples, torch.Generator().manual_seed(truths.HELD_OUT + truths.SEEDS[0]))
        starts = [{"start": s, "choices": measure_start(task, network, drawn, s)} for s in task.starts]
        results["tasks"].append({"name": task.name, "samples": arguments.samples, "starts": starts})
    measure.publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

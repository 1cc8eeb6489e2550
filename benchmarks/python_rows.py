"""The cost of the rows of a table through Python's doors, beside `explain`: time in turns, and peak memory.

An MLP (64-256-256-10) as a live model and from a file, one target a row, one baseline, `faithful`. One round is one plain
run, one `explain` and one call of each door; medians of the ratios within a round are printed.
"""

import io
import statistics
import sys
from pathlib import Path

import torch
from torch import nn

import addend

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

import processes  # noqa: E402

ROWS = (128, 1024, 8192)
COLUMNS = ("plain run", "explain", "model.attribute", "addend.attribute", "with the delta")
# Seconds of the processor that one call may take.
LIMIT = 120


def make():
    """The network, a model from its file, and the baseline."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(network, torch.rand(2, 64)), file)
    return network, addend.load_model(file.getvalue()), torch.randn(1, 64)


def ways(network, model, given, baseline):
    """The functions that run each column on rows, by column.

    Args:
        given: what `addend.attribute` takes: the network, or a model from a file.
    """

    @torch.no_grad()
    def plain(rows):
        return network(rows)

    return {
        "plain run": plain,
        "explain": lambda rows: model.explain(
            addend.Input(rows, dims=1, baseline=baseline), targets=0, each_example=True
        ),
        "model.attribute": lambda rows: model.attribute(rows, baseline, 0),
        "addend.attribute": lambda rows: addend.attribute(given, rows, baseline, 0),
        "with the delta": lambda rows: addend.attribute(given, rows, baseline, 0, None, True),
    }


def times(runs, rows):
    """The seconds of the processor of each round, by column."""
    found = {name: [] for name in runs}
    for _ in range(9 if rows > 1024 else 25):
        batch = torch.randn(rows, 64)
        for name, run in runs.items():
            found[name].append(processes.spent(lambda run=run: run(batch))["processor"])
    return found


def peak(run, rows):
    """The memory of a first run, in MiB, in a process of its own."""

    def find():
        run(torch.randn(128, 64))
        return processes.first_run(lambda: run(torch.randn(rows, 64)), LIMIT)[2]

    return processes.in_child(find, LIMIT)


def main():
    torch.set_num_threads(1)
    network, model, baseline = make()
    kinds = {"live": (addend.compile(network), network), "file": (model, model)}
    runs = {kind: ways(network, own, given, baseline) for kind, (own, given) in kinds.items()}
    # Before anything large has run here, whose freed memory the processes would inherit.
    peaks = {
        (kind, rows, name): peak(run, rows) for kind, own in runs.items() for rows in ROWS for name, run in own.items()
    }
    print("milliseconds of the processor, over explain, MiB at the peak")
    print("%-11s%s" % ("model, rows", "".join("%25s" % name for name in COLUMNS)))
    for kind, own in runs.items():
        for rows in ROWS:
            for run in own.values():
                run(torch.randn(rows, 64))
            taken = times(own, rows)
            cells = []
            for name in COLUMNS:
                ratio = statistics.median(one / other for one, other in zip(taken[name], taken["explain"]))
                cells.append("%9.2f %6.2f %8.1f" % (1e3 * statistics.median(taken[name]), ratio, peaks[kind, rows, name]))
            print("%-11s%s" % ("%s, %d" % (kind, rows), "".join("%25s" % cell for cell in cells)), flush=True)


if __name__ == "__main__":
    main()

"""Recovery is judged by the number that people read: random tables, far from their baselines, against their own scale.

The columns of a table have shifts and scales over six decades, and a model standardizes them in one of several ways. A
recovery that is off by more than 1e-3 of the output's scale is said or refused, and one within 1e-5 is neither. The
model itself is the oracle.
"""

import collections
import itertools
import math
import os
import random
import sys
import tempfile
import unittest
import warnings

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402

COLUMNS = 6
ROWS = 64


class Standardized(nn.Module):
    """``(x - mean) / std``, as constants of the model."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("mean", table.mean(0))
        self.register_buffer("std", table.std(0))

    def forward(self, x):
        return (x - self.mean) / self.std


class Scaled(nn.Module):
    """Between the smallest and the largest number of each column."""

    def __init__(self, table):
        super().__init__()
        self.register_buffer("least", table.min(0).values)
        self.register_buffer("range", table.max(0).values - self.least)

    def forward(self, x):
        return (x - self.least) / self.range


def batch_norm(table):
    norm = nn.BatchNorm1d(COLUMNS, eps=1e-12, momentum=1.0)
    with torch.no_grad():
        norm.train()(table)
    return norm


def folded(table):
    """A linear layer into whose weights the standardization was folded, as exporters do."""
    layer = nn.Linear(COLUMNS, COLUMNS)
    with torch.no_grad():
        std = table.std(0)
        layer.weight.div_(std)
        layer.bias.sub_((layer.weight * table.mean(0)).sum(1))
    return layer


NORMALIZATIONS = {
    "batch norm": batch_norm,
    "standardized": Standardized,
    "scaled to a range": Scaled,
    "folded into weights": folded,
    "layer norm": lambda table: nn.LayerNorm(COLUMNS),
}
BASELINES = {
    "zero": lambda table, row: 0.0,
    "mean": lambda table, row: table.mean(0, keepdim=True),
    "a row": lambda table, row: table[:1],
}


def drawn(seed, normalization):
    """A table, a model of it, and a row."""
    torch.manual_seed(seed)
    draw = random.Random(seed)
    shift = torch.tensor([10 ** draw.uniform(-3, 3) * draw.choice((-1, 1)) for _ in range(COLUMNS)])
    scale = torch.tensor([10 ** draw.uniform(-3, 3) for _ in range(COLUMNS)])
    table = shift + scale * torch.randn(ROWS, COLUMNS)
    first = NORMALIZATIONS[normalization](table)
    model = nn.Sequential(first, nn.Linear(COLUMNS, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    return table, model, table[3:4]


def flagged(notes, failures=0):
    return failures > 0 or any(note.startswith(("recovery is off", "tracing failure")) for note in notes)


def asked(ask):
    """The answer to a way of asking: recovery, notes and failures; None where it was refused as a tracing failure."""
    try:
        return ask()
    except addend.Error as error:
        if "tracing failure" not in str(error):
            raise
        return None


class TablesTest(unittest.TestCase):
    def judge(self, name, ask, value, scale):
        """Returns whether the recovery was flagged."""
        answer = asked(ask)
        if answer is None:
            return True
        recovery, notes, failures = answer
        off = (recovery.double() - value.double()).abs().max().item() / scale
        said = flagged(notes, failures)
        if off > 1e-3:
            self.assertTrue(said, "%s: off by %.1e, and nobody says so: %s" % (name, off, notes))
        if off <= 1e-5:
            self.assertFalse(said, "%s: off by %.1e only, but flagged: %s" % (name, off, notes))
        return said

    def judge_parts(self, name, ask, compiled, source, value, scale):
        """Judges a decomposition's explanation by the sum of the numbers that stand there; the report that stands
        beside them judges the recovery in their own dtype as well."""
        answer = asked(ask)
        if answer is None:
            return
        summed, notes, failures = answer
        off = abs(summed.item() - value.item()) / scale
        said = flagged(notes, failures)
        if off > 1e-3:
            self.assertTrue(said, "%s: off by %.1e, and nobody says so: %s" % (name, off, notes))
        if off <= 1e-5 and said:
            self.assertTrue(flagged(compiled.decompose(source).notes), "%s: off by %.1e only: %s" % (name, off, notes))

    def test_whatever_is_off_is_said(self):
        count = {True: 0, False: 0}
        for seed, normalization, baseline in itertools.product(range(12), NORMALIZATIONS, BASELINES):
            table, model, row = drawn(seed, normalization)
            source = addend.Input(row, dims=1, baseline=BASELINES[baseline](table, row))
            with torch.no_grad():
                value = model(row)
            scale = value.abs().max().item()
            where = (0, int(value.abs().argmax()))
            for policy in ({}, {"on_failure": "warn"}):
                compiled = addend.compile(model, preset="faithful", **policy)

                def decompose():
                    results = compiled.decompose(source)
                    return results[0].recovery.torch(), results.notes, results.report["failures"]

                def explain_parts():
                    results = compiled.decompose(source)
                    found = results.explain("%d,%d" % where)
                    summed = math.fsum([*found.contributions, found.reference, found.leftover])
                    return torch.tensor(summed, dtype=torch.float64), found.notes, results.report["failures"]

                def explain():
                    found = compiled.explain(source, targets=[where])
                    return torch.tensor(found[0].recovery), found.notes, found.report["failures"]

                name = "%s, baseline %s, seed %d, %s" % (normalization, baseline, seed, policy)
                with self.subTest(name):
                    count[self.judge("decompose " + name, decompose, value, scale)] += 1
                    count[self.judge("explain " + name, explain, value[where], scale)] += 1
                    self.judge_parts("explain parts " + name, explain_parts, compiled, source, value[where], scale)
        # Both happen, so that neither expectation is empty.
        self.assertGreater(count[True], 10)
        self.assertGreater(count[False], 200)

    def test_float64_and_a_baseline_of_the_data_help(self):
        for seed, normalization in itertools.product(range(4), NORMALIZATIONS):
            table, model, row = drawn(seed, normalization)
            with self.subTest("%s, seed %d" % (normalization, seed)), torch.no_grad():
                compiled = addend.compile(model, preset="faithful", compute_dtype="float64")
                parts = compiled.decompose(addend.Input(row, dims=1, baseline=0.0))[0]
                exact = model.double()(row.double())
                scale = exact.abs().max()
                self.assertLess((parts.value.torch() - exact).abs().max(), 1e-12 * scale)
                self.assertLess((parts.recovery.torch() - exact).abs().max(), 1e-9 * scale)
                self.assertFalse(flagged(parts.notes), parts.notes)


def far_table(deviation):
    """Columns of 2000 and a little, in front of a batch norm."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8, eps=1e-12, momentum=1.0)
    model = nn.Sequential(norm, nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    table = 2000 + deviation * torch.randn(512, 8)
    with torch.no_grad():
        model.train()(table)
    return table, model.eval()


EXACT = {name: make for name, make in NORMALIZATIONS.items() if name != "layer norm"}  # nothing is left over


class Head(nn.Module):
    """One number for each row, as [rows, 1] or [rows], or three."""

    def __init__(self, table, normalization, shape):
        super().__init__()
        self.first = EXACT[normalization](table)
        self.rest = nn.Sequential(nn.Linear(COLUMNS, 16), nn.ReLU(), nn.Linear(16, 3 if shape == "three" else 1))
        self.flat = shape == "flat"

    def forward(self, x):
        y = self.rest(self.first(x))
        return y.squeeze(1) if self.flat else y


class ExamplesTest(unittest.TestCase):
    """Rows that are asked together are each judged by their own output, as they are alone, in every way of asking."""

    def judge(self, name, offs, said):
        if max(offs) > 1e-3:
            self.assertTrue(said, "%s: off by %.1e, and nobody says so" % (name, max(offs)))
        if max(offs) <= 1e-5:
            self.assertFalse(said, "%s: off by %.1e only, but flagged" % (name, max(offs)))
        return said

    def ways(self, compiled, model, rows, baseline, shape):
        """For each way, how far the parts of each row are from its value, and whether that is said."""
        source = addend.Input(rows, dims=1, baseline=baseline)
        with torch.no_grad():
            value = model(rows).double()
        scales = value.abs() if value.dim() == 1 else value.abs().amax(1)
        target = "()" if shape == "flat" else "0"
        first = value if value.dim() == 1 else value[:, 0]

        def offs(of_rows):
            return [abs(a - b) / s for a, b, s in zip(of_rows, first.tolist(), scales.tolist())]

        def each():
            found = compiled.explain(source, targets=[target] * len(rows), each_example=True)
            return [math.fsum([*one.contributions, one.reference]) for one in found], found[0].notes

        def attributed():
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                chosen = {} if shape == "flat" else {"target": [0] * len(rows)}
                _, missed = addend.attribute(
                    model, rows, baseline, return_convergence_delta=True, preset="faithful", **chosen, **self.policy
                )
            return (first + missed.double()).tolist(), [str(one.message) for one in said]

        yield "each example", each, offs
        yield "attribute", attributed, offs
        if shape == "flat":
            return  # one dimension is a row of classes, unless rows have targets of their own
        with torch.no_grad():
            smallest = int(scales.argmin())

        def one_of_them():
            found = compiled.explain(source, targets=[(smallest, 0)])[0]
            return [found.recovery], found.notes

        yield "one of them", one_of_them, lambda found: [abs(found[0] - first[smallest].item()) / scales[smallest].item()]

        def explained_part():
            found = compiled.decompose(source).explain("%d,0" % smallest)
            return [math.fsum([*found.contributions, found.reference, found.leftover])], found.notes

        # The report also tells of other rows.
        yield "a part of it", explained_part, None

    def test_whatever_is_off_is_said(self):
        count = {True: 0, False: 0}
        shapes = ("one", "flat", "three")
        for seed, normalization, baseline, shape in itertools.product(range(6), EXACT, ("zero", "mean"), shapes):
            table, _, _ = drawn(seed, normalization)
            model = Head(table, normalization, shape).eval()
            rows = table[8:16]
            start = BASELINES[baseline](table, rows)
            start = start.expand_as(rows).contiguous() if isinstance(start, torch.Tensor) else start
            self.policy = {"on_failure": "warn"}
            compiled = addend.compile(model, preset="faithful", **self.policy)
            name = "%s, baseline %s, seed %d, %s" % (normalization, baseline, seed, shape)
            for way, ask, offs in self.ways(compiled, model, rows, start, shape):
                with self.subTest("%s: %s" % (way, name)):
                    found, notes = ask()
                    said = any("recovery is off" in note or "tracing failure" in note for note in notes)
                    if offs is not None:
                        count[self.judge("%s: %s" % (way, name), offs(found), said)] += 1
                        continue
                    with torch.no_grad():
                        value = model(rows).double()
                    off = abs(found[0] - value[int(value.abs().amax(1).argmin()), 0].item())
                    if off > 1e-3 * value.abs().amax(1).min().item():
                        self.assertTrue(said, "%s: %s" % (way, name))
        self.assertGreater(count[True], 10)
        self.assertGreater(count[False], 100)


class FarTest(unittest.TestCase):
    """Tests what the sentence on a far recovery says, and that it reaches each way of asking."""

    def setUp(self):
        self.table, self.model = far_table(0.05)

    def test_by_default_it_is_an_error(self):
        for preset in ("faithful", "fast"):
            with self.assertRaisesRegex(addend.Error, "tracing failure: the parts of output differ") as caught:
                worst = []
                for row in self.table[:64].split(1):
                    compiled = addend.compile(self.model, preset=preset)
                    worst.append(compiled.decompose(addend.Input(row, dims=1, baseline=0)))
            message = str(caught.exception)
            for words in ("batch_norm", "times the value", "median:FILE", "compute_dtype=float64"):
                self.assertIn(words, message)

    def ways(self, row, **policy):
        """The notes that each way of asking gives."""
        given = addend.Input(row, dims=1, baseline=0)
        policy = {"preset": "faithful", "on_failure": "warn", **policy}
        compiled = addend.compile(self.model, **policy)
        yield "decompose", compiled.decompose(given).notes
        yield "backward", addend.compile(self.model, direction="backward", **policy).decompose(given).notes
        yield "explain", compiled.explain(given).notes
        yield "each example", compiled.explain(
            addend.Input(self.table[:16], dims=1, baseline=0), targets=[0], each_example=True
        ).notes
        plan = compiled.plan(given, targets=["top1"])
        yield "plan", plan.attribute(row).notes
        program = compiled.record(row).model()
        yield "recorded program", program.decompose(given, **policy).notes
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.pt")
            torch.jit.trace(self.model, row).save(path)
            loaded = addend.load_model(path)
            yield "file", loaded.decompose(given, **policy).notes
            yield "file, explained", loaded.explain(given, **policy).notes
            yield "file, in segments of memory", loaded.explain(given, memory=1, **policy).notes

    def test_every_way_says_it_first(self):
        # How far off a row is depends on the processor; some of them are on each.
        said = collections.defaultdict(list)
        for row in self.table[:8].split(1):
            for way, notes in self.ways(row):
                said[way].extend(notes[:1])
        self.assertEqual(len(said), 9)
        for way, first in said.items():
            with self.subTest(way):
                self.assertTrue(first, way)
                for note in first:
                    self.assertRegex(note, "^(recovery is off|tracing failure)", way)
                    self.assertIn("compute_dtype=float64", note)

    def test_no_way_says_it_in_float64(self):
        for way, notes in self.ways(self.table[:1], compute_dtype="float64"):
            with self.subTest(way):
                self.assertFalse(flagged(notes), notes)

    def test_the_models_own_rounding_is_news(self):
        said = {}
        for deviation in (5.0, 0.0005):
            table, model = far_table(deviation)
            row = table[:1]
            results = addend.compile(model, preset="faithful", on_failure="warn").decompose(
                addend.Input(row, dims=1, baseline=-1e6 if deviation == 5.0 else 0.0)
            )
            with torch.no_grad():
                exact, value = model.double()(row.double()), results[0].value.torch()
            said[deviation] = any("model's own value is rounding" in note for note in results.notes)
            own = ((value - exact).abs().max() / exact.abs().max()).item()
            self.assertTrue(flagged(results.notes, results.report["failures"]), results.notes)
            self.assertEqual(said[deviation], own > 1e-3, "own rounding %.1e: %s" % (own, results.notes))
        self.assertEqual(said, {5.0: False, 0.0005: True})

    def test_a_baseline_of_the_data_helps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.npy")
            import numpy

            numpy.save(path, self.table.numpy())
            for word in ("mean:" + path, "median:" + path):
                results = addend.compile(self.model, preset="faithful").decompose(
                    addend.Input(self.table[:1], dims=1, baseline=word)
                )
                self.assertFalse(flagged(results.notes), results.notes)


if __name__ == "__main__":
    unittest.main()

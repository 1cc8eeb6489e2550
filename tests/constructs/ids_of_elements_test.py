"""Ids that a model reads from floats: categories in a table of floats, and bins. In every answer an id belongs to the
element that it was read from.

The oracle is closed: the model adds up a vector of a table and the products of the other columns, so that the first
column contributes the difference of two vectors.
"""

import os
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional

import addend

EDGES = torch.tensor([0.5, 1.5, 2.5, 3.5])


def in_place(column):
    own = column.clone()
    own.clamp_(0, 4)
    own.round_()
    return own.long()


def by_buffer(column):
    own = torch.zeros(column.shape[0], 2)
    own[:, 1] = column
    return own.long()[:, 1]


WAYS = {
    "a cast": lambda c: c.long(),
    "a cast to another integer": lambda c: c.to(torch.int32).long(),
    "clamped": lambda c: c.clamp(0, 4).long(),
    "rounded": lambda c: c.round().long(),
    "rounded down": lambda c: c.floor().long(),
    "scaled and shifted": lambda c: ((c * 10 + 3 - 3) / 10 + 0.25).long(),
    "standardized and back": lambda c: ((c - 2.5) / 1.5 * 1.5 + 2.75).trunc().long(),
    "bucketize": lambda c: torch.bucketize(c, EDGES),
    "searchsorted": lambda c: torch.searchsorted(EDGES, c),
    "comparisons summed up": lambda c: (c[:, None] > EDGES).sum(1),
    "comparisons as integers": lambda c: (c > 0.5).long() + (c > 1.5).long() + (c > 2.5).int().long(),
    "in place": in_place,
    "through a buffer": by_buffer,
    "stacked": lambda c: torch.stack([c.round(), c.floor()], 1).long()[:, 0],
    "a function": lambda c: c.square().sqrt().add(0.25).long(),
    "through views": lambda c: c.reshape(-1, 1).t().contiguous().view(-1).long(),
}


class Row(nn.Module):
    def __init__(self, way, one_hot=False):
        super().__init__()
        torch.manual_seed(3)
        self.way = way
        self.one_hot = one_hot
        self.vectors = nn.Embedding(6, 2)
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        ids = self.way(x[:, 0])
        vectors = functional.one_hot(ids, 6).float() @ self.vectors.weight if self.one_hot else self.vectors(ids)
        return vectors + self.layer(x[:, 1:])

    def parts(self, x, baseline):
        """Contributions by row, column and output."""
        with torch.no_grad():
            vectors = self.vectors(self.way(x[:, 0])) - self.vectors(self.way(baseline[:, 0]))
            others = (x - baseline)[:, 1:, None] * self.layer.weight.t()
            return torch.cat([vectors[:, None], others.expand(len(x), 2, 2)], 1)


ROWS = torch.tensor([[2.0, 0.2, 0.4], [3.0, -1.0, 0.5], [4.0, 0.3, -0.7]])
BASELINE = torch.tensor([[1.0, 0.1, 0.0]])


class IdsOfElementsTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def near(self, found, wanted, where):
        found = torch.as_tensor(found, dtype=torch.float64)
        self.assertTrue(torch.allclose(found, wanted.double(), atol=2e-6), "%s: %s for %s" % (where, found, wanted))

    def models(self, net):
        """The model by every way that has one."""
        yield "live", addend.compile(net)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.trace(net, ROWS[:1], check_trace=False).save(path)
            yield "file", addend.load_model(path)
        yield "program", addend.compile(net).record(ROWS[:1], others=[ROWS[:2], ROWS]).model()

    def every(self):
        for name, way in WAYS.items():
            for one_hot in (False, True):
                yield name + (", one-hot" if one_hot else ""), Row(way, one_hot).eval()

    def test_one_row(self):
        for name, net in self.every():
            parts = net.parts(ROWS[:1], BASELINE)[0, :, 1]
            for door, model in self.models(net):
                where = "%s, %s" % (name, door)
                asked = addend.Input(ROWS[:1], dims=1, baseline=BASELINE)
                found = model.explain(asked, targets="0,1")
                self.near(found[0].contributions, parts, where)
                self.near(found.inputs[0].torch().flatten(), parts, where + ", elements")
                self.assertAlmostEqual(found[0].leftover, 0, places=5, msg=where)
                forward = model.decompose(asked).explain("0,1")
                self.near(forward.contributions, parts, where + ", decomposed")
                self.assertEqual(found.report["unattributed"], 0, where)
                self.assertFalse([n for n in found.notes if "conditions" in n], where)

    def test_every_row(self):
        for name, net in self.every():
            parts = net.parts(ROWS, BASELINE)[:, :, 0]
            for door, model in self.models(net):
                where = "%s, %s" % (name, door)
                asked = addend.Input(ROWS, dims=1, baseline=BASELINE)
                found = model.explain(asked, targets=0, each_example=True)
                for k in range(len(ROWS)):
                    self.near(found[k].contributions, parts[k], "%s, row %d" % (where, k))
                    self.assertAlmostEqual(found[k].leftover, 0, places=5, msg=where)
                self.near(found.inputs[0].torch(), parts, where + ", elements")
                plan = model.plan(addend.Input(ROWS, dims=1, baseline=BASELINE), targets=0, each_example=True)
                again = plan.attribute(ROWS.flip(0))
                self.near(again.inputs[0].torch(), parts.flip(0), where + ", plan")
            self.near(addend.attribute(net, ROWS, BASELINE, target=0), parts, name + ", attribute")

    def test_pieces_and_memory(self):
        for name, net in self.every():
            parts = net.parts(ROWS, BASELINE)[:, :, 0]
            model = addend.compile(net)
            for options in (dict(segments=3), dict(memory=200)):
                asked = addend.Input(ROWS, dims=1, baseline=BASELINE)
                found = model.explain(asked, targets=0, each_example=True, **options)
                self.near(found.inputs[0].torch(), parts, "%s, %s" % (name, options))

    def test_several_baselines_and_interactions(self):
        baselines = torch.tensor([[1.0, 0.1, 0.0], [0.0, 0.0, 1.0]])
        for name in ("a cast", "clamped", "bucketize", "comparisons summed up"):
            net = Row(WAYS[name]).eval()
            parts = sum(net.parts(ROWS[:1], b[None])[0, :, 1] for b in baselines) / 2
            model = addend.compile(net).record(ROWS[:1], others=[ROWS[:2], ROWS]).model()
            found = model.explain(addend.Input(ROWS[:1], dims=1, baselines=baselines), targets="0,1")
            self.near(found[0].contributions, parts, name)
            found = model.interactions(addend.Input(ROWS[:1], dims=1, baseline=BASELINE), target="0,1")
            self.near(found.contributions, net.parts(ROWS[:1], BASELINE)[0, :, 1], name)

    def test_whose_an_id_is(self):
        """Owners of ids, by element, in closed form, or told to be nobody's."""
        table = torch.tensor([[0.0], [1.0], [10.0], [100.0]], dtype=torch.float64)

        def looked_up(ids):
            return functional.embedding(ids, table)[..., 0]

        def written(x):
            own = x * 1
            own[0] = x[1]
            own[2] = 3.0
            return looked_up(own[:1].long()) + 0 * own.sum()

        def stacked(x):
            return looked_up(torch.stack([x[2], x[0]]).long())[:1]

        def imaginary(x):
            return looked_up(torch.complex(x, x.flip(0)).imag[:1].long()) + 0 * x.sum()

        x, baseline = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
        for name, model, parts in (
            ("written from another", written, [0.0, 10.0, 0.0]),
            ("stacked", stacked, [0.0, 0.0, 100.0]),
        ):
            for ask in (
                lambda m, i: m.explain(i, targets="0")[0].contributions,
                lambda m, i: m.explain(i, targets="0").inputs[0].torch().flatten(),
                lambda m, i: m.decompose(i).explain("0").contributions,
            ):
                found = ask(addend.compile(model), addend.Input(x, dims=0, baseline=baseline))
                self.near(found, torch.tensor(parts), name)
        # Views of complex numbers as real ones, and boundaries that depend on the input, are followed no further.
        for name, model in (
            ("imaginary parts", imaginary),
            ("boundaries of the input", lambda x: looked_up(torch.bucketize(torch.tensor([0.5]), x)) + 0 * x.sum()),
        ):
            found = addend.compile(model).explain(addend.Input(x, dims=0, baseline=baseline), targets="0")
            self.assertTrue(found.warnings, name)

    def test_conditions_stay_conditions(self):
        torch.manual_seed(0)
        table = nn.Embedding(6, 2)
        for name, model in {
            "a comparison of two columns": lambda x: x[:, :2] + table((x[:, 0] < x[:, 1]).long()),
            "the place of the largest": lambda x: x[:, :2] + table(x.argmin(1)),
            "a mask": lambda x: x * (x[:, :1] > 0).float(),
            "a bin of two columns": lambda x: x[:, :2] + table((x[:, 0] + x[:, 1]).clamp(0, 5).long()),
            "chosen by a comparison": lambda x: x[:, :2]
            + table(torch.where(x[:, 0] > 1.5, torch.full_like(x[:, 0], 4.0), x[:, 0].round()).abs().long()),
        }.items():
            found = addend.compile(model).explain(addend.Input(ROWS[:1], dims=1, baseline=-BASELINE), targets="0,0")
            told = [n for n in found.notes if "conditions" in n or "in which no component follows" in n]
            self.assertTrue(told, "%s: %s" % (name, found.notes))
            self.assertEqual(found.report["warnings"], [n for n in found.notes if "preset" not in n], name)


if __name__ == "__main__":
    unittest.main()

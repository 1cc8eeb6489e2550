"""Ids and what models derive from their inputs: masks, indices, positions, branches; draws, and the order of parts."""

import os
import sys
import unittest

import numpy
import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from case import Case, Split  # noqa: E402
from laws import apart  # noqa: E402
from table import of, table  # noqa: E402

IDS = torch.tensor([[7, 8, 9, 10], [4, 11, 2, 15]])
OTHER_IDS = torch.tensor([[10, 3, 7, 2], [5, 5, 14, 9]])
BOS = torch.tensor([[1], [1]])
GUARD = "a guard does not hold"


class Summed(nn.Module):
    """Adds up the vectors of ids, after something was done with these."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.vectors = nn.Embedding(40, 4)

    def forward(self, ids):
        return self.vectors(self.way(ids)).sum(1)


def written(ids):
    shifted = ids.new_zeros(ids.shape)
    shifted[:, 1:] = ids[:, :-1].clone()
    shifted[:, 0] = 2
    return shifted


WAYS = {
    "as they are": lambda i: i,
    "cat": lambda i: torch.cat([BOS, i], 1),
    "flip": lambda i: i.flip(1),
    "roll": lambda i: i.roll(1, 1),
    "pad": lambda i: nn.functional.pad(i, (1, 2), value=5),
    "clamp": lambda i: i.clamp(3, 9),
    "clamp from above": lambda i: i.clamp(max=9),
    "where": lambda i: torch.where(i > 8, i, torch.zeros_like(i)),
    "masked_fill": lambda i: i.masked_fill(i == 8, 0),
    "index_select": lambda i: i.index_select(1, torch.tensor([1, 0, 1])),
    "index": lambda i: i[:, torch.tensor([3, 0])],
    "gather": lambda i: i.gather(1, torch.tensor([[0, 2], [3, 1]])),
    "plus an offset": lambda i: i + torch.tensor([0, 5, 10, 15]),
    "plus a number": lambda i: i + 3,
    "remainder": lambda i: i % 6,
    "another integer type": lambda i: i.to(torch.int32),
    "there and back": lambda i: i.int().long(),
    "repeat": lambda i: i.repeat(1, 2),
    "expand": lambda i: i[:, None].expand(2, 3, 4).flatten(1),
    "stack": lambda i: torch.stack([i, i.flip(1)], 1).flatten(1),
    "view and slice": lambda i: i.view(2, 2, 2)[:, :, 1],
    "a copy": lambda i: i.t().contiguous().t().clone(),
    "shifted right in place": written,
    "split and joined": lambda i: torch.cat(i.chunk(2, 1)[::-1], 1),
}


def of_ids(construct, variant, model, **choices):
    choices.setdefault("own", True)
    return Case(construct, variant, model, lambda: [Split(IDS, 1, 3)], lambda: [OTHER_IDS], **choices)


class Bag(nn.Module):
    def __init__(self, mode, flat=False):
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 3, mode=mode)
        self.flat = flat

    def forward(self, ids):
        return self.bag(ids.flatten(), torch.tensor([0, 4])) if self.flat else self.bag(ids)


class OneHot(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(20, 3))

    def forward(self, ids):
        return nn.functional.one_hot(ids, 20).float().sum(1) @ self.weight


class Positions(nn.Module):
    """Counts the positions of ids that are no padding, as RoBERTa does."""

    def __init__(self):
        super().__init__()
        self.words, self.positions, self.head = nn.Embedding(20, 4), nn.Embedding(12, 4), nn.Linear(4, 3)

    def forward(self, ids):
        mask = ids.ne(1).int()
        positions = (torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1
        return self.head((self.words(ids) + self.positions(positions)).tanh().mean(1))


class Pooled(nn.Module):
    """A mean over what is no padding."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 4), nn.Linear(4, 3)

    def forward(self, ids):
        mask = ids.ne(1)[..., None]
        return self.head((self.words(ids) * mask).sum(1) / mask.sum(1).clamp(min=1))


class Blocked(nn.Module):
    """Attends to what is no padding."""

    def __init__(self, low):
        super().__init__()
        self.low = low
        self.words = nn.Embedding(20, 4)
        self.places = nn.Parameter(torch.randn(3, 4))

    def forward(self, ids):
        x = self.words(ids) + self.places
        scores = (x @ x.transpose(1, 2)).masked_fill(ids.eq(1)[:, None], self.low)
        return scores.softmax(-1) @ x


def of_numbers(construct, variant, model, baseline=0.1, **choices):
    """From 1 to 2, what is 0.1 on the baseline: whatever asks whether a number is above 0.5 gets another answer."""
    x = torch.linspace(1, 2, 12).view(4, 3)
    x = x[:, [1, 0, 2]]
    choices.setdefault("other", lambda: [x.flip(0) + 0.03])
    return Case(construct, variant, lambda: model, lambda: [Split(x, 1, baseline)], **choices)


CENTRES = torch.tensor([[0.0, 0.0, 0.0], [1.2, 1.1, 1.3], [1.9, 1.8, 2.0], [1.5, 1.4, 1.6]])


def nearest(x):
    return (x[:, None] - CENTRES).square().sum(-1).argmin(1)


def one_hot_of_nearest(x):
    return torch.zeros(len(x), 4).scatter_(1, nearest(x)[:, None], 1.0) @ CENTRES + x


def of_the_largest(x):
    return x.topk(2, 1)[0] + CENTRES[x.sum(1).topk(4)[1]][:, :2]


def rolled(x):
    place = numpy.asarray((x.mean(0) - 1.3).abs().topk(1)[1])[0]
    return x.roll(int(place) + 1, 1) + x.square()


class If(nn.Module):
    def forward(self, x):
        if x.sum() > 6.0:
            return x * 2 + 1
        return x * 3


class AnyAbove(nn.Module):
    def forward(self, x):
        if bool((x > 1.5).any()):
            return x * 2 + 1
        return x * 3


class Item(nn.Module):
    def forward(self, x):
        if x.sum().item() > 6.0:
            return x * 2 + 1
        return x * 3


class Loop(nn.Module):
    def forward(self, x):
        for _ in range(int(x.max().item())):
            x = x * 1.5 + 1
        return x


def draws(x):
    return (x + torch.randn(4, 3)).tanh()


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 16)

    def forward(self, x):
        return nn.functional.dropout(self.layer(x), 0.5, training=True).tanh()


MASKED = {"reference": "no", "names": ("aten::gt",)}
NEAREST = {"reference": "no", "names": ("aten::argmin",)}
BRANCHES = {"reference": "unknown", "replay": GUARD, "export": "depends on elements"}
READ = {**BRANCHES, "file": None, "no_file": "a trace makes a constant of what was read"}
NUMBER, ELEMENTS = ("_local_scalar_dense",), ("NumPy or Python, which reads the numbers",)

CASES = [
    *[of_ids("ids on the way to an embedding", name, lambda way=way: Summed(way)) for name, way in WAYS.items()],
    of_ids("ids in a bag", "sum", lambda: Bag("sum")),
    of_ids("ids in a bag", "mean", lambda: Bag("mean")),
    of_ids("ids in a bag", "offsets", lambda: Bag("sum", flat=True)),
    of_ids("ids as one-hot vectors", "", OneHot),
    Case("positions counted from ids", "padding as the baseline", Positions, lambda: [Split(IDS, 1, 1)],
         lambda: [OTHER_IDS], reference="no", names=("aten::ne",)),
    Case("positions counted from ids", "another baseline", Positions, lambda: [Split(IDS, 1, 3)], lambda: [OTHER_IDS]),
    Case("masks derived from the input", "a mean over ids that are no padding", Pooled, lambda: [Split(IDS, 1, 1)],
         lambda: [OTHER_IDS], reference="no", names=("aten::ne",)),
    *[
        Case("masks derived from the input", "attention to ids that are no padding, %g" % low,
             lambda low=low: Blocked(low), lambda: [Split(torch.tensor([[7, 1, 9]]), 1, 3)],
             lambda: [torch.tensor([[4, 5, 6]])], reference="no", names=("aten::eq",), **choices)
        for low, choices in (
            (-100.0, {}),
            (-1e4, {}),
            (-1e9, {}),
            (-3e38, {}),
        )
    ],
    of_numbers("masks derived from the input", "cast", lambda x: (x > 0.5).to(x.dtype) * 2 + x, **MASKED),
    of_numbers("masks derived from the input", "product", lambda x: x * (x > 0.5), **MASKED),
    of_numbers("masks derived from the input", "where", lambda x: torch.where(x > 0.5, x, 2 * x), **MASKED),
    of_numbers("masks derived from the input", "cutoff", lambda x: (x.cos() + 1) * (x > 0.5).float(), **MASKED),
    of_numbers("masks derived from the input", "both agree", lambda x: torch.where(x > 0.05, x.tanh(), 2 * x)),
    of_numbers("indices derived from the input", "argmin and embedding",
               lambda x: nn.functional.embedding(nearest(x), CENTRES) + x, **NEAREST),
    of_numbers("indices derived from the input", "argmin and scatter", one_hot_of_nearest, **NEAREST),
    of_numbers("indices derived from the input", "topk", of_the_largest, reference="no", names=("aten::topk",)),
    of_numbers("indices derived from the input", "a cast", lambda x: CENTRES[(2 * x[:, 0]).long() % 4] + x,
               reference="no", names=("aten::_to_copy",)),
    of_numbers("steps of the input", "floor", lambda x: x.floor() + x, leftover="steps pass nothing"),
    of_numbers("steps of the input", "round", lambda x: x.round() + x, leftover="steps pass nothing"),
    of_numbers("steps of the input", "sign", lambda x: (x - 0.5).sign() + x, leftover="steps pass nothing"),
    *[
        Case("branches on the input", name, model, lambda: [Split(torch.linspace(1, 2.5, 12).view(4, 3), 1, 0.1)],
             lambda: [torch.linspace(0.1, 0.3, 12).view(4, 3)], names=names, file="script", **BRANCHES)
        for name, model, names in (
            ("a condition", If, ("aten::gt",)),
            ("any", AnyAbove, ("aten::gt",)),
            ("a number", Item, NUMBER),
            ("how often", Loop, NUMBER),
        )
    ],
    of_numbers("numbers read of the input", "", lambda x: x * x.mean().item(), names=NUMBER, **READ),
    of_numbers("elements read by NumPy and lists", "numpy", lambda x: x * float(x.detach().numpy().mean()),
               names=ELEMENTS, **READ),
    of_numbers("elements read by NumPy and lists", "indices", rolled, baseline=torch.tensor([[0.4, 0.9, 1.3]]),
               other=lambda: [torch.linspace(0.5, 1.3, 12).view(4, 3)], names=("aten::topk",), **READ),
    of_numbers("elements read by NumPy and lists", "tolist", lambda x: x * x[0].tolist()[0], names=ELEMENTS, **READ),
    Case("sizes derived from the input", "", lambda: lambda x: x[:, (x[0] > 0.5).nonzero().flatten()].sum(1),
         lambda: [Split(torch.tensor([[1.0, 0.2, 0.7], [0.3, 0.9, 0.4]]), 1, 0.6)], reference="no", names=("aten::gt",),
         replay=GUARD, export="depends on elements", other=lambda: [torch.tensor([[0.2, 0.9, 0.4], [0.3, 0.9, 0.4]])],
         not_the_baseline="aten::index.* reads what aten::gt gives with other sizes on the baseline"),
    of_numbers("components that end in indices", "", lambda x: nn.functional.embedding(nearest(x), CENTRES),
               refused="no component reaches .*: they end where .* at aten::argmin"),
    of_numbers("random draws in forward", "noise", draws, draws=True, notes="random numbers are drawn by aten::randn"),
    Case("random draws in forward", "dropout", Dropped, lambda: [Split(torch.linspace(1, 2, 12).view(4, 3), 1)],
         draws=True, notes="random numbers are drawn by aten::"),
]

class OrderTest(unittest.TestCase):
    @of("order of components")
    def test_components_come_as_the_model_has_its_arguments(self):
        class Two(nn.Module):
            def forward(self, image, text):
                return (image.sum(1) + 10 * text.sum(1)).tanh()

        given = {
            "text": addend.Input(torch.tensor([[0.1, 0.02]]), 1, baseline=0.0),
            "image": addend.Input(torch.tensor([[0.3, 0.4]]), 1, baseline=0.0),
        }
        model = addend.compile(Two(), preset="faithful")
        # tanh sees the sum only: parts are to each other as what they move the sum by.
        moves = torch.tensor([0.3, 0.4, 1.0, 0.2], dtype=torch.float64)
        expected = moves / moves.sum() * torch.tanh(moves.sum())
        for explanation in (model.decompose(**given).explain(), model.explain(**given)[0]):
            self.assertEqual(explanation.names, ["image: column 0", "image: column 1", "text: column 0", "text: column 1"])
            torch.testing.assert_close(torch.tensor(explanation.contributions, dtype=torch.float64), expected,
                                       rtol=1e-5, atol=1e-6)
        turned = model.decompose(**dict(reversed(list(given.items()))))
        self.assertEqual(turned.explain().contributions, model.decompose(**given).explain().contributions)


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, past=None):
        k, v = self.key(x), self.value(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        return (x @ k.transpose(1, 2)).softmax(-1) @ v, (k, v)


class StepsTest(unittest.TestCase):
    @of("values that were decomposed before")
    def test_keys_and_values_keep_their_components(self):
        torch.manual_seed(2)
        network = Cached()
        x, new = torch.randn(1, 3, 4), torch.randn(1, 1, 4)
        model = addend.compile(network, preset="faithful")
        _, past = model(addend.Input(x, 1, baseline=0.0))
        step, _ = model(addend.Input(new, 1, baseline=0.0), past)
        self.assertEqual(step.numc, 4)
        self.assertLessEqual(apart(step.recovery.torch(), network(new, network(x)[1])[0]), 1e-5)
        reference = network(torch.zeros_like(new), network(torch.zeros_like(x))[1])[0]
        self.assertLessEqual(apart(step.reference.torch(), reference), 1e-5)
        # One call for all positions, each of which sees all of them, finds the same.
        whole, _ = model(addend.Input(torch.cat([x, new], 1), 1, baseline=0.0))
        self.assertLessEqual(apart(step.components.torch(), whole.components.torch()[:, :, 3:]), 1e-4)
        target = (0, 0, 2)
        found = model.explain(addend.Input(new, 1, baseline=0.0), past, targets=[target])
        self.assertLessEqual(
            apart(torch.tensor(found[0].contributions), step.components.torch()[(slice(None), *target)]), 1e-4
        )


Cases = table("inputs and ids", CASES, [OrderTest, StepsTest])


if __name__ == "__main__":
    unittest.main()

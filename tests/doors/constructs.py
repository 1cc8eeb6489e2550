"""Constructs of models whose numbers, or whose notes, some door of the library once lost: a small model for each, rows,
a baseline, and what is known of the answer from PyTorch alone. Nothing of that knows the library.

Run as a program with a folder as its argument, it writes there for tests in other languages: the models as TorchScript
files, and ``cases.json``, whose keys `record` tells.
"""

import dataclasses
import json
import os
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from cells import KNOWN, REFUSED, of_construct

KINDS = (
    "category cast",
    "binned",
    "clamped",
    "condition",
    "two calls",
    "two outputs",
    "quantised",
    "batch norm in training",
    "NaN baseline",
)

ROUNDING = 2e-5  # of the larger of 1 and the move


# ---- models, which all give [rows, elements]


class Row(nn.Module):
    """The vector of a category that is read from the first column, and products of the other columns: each column
    contributes what it changes alone."""

    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(6, 2)
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.looked_up(self.ids(x[:, 0])) + self.layer(x[:, 1:])

    def looked_up(self, ids):
        return self.vectors(ids)

    def ids(self, column):
        return column.long()


class OneHot(Row):
    def looked_up(self, ids):
        return functional.one_hot(ids, 6).float() @ self.vectors.weight


class Rounded(Row):
    def ids(self, column):
        return column.round().long()


class RoundedDown(Row):
    def ids(self, column):
        return (column / 0.8).floor().int().long()


class Bucketized(Row):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor([0.5, 1.5, 2.5, 3.5]))

    def ids(self, column):
        return torch.bucketize(column.contiguous(), self.edges)


class Searched(Bucketized):
    def ids(self, column):
        return torch.searchsorted(self.edges, column.contiguous())


class Counted(Bucketized):
    def ids(self, column):
        return (column.unsqueeze(1) > self.edges).sum(1)


class Clamped(Row):
    def ids(self, column):
        return column.clamp(0, 4).long()


class ClampedByLimits(Row):
    def ids(self, column):
        low, high = torch.zeros_like(column), torch.full_like(column, 4.0)
        return torch.maximum(torch.minimum(column, high), low).long()


class Network(nn.Module):
    """A category beside floats in layers that are not linear."""

    def __init__(self):
        super().__init__()
        self.colour = nn.Embedding(5, 3)
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(torch.cat([self.colour(x[:, 0].long()), x[:, 1:]], 1))


class Where(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 2)
        self.other = nn.Linear(3, 2)

    def forward(self, x):
        return torch.where(x[:, :1] > x[:, 1:2], self.one(x), 10 + self.other(x))


class Largest(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(3, 2)
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x) + 5 * self.vectors(x.argmax(1))


class Branch(Where):
    """The first row decides for all."""

    def forward(self, x):
        if bool(x[0, 0] > x[0, 1]):
            return self.one(x)
        return 10 + self.other(x)


class Twice(nn.Module):
    """One layer for both halves of a row."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x[:, :2]) - 2 * self.layer(x[:, 2:])


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 2)
        self.other = nn.Linear(3, 2)

    def forward(self, x) -> Tuple[Tensor, Tensor]:
        return self.one(x), self.other(x)


class OfTwo(nn.Module):
    """Reads both tensors that a module gives."""

    def __init__(self):
        super().__init__()
        self.pair = TwoOutputs()

    def forward(self, x):
        one, other = self.pair(x)
        return one - 3 * other


class QuantisedRows(nn.Module):
    """A layer with its input on a grid of 256 steps, as quantisation at run time has it; each row has its own grid."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-127, 128, (6, 1)).float() * 0.01)

    def forward(self, x):
        low, high = self.range(x)
        scale = (high - low) / 255
        zero = (-low / scale).round()
        on_grid = ((x / scale).round() + zero).clamp(0, 255).to(torch.uint8)
        return (on_grid.float() - zero.to(torch.uint8).float()) @ self.weight * scale

    def range(self, x) -> Tuple[Tensor, Tensor]:
        return x.amin(1, keepdim=True).clamp(max=0.0), x.amax(1, keepdim=True).clamp(min=0.0)

    def unquantised(self, x):
        return x @ self.weight


class Quantised(QuantisedRows):
    """Quantised rows with one grid for all of them, as ONNX Runtime writes it."""

    def range(self, x) -> Tuple[Tensor, Tensor]:
        zero = torch.zeros([], dtype=x.dtype)
        return torch.minimum(x.min(), zero), torch.maximum(x.max(), zero)


class FixedGrid(QuantisedRows):
    """Quantised rows with a grid that no input changes."""

    def forward(self, x):
        return (x / 0.02).round().clamp(-128, 127) * 0.02 @ self.weight


class StraightThrough(FixedGrid):
    """Quantised rows as training writes them, with the derivative of the numbers before rounding."""

    def forward(self, x):
        on_grid = (x / 0.02).round().clamp(-128, 127) * 0.02
        return (x + (on_grid - x).detach()) @ self.weight


class BatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)


class BatchStatistics(nn.Module):
    """Batch norm that has no other mode."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2))

    def forward(self, x):
        return self.layers(x)


class MeanOfTokens(nn.Module):
    """The mean of those that are no padding: of padding alone it is 0 / 0."""

    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        keep = (ids != 0).unsqueeze(-1).float()
        return self.head((self.vectors(ids) * keep).sum(1) / keep.sum(1))


class Attended(nn.Module):
    """Padding is masked by minus infinity before a softmax: of padding alone all weights are NaN."""

    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(9, 4)
        self.score = nn.Linear(4, 1)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        vectors = self.vectors(ids)
        scores = self.score(vectors).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        return self.head((scores.softmax(-1).unsqueeze(-1) * vectors).sum(1))


class Logarithms(nn.Module):
    """log(0) is infinite."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x.log())


class Harmonic(nn.Module):
    """Finite on a baseline of zeros, but by way of infinity."""

    def forward(self, x):
        return 3 / (1 / x).sum(1, keepdim=True)


# ---- the table


def _table_of(*rows):
    return torch.tensor(rows)


# The first column is a category.
CATEGORIES = dict(
    rows=_table_of([2.0, 0.2, 0.4], [3.0, -1.0, 0.5], [4.0, 0.3, -0.7]),
    baselines=_table_of([1.0, 0.1, 0.0], [0.0, 0.0, 1.0]),
)
BINS = dict(
    rows=_table_of([2.2, 0.2, 0.4], [2.9, -1.0, 0.5], [3.7, 0.3, -0.7]),
    baselines=_table_of([1.2, 0.1, 0.0], [0.4, 0.0, 1.0]),
)
BEYOND = dict(
    rows=_table_of([2.0, 0.2, 0.4], [7.0, -1.0, 0.5], [3.0, 0.3, -0.7]),
    baselines=_table_of([1.0, 0.1, 0.0], [-3.0, 0.0, 1.0]),
)
# In all rows the condition is another than on both baselines.
ORDERED = dict(
    rows=_table_of([1.3, 0.4, 0.3], [2.0, 1.0, -0.5], [0.9, 0.2, 0.1]),
    baselines=_table_of([-1.0, 0.5, 0.0], [0.0, 0.25, 0.1]),
)
HALVES = dict(
    rows=_table_of([1.3, 0.4, 0.3, -1.0], [2.0, 1.0, -0.5, 0.2], [0.9, 0.2, 0.1, 0.7]),
    baselines=_table_of([0.0, 0.5, 0.0, 0.1], [1.0, 0.0, 0.2, 0.0]),
)
FLOATS = dict(
    rows=_table_of([1.3, 0.4, 0.3], [2.0, 1.0, -0.5], [0.9, 0.2, 0.1], [0.1, -0.8, 1.4]),
    baselines=_table_of([0.0, 0.5, 0.0], [1.0, 0.0, 0.2]),
)
WIDE = dict(
    rows=_table_of([0.6, 1.9, 0.2, -0.5, -1.8, 1.1], [-0.4, 0.3, 1.2, 2.1, -0.9, -1.6]),
    baselines=_table_of([0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.3, 0.0, -0.2, 0.1, 0.0, 0.2]),
)
FROM_ZERO = dict(rows=WIDE["rows"], baselines=_table_of([0.0] * 6, [0.1] * 6))
TOKENS = dict(
    rows=_table_of([3, 5, 0, 0], [1, 8, 2, 0], [4, 4, 7, 6]),
    baselines=_table_of([0, 0, 0, 0], [0, 1, 0, 0]),
)
POSITIVE = dict(
    rows=_table_of([1.0, 2.0, 3.0], [0.5, 4.0, 1.5]),
    baselines=_table_of([0.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
)


@dataclasses.dataclass
class Construct:
    """A model with rows, a baseline, and what is known of the answer.

    Attributes:
        kind: one of KINDS.
        variant: which of several models of that kind.
        model: makes it.
        rows: ``[R, columns]``, floats or ids of tokens.
        baselines: ``[2, columns]``; the first is the baseline where there is one.
        answer: what the number of a row is, of which the oracle is the change.

            - ``"additive"``: the sum of what each column changes alone, so that contributions have one answer.
            - ``"near"``: the same for `near`, from which the model is a few steps of its grid apart.
            - ``"complete"``: contributions have no single answer, but their sum is the move, that is
              model(row) - model(baseline).
            - ``"none"``: no numbers are right without a word beside them.
        says: one of these words has to be in what a door says, unless its numbers are right; none: they have to be.
        refused: one of these words has to be in the error with which each door stops.
        together: a row has other numbers among other rows.
        training: the model is in training mode.
        file: ``"script"`` or ``"trace"``.
        output: which output of the model is explained, by its number.
        at: the tensor inside the model that is explained, as doors are told it.
        inner: what that tensor is, by the model and rows.
        near: what the model is near to, by the model and rows, and how near a contribution has to be.
    """

    kind: str
    variant: str
    model: Callable[[], nn.Module]
    rows: Tensor
    baselines: Tensor
    answer: str = "additive"
    says: Tuple[str, ...] = ()
    refused: Tuple[str, ...] = ()
    together: bool = False
    training: bool = False
    file: str = "script"
    output: int = 0
    at: Optional[str] = None
    inner: Optional[Callable[[Any, Tensor], Tensor]] = None
    near: Optional[Callable[[Any, Tensor], Tensor]] = None
    near_by: float = 0.0
    target: int = 0

    @property
    def name(self) -> str:
        return self.kind + (", " + self.variant if self.variant else "")

    @property
    def outputs(self) -> Tuple[str, ...]:
        """The output that is explained as doors are told it; empty where it is the only one or the first."""
        return ("output.%d" % self.output,) if self.output else ()

    def build(self) -> nn.Module:
        torch.manual_seed(3)
        return self.model().train(self.training)

    def numbers(self, model: nn.Module, rows: Tensor) -> Tensor:
        """The number that is explained, by row."""
        function = self.inner or (lambda model, rows: model(rows))
        return self._chosen(function, model, rows)

    def _chosen(self, function: Callable[[Any, Tensor], Any], model: nn.Module, rows: Tensor) -> Tensor:
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        with torch.no_grad():
            given = function(model, rows)
        model.load_state_dict(kept)  # running statistics
        given = given[self.output] if isinstance(given, tuple) else given
        return given[:, self.target].double()

    def baseline(self, which: int) -> Tensor:
        """A baseline for every row."""
        return self.baselines[which].expand_as(self.rows)

    def move(self, which: int = 0) -> Tensor:
        """The distance of the number from that on the baseline, by row."""
        model = self.build()
        return self.numbers(model, self.rows) - self.numbers(model, self.baseline(which))

    def contributions(self, which: int = 0) -> Optional[Tensor]:
        """The contributions by row and column; None where there is no single answer."""
        if self.answer not in ("additive", "near"):
            return None
        model = self.build()
        function = self.near if self.answer == "near" else self.inner or (lambda model, rows: model(rows))
        start = self.baseline(which)
        parts = []
        for column in range(self.rows.shape[1]):
            alone = start.clone()
            alone[:, column] = self.rows[:, column]
            parts.append(self._chosen(function, model, alone) - self._chosen(function, model, start))
        return torch.stack(parts, 1)

    def tolerance(self) -> float:
        """How far a contribution, or a sum of them, may be from its answer."""
        if self.answer == "near":
            return self.near_by
        moves = torch.cat([self.move(which) for which in range(len(self.baselines))])
        return ROUNDING * max(1.0, moves[moves.isfinite()].abs().max().item() if moves.isfinite().any() else 1.0)

    def script(self) -> Any:
        model = self.build()
        if self.file == "script":
            return torch.jit.script(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.jit.trace(self.build(), self.rows, check_trace=False)
        made.load_state_dict(model.state_dict())
        return made

    def record(self) -> Dict[str, Any]:
        """The facts that other languages are told of it. Keys:

        - ``name``, ``kind``; ``file``, the model in the same folder
        - ``dtype`` of the rows, "float32" or "int64"; ``rows`` and their ``shape``, ``[R, columns]``
        - ``baseline``, ``[1, columns]``; ``baselines``, ``[2, columns]``
        - ``target``, the index in a row of the explained tensor, which is ``[R, elements]``
        - ``at`` and ``output``: what is explained, as every door is told it; empty text for the first output
        - ``together``, ``says``, ``refused``: as above
        - ``may_stop``: by the name of a door, what its error then says, as a regular expression
        - ``known``: by the name of a door, why it is not right yet
        - ``on_baseline``, ``[R]``: the number on the baseline, with null for what is not finite
        - ``contributions``, ``[R, columns]``, or null; ``move``, ``[R]``, with null for what is not finite
        - ``complete``: whether contributions without a word beside them have to add up to the move
        - ``contributions_of_several`` and ``move_of_several``: the same as means over ``baselines``
        - ``tolerance`` of a contribution and of their sum
        """
        several = [self.contributions(which) for which in range(len(self.baselines))]
        moves = [self.move(which) for which in range(len(self.baselines))]
        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": str(self.rows.dtype).replace("torch.", ""),
            "shape": list(self.rows.shape),
            "rows": self.rows.tolist(),
            "baseline": self.baselines[:1].tolist(),
            "baselines": self.baselines.tolist(),
            "target": self.target,
            "at": self.at or "",
            "output": "".join(self.outputs),
            "together": self.together,
            "says": list(self.says),
            "refused": list(self.refused),
            "may_stop": of_construct(REFUSED, self.name),
            "known": of_construct(KNOWN, self.name),
            "on_baseline": _finite(self.numbers(self.build(), self.baseline(0))),
            "contributions": None if several[0] is None else several[0].tolist(),
            "move": _finite(moves[0]),
            "complete": self.answer != "none",
            "contributions_of_several": None if several[0] is None else (sum(several) / len(several)).tolist(),
            "move_of_several": _finite(sum(moves) / len(moves)),
            "tolerance": self.tolerance(),
        }


def _finite(numbers: Tensor) -> List[Optional[float]]:
    return [number if abs(number) < float("inf") else None for number in numbers.tolist()]


def _near_grid(**choices) -> Dict[str, Any]:
    # The largest weight times a step of the grid, and one for the place of zero.
    return dict(
        answer="near", near=lambda model, rows: model.unquantised(rows), near_by=2 * 1.27 * 3.9 / 255,
        says=("condition", "left over", "leftover", "follows", "not finite"), **choices
    )


_CONDITION = dict(answer="none", says=("condition",))
_INFLUENCE = dict(answer="none", says=("influence each other",), together=True)
_NOT_FINITE = dict(answer="none", says=("not finite", "NaN", "infinit", "condition"))

CONSTRUCTS = [
    Construct("category cast", "", Row, **CATEGORIES),
    Construct("category cast", "one-hot", OneHot, **CATEGORIES),
    Construct("category cast", "in a network", Network, answer="complete", **CATEGORIES),
    Construct("binned", "rounded", Rounded, **BINS),
    Construct("binned", "rounded down", RoundedDown, **BINS),
    Construct("binned", "bucketize", Bucketized, **BINS),
    Construct("binned", "searchsorted", Searched, **BINS),
    Construct("binned", "comparisons", Counted, **BINS),
    Construct("clamped", "", Clamped, **BEYOND),
    Construct("clamped", "by limits", ClampedByLimits, **BEYOND),
    Construct("condition", "where", Where, **_CONDITION, **ORDERED),
    Construct("condition", "argmax", Largest, **_CONDITION, **ORDERED),
    Construct("condition", "branch", Branch, answer="none", says=("condition", "branch"), together=True, **ORDERED),
    Construct("two calls", "", Twice, **HALVES),
    Construct("two calls", "the second", Twice, at="layer@1", inner=lambda m, x: m.layer(x[:, 2:]), **HALVES),
    Construct("two calls", "a bare name", Twice, at="layer", refused=("layer@0",), answer="none", **HALVES),
    Construct("two outputs", "", TwoOutputs, **FLOATS),
    Construct("two outputs", "the second", TwoOutputs, output=1, **FLOATS),
    Construct("two outputs", "of a module", OfTwo, at="pair:1", inner=lambda m, x: m.pair(x)[1], **FLOATS),
    Construct("two outputs", "a bare name", OfTwo, at="pair", refused=("pair:0",), answer="none", **FLOATS),
    # Who moves the grid has a part of what it does, so that parts are not those of the layer without it.
    Construct("quantised", "each row", QuantisedRows, answer="complete", **WIDE),
    Construct("quantised", "all rows", Quantised, answer="complete", says=("influence each other",), together=True,
              **WIDE),
    Construct("quantised", "all rows, from zero", Quantised, answer="complete",
              says=("influence each other", "not finite"), together=True, **FROM_ZERO),
    Construct("quantised", "a fixed grid", FixedGrid, **_near_grid(), **WIDE),
    Construct("quantised", "straight through", StraightThrough, **_near_grid(), **WIDE),
    Construct("batch norm in training", "", BatchNorm, training=True, file="trace", **_INFLUENCE, **FLOATS),
    Construct("batch norm in training", "always", BatchStatistics, **_INFLUENCE, **FLOATS),
    Construct("NaN baseline", "padding", MeanOfTokens, **_NOT_FINITE, **TOKENS),
    Construct("NaN baseline", "masked scores", Attended, **_NOT_FINITE, **TOKENS),
    Construct("NaN baseline", "logarithms", Logarithms, **_NOT_FINITE, **POSITIVE),
    Construct("NaN baseline", "on the way", Harmonic, **_NOT_FINITE, **POSITIVE),
]


def write(folder: str) -> None:
    """Writes all models and what is known of them."""
    records = []
    for number, construct in enumerate(CONSTRUCTS):
        # No name of a file says what a note would say.
        name = "model%d.pt" % number
        construct.script().save(os.path.join(folder, name))
        records.append({**construct.record(), "file": name})
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump({"cases": records}, file, indent=1, allow_nan=False)


if __name__ == "__main__":
    write(sys.argv[1])

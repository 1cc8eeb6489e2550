"""A case of the table: a small model, its inputs, and what is known of it before anything runs."""

import contextlib
import dataclasses
import math
from typing import Any, Callable, Optional, Sequence, Tuple

import torch

import addend

SEED = 11


@dataclasses.dataclass
class Split:
    """A tensor that is decomposed, one component for each position along some dimensions, or for each label."""

    value: torch.Tensor
    dims: Any = None
    baseline: Any = 0.0
    labels: Any = None

    def input(self):
        if self.labels is not None:
            return addend.Input(self.value, labels=self.labels, baseline=self.baseline)
        return addend.Input(self.value, self.dims, baseline=self.baseline)

    def on_baseline(self):
        return (torch.zeros_like(self.value) + torch.as_tensor(self.baseline)).to(self.value.dtype)

    def turned(self):
        """Other elements of the same kind."""
        if self.dims is None or isinstance(self.dims, int):
            return self.value.flip(-1 if self.dims is None else self.dims)
        return self.value.flip(self.dims[-1])

    def by_component(self, numbers):
        """Numbers of the elements, summed up to those of the components."""
        numbers = numbers.reshape(self.value.shape)
        if self.labels is not None:
            labels = self.labels.expand(self.value.shape).flatten()
            return torch.zeros(int(labels.max()) + 1, dtype=numbers.dtype).index_add_(0, labels, numbers.flatten())
        dims = [self.dims] if isinstance(self.dims, int) else list(self.dims)
        dims = [dim % numbers.dim() for dim in dims]
        others = [dim for dim in range(numbers.dim()) if dim not in dims]
        count = math.prod(numbers.shape[dim] for dim in dims)
        return numbers.permute(*dims, *others).reshape(count, -1).sum(1)


@dataclasses.dataclass
class Case:
    """One construct in a model.

    Attributes:
        construct: of the list that the table has to cover.
        variant: which of several models with that construct.
        model: makes it; called with the same random numbers every time.
        given: makes its arguments, in order: those that are split first, then plain ones.
        other: makes other arguments of the same sizes, all plain, for a replay; unless given, those that are split are
            turned around in their last split dimension.
        reference: what the report has to say of the reference: ``"yes"``, ``"no"`` or ``"unknown"``.
        names: operators that notes have to name where that is not ``"yes"``.
        not_the_baseline: why the baseline's own conditions cannot be had where it is ``"no"``, as the error says it.
        draws: the model draws random numbers, which is what a check of its recordings has to find.
        notes: what one of the notes has to say besides, as a regular expression.
        own: every component is what its position alone changes: the model is a sum over positions.
        leftover: why the faithful rules leave something over.
        file: ``"trace"``, ``"script"``, or None with a reason in `no_file`.
        replay: the error that a replay with other inputs has to stop at.
        export: the error that an export has to stop at; `file_export` that for a recording of the file, where
            it is another one.
        refused: the error of every call, as a regular expression.
        mode: makes the context that calls run in.
        target: the element that is explained; the largest unless given.
        same: how far two runs of the model may be apart, of the output's scale.
        recovery: how far recovery and value may be apart, of the output's scale.
        agreement: how far two ways to the same parts may be apart, of the largest part.
        available: whether what the model needs is installed, with its name.
    """

    construct: str
    variant: str
    model: Callable[[], Any]
    given: Callable[[], Sequence[Any]]
    other: Optional[Callable[[], Sequence[torch.Tensor]]] = None
    reference: str = "yes"
    names: Tuple[str, ...] = ()
    not_the_baseline: str = ""
    draws: bool = False
    notes: str = ""
    own: bool = False
    leftover: str = ""
    file: Optional[str] = "trace"
    no_file: str = ""
    replay: str = ""
    export: str = ""
    file_export: Optional[str] = None
    refused: str = ""
    mode: Callable[[], Any] = contextlib.nullcontext
    target: Optional[Tuple[int, ...]] = None
    same: float = 1e-6
    recovery: float = 1e-5
    agreement: float = 1e-4
    available: Tuple[bool, str] = (True, "")

    @property
    def name(self):
        return self.construct + (", " + self.variant if self.variant else "")


class Run:
    """A case with its model and arguments made."""

    def __init__(self, case):
        self.case = case
        torch.manual_seed(SEED)
        self.model = case.model()
        if isinstance(self.model, torch.nn.Module):
            self.model.eval()
        self.given = list(case.given())
        self.split = [argument for argument in self.given if isinstance(argument, Split)]
        self.plain = self.given[len(self.split) :]
        assert not any(isinstance(argument, Split) for argument in self.plain)

    def values(self):
        """The arguments as the model itself takes them."""
        return [argument.value if isinstance(argument, Split) else argument for argument in self.given]

    def on_baseline(self):
        return [argument.on_baseline() if isinstance(argument, Split) else argument for argument in self.given]

    def inputs(self):
        return [argument.input() if isinstance(argument, Split) else argument for argument in self.given]

    def others(self):
        if self.case.other is not None:
            return list(self.case.other())
        return [source.turned() for source in self.split] + list(self.plain)

    def output(self, arguments):
        """The output that the model itself computes."""
        with self.within():
            return self.model(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]).detach().clone()

    @contextlib.contextmanager
    def within(self):
        """The mode of the case, and the same random numbers for whatever runs in it."""
        torch.manual_seed(SEED)
        with self.case.mode():
            yield

    def compiled(self, **choices):
        return addend.compile(self.model, **choices)

    def decompose(self, preset, **choices):
        model = self.compiled(preset=preset, **choices)
        with self.within():
            return model.decompose(*self.inputs())

    def record(self):
        with self.within():
            return self.compiled().record(*self.values())

    def target(self, value):
        if self.case.target is not None:
            return self.case.target
        place = int(value.abs().nan_to_num(0, 0, 0).flatten().argmax())
        index = []
        for size in reversed(value.shape):
            index.insert(0, place % size)
            place //= size
        return tuple(index)

    def file(self, path):
        """Writes the model as TorchScript makes a file of it."""
        module = self.model if isinstance(self.model, torch.nn.Module) else _module_of(self.model)
        with torch.no_grad(), self.within():
            if self.case.file == "script":
                made = torch.jit.script(module)
            else:
                made = torch.jit.trace(module, tuple(self.values()), check_trace=False)
            made.save(path)
        return path


def _module_of(function):
    class Called(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return Called()


def notes_of(results) -> str:
    return " | ".join(results.notes)

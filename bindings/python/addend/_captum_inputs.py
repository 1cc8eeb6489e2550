"""Arguments of `attribute`: tensors in tuples, lists, dicts and dataclasses, each with its baseline."""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, Dict, List, Sequence

from . import _native
from ._context import Context
from ._input import Input
from ._request import add_input, new_request
from ._structure import Place, filled, map_leaves
from ._tensor import Tensor, as_tensor


class Leaves:
    """The inputs of a call, in which every tensor is split.

    Attributes:
        values: the tensors, on any depth, in order; what is None, a number or text is given to the model as it is.
        sources: of each the `Input`, in the same order.
        paths: of each the steps to it: ``"0"``, ``"1.x"``; ``""`` where it is the only input.
        inputs: as they were given, a mapping as a dict.
        is_single: whether the inputs are no tuple, list or mapping.
    """

    def __init__(self, inputs: Any, baselines: Any, by_name: bool, split: bool):
        self.inputs = dict(inputs) if by_name else inputs
        self.is_single = not by_name and not is_several(inputs)
        self.values: List[Any] = []
        self.sources: List[Input] = []
        self.paths: List[str] = []
        self._by_name = by_name
        self._split = split
        self._structure = map_leaves(self._add, self.inputs, "")
        if not split:
            return
        if not self.sources:
            raise TypeError("there is nothing to attribute to: none of the inputs is a tensor")
        given = values_beside("baselines", baselines, self, spread=True)
        self.sources = [_split(source, baseline) for source, baseline in zip(self.sources, given)]

    def _add(self, leaf: Any, path: str) -> Any:
        if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes)):
            return leaf
        try:
            # Every element gets its own number, whatever the components are, and one costs the least.
            source = leaf if isinstance(leaf, Input) else Input(leaf, labels=0)
            as_tensor(source.value)
        except TypeError:
            return leaf
        self.values.append(leaf)
        self.sources.append(source)
        self.paths.append(path)
        return Place(len(self.sources) - 1)

    def named(self) -> Dict[str, Any]:
        """The arguments that the model is given by name; empty where it is given them in order."""
        return self.given(self.sources) if self._by_name else {}

    def positional(self) -> List[Any]:
        """The arguments that the model is given in order; empty where it is given them by name."""
        if self._by_name:
            return []
        given = self.given(self.sources)
        return [given] if self.is_single else list(given)

    def given(self, tensors: Sequence[Any]) -> Any:
        """The inputs with other tensors in the places of theirs."""
        return filled(self._structure, tensors) if self._split else self.inputs

    def answered(self, attributions: Sequence[Any]) -> Any:
        """The inputs with an attribution in the place of each tensor, and None in those of everything else."""
        return map_leaves(
            lambda leaf, path: attributions[leaf.index] if isinstance(leaf, Place) else None, self._structure, ""
        )

    def sources_in(self, order: Sequence[str]) -> List[Input]:
        """The sources in another order of the names of the inputs."""
        names = [path.split(".")[0] for path in self.paths]
        return [source for name in order for own, source in zip(names, self.sources) if own == name]


def is_several(value: Any) -> bool:
    """Whether it stands for several inputs."""
    return isinstance(value, (tuple, list))


def values_beside(what: str, given: Any, leaves: Leaves, spread: bool) -> List[Any]:
    """The values given beside the tensors of the inputs, one for each: in the same structure, or (`spread`) one for all."""
    if leaves.is_single and is_several(given) and not _is_container(leaves.inputs):
        if len(given) != 1:
            raise ValueError("there are %d %s for 1 inputs" % (len(given), what))
        given = given[0]
    return [_at(what, given, leaves.inputs, path, spread) for path in leaves.paths]


def _at(what: str, given: Any, inputs: Any, path: str, spread: bool) -> Any:
    """The value given beside the tensor that a path of the inputs leads to."""
    while path:
        if given is None:
            return None
        step, _, path = path.partition(".")
        count = len(_children(inputs))
        if isinstance(inputs, Mapping):
            if is_several(given):
                raise TypeError("inputs are a dict, so several %s are one too" % what)
            if isinstance(given, Mapping):
                unknown = set(given) - set(inputs)
                if unknown:
                    raise ValueError("there are %s for %s, which are no inputs" % (what, ", ".join(sorted(unknown))))
                given, inputs = given.get(step), inputs[step]
                continue
        elif is_several(given) and is_several(inputs):
            if len(given) != count:
                raise ValueError("there are %d %s for %d inputs" % (len(given), what, count))
            given, inputs = given[int(step)], inputs[int(step)]
            continue
        elif _is_container(given):
            if not dataclasses.is_dataclass(inputs) or is_several(given):
                raise TypeError("%s are given in the structure of the inputs, or one for all" % what)
            given = given.get(step) if isinstance(given, Mapping) else getattr(given, step, None)
            inputs = getattr(inputs, step)
            continue
        if not spread and count > 1:
            raise TypeError("there are %d inputs; give %s for each, in the same structure" % (count, what))
        return given
    return given


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else list(value)


def _is_container(value: Any) -> bool:
    return is_several(value) or isinstance(value, Mapping) or dataclasses.is_dataclass(value)


def baselines_of(sources: Sequence[Input]) -> List[Tensor]:
    """Computes the baseline of each input, in its whole shape. Words that name buffers of a model are refused, as no
    model is known."""
    request = new_request()
    for source in sources:
        add_input(request, None, source, source.value)
    trace = _native.trace_begin(Context()._handle, request)
    return [Tensor(_native.trace_baseline(trace, k)) for k in range(len(sources))]


def _split(source: Input, baseline: Any) -> Input:
    """An input of its own, also where one stands in several places, with its baseline: zero for floats unless given."""
    own = copy.copy(source)
    has_baseline = own.baseline is not None or own.baselines is not None
    if baseline is not None:
        if has_baseline or own.parts is not None:
            raise TypeError("baselines has one for an addend.Input that has its own; give None for it")
        own.baseline = baseline
    elif not has_baseline and (own.dims is not None or own.labels is not None):
        dtype = as_tensor(own.value).dtype
        if "float" in dtype or "complex" in dtype:
            own.baseline = 0
    return own

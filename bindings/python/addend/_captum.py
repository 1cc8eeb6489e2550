"""`attribute`: its arguments have the names and the meaning that users of Captum know."""

import copy
import math
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from ._attribution import Attribution
from ._call import call
from ._captum_inputs import Leaves, values_beside
from ._convergence_delta import OnBaseline, deltas
from ._errors import InvalidArgument
from ._ill_conditioned import notes_of_groups
from ._input import Input, Inside, as_insides, one_or_list
from ._notes import warn_of
from ._structure import map_leaves
from ._table import labelled
from ._tensor import Tensor, as_tensor

_Found = TypeVar("_Found")
_WHOLE = "; for one number of the whole output, as of a node of a graph, target is its whole index, a tuple"
_ASSUMED_INSIDE = (
    "no baseline was given: zero for %s, inside the model. Captum takes what the model gives there for inputs of zero, "
    "which addend.Inside(SELECTOR, baseline=...) takes too"
)


class Question:
    """One call of `attribute`.

    Attributes:
        leaves: what the model is given to be attributed to, on any depth.
        further: the plain arguments behind that.
        inside: what is attributed to in place of the inputs, or None.
        targets: as `Model.explain` takes them.
        each_example: whether each example has a target of its own.
    """

    def __init__(
        self,
        inputs: Any,
        baselines: Any,
        target: Any,
        additional_forward_args: Any,
        inside: Any,
        feature_mask: Any,
        each_example: bool,
        by_name: bool,
    ):
        self.inside = one_or_list(inside)
        self.further = _plain_arguments(additional_forward_args)
        self.targets = "top1" if target is None else target
        self.each_example = each_example
        self._target = target
        self._one_number = False
        if self.inside is not None and baselines is not None:
            raise TypeError("baselines are for inputs that are attributed to; an addend.Inside has its own")
        self.leaves = Leaves(inputs, baselines, by_name, split=self.inside is None)
        self._masks = _masks_of(feature_mask, self.leaves, self.inside)

    @property
    def named(self) -> Dict[str, Any]:
        """The split inputs by name, where the inputs are given so, else empty."""
        return self.leaves.named()

    @property
    def positional(self) -> List[Any]:
        """The split inputs in order, where they are not given by name."""
        return self.leaves.positional()

    def insides(self) -> List[Inside]:
        """The tensors inside the model that are attributed to, all elements of each."""
        return _split_inside(self.inside)

    def ask(self, explain: Callable[[Any, bool], _Found], shape_of: Callable[[_Found], Sequence[int]]) -> _Found:
        """The answer of `explain` for the targets and whether each example has one. Where these do not fit the output, it
        is asked again for one number of the whole output: its only one where there is no target, and that with the
        index where the target is a tuple, as for a node of a graph."""
        try:
            return explain(self.targets, self.each_example)
        except InvalidArgument as error:
            if not self.each_example or not (self._target is None or isinstance(self._target, tuple)):
                raise
            try:
                found = explain(self.targets, False)
                fits = self._target is not None or math.prod(shape_of(found)) == 1
            except InvalidArgument:
                fits = False
            if not fits:
                raise InvalidArgument("%s%s" % (error, _WHOLE)) from None
            self.each_example, self._one_number = False, True
            return found

    def answer(self, found: Attribution, tensors: Sequence[Optional[Tensor]], on_baseline: Optional[OnBaseline]) -> Any:
        """The value that `attribute` returns. The warnings of the run become warnings of Python.

        Args:
            found: the attribution of this question.
            tensors: what it has for each split input, in their order.
            on_baseline: what runs the model on the baseline, where the delta is returned too.
        """
        if self._target is None and not self._one_number:
            _require_one(found.value.shape, self.each_example)
        sums = tensors
        notes = found.warnings
        if self.inside is not None:
            sums = tensors = found.inside
            notes = [*_assumed_inside(self.inside), *notes]
        elif any(mask is not None for mask in self._masks):
            tensors, parts = _grouped(tensors, self._masks, self.each_example)
            notes = notes_of_groups(found, parts)
        if self._one_number:
            tensors = [None if tensor is None else call("aten::select", tensor, 0, 0) for tensor in tensors]
        if self.inside is None:
            given: Any = self.leaves.answered([_like(*pair) for pair in zip(tensors, self.leaves.values)])
        else:
            given = self._answered_inside(tensors)
        if on_baseline is None:
            warn_of(notes)
            return given
        numbers, doubts = deltas(found, sums, on_baseline)
        warn_of([*notes, *doubts])
        return given, _numbers_like(numbers, _first_of(given))

    def _answered_inside(self, tensors: Sequence[Tensor]) -> Any:
        """Attributions to what is inside, in its structure, and of the library of the inputs."""
        known = [*self.leaves.values, *_leaves_of(self.further)]
        like = next((value for value in known if _is_torch(value) or _is_numpy(value)), None)
        converted = [_like(tensor, like) for tensor in tensors]
        return type(self.inside)(converted) if isinstance(self.inside, (tuple, list)) else converted[0]


def _require_one(shape: Sequence[int], each_example: bool) -> None:
    """Without a target the output needs one element, or one for each example."""
    own = shape[1:] if each_example else shape
    count = math.prod(own)
    if count == 1:
        return
    raise ValueError(
        "target is needed: the output is %s, %d elements%s. target=%s explains the first of them%s, and "
        'target="top1" the largest'
        % (
            list(shape),
            count,
            " for each example" if each_example else "",
            0 if len(own) == 1 else tuple(0 for _ in own),
            ", a list gives each example its own" if each_example else "",
        )
    )


def _split_inside(inside: Any) -> List[Inside]:
    listed = []
    for source in as_insides(inside):
        if source.experts:
            raise TypeError("experts are several tensors; explain() has all of them, or name each with its module")
        own = copy.copy(source)
        if own.dims is None and own.labels is None and own.heads is None:
            own.dims = (0,)
        if own.baseline is None:
            own.baseline = 0
        listed.append(own)
    return listed


def _assumed_inside(inside: Any) -> List[str]:
    """A note on baselines that were not given, of which Captum has others."""
    names = [source.selector for source in as_insides(inside) if source.baseline is None]
    return [_ASSUMED_INSIDE % ", ".join(names)] if names else []


def _plain_arguments(additional_forward_args: Any) -> Tuple[Any, ...]:
    if additional_forward_args is None:
        return ()
    if isinstance(additional_forward_args, (tuple, list)):
        return tuple(additional_forward_args)
    return (additional_forward_args,)


def _leaves_of(structure: Any) -> List[Any]:
    found: List[Any] = []
    map_leaves(lambda leaf, path: found.append(leaf) or leaf, structure, "")
    return found


# ---- groups


def _masks_of(feature_mask: Any, leaves: Leaves, inside: Any) -> List[Optional[Tensor]]:
    """For each split input the labels of its elements; None where each stands alone."""
    if feature_mask is None:
        return [None] * len(leaves.sources)
    if inside is not None:
        raise TypeError("feature_mask is for inputs that are attributed to; an addend.Inside takes labels")
    if isinstance(feature_mask, list) and leaves.is_single:
        feature_mask = (feature_mask,)  # a list of numbers for the only input
    masks = [
        None if mask is None else as_tensor(mask)
        for mask in values_beside("values of feature_mask", feature_mask, leaves, spread=False)
    ]
    for mask in masks:
        if mask is not None and ("float" in mask.dtype or "complex" in mask.dtype):
            raise TypeError("feature_mask holds integers, the number of each element's group, not %s" % mask.dtype)
    return masks


def _grouped(
    tensors: Sequence[Optional[Tensor]], masks: Sequence[Optional[Tensor]], each_example: bool
) -> Tuple[List[Optional[Tensor]], List[Optional[Tensor]]]:
    """Attributions with the sum of its group in the place of each element, the groups reaching over all inputs; and the
    same numbers, each once."""
    result = list(tensors[: len(masks)])
    chosen = [k for k, mask in enumerate(masks) if mask is not None and tensors[k] is not None]
    if not chosen:
        return result, result
    rows = [_as_rows(tensors[k]) for k in chosen]
    labels = [_labels(masks[k], tensors[k], each_example) for k in chosen]
    unique, group = call("aten::_unique2", call("aten::cat", labels, 1), True, True)[:2]
    if len(unique) and unique[0].item() < 0:
        raise ValueError("feature_mask holds %d; groups are counted from 0" % unique[0].item())
    whole = call("aten::cat", rows, 1)
    sums = call("aten::new_zeros", whole, [len(whole), len(unique)])
    sums = call("aten::scatter_add", sums, 1, group, whole)
    shares = call("aten::gather", sums, 1, group)
    parts = [sums, *(tensor for k, tensor in enumerate(result) if k not in chosen)]
    start = 0
    for k, row in zip(chosen, rows):
        own = call("aten::narrow", shares, 1, start, row.shape[1])
        result[k] = call("aten::reshape", own, list(tensors[k].shape)).to(tensors[k].dtype)
        start += row.shape[1]
    return result, parts


def _as_rows(tensor: Any) -> Tensor:
    """All elements behind the first dimension, which counts examples or targets, in one."""
    shape = tensor.shape
    return call("aten::reshape", tensor, [shape[0], math.prod(shape[1:])])


def _labels(mask: Any, tensor: Any, each_example: bool) -> Tensor:
    """The label of every attribution, a row for each example or target."""
    shape = list(tensor.shape)
    own = shape if each_example else shape[1:]
    fits = len(own) >= mask.ndim and all(
        extent in (1, size) for extent, size in zip(reversed(mask.shape), reversed(own))
    )
    if not fits:
        raise ValueError("feature_mask is %s, which does not broadcast to the input %s" % (list(mask.shape), own))
    wide = call("aten::expand", mask.to("int64", tensor.device), own)
    return _as_rows(call("aten::expand", wide, shape))


# ---- what is returned


def _first_of(given: Any) -> Any:
    """The first attribution of a structure; None where there is none."""
    return next((part for part in _leaves_of(given) if part is not None), None)


def _numbers_like(numbers: List[float], attribution: Any) -> Any:
    """Numbers in the library and the dtype that an attribution is of."""
    if _is_torch(attribution):
        return attribution.new_tensor(numbers)
    if _is_numpy(attribution):
        import numpy

        return numpy.array(numbers, dtype=attribution.dtype)
    return numbers


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _like(tensor: Optional[Tensor], value: Any) -> Any:
    if isinstance(value, Input):
        value = value.value
    if tensor is None:
        return None
    if _is_torch(value):
        return tensor.torch().clone()
    table = labelled(tensor, value)
    if table is not None:
        return table
    if _is_numpy(value):
        return tensor.numpy().copy()
    return tensor

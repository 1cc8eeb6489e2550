"""`attribute`: its arguments have the names and the meaning that users of Captum know."""

import copy
import math
import sys
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

from ._attribution import Attribution
from ._call import call
from ._input import Input, Inside, as_insides, one_or_list
from ._tensor import Tensor, as_tensor


class Question:
    """One call of `attribute`.

    Attributes:
        named: the split inputs by name, where the inputs are a mapping, else empty.
        positional: the split inputs in order, where they are not.
        further: the plain arguments behind them.
        inside: what is attributed to in place of the inputs, or None.
        targets: as `Model.explain` takes them.
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
    ):
        self.inside = one_or_list(inside)
        self.further = _plain_arguments(additional_forward_args)
        self.targets = "top1" if target is None else target
        self._inputs = inputs
        self._target_is_given = target is not None
        self._each_example = each_example
        split, self._values = _split_inputs(_each_its_own(inputs), baselines, self.inside)
        self._masks = _masks_of(feature_mask, inputs, self._values, self.inside)
        self.named: Dict[str, Any] = split if isinstance(split, dict) else {}
        self.positional: List[Any] = [] if isinstance(split, dict) else split

    def insides(self) -> List[Inside]:
        """What is attributed to inside the model, all elements of it."""
        return _split_inside(self.inside)

    def answer(self, found: Attribution, tensors: Sequence[Optional[Tensor]], with_delta: bool) -> Any:
        """What `attribute` returns.

        Args:
            found: the attribution of this question.
            tensors: what it has for each input, in their order.
            with_delta: whether the delta of each target is returned too.
        """
        if not self._target_is_given:
            _require_one(found.value.shape, self._each_example)
        values, structure = self._values, self._inputs
        first = (*values, *self.further)[0]
        if self.inside is not None:
            tensors, structure, values = found.inside, self.inside, [first] * len(found.inside)
        elif any(mask is not None for mask in self._masks):
            tensors = _grouped(tensors, self._masks, self._each_example)
        given = _as_given(tensors, structure, values)
        if not with_delta:
            return given
        # Adding to zero leaves no minus before a zero.
        delta = [0.0 - leftover for leftover in found.leftovers]
        return given, _numbers_like(delta, _first_of(given))


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


# ---- inputs


def _split_inputs(inputs: Any, baselines: Any, inside: Any) -> Tuple[Union[Dict[str, Any], List[Any]], List[Any]]:
    """The inputs with every element split off, and their values in one list. Where something inside is attributed to,
    the inputs stay as they are."""
    if inside is not None:
        if baselines is not None:
            raise TypeError("baselines are for inputs that are attributed to; an addend.Inside has its own")
        if isinstance(inputs, Mapping):
            return dict(inputs), list(inputs.values())
        values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        return values, values
    values = list(inputs.values() if isinstance(inputs, Mapping) else inputs if _is_several(inputs) else [inputs])
    given = _beside("baselines", baselines, inputs, spread=True)
    split = [_split(value, baseline) for value, baseline in zip(values, given)]
    return (dict(zip(inputs, split)) if isinstance(inputs, Mapping) else split), values


def _each_its_own(inputs: Any) -> Any:
    """The inputs with a copy of an `Input` in each further place where it stands: every place is attributed to."""
    seen: Set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, Input) or id(value) not in seen:
            seen.add(id(value))
            return value
        return copy.copy(value)

    if isinstance(inputs, Mapping):
        return {name: own(value) for name, value in inputs.items()}
    return [own(value) for value in inputs] if _is_several(inputs) else inputs


def _beside(what: str, given: Any, inputs: Any, spread: bool) -> List[Any]:
    """What is given for each input, in their order: by name, in a tuple or list, or (`spread`) one for all."""
    if isinstance(inputs, Mapping):
        if _is_several(given):
            raise TypeError("inputs are a dict, so several %s are one too" % what)
        if isinstance(given, Mapping):
            unknown = set(given) - set(inputs)
            if unknown:
                raise ValueError("there are %s for %s, which are no inputs" % (what, ", ".join(sorted(unknown))))
            return [given.get(name) for name in inputs]
    elif _is_several(given):
        count = len(inputs) if _is_several(inputs) else 1
        if len(given) != count:
            raise ValueError("there are %d %s for %d inputs" % (len(given), what, count))
        return list(given)
    count = len(inputs) if isinstance(inputs, Mapping) or _is_several(inputs) else 1
    if given is not None and count > 1 and not spread:
        raise TypeError("there are %d inputs; give %s for each, in the same structure" % (count, what))
    return [given] * count


def _is_several(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _split(value: Any, baseline: Any) -> Input:
    # Every element gets its own number, whatever the components are.
    return value if isinstance(value, Input) else Input(value, dims=0, baseline=baseline)


def _split_inside(inside: Any) -> List[Inside]:
    listed = []
    for source in as_insides(inside):
        if source.experts:
            raise TypeError("experts are several tensors; explain() has all of them, or name each with its module")
        if source.dims is None and source.labels is None and source.heads is None:
            source = copy.copy(source)
            source.dims = (0,)
        listed.append(source)
    return listed


def _plain_arguments(additional_forward_args: Any) -> Tuple[Any, ...]:
    if additional_forward_args is None:
        return ()
    if isinstance(additional_forward_args, (tuple, list)):
        return tuple(additional_forward_args)
    return (additional_forward_args,)


# ---- groups


def _masks_of(feature_mask: Any, inputs: Any, values: Sequence[Any], inside: Any) -> List[Optional[Tensor]]:
    """For each input the labels of its elements; None where each stands alone."""
    if feature_mask is None:
        return [None] * len(values)
    if inside is not None:
        raise TypeError("feature_mask is for inputs that are attributed to; an addend.Inside takes labels")
    if isinstance(feature_mask, list) and not isinstance(inputs, Mapping) and not _is_several(inputs):
        feature_mask = (feature_mask,)  # a list of numbers for the only input
    masks = [
        None if mask is None else as_tensor(mask)
        for mask in _beside("values of feature_mask", feature_mask, inputs, spread=False)
    ]
    for mask in masks:
        if mask is not None and ("float" in mask.dtype or "complex" in mask.dtype):
            raise TypeError("feature_mask holds integers, the number of each element's group, not %s" % mask.dtype)
    return masks


def _grouped(
    tensors: Sequence[Optional[Tensor]], masks: Sequence[Optional[Tensor]], each_example: bool
) -> List[Optional[Tensor]]:
    """Attributions with the sum of its group in the place of each element, the groups reaching over all inputs."""
    result = list(tensors[: len(masks)])
    chosen = [k for k, mask in enumerate(masks) if mask is not None and tensors[k] is not None]
    if not chosen:
        return result
    rows = [_as_rows(tensors[k]) for k in chosen]
    labels = [_labels(masks[k], tensors[k], each_example) for k in chosen]
    unique, group = call("aten::_unique2", call("aten::cat", labels, 1), True, True)[:2]
    if len(unique) and unique[0].item() < 0:
        raise ValueError("feature_mask holds %d; groups are counted from 0" % unique[0].item())
    whole = call("aten::cat", rows, 1)
    sums = call("aten::new_zeros", whole, [len(whole), len(unique)])
    shares = call("aten::gather", call("aten::scatter_add", sums, 1, group, whole), 1, group)
    start = 0
    for k, row in zip(chosen, rows):
        own = call("aten::narrow", shares, 1, start, row.shape[1])
        result[k] = call("aten::reshape", own, list(tensors[k].shape)).to(tensors[k].dtype)
        start += row.shape[1]
    return result


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


def _as_given(tensors: Sequence[Optional[Tensor]], inputs: Any, values: Sequence[Any]) -> Any:
    """Attributions in the structure of the inputs, and of the library that those are of."""
    converted = [_like(tensor, value) for tensor, value in zip(tensors, values)]
    if isinstance(inputs, Mapping):
        return dict(zip(inputs, converted))
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(*converted) if hasattr(inputs, "_fields") else type(inputs)(converted)
    return converted[0]


def _first_of(given: Any) -> Any:
    """The first attribution of a structure; None where there is none."""
    parts = given.values() if isinstance(given, dict) else given if _is_several(given) else [given]
    return next((part for part in parts if part is not None), None)


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
    if _is_numpy(value):
        return tensor.numpy().copy()
    return tensor

"""What each element of the inputs gave to some numbers, found by one sweep back."""

import copy
import html
import json
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from ._explanation import Explanation
from ._handle import Handle
from ._input import Input, Inside, as_insides
from ._results import Results
from ._target import Target, as_target
from ._tensor import Tensor


class Attribution(Handle):
    """Numbers, and what each element of the inputs gave to them; `Model.explain` gives it.

    It is a sequence of one `Explanation` for each target, or for each example where each has one.

    Attributes:
        output: what a live model returned in the run that is explained. None for models from files.
    """

    __slots__ = ("_num_inside", "_places", "_results", "output")

    def __init__(
        self, capsule: Any, num_inside: int = 0, places: Optional[Sequence[Optional[int]]] = None, output: Any = None
    ):
        super().__init__(capsule)
        self._num_inside = num_inside
        self._results = Results(_native.attribution_results(capsule))
        size = len(self._results) - 1 - num_inside
        self._places = range(size) if places is None else places
        self.output = output

    def close(self) -> None:
        super().close()
        self._results.close()

    @property
    def value(self) -> Tensor:
        """The explained tensor, as the model computed it."""
        return self._results[0]

    @property
    def inputs(self) -> List[Optional[Tensor]]:
        """For each input of the model, in their order, what its elements give: ``[targets, *shape]``, or ``[*shape]``
        where each example has a target; for ids one number each. None for plain inputs."""
        return [None if place is None else self._results[1 + place] for place in self._places]

    @property
    def inside(self) -> List[Tensor]:
        """For each `Inside`, in their order, what the elements of the tensor give: ``[targets, *shape]``, or
        ``[*shape]`` where each example has a target."""
        end = len(self._results)
        return [self._results[index] for index in range(end - self._num_inside, end)]

    @property
    def leftovers(self) -> List[float]:
        """By target, what is not attributed to elements: value - reference - the sum of all."""
        return [explanation.leftover for explanation in self]

    @property
    def operators(self) -> List[Dict[str, Any]]:
        """What passed through each operator and what it left over, by target; empty unless it was asked for."""
        return self.to_dict().get("operators", [])

    @property
    def report(self) -> Dict[str, Any]:
        """What the run says about itself."""
        return self._results.report

    def number(self, key: str) -> float:
        """One number of the report; NaN if it has none."""
        return self._results.number(key)

    @property
    def notes(self) -> List[str]:
        """What a reader has to know, one line each."""
        return self._results.notes

    def __len__(self) -> int:
        return _native.attribution_num_targets(self._handle)

    def __getitem__(self, index: int) -> Explanation:
        size = len(self)
        position = index + size if index < 0 else index
        if not 0 <= position < size:
            raise IndexError("target %d of %d" % (index, size))
        return Explanation(_native.attribution_explain(self._handle, position))

    def __iter__(self) -> Iterator[Explanation]:
        return (self[index] for index in range(len(self)))

    def to_dict(self) -> Dict[str, Any]:
        """All targets, with the operators where they were asked for."""
        return json.loads(_native.attribution_json(self._handle))

    def to_html(self) -> str:
        """A page for a browser that needs nothing else."""
        return _native.attribution_html(self._handle)

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html())
        return '<iframe srcdoc="%s" style="width: 100%%; height: 32em; border: 0" sandbox></iframe>' % page

    def __repr__(self) -> str:
        if self.closed:
            return "Attribution(closed)"
        return "Attribution(%s)" % ", ".join(explanation.target for explanation in self)


def add_targets(request: Any, targets: Any, at: Optional[str], each_example: bool, operators: bool) -> None:
    """Adds to a native request what `Model.explain` is asked."""
    for target in target_list(targets):
        _native.request_add_target(request, as_target(target))
    if at is not None:
        _native.request_set_explained(request, at)
    if each_example:
        _native.request_set_each_example(request, True)
    if operators:
        _native.request_set_operators(request, True)


def target_list(targets: Any) -> List[Target]:
    """None: the largest element. A list, an array or a tensor holds several targets; a number, a text or a tuple is
    one."""
    if targets is None:
        return ["top1"]
    if isinstance(targets, (str, int, tuple)):
        return [targets]
    if hasattr(targets, "tolist"):  # arrays and tensors
        targets = targets.tolist()
        if isinstance(targets, int):
            return [targets]
    return [tuple(target) if isinstance(target, list) else target for target in targets]


def split_for_attribution(
    inputs: Any, baselines: Any, inside: Any = None
) -> Tuple[Union[Dict[str, Any], List[Any]], List[Any]]:
    """What users of Captum give, as inputs of ours, all elements being attributed to; with the values in one list. Where
    something inside is attributed to, the inputs stay as they are."""
    if inside is not None:
        if baselines is not None:
            raise TypeError("baselines are for inputs that are attributed to; an addend.Inside has its own")
        if isinstance(inputs, dict):
            return dict(inputs), list(inputs.values())
        values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        return values, values
    if isinstance(inputs, dict):
        if isinstance(baselines, (tuple, list)):
            raise TypeError("inputs are a dict, so several baselines are one too")
        if baselines is not None and not isinstance(baselines, dict):
            baselines = {name: baselines for name in inputs}
        unknown = set(baselines or {}) - set(inputs)
        if unknown:
            raise ValueError("there are baselines for %s, which are no inputs" % ", ".join(sorted(unknown)))
        named = {name: _split(value, (baselines or {}).get(name)) for name, value in inputs.items()}
        return named, list(inputs.values())
    values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    if isinstance(baselines, (tuple, list)):
        if len(baselines) != len(values):
            raise ValueError("there are %d baselines for %d inputs" % (len(baselines), len(values)))
        given: Sequence[Any] = baselines
    else:
        given = [baselines] * len(values)
    return [_split(value, baseline) for value, baseline in zip(values, given)], values


def split_inside(inside: Any) -> List[Inside]:
    """What users of Captum know as layers, all elements being attributed to."""
    listed = []
    for source in as_insides(inside):
        if source.dims is None and source.labels is None:
            source = copy.copy(source)
            source.dims = (0,)
        listed.append(source)
    return listed


def plain_arguments(additional_forward_args: Any) -> Tuple[Any, ...]:
    """What users of Captum give besides the inputs, one by one."""
    if additional_forward_args is None:
        return ()
    if isinstance(additional_forward_args, (tuple, list)):
        return tuple(additional_forward_args)
    return (additional_forward_args,)


def as_given(tensors: Sequence[Optional[Tensor]], inputs: Any, values: Sequence[Any]) -> Any:
    """Attributions in the structure of the inputs, and of the library that those are of."""
    converted = [_like(tensor, value) for tensor, value in zip(tensors, values)]
    if isinstance(inputs, dict):
        return dict(zip(inputs, converted))
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(*converted) if hasattr(inputs, "_fields") else type(inputs)(converted)
    return converted[0]


def numbers_like(numbers: List[float], value: Any) -> Any:
    """Numbers in the library that a value is of."""
    if _is_torch(value):
        import torch

        return torch.tensor(numbers, dtype=torch.float64)
    if _is_numpy(value):
        import numpy

        return numpy.array(numbers, dtype=numpy.float64)
    return numbers


def _split(value: Any, baseline: Any) -> Input:
    # Every element gets its own number, whatever the components are.
    return value if isinstance(value, Input) else Input(value, dims=0, baseline=baseline)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _like(tensor: Optional[Tensor], value: Any) -> Any:
    if tensor is None:
        return None
    if _is_torch(value):
        return tensor.torch().clone()
    if _is_numpy(value):
        return tensor.numpy().copy()
    return tensor

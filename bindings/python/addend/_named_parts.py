"""Heads of attention and experts by their names: which tensors inside a model they are, found in a recording of it."""

import copy
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ._input import Inside
from ._program import Program

_SOFTMAX = ("aten::softmax", "aten::_softmax", "aten::_safe_softmax")
_FUSED = "scaled_dot_product"
# Attention as one operator, in which PyTorch computes it where nobody asks for gradients.
_WHOLE = ("aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd")
_WHOLE_ATTENTION = (
    "%s computes its attention in one operator, which shows no heads; PyTorch does so in evaluation mode where nobody asks "
    "for gradients: ask with gradients enabled and with parameters that require them"
)
# Operators that mix the values by the weights of attention.
_MIXES = ("aten::matmul", "aten::bmm", "aten::einsum", "aten::baddbmm")
# Products of a tensor with parameters: the names of the arguments of both.
_PROJECTIONS = {
    "aten::linear": ("input", "weight"),
    "aten::addmm": ("mat1", "mat2"),
    "aten::mm": ("self", "mat2"),
    "aten::matmul": ("self", "other"),
}
_INSTEAD = "; split the tensor itself, with dims= or labels= of an operator's result such as aten::matmul:1"


def placed(insides: Sequence[Inside], record: Callable[[], Program]) -> List[Inside]:
    """Returns the insides with every split told by dimensions or labels.

    Args:
        record: records the run that will be split; called where a split is told by the names of parts.

    Raises:
        ValueError: the model has no such parts, or they cannot be told from what it computes.
    """
    if not any(one.heads or one.experts for one in insides):
        return list(insides)
    calls = _Calls(record())
    several = len(insides) > 1
    found: List[Inside] = []
    for one in insides:
        if one.heads:
            found.append(_with_heads(one, calls, "%s: " % one.selector if several else ""))
        elif one.experts:
            found.extend(_with_experts(one, calls, "%s: " % one.selector if several else ""))
        else:
            found.append(one)
    return found


class _Call(NamedTuple):
    """An operator's call in a recording.

    Attributes:
        place: among all calls.
        name: as schemas have it, and `overload`.
        module: the path of the module that called it.
        gives: names and versions of what it gives; `shapes` of these.
        takes: by the names of the arguments, names and versions of tensors.
        plain: other arguments.
    """

    place: int
    name: str
    overload: str
    module: str
    gives: List[Tuple[str, int]]
    shapes: List[List[int]]
    takes: Dict[str, List[Tuple[str, int]]]
    plain: Dict[str, Any]

    def is_in(self, path: str) -> bool:
        return not path or self.module == path or self.module.startswith(path + ".")

    @property
    def full_name(self) -> str:
        return "%s.%s" % (self.name, self.overload) if self.overload else self.name

    def answers_to(self, name: str) -> bool:
        """Whether a selector of this name means it: as reports name operators, in place or not."""
        functional = self.name[:-1] if self.name.endswith("_") and not self.name.endswith("__") else self.name
        return name in (self.name, self.full_name, functional)


class _Calls:
    """The calls of a recorded model, in order."""

    def __init__(self, program: Program):
        nodes = program.graph()["nodes"]
        self.list = [_call(place, node) for place, node in enumerate(one for one in nodes if one["kind"] == "call")]
        self._held: Set[str] = {name for kind in ("parameter", "buffer", "constant") for name in program.names(kind)}
        self._makers = {given: call for call in self.list for given in call.gives}

    def inside(self, path: str) -> List[_Call]:
        found = [call for call in self.list if call.is_in(path)]
        wholes = [call.module for call in self.list if call.name in _WHOLE] if not found else []
        for whole in wholes:  # one operator in the place of a module around this one
            if not whole or path.startswith(whole + "."):
                raise ValueError(_WHOLE_ATTENTION % (whole or "the model"))
        if not found:
            raise ValueError("nothing inside the model is called %s" % path)
        return found

    def selected(self, selector: str) -> _Call:
        """The call whose result a selector of an operator means, and its errors."""
        name, _, number = selector.rpartition(":") if re.search(r"[^:]:\d+$", selector) else (selector, "", "")
        found = [call for call in self.list if call.answers_to(name)]
        index = int(number) if number else 0
        if not found or index >= len(found) or (not number and len(found) > 1):
            raise ValueError("the model calls %s %d times; say which, as in %s:0" % (name, len(found), name))
        return found[index]

    def selector(self, call: _Call) -> str:
        """How the first result of a call is told."""
        alike = [one for one in self.list[: call.place] if one.answers_to(call.full_name)]
        return "%s:%d" % (call.full_name, len(alike))

    def maker(self, given: Tuple[str, int]) -> Optional[_Call]:
        return self._makers.get(given)

    def held(self, given: Tuple[str, int]) -> Tuple[Optional[str], Optional[int]]:
        """The name of the parameter that a tensor is, or a view or copy of, and which of its first dimension, where it is
        one of these; None where it is none."""
        index: Optional[int] = None
        for _ in range(6):
            if given[0] in self._held:
                return given[0], index
            call = self.maker(given)
            tensors = [one for taken in call.takes.values() for one in taken] if call is not None else []
            if call is None or len(tensors) != 1:
                break
            if call.name == "aten::select" and call.plain.get("dim") == 0:
                index = call.plain.get("index")
            given = tensors[0]
        return None, None

    def projections(self, calls: Sequence[_Call]) -> Iterator[Tuple[_Call, Tuple[str, int], Optional[int]]]:
        """Products with parameters among some calls: each, what it multiplies, and which of the parameter's first
        dimension."""
        for call in calls:
            data, weight = _PROJECTIONS.get(call.name, ("", ""))
            if call.takes.get(data) and call.takes.get(weight):
                held, index = self.held(call.takes[weight][0])
                if held is not None:
                    yield call, call.takes[data][0], index


def _call(place: int, node: Dict[str, Any]) -> _Call:
    takes = {
        argument["name"]: [(one["value"], one["version"]) for one in argument["tensors"] if one is not None]
        for argument in node["arguments"]
        if argument.get("tensors")
    }
    plain = {argument["name"]: argument["value"] for argument in node["arguments"] if "value" in argument}
    given = [tensor for tensor in node["tensors"] if tensor is not None]  # one that nobody asked for is none
    gives = [(tensor["name"], tensor["version"]) for tensor in given]
    shapes = [tensor["shape"] for tensor in given]
    return _Call(place, node["operator"], node["overload"], node["module_path"], gives, shapes, takes, plain)


def _with_heads(inside: Inside, calls: _Calls, prefix: str) -> Inside:
    """The tensor that holds the heads, split into these."""
    heads = None if inside.heads is True else inside.heads
    if "::" in inside.selector:
        selector, shape = inside.selector, calls.selected(inside.selector).shapes[0]
    else:
        selector, shape, own = _before_projection(inside.selector, calls)
        heads = own if heads is None else heads
    if heads is None:
        raise ValueError("%s does not tell how many heads there are; give their number, heads=8" % inside.selector)
    result = copy.copy(inside)
    result.selector, result.heads = selector, None
    if len(shape) == 4 and "::" in inside.selector:
        if shape[1] != heads:
            raise ValueError(
                "%s is %s, which has not %d heads in dimension 1; tell the dimension of the heads with dims="
                % (inside.selector, shape, heads)
            )
        result.dims = (1,)
    else:
        if shape[-1] % heads:
            raise ValueError(
                "%s is %s, whose last dimension is not that of %d heads next to each other" % (inside.selector, shape, heads)
            )
        size = shape[-1] // heads
        labels: List[Any] = [head for head in range(heads) for _ in range(size)]
        for _ in shape[1:]:
            labels = [labels]
        result.labels = labels
    result.names = inside.names or tuple("%shead %d" % (prefix, head) for head in range(heads))
    return result


def _before_projection(path: str, calls: _Calls) -> Tuple[str, List[int], Optional[int]]:
    """For the module of an attention: where its heads lie next to each other, in what its last projection reads or, where
    it has none behind the attention, in what it gives. With the shape of that tensor, and the number of heads."""
    own = calls.inside(path)
    attends = [call for call in own if call.name in _SOFTMAX or _FUSED in call.name]
    if not attends and any(call.name in _WHOLE for call in own):
        raise ValueError(_WHOLE_ATTENTION % path)
    if len(attends) != 1:
        raise ValueError(
            "%s has %s attention; name the module of one" % (path, "no" if not attends else "more than one") + _INSTEAD
        )
    behind = [call for call in own if call.place > attends[0].place]
    mixed = attends[0] if _FUSED in attends[0].name else next((call for call in behind if call.name in _MIXES), None)
    first = next(calls.projections(behind), None)
    if first is not None:
        maker = calls.maker(first[1])
        given = first[1]
    else:
        maker = behind[-1] if behind else attends[0]
        given = maker.gives[0]
    if maker is None or maker.place <= attends[0].place or maker.gives[0] != given:
        raise ValueError("%s: it is not seen where its heads are" % path + _INSTEAD)
    shape = maker.shapes[0]
    size = mixed.shapes[0][-1] if mixed is not None else 0
    heads = shape[-1] // size if size and shape[-1] % size == 0 else None
    return calls.selector(maker), shape, heads


def _with_experts(inside: Inside, calls: _Calls, prefix: str) -> List[Inside]:
    """Splits the outputs of the experts that ran, one component for each expert."""
    own = calls.inside(inside.selector)
    found = _modules_of_experts(inside.selector, calls.list) or _slices_of_experts(calls, own)
    if not found:
        raise ValueError(
            "%s has no experts: neither modules called %s.0, %s.1, nor products with parameters of which each takes one of "
            "the first dimension" % ((inside.selector,) * 3)
        )
    result = []
    for place, (expert, selector) in enumerate(sorted(found.items())):
        one = copy.copy(inside)
        one.selector, one.experts, one.labels = selector, False, 0
        if inside.first_component is not None:
            one.first_component = inside.first_component + place
        named = expert < len(inside.names)
        one.names = (inside.names[expert] if named else "%sexpert %d" % (prefix, expert),)
        result.append(one)
    return result


def _modules_of_experts(path: str, calls: Sequence[_Call]) -> Dict[int, str]:
    """Paths of the modules directly in this one that have numbers for names, by number."""
    found: Dict[int, str] = {}
    last: Optional[int] = None
    start = len(path) + 1 if path else 0
    for call in calls:
        number = re.match(r"\d+(?=\.|$)", call.module[start:]) if call.is_in(path) else None
        expert = int(number.group()) if number else None
        if expert is not None and expert != last and expert in found:
            raise ValueError(
                "the expert %s runs several times, and only one result of it can be split; explain(operators=True) and "
                "Attribution.passed say what went through all of them" % found[expert]
            )
        if expert is not None:
            found[expert] = call.module[: start + number.end()]
        last = expert
    return found


def _slices_of_experts(calls: _Calls, own: Sequence[_Call]) -> Dict[int, str]:
    """Selectors of the last product with the parameters of each expert, by the expert's index in the parameters of
    all."""
    found: Dict[int, _Call] = {}
    for call, _, index in calls.projections(own):
        if index is not None:
            found[index] = call
    return {expert: calls.selector(call) for expert, call in found.items()}

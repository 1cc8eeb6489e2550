"""Functions, methods and modules of PyTorch on compositions.

While a function of PyTorch runs, tensors without memory stand for its compositions. Each operator that the function calls
on them comes to `_operate`, which calls it by name on the compositions themselves, as methods of compositions do: so a
function gives what its operators called one by one give, and what they give inside a model.
"""

import contextvars
import copy
import functools
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from ._call import call, call_list, operators
from ._errors import InvalidArgument, Unimplemented
from ._operand import Composed
from ._structure import map_leaves
from ._tensor import Tensor

if TYPE_CHECKING:
    from ._composition import Composition

# Methods and attributes of tensors that hand out memory, or belong to autograd: a composition has neither of its own.
_OF_MEMORY = frozenset(
    "backward data data_ptr grad_fn numpy pin_memory register_hook rename requires_grad_ resize_ resize_as_ retain_grad "
    "set_ share_memory_ storage storage_type to_dense to_sparse tolist typed_storage untyped_storage".split()
)
_NO_ROOM = (
    "; a plain tensor has no room for components: begin with a composition (torch.zeros_like(c), c.new_zeros(...)), or "
    "decompose the whole function, addend.compile(function)(c)"
)
# Whether autograd follows compositions in the function that runs.
_follows: "contextvars.ContextVar[bool]" = contextvars.ContextVar("addend.follows", default=True)

# An operator, its arguments but the first, and which of its results: what makes a view of a tensor.
_View = Tuple[str, Sequence[Any], Dict[str, Any], int]


def call_function(function: Any, args: Sequence[Any] = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
    """Calls a function of PyTorch on arguments of which some are compositions, on any depth.

    Returns what the function returns, with a `Composition` for each floating-point tensor that was computed from one, and
    plain tensors elsewhere. A composition that the function writes holds the new state then.

    Raises:
        Unimplemented: an operator has no rule, or what the function writes cannot be followed.
        InvalidArgument: arguments do not fit.
    """
    import torch

    name = getattr(function, "__name__", "")
    if name in _OF_MEMORY:
        raise TypeError("a composition has no memory that %s could give; take it of c.recovery.torch()" % name)
    run = _Run()
    live_args, live_kwargs = map_leaves(run.enter, (tuple(args), kwargs or {}), "")
    token = _follows.set(torch.is_grad_enabled())
    try:
        with torch.no_grad():  # of the tensors that stand for compositions nobody asks a gradient
            returned = function(*live_args, **live_kwargs)
    except Unimplemented:
        # PyTorch takes operators apart that have a rule, and may reach some that have none.
        if "aten::" + name not in _with_rules():
            raise
        results = [
            result.torch() if isinstance(result, Tensor) else result
            for result in call_list("aten::" + name, args, kwargs or {})
        ]
        if len(results) == 1:
            return results[0]
        # PyTorch's own tuple has names for its fields.
        return getattr(torch.return_types, name, tuple)(results)
    finally:
        _follows.reset(token)
    returned = map_leaves(run.leave, returned, "")
    run.take_writes()
    return returned


@functools.lru_cache(maxsize=None)
def _with_rules() -> FrozenSet[str]:
    return frozenset(operator.name for operator in operators())


def _is_composition(value: Any) -> bool:
    return isinstance(value, Composed)


def any_in_graph(arguments: Any) -> bool:
    """Whether autograd follows a composition among some arguments, on any depth."""
    found: List[Any] = []

    def find(leaf: Any, path: str) -> Any:
        if _is_composition(leaf) and leaf.requires_grad:
            found.append(leaf)
        return leaf

    map_leaves(find, arguments, "")
    return bool(found)


def attribute_of(composition: "Composition", name: str) -> Any:
    """Finds an attribute of a composition that only tensors of PyTorch have: their method, or its value."""
    kind = type(composition).__name__
    try:
        import torch
    except ImportError:
        raise AttributeError(
            "%s has no attribute %r; PyTorch's methods of tensors would be tried, but it is not installed" % (kind, name)
        ) from None
    found = None if name.startswith("_") or name in _OF_MEMORY else getattr(torch.Tensor, name, None)
    if found is None:
        raise AttributeError(
            "a composition has no %r of its own; take that of c.recovery.torch()" % name
            if name in _OF_MEMORY
            else "neither %s nor torch.Tensor has an attribute %r" % (kind, name)
        )
    if not callable(found):
        return call_function(found.__get__, (composition,))
    return lambda *args, **kwargs: call_function(found, (composition, *args), kwargs)


class _Memory:
    """The memory that a tensor and its views share: the composition that is there now.

    Attributes:
        version: how often it was written.
    """

    def __init__(self, base: "Composition"):
        self.base = base
        self.version = 0

    def read(self, views: Sequence[_View]) -> "Composition":
        return _viewed(self.base, views)

    def write(self, views: Sequence[_View], state: "Composition") -> None:
        if views:
            state = self._with(views, state)
        self.base = state
        self.version += 1

    def _with(self, views: Sequence[_View], state: "Composition") -> "Composition":
        """The whole with another state in a view of it: each element goes where the views have its position from."""
        import torch

        shape = list(self.base.shape)
        numel = torch.Size(shape).numel()
        positions = _viewed(torch.arange(numel).view(shape), views).torch().reshape(-1)
        count = positions.numel()
        if count == 0:
            return self.base
        if positions.unique().numel() != count:
            raise Unimplemented("a view was written in which several elements are one; write a copy of it")
        positions = positions.to(self.base.device)
        sources = positions.new_zeros(numel).index_put((positions,), torch.arange(count, device=positions.device))
        flat = call("aten::index_select", call("aten::reshape", state, [-1]), 0, sources)
        if count < numel:
            is_written = torch.zeros_like(sources, dtype=torch.bool).index_fill(0, positions, True)
            flat = call("aten::where.self", is_written, flat, call("aten::reshape", self.base, [-1]))
        return call("aten::reshape", flat, shape)


def _viewed(tensor: Any, views: Sequence[_View]) -> Any:
    for name, args, kwargs, index in views:
        tensor = call_list(name, (tensor, *args), kwargs)[index]
    return tensor


class _Run:
    """A function that runs, with what stands for the compositions it was given."""

    def __init__(self) -> None:
        self._given: Dict[int, Tuple["Composition", Any]] = {}

    def enter(self, leaf: Any, path: str) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.torch()
        if not _is_composition(leaf):
            return leaf
        if id(leaf) not in self._given:
            self._given[id(leaf)] = (leaf, _new(leaf))
        return self._given[id(leaf)][1]

    def leave(self, leaf: Any, path: str) -> Any:
        if not isinstance(leaf, _stand_in()):
            return leaf
        for composition, live in self._given.values():
            if live is leaf:
                return composition
        return leaf.composition()

    def take_writes(self) -> None:
        """Puts what the function wrote into the compositions that it was given."""
        for composition, live in self._given.values():
            if live.memory.version > 0 or live.views:  # of what it was, where it was transposed in place
                composition._become(live.composition())


@functools.lru_cache(maxsize=None)
def _stand_in() -> Any:
    """The class of the tensors that stand for compositions; made where PyTorch is imported already."""
    import torch

    class StandIn(torch.Tensor):
        """A tensor without memory. `views` lead from the composition in `memory` to the one that it stands for."""

        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, memory: _Memory, views: Tuple[_View, ...], composition: "Composition") -> Any:
            self = torch.Tensor._make_wrapper_subclass(
                cls,
                composition.shape,
                dtype=getattr(torch, composition.dtype.value),
                device=composition.device,
            )
            self.memory, self.views = memory, views
            self._known, self._version_known = composition, memory.version
            return self

        def composition(self) -> "Composition":
            if self._version_known != self.memory.version:
                self._known, self._version_known = self.memory.read(self.views), self.memory.version
            return self._known

        @classmethod
        def __torch_dispatch__(cls, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            # Autograd has been left behind here; where it follows compositions, it is entered again.
            follows = _follows.get() and operator._schema.name != "aten::detach"
            with torch.overrides.enable_reentrant_dispatch(), torch.set_grad_enabled(follows):
                return _operate(operator, args, kwargs or {})

    return StandIn


def _new(composition: "Composition") -> Any:
    return _stand_in()(_Memory(composition), (), composition)


def _operate(operator: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
    """Calls an operator on the compositions that tensors stand for."""
    import torch

    schema = operator._schema
    if schema.name == "aten::_local_scalar_dense":
        return args[0].composition().value.item()
    if schema.name == "aten::clone":
        return _new(copy.copy(args[0].composition()))  # compositions are values
    given = list(zip(schema.arguments, args))
    given += [(argument, kwargs[argument.name]) for argument in schema.arguments if argument.name in kwargs]
    written = [value for argument, value in given if _is_written(argument) and isinstance(value, _stand_in())]
    name = _name(schema.name, schema.overload_name)
    if torch.Tag.inplace_view in operator.tags:
        return _view_in_place(operator, args, kwargs)
    if written and written[0].composition().requires_grad:
        name = _name(schema.name.rstrip("_"), schema.overload_name)  # gradients pass through what returns its result
    args = [
        _scalar(value, args) if _is_number(value) and str(argument.type) == "Tensor" else value
        for argument, value in zip(schema.arguments, args)
    ]
    plain_args, plain_kwargs = map_leaves(_plain, (tuple(args), kwargs), "")
    try:
        results = call_list(name, plain_args, plain_kwargs)
    except InvalidArgument as error:
        if any(_is_written(argument) and hasattr(value, "data_ptr") for argument, value in given) and not written:
            raise InvalidArgument(str(error) + _NO_ROOM) from error
        raise
    if written:
        return _write(name, schema, written, results)
    source = next((value for argument, value in given if _is_viewed(argument) and isinstance(value, _stand_in())), None)
    if source is not None and any(map(_is_viewed, schema.returns)):
        return _returned(schema, [_view(source, (name, plain_args[1:], plain_kwargs, k), c) for k, c in enumerate(results)])
    return _returned(schema, [_result(result) for result in results])


def _name(operator: str, overload: str) -> str:
    return operator + ("." + overload if overload else "")


def _view_in_place(operator: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
    """Makes a tensor a view of what it was, by an operator such as ``squeeze_``."""
    from torch.utils._mode_utils import no_dispatch

    live, schema = args[0], operator._schema
    name = _name(schema.name.rstrip("_"), schema.overload_name)
    live._known, live._version_known = call_list(name, (live.composition(), *args[1:]), kwargs)[0], live.memory.version
    live.views = (*live.views, (name, args[1:], kwargs, 0))
    with no_dispatch():
        operator(*args, **kwargs)  # so that its sizes are those of the view
    return live


def _write(name: str, schema: Any, written: Sequence[Any], results: Sequence[Any]) -> Any:
    """Puts the results of an operator into what it writes."""
    if len(results) != len(written):
        raise Unimplemented("%s writes what it does not return; call the form that returns its result" % name)
    for live, state in zip(written, results):
        if state.shape != tuple(live.shape) or state.dtype.value != str(live.dtype).rpartition(".")[2]:
            raise Unimplemented("%s changes the shape or dtype of what it writes; call the form that returns it" % name)
        live.memory.write(live.views, state)
    return _returned(schema, written)


def _returned(schema: Any, results: Sequence[Any]) -> Any:
    """Results in the form that the operator gives them in."""
    if len(schema.returns) == 1 and str(schema.returns[0].type).startswith("List"):
        return list(results)
    return results[0] if len(results) == 1 else tuple(results)


def _result(result: Any) -> Any:
    if _is_composition(result):
        return _new(result)
    return result.torch() if isinstance(result, Tensor) else result


def _view(source: Any, view: _View, result: Any) -> Any:
    return _stand_in()(source.memory, (*source.views, view), result) if _is_composition(result) else _result(result)


def _plain(leaf: Any, path: str) -> Any:
    """An argument of an operator as `call` takes it; compositions are dense, and have one memory format."""
    import torch

    if isinstance(leaf, _stand_in()):
        return leaf.composition()
    if isinstance(leaf, torch.device):
        return str(leaf)
    return None if isinstance(leaf, (torch.layout, torch.memory_format)) else leaf


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _scalar(number: Any, operands: Sequence[Any]) -> Any:
    """A number in the place of a tensor: one that changes the dtype of no operand, as numbers do."""
    import torch

    beside = next(operand for operand in operands if isinstance(operand, torch.Tensor))
    return torch.scalar_tensor(number, dtype=torch.result_type(torch.empty(1, dtype=beside.dtype), number))


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _is_viewed(argument: Any) -> bool:
    return argument.alias_info is not None and not argument.alias_info.is_write

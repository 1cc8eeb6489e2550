"""Operators by name."""

import contextvars
import numbers
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import _native
from ._context import Context, as_context
from ._dtype import is_dtype, to_code
from ._autograd import roots_of
from ._tensor import Tensor, as_tensor


_current: "contextvars.ContextVar[Optional[Context]]" = contextvars.ContextVar("addend.context", default=None)


class Using:
    """The block of `using`."""

    def __init__(self, context: Context):
        self._context = context
        self._token: Optional[contextvars.Token] = None

    def __enter__(self) -> Context:
        if self._token is not None:
            raise RuntimeError("this block is open already; make another one with addend.using(...)")
        self._token = _current.set(self._context)
        return self._context

    def __exit__(self, *exception: Any) -> None:
        assert self._token is not None
        _current.reset(self._token)
        self._token = None


def using(context: Optional[Context] = None, **policy: Any) -> Using:
    """The context of what is called on compositions in a ``with`` block: operators, and functions and modules of PyTorch,
    which have no argument for one::

        with addend.using(nonlinearity="gradient"):
            y = network(x)    # x: a Composition

    It holds for the thread or task that opened it. A context that a call is given itself comes before it. Models that
    `compile` wraps, and `tracing`, have contexts of their own.

    Args:
        context: how to decompose.
        policy: choices of a `Context`, in place of one.
    """
    return Using(as_context(context, policy, using))


class Operator(NamedTuple):
    """An operator that has a rule."""

    name: str  #: ``"aten::softmax"``
    kind: str  #: the principle of its rule: ``"path"``, ``"linear"``, ...
    schemas: List[str]  #: those that it serves in this LibTorch


def operators() -> List[Operator]:
    """All operators that have a rule, in the order of their names."""
    return [
        Operator(_native.op_name(k), _native.op_kind(k), _native.op_schema(k).splitlines())
        for k in range(_native.op_count())
    ]


def call(op: str, /, *args: Any, context: Optional[Context] = None, **kwargs: Any) -> Any:
    """Calls any operator of LibTorch on compositions::

        addend.call("aten::leaky_relu", x, negative_slope=0.2)

    Arguments are those of its schema, by position or by name: compositions, tensors and arrays, numbers, bools, text,
    dtypes, None, and lists of these. ``"aten::add"`` finds the overload by them, ``"aten::add.Scalar"`` names it.

    Returns a `Composition` for floating-point results, a `Tensor` for others and where no composition was given; a
    tuple if the operator gives several. An operator that writes its argument gives the new state as its result.

    Raises:
        NotFound: there is no such operator.
        Unimplemented: it has no rule.
        InvalidArgument: an argument does not fit its schema.
    """
    results = call_list(op, args, kwargs, context)
    return results[0] if len(results) == 1 else tuple(results)


def call_list(op: str, args: Sequence[Any], kwargs: Dict[str, Any], context: Optional[Context] = None) -> List[Any]:
    """Calls an operator as `call` does, but always returns a list."""
    from ._composition import Composition
    from ._results import result_at

    context = _current.get() if context is None else context
    results = _native.call(None if context is None else context._handle, op, _arguments(args, kwargs))
    found = [result_at(results, index) for index in range(_native.results_size(results))]
    roots = roots_of([*args, *kwargs.values()])
    for result in found if roots else ():
        if isinstance(result, Composition):
            result._roots = roots
    return found


def shapley(op: str, /, *args: Any, **kwargs: Any) -> Any:
    """The exact Shapley values of the components for the first result of such a call: at most 16 components, which
    take 2**16 calls."""
    from ._composition import Composition

    return Composition._adopt(_native.call_shapley(op, _arguments(args, kwargs)))


def _arguments(args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
    arguments = _native.arguments_create()
    for value in args:
        _add(arguments, None, value)
    for name, value in kwargs.items():
        _add(arguments, name, value)
    return arguments


def _add(arguments: Any, name: Optional[str], value: Any) -> None:
    from ._composition import Composition

    if isinstance(value, Composition):
        _native.arguments_add_composition(arguments, name, value._handle)
    elif isinstance(value, Tensor):
        _native.arguments_add_tensor(arguments, name, value._handle)
    elif value is None:
        _native.arguments_add_none(arguments, name)
    elif isinstance(value, bool):
        _native.arguments_add_bool(arguments, name, value)
    elif is_dtype(value):
        _native.arguments_add_dtype(arguments, name, to_code(value))
    elif isinstance(value, str):
        _native.arguments_add_str(arguments, name, value)
    elif isinstance(value, numbers.Integral):
        _native.arguments_add_i64(arguments, name, int(value))
    elif isinstance(value, numbers.Real):
        _native.arguments_add_f64(arguments, name, float(value))
    elif isinstance(value, (list, tuple)):
        _native.arguments_begin_list(arguments, name)
        for element in value:
            _add(arguments, None, element)
        _native.arguments_end_list(arguments)
    else:
        _native.arguments_add_tensor(arguments, name, as_tensor(value)._handle)

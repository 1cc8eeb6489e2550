"""Operators by name."""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import _native
from ._autograd import roots_of
from ._context import Context
from ._native_call import native_arguments, native_call
from ._operand import Composed
from ._result_at import result_at


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
    results = native_call(op, args, kwargs, context)
    given = [*args, *kwargs.values()]
    roots = roots_of(given)

    def composed(capsule: Any) -> Any:
        compositions = list(_compositions(given))
        return compositions[0]._of_result(capsule, roots, compositions)

    return [result_at(results, index, composed) for index in range(_native.results_size(results))]


def shapley(op: str, /, *args: Any, **kwargs: Any) -> Any:
    """The exact Shapley values of the components for the first result of such a call: at most 16 components, which
    take 2**16 calls."""
    capsule = _native.call_shapley(op, native_arguments(args, kwargs))
    given = list(_compositions([*args, *kwargs.values()]))
    return given[0]._of_result(capsule, (), given)


def _compositions(arguments: Sequence[Any]) -> Iterator[Composed]:
    """The compositions among arguments, which may be lists of them. Without one no operator gives a composition."""
    for argument in arguments:
        if isinstance(argument, Composed):
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from _compositions(argument)

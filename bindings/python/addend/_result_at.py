"""Native results as objects of Python."""

from typing import Any, Callable

from . import _native
from ._tensor import Tensor


def result_at(results: Any, index: int, composed: Callable[[Any], Any]) -> Any:
    """One result of the native object.

    Args:
        composed: makes a composition of a native one.
    """
    kind = _native.results_kind(results, index)
    if kind == _native.RESULT_COMPOSITION:
        return composed(_native.results_composition(results, index))
    if kind == _native.RESULT_TENSOR:
        return Tensor(_native.results_tensor(results, index))
    # A number is read by way of a tensor, which keeps its type.
    return Tensor(_native.results_tensor(results, index)).item() if kind == _native.RESULT_NUMBER else None

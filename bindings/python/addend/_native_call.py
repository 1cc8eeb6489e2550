"""Calls of operators as the C interface has them: native arguments, and native results."""

import numbers
from typing import Any, Dict, Optional, Sequence

from . import _native
from ._context import Context
from ._dtype import is_dtype, to_code
from ._native_tensor import native_tensor
from ._operand import Operand
from ._using import current_context


def native_call(op: str, args: Sequence[Any], kwargs: Dict[str, Any], context: Optional[Context] = None) -> Any:
    """Calls an operator in a context, or in that of the innermost block of `using`; returns the native results."""
    chosen = current_context() if context is None else context
    return _native.call(None if chosen is None else chosen._handle, op, native_arguments(args, kwargs))


def native_arguments(args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
    arguments = _native.arguments_create()
    for value in args:
        _add(arguments, None, value)
    for name, value in kwargs.items():
        _add(arguments, name, value)
    return arguments


def _add(arguments: Any, name: Optional[str], value: Any) -> None:
    if isinstance(value, Operand):
        value._add_to(arguments, name)
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
        _native.arguments_add_tensor(arguments, name, native_tensor(value))

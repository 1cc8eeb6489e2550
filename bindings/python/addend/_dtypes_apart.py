"""The error of a model whose inputs are of another dtype than its parameters, which names both."""

import re
from typing import Any, Dict, Optional

from ._modules import modules_of, named_tensors
from ._structure import map_leaves

# PyTorch's own sentence names none, one or both of them, in words that change from version to version.
_OF_DTYPES = re.compile(r"d[- ]?type|scalar type|(input|bias|weight) type", re.IGNORECASE)
_METHODS = {"float32": "float()", "float64": "double()", "float16": "half()", "bfloat16": "bfloat16()"}


def dtypes_apart(model: Any, arguments: Any, error: BaseException) -> Optional[str]:
    """The sentence that names both dtypes; None where the error is about something else.

    Args:
        model: a module, or a function that may be that of one.
        arguments: what it was called with, by name, on any depth.
        error: what PyTorch raised.
    """
    import torch

    if not _OF_DTYPES.search(str(error)):
        return None
    own = {tensor.dtype for _, tensor, _ in named_tensors(modules_of(model)) if tensor.is_floating_point()}
    if len(own) != 1:
        return None
    (dtype,) = own
    others: Dict[str, Any] = {}

    def compare(leaf: Any, path: str) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype != dtype:
            others[path] = leaf.dtype
        return leaf

    map_leaves(compare, arguments, "")
    floats = {path: other for path, other in others.items() if other.is_floating_point}
    if not others:
        return None
    ways = "the input by .%s" % _method(dtype)
    if len(set(floats.values())) == 1:
        ways += ", or the model by .%s" % _method(next(iter(floats.values())))
    return "%s, and the parameters of the model are %s; convert %s (PyTorch: %s)" % (
        ", ".join("%s is %s" % (path, _name(other)) for path, other in (floats or others).items()),
        _name(dtype),
        ways,
        str(error).splitlines()[0],
    )


def _name(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")


def _method(dtype: Any) -> str:
    return _METHODS.get(_name(dtype), "to(%s)" % dtype)

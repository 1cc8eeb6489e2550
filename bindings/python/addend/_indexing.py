"""``x[...]`` for compositions and tensors, as PyTorch has it."""

import numbers
from typing import Any, Callable, List

AsTensor = Callable[[Any], Any]


def index(tensor: Any, key: Any, call: Callable[..., Any], as_tensor: AsTensor) -> Any:
    """Integers, slices, None and ``...`` give views; tensors, arrays and lists pick elements.

    Args:
        call: calls an operator by its name on what is indexed.
        as_tensor: makes a tensor of what picks elements.
    """
    keys = _keys_of(key)
    keys = _without_ellipsis(keys, tensor.ndim, as_tensor)
    picked: List[Any] = []
    covered = 0  # how many dimensions `picked` stands for: a mask stands for all of its own
    dim = 0
    for part in keys:
        if part is None:
            tensor = call("aten::unsqueeze", tensor, dim)
            dim += 1
        elif isinstance(part, bool):
            raise TypeError("an index is an integer, slice, None, ... or tensor, not bool")
        elif isinstance(part, numbers.Integral):
            if not -tensor.shape[dim] <= part < tensor.shape[dim]:
                raise IndexError("index %d of dimension %d, which has %d" % (part, dim, tensor.shape[dim]))
            tensor = call("aten::select.int", tensor, dim, int(part))
        elif isinstance(part, slice):
            if part != slice(None):
                tensor = call("aten::slice.Tensor", tensor, dim, part.start, part.stop, part.step or 1)
            dim += 1
        else:
            picked += [None] * (dim - covered) + [as_tensor(part)]
            dim += _dims_of(part, as_tensor)
            covered = dim
    return call("aten::index.Tensor", tensor, picked) if picked else tensor


def _keys_of(key: Any) -> List[Any]:
    """The parts of a key. A list is the tuple of its parts where it can be nothing else."""
    if isinstance(key, tuple):
        return list(key)
    if not isinstance(key, list) or all(isinstance(part, numbers.Number) for part in key):
        return [key]
    if any(isinstance(part, list) for part in key):
        raise TypeError(
            "a list of lists as an index is a tuple to some versions of PyTorch and a tensor to others; write "
            "x[tuple(index)] or x[torch.tensor(index)]"
        )
    return list(key)


def _without_ellipsis(keys: List[Any], ndim: int, as_tensor: AsTensor) -> List[Any]:
    places = [place for place, part in enumerate(keys) if part is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can have only one ...")
    used = sum(_dims_of(part, as_tensor) for part in keys if part is not None and part is not Ellipsis)
    if used > ndim:
        raise IndexError("%d indices for %d dimensions" % (used, ndim))
    if not places:
        return keys
    return keys[: places[0]] + [slice(None)] * (ndim - used) + keys[places[0] + 1 :]


def _dims_of(part: Any, as_tensor: AsTensor) -> int:
    """How many dimensions a part of a key stands for."""
    if isinstance(part, (numbers.Integral, slice)):
        return 1
    tensor = as_tensor(part)
    return tensor.ndim if tensor.dtype == "bool" else 1

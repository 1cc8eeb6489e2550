"""The element of a composition whose parts miss its value most."""

import math
from typing import Any, Optional, Sequence

from ._call import call
from ._tensor import Tensor


def worst_element(value: Tensor, recovery: Tensor) -> Optional[str]:
    """The index of the element whose recovery misses the value by the largest share of its row, along the last dimension,
    as a target has it. None where there are no elements, or complex ones."""
    if 0 in value.shape or "complex" in value.dtype:
        return None
    exact, found = _rows(value), _rows(recovery)
    scale = call("aten::amax", call("aten::abs", exact), [1], True)
    share = call("aten::div.Tensor", call("aten::abs", call("aten::sub.Tensor", exact, found)), scale)
    flat = call("aten::reshape", call("aten::nan_to_num", share, 0.0, math.inf, 0.0), [-1])
    return _index_text(call("aten::argmax", flat).item(), value.shape)


def _rows(tensor: Tensor) -> Tensor:
    return call("aten::reshape", tensor.to("float64"), [-1, tensor.shape[-1] if tensor.shape else 1])


def _index_text(position: int, shape: Sequence[int]) -> str:
    index: Any = []
    for extent in reversed(shape):
        position, own = divmod(position, extent)
        index.insert(0, own)
    return ",".join(map(str, index)) or "()"

"""Numbers that runs of a live model give, and whether two runs give the same ones."""

from typing import Any, Dict, Optional

from ._input import Input
from ._live_tensors import has_parts, live_tensor
from ._structure import map_leaves

# This sentence begins the error that core/explain/same_run.cc raises, by which it is known here.
APART = "two runs of the model give different results"


def numbers_in(output: Any) -> Dict[str, Any]:
    """Copies of what a model returned that holds numbers, by the names of their places."""
    found: Dict[str, Any] = {}

    def add(leaf: Any, path: str) -> Any:
        if has_parts(leaf):
            found.setdefault(path, leaf.detach().clone())
        return leaf

    map_leaves(add, output, "output")
    return found


def equals(tensor: Any, source: Input) -> bool:
    """Whether a tensor has the elements of an input."""
    import torch

    own = live_tensor(source.value)
    return tensor.dtype == own.dtype and torch.equal(tensor, own)


def first_apart(first: Dict[str, Any], again: Dict[str, Any]) -> Optional[str]:
    """The name of the first tensor that is another in a second run; None where none is."""
    return next((name for name in first if not _as_good_as(first[name], again.get(name))), None)


def _as_good_as(one: Any, other: Any) -> bool:
    """Whether two tensors are equal but for rounding: as `verify_reference` compares them."""
    import torch

    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.numel() == 0 or torch.equal(one, other):
        return True
    wide = torch.complex128 if one.is_complex() else torch.float64
    a, b = one.to(wide), other.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    scale = a.abs().nan_to_num(0, 0, 0).max().item() or 1.0
    apart = (a - b).abs().masked_fill(same, 0).max().item()
    return bool(apart <= 1000 * torch.finfo(one.dtype).eps * scale)

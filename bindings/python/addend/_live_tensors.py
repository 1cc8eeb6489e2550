"""Tensors of PyTorch as live models take and give them."""

from typing import Any

from ._tensor import as_tensor


def live_tensor(value: Any) -> Any:
    """A contiguous tensor of PyTorch on memory of its own."""
    import torch

    if not isinstance(value, torch.Tensor):
        value = as_tensor(value).torch()
    return value.detach().clone(memory_format=torch.contiguous_format)


def has_parts(leaf: Any) -> bool:
    """Whether this is a tensor that is decomposed: of floating-point or complex numbers."""
    import torch

    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())

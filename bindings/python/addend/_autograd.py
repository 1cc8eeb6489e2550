"""Compositions in the graph of PyTorch's autograd.

The native library follows operators in a graph of its own. Here that graph becomes one node of the graph in Python: from what
is read of a composition, gradients pass to the tensors that the compositions at its beginning were made from.
"""

import functools
import sys
from typing import Any, List, Sequence, Tuple

from . import _native
from ._tensor import Tensor

_PARTS = (_native.COMPONENTS, _native.REFERENCE, _native.LEFTOVER)


class Root:
    """A composition with which a graph begins.

    Args:
        handle: the native composition.
        given: what its components, reference and leftover were made from; None for zeros.
    """

    def __init__(self, handle: Any, given: Sequence[Any]):
        self.handle = handle
        self._given = given

    @functools.cached_property
    def tensors(self) -> Tuple[Any, ...]:
        """The parts as leaves of PyTorch's graph: as they were given, where gradients are asked for there."""
        return tuple(_leaf(self.handle, part, given) for part, given in zip(_PARTS, self._given))


def roots_of(arguments: Sequence[Any]) -> Tuple[Root, ...]:
    """The compositions with which the graphs of some arguments begin, each once; none where nothing is followed now."""
    torch = sys.modules.get("torch")
    if torch is not None and not torch.is_grad_enabled():
        return ()
    found: List[Root] = []
    for argument in arguments:
        own = roots_of(argument) if isinstance(argument, (list, tuple)) else getattr(argument, "_roots", ())
        found.extend(root for root in own if not any(root is known for known in found))
    return tuple(found)


def follow(composition: Any, kind: int, tensor: Any) -> Any:
    """A part of a composition as a tensor in PyTorch's graph."""
    import torch

    roots: Tuple[Root, ...] = composition._roots
    if roots[0].handle is composition._handle and kind in _PARTS:
        return roots[0].tensors[_PARTS.index(kind)]
    if not torch.is_grad_enabled():
        return tensor
    inputs = [source for root in roots for source in root.tensors]
    return _node().apply(composition, kind, tensor, *inputs)


@functools.lru_cache(maxsize=None)
def _node() -> Any:
    """The function of autograd that reads a part; made where PyTorch is imported already."""
    import torch

    class Composed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, composition: Any, kind: int, tensor: Any, *sources: Any) -> Any:
            ctx.composition, ctx.kind = composition, kind
            return tensor.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: Any) -> Any:
            found: List[Any] = []
            for root in ctx.composition._roots:
                own = _gradient(ctx.composition, root, _cotangent(ctx.composition, ctx.kind, gradient))
                found.extend(own._part(part).torch() for part in _PARTS)
            return (None, None, None, *found)

    return Composed


def _cotangent(composition: Any, kind: int, gradient: Any) -> Any:
    """The gradient of all three parts that belongs to the gradient of one."""
    zeros = gradient.new_zeros(composition.shape)
    rows = gradient.new_zeros((composition.numc, *composition.shape))
    whole = kind in (_native.RECOVERY, _native.VALUE)
    if kind == _native.COMPONENTS:
        rows = gradient
    elif whole:
        rows = gradient.expand_as(rows)
    reference = gradient if whole or kind in (_native.REFERENCE, _native.RESIDUAL) else zeros
    leftover = gradient if whole or kind in (_native.LEFTOVER, _native.RESIDUAL) else zeros
    return type(composition)(rows.contiguous(), reference.contiguous(), leftover.contiguous())


def _gradient(composition: Any, root: Root, cotangent: Any) -> Any:
    gradient = _native.composition_grad(composition._handle, cotangent._handle, root.handle)
    return type(composition)._adopt(gradient)


def _leaf(handle: Any, part: int, given: Any) -> Any:
    import torch

    if isinstance(given, torch.Tensor) and given.requires_grad:
        return given
    return Tensor(_native.composition_part(handle, part)).torch().detach().requires_grad_()

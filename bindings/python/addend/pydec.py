"""PyDec's names for what Addend has.

The samples of PyDec's documents run with ``from addend import pydec``. The names of its own are below; every other one is the
function of PyTorch of that name, which takes compositions: ``pydec.relu(c)``, ``pydec.masked_fill(c, c > 0, 0.0)``.
`docs/from_pydec.md` says what each name of PyDec is called in Addend itself, and what differs.
"""

from types import SimpleNamespace
from typing import Any, Callable, Iterable, Optional, Sequence

import torch

from . import _composition
from ._compile import compile as _compile
from ._using import Using, using

_BIAS = {
    "none": "residual",
    "abs_decomposition": "abs",
    "hybrid_decomposition": "hybrid",
    "hybrid_decomposition_threshold": "hybrid_threshold",
    "sign_decomposition": "sign",
    "sign_decomposition_threshold": "sign_threshold",
    "norm_decomposition": "norm",
}
_NONLINEARITY = {"affine": "path", "abs_decomposition": "abs_affine", "hybrid_decomposition": "hybrid_affine"}

#: `autotracing.compile` is `addend.compile`.
autotracing = SimpleNamespace(compile=_compile)


def Composition(
    first: Any, second: Any = None, *, dtype: Any = None, device: Any = None
) -> _composition.Composition:
    """A composition of zeros, of given components, or a copy.

    Args:
        first: a size, beside the number of components; or components ``[numc, *shape]``, stacked or in a list; or a
            composition.
        second: the number of components; or the residual.
        dtype: of zeros.
        device: of zeros.
    """
    if isinstance(first, _composition.Composition):
        return clone(first)
    if isinstance(first, torch.Size) or (isinstance(first, (list, tuple)) and isinstance(second, int)):
        return zeros(first, c_num=second, dtype=dtype, device=device)
    components = first if isinstance(first, torch.Tensor) else torch.stack(list(first))
    return _composition.Composition(components, second)


def zeros(*size: Any, c_num: int, dtype: Any = None, device: Any = None) -> _composition.Composition:
    """Zeros of a shape, given as a size or as integers, with `c_num` components."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return _composition.Composition(torch.zeros((c_num, *shape), dtype=dtype, device=device))


def zeros_like(c: _composition.Composition) -> _composition.Composition:
    """Zeros of the shape, dtype, device and number of components of another composition."""
    return torch.zeros_like(c)  # type: ignore[call-overload,no-any-return]


def as_composition(components: torch.Tensor, residual: Optional[torch.Tensor] = None) -> _composition.Composition:
    """A composition in autograd's graph that shares the memory of its parts."""
    return _composition.Composition(components, residual, in_graph=True)


def diagonal_init(
    c: _composition.Composition, src: torch.Tensor, dim: int = 0, offset: int = 0
) -> _composition.Composition:
    """A composition of the size of `c` with its residual, whose component ``i - offset`` is `src` at position ``i`` along a
    dimension, and zero elsewhere."""
    if offset > 0:
        raise ValueError("offset is %d: narrow src along dim %d, and begin with component 0" % (offset, dim))
    if tuple(src.shape) != c.shape:
        raise ValueError("src has shape %s, the composition %s" % (list(src.shape), list(c.shape)))
    split = _composition.Composition.diagonal(src, dim, offset=-offset, numc=c.numc)
    return _composition.Composition(split.components, c.reference, c.leftover)


def numc(c: _composition.Composition) -> int:
    """The number of components."""
    return c.numc


def size(c: _composition.Composition, dim: Optional[int] = None) -> Any:
    """That of the tensor that it stands for."""
    return torch.Size(c.shape) if dim is None else c.shape[dim]


def c_size(c: _composition.Composition) -> torch.Size:
    """That of its components, ``[numc, *shape]``."""
    return torch.Size((c.numc, *c.shape))


def numel(c: _composition.Composition) -> int:
    """The number of elements of the tensor that it stands for."""
    return torch.Size(c.shape).numel()


def clone(c: _composition.Composition) -> _composition.Composition:
    """A composition with memory of its own."""
    return torch.clone(c)  # type: ignore[arg-type,return-value]


def c_sum(c: _composition.Composition) -> Any:
    """The sum of components and residual."""
    return c.c_sum()


def c_apply(c: _composition.Composition, function: Callable[[torch.Tensor], torch.Tensor]) -> _composition.Composition:
    """Applies a function of rows ``[n, *shape]`` to the components, and to reference and leftover as one row each. The sum
    becomes that of the function only if the function is linear."""
    reference, leftover = function(c.reference.torch()[None])[0], function(c.leftover.torch()[None])[0]
    return _composition.Composition(function(c.components.torch()), reference, leftover)


def c_map(c: _composition.Composition, function: Callable[[torch.Tensor], torch.Tensor]) -> _composition.Composition:
    """Applies a function of a tensor to each component, the reference and the leftover, one by one."""
    return c_apply(c, lambda rows: torch.stack([function(row) for row in rows]))


def c_cat(compositions: Sequence[_composition.Composition], sum_residual: bool = True) -> _composition.Composition:
    """One composition with the components of several; their residuals add up, or are dropped."""
    components = torch.cat([c.components.torch() for c in compositions])
    if not sum_residual:
        return _composition.Composition(components)
    reference = torch.stack([c.reference.torch() for c in compositions]).sum(0)
    leftover = torch.stack([c.leftover.torch() for c in compositions]).sum(0)
    return _composition.Composition(components, reference, leftover)


def c_stack(components: Iterable[torch.Tensor]) -> _composition.Composition:
    """A composition of given components, without a residual."""
    return _composition.Composition(torch.stack(list(components)))


def using_decomposition_func(name: str) -> Using:
    """The nonlinearity of what is called in a ``with`` block: ``"none"``, ``"affine"``, ``"abs_affine"``,
    ``"hybrid_affine"`` or ``"scaling"``."""
    return using(nonlinearity=_NONLINEARITY.get(name, name))


def using_bias_decomposition_func(name: str) -> Using:
    """The bias of what is called in a ``with`` block: ``"none"``, ``"abs_decomposition"``, ``"hybrid_decomposition"``,
    ``"sign_decomposition"``, ``"norm_decomposition"``, or the second and third with ``"_threshold"`` behind them."""
    return using(bias=_BIAS.get(name, name))


def no_bias_decomposition() -> Using:
    """In a ``with`` block biases belong to the residual, as they do by default."""
    return using(bias="residual")


def __getattr__(name: str) -> Any:
    """A function of PyTorch."""
    found = None if name.startswith("_") else getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
    if not callable(found) or isinstance(found, type):
        raise AttributeError("neither PyDec's names in addend.pydec nor PyTorch has a function %r" % name)
    return found

"""Parts of compositions, which may be written."""

import weakref
from typing import Any, Tuple, Union

from ._tensor import Tensor

PartKind = Union[int, Tuple[int, int]]  # what the native library calls it; of a component also its index


class Part(Tensor):
    """A part of a composition, such as its residual.

    It is a tensor to be read, as others are. Where it is written all the same, the composition takes that over:
    ``c.residual[:] += error``, ``c.residual += error``, and in-place writes of ``c.residual.torch()``, which are seen when the
    composition is used next.
    """

    __slots__ = ("_owner", "_kind")
    _NAME = "Tensor"

    @classmethod
    def of(cls, owner: Any, kind: PartKind, capsule: Any) -> "Part":
        """A part of a composition."""
        part = cls(capsule)
        # Whoever keeps a part does not keep the composition, which may be much larger. But where gradients pass, it is
        # what they pass through.
        part._owner = (lambda: owner) if owner.requires_grad else weakref.ref(owner)
        part._kind = kind
        return part

    def torch(self) -> Any:
        """A tensor of PyTorch that shares the memory. What is written there becomes this part of the composition. Of a
        composition in autograd's graph it is a copy that is in the graph too."""
        tensor, owner = super().torch(), self._owner()
        return tensor if owner is None or owner.closed else owner._lend(self._kind, tensor)

    def __setitem__(self, key: Any, value: Any) -> None:
        owner = self._owner()
        if owner is None:
            raise TypeError("the composition that this is a part of is gone: keep it in a variable to write its parts")
        self._capsule = owner._write(self._kind, key, value)._handle

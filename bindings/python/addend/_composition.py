"""Tensors written as sums of their causes."""

import html
from typing import Any, Iterable, Iterator, List, Optional, Tuple, Union

from . import _native
from ._dtype import DType, from_code
from ._explanation import Explanation
from ._handle import Handle
from ._operators import Operators
from ._target import Target, as_target
from ._tensor import Tensor, as_tensor

_HTML_ELEMENTS = 4096


class Composition(Operators, Handle):
    """A tensor written as components and a residual, each of its shape, whose sum is the tensor.

    The residual has two parts: the reference, which is the value where all components are zero, and the leftover, which
    no component could take. Operators are methods (``x.softmax(-1)``), ``+ - * / @`` work with tensors and numbers, and
    `addend.call` knows every other operator. A composition is a value; methods whose names end in an underscore put a
    new one in its place.

    Args:
        components: of shape ``[numc, *shape]``.
        reference: of shape ``shape``; zeros unless given.
        leftover: of shape ``shape``; zeros unless given.
        in_graph: lets autograd follow what is computed from it; see `grad`.
    """

    __slots__ = ("_run",)
    _INSTEAD = "send an explanation of it, or its parts as arrays"

    def __init__(self, components: Any, reference: Any = None, leftover: Any = None, *, in_graph: bool = False):
        super().__init__(
            _native.composition_from_tensors(
                as_tensor(components)._handle, _optional(reference), _optional(leftover), bool(in_graph)
            )
        )
        self._run = None

    @classmethod
    def _adopt(cls, capsule: Any) -> "Composition":
        composition = cls.__new__(cls)
        Handle.__init__(composition, capsule)
        composition._run = None
        return composition

    @classmethod
    def diagonal(
        cls,
        value: Any,
        dims: Union[None, int, Iterable[int]] = None,
        *,
        baseline: Any = None,
        offset: int = 0,
        numc: Optional[int] = None,
    ) -> "Composition":
        """One component for each position along some dimensions.

        Component ``offset + i`` is value minus baseline at the i-th position and zero elsewhere.

        Args:
            value: the tensor.
            dims: one dimension or several; negative ones count from the end. None: the whole value is one component.
            baseline: of the value's shape; zeros unless given.
            offset: the first component.
            numc: how many components there are; no more than needed unless given.
        """
        return cls._adopt(
            _native.composition_diagonal(
                as_tensor(value)._handle, as_dims(dims), _optional(baseline), offset, -1 if numc is None else numc
            )
        )

    @classmethod
    def from_labels(
        cls, value: Any, labels: Any, *, baseline: Any = None, numc: Optional[int] = None
    ) -> "Composition":
        """One component for each label.

        Args:
            value: the tensor.
            labels: integers of the value's shape, or of its leading dimensions; -1 for no component.
            baseline: of the value's shape; zeros unless given.
            numc: how many components there are; the largest label + 1 unless given.
        """
        return cls._adopt(
            _native.composition_from_labels(
                as_tensor(value)._handle, as_tensor(labels)._handle, _optional(baseline), -1 if numc is None else numc
            )
        )

    # ---- asking

    @property
    def numc(self) -> int:
        """The number of components."""
        return _native.composition_numc(self._handle)

    @property
    def shape(self) -> Tuple[int, ...]:
        """That of the value."""
        handle = self._handle
        return tuple(_native.composition_size(handle, dim) for dim in range(_native.composition_num_dims(handle)))

    @property
    def ndim(self) -> int:
        return _native.composition_num_dims(self._handle)

    @property
    def dtype(self) -> DType:
        """That of the value; the parts of half types are float32."""
        return from_code(_native.composition_dtype(self._handle))

    @property
    def device(self) -> str:
        """``"cpu"``, ``"cuda:0"``."""
        return _native.composition_device(self._handle)

    @property
    def components(self) -> Tensor:
        """All components, ``[numc, *shape]``."""
        return self._part(_native.COMPONENTS)

    @property
    def reference(self) -> Tensor:
        """The value where all components are zero."""
        return self._part(_native.REFERENCE)

    @property
    def leftover(self) -> Tensor:
        """What no component could take."""
        return self._part(_native.LEFTOVER)

    @property
    def residual(self) -> Tensor:
        """Reference + leftover."""
        return self._part(_native.RESIDUAL)

    @property
    def recovery(self) -> Tensor:
        """The sum of components and residual."""
        return self._part(_native.RECOVERY)

    @property
    def value(self) -> Tensor:
        """What the operator or the model computed; else the recovery."""
        return self._part(_native.VALUE)

    @property
    def notes(self) -> List[str]:
        """Where a model returned it, what a reader has to know of that run, as `Results.notes` has it."""
        self._handle
        return [] if self._run is None else list(self._run.notes)

    def component(self, index: int) -> Tensor:
        """One component; negative indices count from the end."""
        handle = self._handle
        numc = _native.composition_numc(handle)
        if not -numc <= index < numc:
            raise IndexError("component %d of %d" % (index, numc))
        return Tensor(_native.composition_component(handle, index % numc))

    def select_components(self, indices: Iterable[int], *, with_residual: bool = True) -> "Composition":
        """Some of the components, with the residual or with none."""
        return Composition._adopt(_native.composition_select(self._handle, list(indices), bool(with_residual)))

    def explain(self, target: Target = "top1") -> Explanation:
        """Explains one number of it: see `Results.explain`. Components are named by their position."""
        return Explanation(_native.composition_explain(self._handle, as_target(target)))

    def grad(self, input: "Composition", cotangent: "Composition") -> "Composition":
        """The gradient of ``sum(cotangent * self)``, over components, reference and leftover, by the parts of `input`.

        Args:
            input: made with ``in_graph=True``, and what this composition was computed from.
            cotangent: of the shape of this composition, with as many components.
        """
        return Composition._adopt(_native.composition_grad(self._handle, cotangent._handle, input._handle))

    # ---- a tensor

    def __getitem__(self, key: Any) -> "Composition":
        """Elements by the dimensions of the tensor, as tensors have it; components are `component`'s."""
        from ._indexing import index

        return index(self, key)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a composition without dimensions has no length")
        return shape[0]

    def __iter__(self) -> Iterator["Composition"]:
        return iter(self.unbind(0))

    def __add__(self, other: Any) -> "Composition":
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Composition":
        return self.sub(other)

    def __rsub__(self, other: Any) -> "Composition":
        return self.rsub(other)

    def __mul__(self, other: Any) -> "Composition":
        return self.mul(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Composition":
        return self.div(other)

    def __rtruediv__(self, other: Any) -> "Composition":
        return self.reciprocal().mul(other)

    def __matmul__(self, other: Any) -> "Composition":
        return self.matmul(other)

    def __rmatmul__(self, other: Any) -> "Composition":
        from . import ops

        return ops.matmul(other, self)

    def __pow__(self, exponent: Any) -> "Composition":
        return self.pow(exponent)

    def __neg__(self) -> "Composition":
        return self.neg()

    def __pos__(self) -> "Composition":
        return self

    def __abs__(self) -> "Composition":
        return self.abs()

    # Comparisons read values and give plain tensors.
    def __lt__(self, other: Any) -> Tensor:
        return _compare("lt", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _compare("le", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _compare("gt", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _compare("ge", self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare("eq", self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare("ne", self, other)

    __hash__ = object.__hash__

    # NumPy must leave `array + composition` and `array == composition` to the methods above.
    __array_ufunc__ = None

    # ---- printing

    def __repr__(self) -> str:
        return "Composition(closed)" if self.closed else _native.composition_to_string(self._handle)

    def _repr_html_(self) -> str:
        shape = self.shape
        caption = "composition of %d components, %s%s" % (self.numc, self.dtype, list(shape))
        elements = self.numc
        for extent in shape:
            elements *= extent
        if elements > _HTML_ELEMENTS:
            return "<p>%s</p>" % html.escape(caption)
        rows = [("component %d" % index, self.component(index)) for index in range(self.numc)]
        rows += [("reference", self.reference), ("leftover", self.leftover), ("recovery", self.recovery)]
        body = "".join(
            "<tr><th>%s</th><td><pre>%s</pre></td></tr>" % (title, html.escape(repr(tensor))) for title, tensor in rows
        )
        return "<table><caption>%s</caption>%s</table>" % (html.escape(caption), body)

    # ---- for the generated operators

    def _become(self, other: "Composition") -> "Composition":
        """Puts another state in the place of this one; what shares the old one keeps it."""
        self._handle
        self._capsule = other._handle
        return self

    def _part(self, part: int) -> Tensor:
        return Tensor(_native.composition_part(self._handle, part))


def as_dims(dims: Union[None, int, Iterable[int]]) -> Tuple[int, ...]:
    """One dimension, several or none."""
    if dims is None:
        return ()
    return tuple(dims) if hasattr(dims, "__iter__") else (dims,)  # type: ignore[arg-type,return-value]


def _compare(op: str, left: Composition, right: Any) -> Any:
    from ._call import call

    if not isinstance(right, (Composition, int, float)):
        try:
            right = as_tensor(right)
        except TypeError:
            return NotImplemented
    return call("aten::" + op, left, right)


def _optional(value: Any) -> Any:
    return None if value is None else as_tensor(value)._handle

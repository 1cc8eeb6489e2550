"""Tensors written as sums of their causes."""

import functools
import html
import itertools
import numbers
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native, ops
from ._autograd import Root, follow
from ._call import call
from ._context import Context
from ._dtype import Device, DType, from_code, is_dtype
from ._explanation import Explanation
from ._functions import attribute_of, call_function
from ._handle import Handle
from ._indexing import index
from ._notes import with_warnings
from ._operand import Composed
from ._operators import Operators
from ._part import Part, PartKind
from ._run import Run
from ._target import Target, as_target
from ._tensor import Tensor, as_tensor
from ._worst_element import worst_element

_HTML_ELEMENTS = 4096
_WRITABLE = (_native.COMPONENTS, _native.REFERENCE, _native.LEFTOVER, _native.RESIDUAL)


def _with_sizes(name: str) -> Any:
    """A method that takes integers in a list, or one by one as in PyTorch."""
    method = getattr(Operators, name)

    @functools.wraps(method)
    def listed(self: "Composition", *args: Any, **kwargs: Any) -> Any:
        one_by_one = bool(args) and all(isinstance(arg, numbers.Integral) for arg in args)
        return method(self, *([list(args)] if one_by_one else args), **kwargs)

    return listed


class Composition(Operators, Composed, Handle):
    """A tensor written as components and a residual, each of its shape, whose sum is the tensor.

    The residual has two parts: the reference, which is the value where all components are zero, and the leftover, which
    no component could take. Operators are methods (``x.softmax(-1)``), ``+ - * / @`` work with tensors and numbers, and
    `addend.call` knows every other operator. Functions and modules of PyTorch (``torch.relu(c)``, ``linear(c)``), and
    methods that only its tensors have, take compositions where they take tensors. A composition is a value; methods whose
    names end in an underscore, and functions that write, put a new one in its place.

    Args:
        components: of shape ``[numc, *shape]``.
        reference: of shape ``shape``; zeros unless given.
        leftover: of shape ``shape``; zeros unless given.
        in_graph: lets autograd follow what is computed from it; see `grad`. What ``torch()`` gives of a result is in PyTorch's
            graph, from which gradients pass to the tensors that the parts are given as, or if these require none, to
            ``c.components.torch()``, ``c.reference.torch()`` and ``c.leftover.torch()``. None pass to weights.
    """

    __slots__ = ("_run", "_origin", "_roots", "_lent")
    _INSTEAD = "send an explanation of it, or its parts as arrays"

    def __init__(self, components: Any, reference: Any = None, leftover: Any = None, *, in_graph: bool = False):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(components, torch.Size):
            raise TypeError("a size holds no components: addend.pydec.zeros(size, c_num=4) makes a composition of zeros")
        super().__init__(
            _native.composition_from_tensors(
                as_tensor(components)._handle, _optional(reference), _optional(leftover), bool(in_graph)
            )
        )
        self._set_state()
        if in_graph:
            self._roots = (Root(self._capsule, (components, reference, leftover)),)

    @classmethod
    def _adopt(cls, capsule: Any, roots: Tuple[Root, ...] = ()) -> "Composition":
        composition = cls.__new__(cls)
        Handle.__init__(composition, capsule)
        composition._set_state()
        composition._roots = roots
        return composition

    def _add_to(self, arguments: Any, name: Optional[str]) -> None:
        _native.arguments_add_composition(arguments, name, self._handle)

    def _of_result(self, capsule: Any, roots: Tuple[Root, ...], given: Sequence[Any]) -> "Composition":
        composition = Composition._adopt(capsule, roots)
        composition._origin = _origin_of(given)
        return composition

    def _set_state(self) -> None:
        # The run of a model that returned it, and the runs that what it was computed from came from; None where none.
        self._run: Optional[Run] = None
        self._origin: Optional[Run] = None
        # The compositions with which the graph begins that autograd follows; see `_autograd`.
        self._roots: Tuple[Root, ...] = ()
        # Tensors that `torch()` returned, by part, each with the number of writes that was last seen of it.
        self._lent: Dict[Any, Tuple[Any, int]] = {}

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
    def device(self) -> Device:
        """``"cpu"``, ``"cuda:0"``."""
        return Device(_native.composition_device(self._handle))

    @property
    def components(self) -> Tensor:
        """All components, ``[numc, *shape]``."""
        return self._part(_native.COMPONENTS)

    @components.setter
    def components(self, value: Any) -> None:
        self._write(_native.COMPONENTS, ..., value)

    @property
    def reference(self) -> Tensor:
        """The value where all components are zero."""
        return self._part(_native.REFERENCE)

    @reference.setter
    def reference(self, value: Any) -> None:
        self._write(_native.REFERENCE, ..., value)

    @property
    def leftover(self) -> Tensor:
        """The leftover: what the policy could not attribute to components."""
        return self._part(_native.LEFTOVER)

    @leftover.setter
    def leftover(self, value: Any) -> None:
        self._write(_native.LEFTOVER, ..., value)

    @property
    def residual(self) -> Tensor:
        """Reference + leftover. What is written goes to the leftover."""
        return self._part(_native.RESIDUAL)

    @residual.setter
    def residual(self, value: Any) -> None:
        self._write(_native.RESIDUAL, ..., value)

    @property
    def recovery(self) -> Tensor:
        """The sum of components and residual."""
        return self._part(_native.RECOVERY)

    @property
    def value(self) -> Tensor:
        """The value that the operator or the model computed; without one, the recovery."""
        return self._part(_native.VALUE)

    @property
    def requires_grad(self) -> bool:
        """Whether autograd follows it; see `grad`."""
        return bool(self._roots)

    @property
    def notes(self) -> List[str]:
        """The sentences that a reader has to know: where a model returned it, those of that run, as `Results.notes` has
        them; else those of the runs that gave what it was computed from, and one on a recovery that is off. `print` shows
        the warnings among them."""
        self._handle
        known = self._known()
        return [] if known is None else list(known.notes)

    @property
    def warnings(self) -> List[str]:
        """The notes that say that numbers may not mean what a reader takes them for."""
        self._handle
        known = self._known()
        return [] if known is None else list(known.warnings)

    def _known(self) -> Any:
        """The run of the model that returned it, else the explanation of the element that is off most, with the notes of
        earlier runs: both have notes."""
        if self._run is not None:
            return self._run
        target = worst_element(self.value, self.recovery)
        return self._origin if target is None else self._explained(target)

    def component(self, index: int) -> Tensor:
        """One component; negative indices count from the end."""
        handle = self._handle
        numc = _native.composition_numc(handle)
        if not -numc <= index < numc:
            raise IndexError("component %d of %d" % (index, numc))
        index %= numc
        return Part.of(self, (_native.COMPONENTS, index), _native.composition_component(handle, index))

    def select_components(self, indices: Iterable[int], *, with_residual: bool = True) -> "Composition":
        """Some of the components, with the residual or with none."""
        selected = Composition._adopt(_native.composition_select(self._handle, list(indices), bool(with_residual)))
        run = _origin_of([self])
        # A run of its own, as its components are counted in another way.
        selected._origin = None if run is None else Run(run.notes, run.warnings)
        return selected

    def explain(self, target: Target = "top1") -> Explanation:
        """Explains one number of it: see `Results.explain`. Components have the names of the run that gave it, else
        their positions."""
        return self._explained(target)

    def _explained(self, target: Target) -> Explanation:
        run = self._run or self._origin
        told = ((), ()) if run is None else (run.notes, run.warnings)
        return Explanation(_native.composition_explain(self._handle, as_target(target)), *told)

    def grad(self, input: "Composition", cotangent: "Composition") -> "Composition":
        """The gradient of ``sum(cotangent * self)``, over components, reference and leftover, by the parts of `input`.

        Args:
            input: made with ``in_graph=True``, and what this composition was computed from.
            cotangent: of the shape of this composition, with as many components.
        """
        return Composition._adopt(_native.composition_grad(self._handle, cotangent._handle, input._handle))

    # ---- operators whose arguments PyTorch takes in several forms

    expand, flip, permute, repeat = map(_with_sizes, ("expand", "flip", "permute", "repeat"))
    reshape, view = map(_with_sizes, ("reshape", "view"))

    def to(self, *args: Any, **kwargs: Any) -> "Composition":
        """Converts to another dtype or device, or to those of another tensor or composition."""
        if [*args, *kwargs.values()] and set(kwargs) <= {"dtype", "context"} and all(map(_is_dtype, args)):
            return super().to(*args, **kwargs)
        return _call_torch("to", self, *args, **kwargs)

    # ---- components in PyDec's words

    def c_sum(self) -> Tensor:
        """The sum of components and residual: `recovery`."""
        return self.recovery

    # ---- a tensor

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of PyTorch, decomposed as it runs."""
        return call_function(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Attributes that only tensors of PyTorch have: ``c.dim()``, ``c.clone()``, ``c.T``."""
        return attribute_of(self, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Puts a composition in the place of this one that has other elements there."""
        _call_torch("__setitem__", self, key, value)

    def __getitem__(self, key: Any) -> "Composition":
        """Elements by the dimensions of the tensor, as tensors have it; components are `component`'s."""
        return index(self, key, call, as_tensor)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a composition without dimensions has no length")
        return shape[0]

    def split(
        self, split_size: Union[int, Sequence[int]], dim: int = 0, *, context: Optional[Context] = None
    ) -> List["Composition"]:
        """Parts along a dimension, as tensors have it: of one size but for the last, or of these sizes."""
        if hasattr(split_size, "__index__"):
            return super().split(split_size, dim, context=context)
        return self.split_with_sizes(list(split_size), dim, context=context)

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
        return ops.matmul(other, self)

    def __pow__(self, exponent: Any) -> "Composition":
        return self.pow(exponent)

    def __rpow__(self, base: Any) -> "Composition":
        return _call_torch("__rpow__", self, base)

    def __mod__(self, other: Any) -> "Composition":
        return _call_torch("__mod__", self, other)

    def __floordiv__(self, other: Any) -> "Composition":
        return _call_torch("__floordiv__", self, other)

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
        if self.closed:
            return "Composition(closed)"
        if not self._roots or sys.modules.get("torch") is None:
            text = _native.composition_to_string(self._handle)
        else:
            # In the same form, with what autograd would follow.
            parts = [("composition %d" % index, part) for index, part in enumerate(self.components.torch())]
            text = "\n".join("%s:\n%r" % pair for pair in [*parts, ("residual", self.residual.torch())])
        return "\n".join(with_warnings([text], self.warnings))

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

    # ---- for the generated operators, and for parts

    @property
    def _handle(self) -> Any:
        if self._lent:
            self._take_writes()
        return super()._handle

    def __copy__(self) -> "Composition":
        if self._lent:
            self._take_writes()
        twin = super().__copy__()
        twin._lent = {}
        return twin

    def _become(self, other: "Composition") -> "Composition":
        """Puts another state in the place of this one; what shares the old one keeps it."""
        self._handle
        self._origin = _origin_of([self, other])
        self._run = None
        self._capsule, self._roots, self._lent = other._handle, other._roots, {}
        return self

    def _part(self, part: int) -> Part:
        return Part.of(self, part, _native.composition_part(self._handle, part))

    def _lend(self, part: PartKind, tensor: Any) -> Any:
        """Lends a part to a reader as a tensor of PyTorch, whose in-place writes are counted."""
        if isinstance(part, tuple):
            return self._part(part[0]).torch()[part[1]]
        if self._roots:
            return follow(self, part, tensor)
        if part not in _WRITABLE or tensor.is_inference():
            return tensor
        return self._lent.setdefault(part, (tensor, tensor._version))[0].detach()

    def _take_writes(self) -> None:
        """Takes over what was written to tensors that `_lend` gave."""
        lent, self._lent = self._lent, {}
        for part, (tensor, version) in lent.items():
            if tensor._version != version and self._capsule is not None:
                self._put(part, as_tensor(tensor))
        self._lent = {part: (tensor, tensor._version) for part, (tensor, _) in lent.items()}

    def _write(self, part: PartKind, key: Any, value: Any) -> Tensor:
        """Writes some elements of a part; returns the part."""
        if isinstance(part, tuple):
            return self._write(part[0], (part[1], *(key if isinstance(key, tuple) else (key,))), value)[part[1]]
        if part not in _WRITABLE:
            raise TypeError("this is computed from the parts; write components, reference, leftover or residual instead")
        if self._roots:
            raise TypeError("a write would cut the composition off autograd's graph; add a tensor to it instead")
        whole = Tensor(_native.composition_part(self._handle, part))
        copy = whole.torch().clone() if sys.modules.get("torch") is not None else whole.numpy().copy()
        copy[key] = value.torch() if isinstance(value, Tensor) and sys.modules.get("torch") is not None else value
        self._put(part, as_tensor(copy))
        return self._part(part)

    def _put(self, part: int, whole: Tensor) -> None:
        """Puts a composition in the place of this one that has another part."""
        parts = [Tensor(_native.composition_part(self._handle, known)) for known in _WRITABLE[:3]]
        if part == _native.RESIDUAL:
            part, whole = _native.LEFTOVER, as_tensor(whole - parts[1])
        parts[_WRITABLE.index(part)] = whole
        made = Composition(*parts)
        self._become(made if made.dtype == self.dtype else made.to(self.dtype))


def _origin_of(given: Sequence[Any]) -> Optional[Run]:
    """The run of which everything came that was given; of several the notes of all, each once; None where none is known."""
    runs: List[Run] = []
    for composition in given:
        run = composition._run or composition._origin
        if run is not None and not any(run is known for known in runs):
            runs.append(run)
    if len(runs) < 2:
        return runs[0] if runs else None
    notes, warnings = (dict.fromkeys(itertools.chain(*told)) for told in zip(*((run.notes, run.warnings) for run in runs)))
    return Run(tuple(notes), tuple(warnings))


def as_dims(dims: Union[None, int, Iterable[int]]) -> Tuple[int, ...]:
    """One dimension, several or none."""
    if dims is None:
        return ()
    return tuple(dims) if hasattr(dims, "__iter__") else (dims,)  # type: ignore[arg-type,return-value]


def _is_dtype(value: Any) -> bool:
    return is_dtype(value) or (isinstance(value, str) and value in DType.__members__)


def _call_torch(name: str, *args: Any, **kwargs: Any) -> Any:
    """A method of PyTorch's tensors."""
    import torch

    return call_function(getattr(torch.Tensor, name), args, kwargs)


def _compare(op: str, left: Composition, right: Any) -> Any:
    if not isinstance(right, (Composition, int, float)):
        try:
            right = as_tensor(right)
        except TypeError:
            return NotImplemented
    return call("aten::" + op, left, right)


def _optional(value: Any) -> Any:
    return None if value is None else as_tensor(value)._handle

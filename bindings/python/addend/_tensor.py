"""Tensors in and out, without copies."""

import ctypes
import operator
import sys
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

from . import _native
from ._dtype import Device, DType, from_code, to_code
from ._handle import Handle
from ._indexing import index
from ._native_call import native_call
from ._native_tensor import native_tensor
from ._operand import Operand
from ._structure import map_leaves

_NUMPY_TYPES = {
    DType.uint8: "|u1",
    DType.int8: "|i1",
    DType.int16: "<i2",
    DType.int32: "<i4",
    DType.int64: "<i8",
    DType.float16: "<f2",
    DType.float32: "<f4",
    DType.float64: "<f8",
    DType.complex64: "<c8",
    DType.complex128: "<c16",
    DType.bool: "|b1",
}
_BUFFER_FORMATS = {
    DType.uint8: "B",
    DType.int8: "b",
    DType.int16: "h",
    DType.int32: "i",
    DType.int64: "q",
    DType.float32: "f",
    DType.float64: "d",
    DType.bool: "?",
}
_DEVICE_TYPES = {"cpu": 1, "cuda": 2}


def _operator(operate: Callable[..., Any], swapped: bool = False) -> Any:
    """The method of an operator of Python that has one operand, or two."""

    def method(self: "Tensor", *others: Any) -> Any:
        with_numpy = _computes_in_numpy(others)
        operands = [_computing(operand, with_numpy) for operand in (self, *others)]
        return operate(*(reversed(operands) if swapped else operands))

    return method


class Tensor(Operand, Handle):
    """A tensor to be read. Its memory is shared, never copied, with NumPy, PyTorch and whatever knows DLPack::

        numpy.asarray(tensor)          # or tensor.numpy()
        torch.from_dlpack(tensor)      # or tensor.torch()
        memoryview(tensor)             # from Python 3.12 on; tensor.memoryview() before

    The views are there for reading and keep the memory alive by themselves. Pickling copies the elements.

    It computes and compares as the tensor of PyTorch that `torch` gives: operators of Python, functions of PyTorch and other
    methods of its tensors (``(tensor - x).abs() < 1e-6``, ``torch.allclose(tensor, x)``) return tensors of PyTorch. Beside an
    array of NumPy, and where PyTorch is not installed, they return arrays of NumPy.
    """

    __slots__ = ()

    @property
    def shape(self) -> Tuple[int, ...]:
        handle = self._handle
        return tuple(_native.tensor_size(handle, dim) for dim in range(_native.tensor_num_dims(handle)))

    @property
    def ndim(self) -> int:
        return _native.tensor_num_dims(self._handle)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def strides(self) -> Tuple[int, ...]:
        """How many bytes each dimension moves by, as NumPy counts them."""
        handle = self._handle
        itemsize = _itemsize(self.dtype)
        return tuple(_native.tensor_stride(handle, dim) * itemsize for dim in range(_native.tensor_num_dims(handle)))

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take, one behind the other."""
        return _native.tensor_num_bytes(self._handle)

    @property
    def dtype(self) -> DType:
        return from_code(_native.tensor_dtype(self._handle))

    @property
    def device(self) -> Device:
        """``"cpu"``, ``"cuda:0"``."""
        return Device(_native.tensor_device(self._handle))

    def to(self, dtype: Any = None, device: Optional[str] = None) -> "Tensor":
        """This tensor where it is contiguous and has that dtype and device, else a contiguous copy."""
        return Tensor(_native.tensor_to(self._handle, to_code(dtype), device))

    def numpy(self) -> Any:
        """A read-only array of NumPy that shares the memory (a copy, if the tensor is not contiguous on the CPU)."""
        import numpy

        # Not this object but the native one is what the array keeps: it stays readable when this object is closed.
        return numpy.asarray(_Exported(*self._exported()))

    def torch(self) -> Any:
        """A tensor of PyTorch that shares the memory; it is there for reading."""
        import torch

        tensor = torch.utils.dlpack.from_dlpack(self.__dlpack__())
        return tensor.view(torch.bool) if self.dtype is DType.bool and tensor.dtype is torch.uint8 else tensor

    def memoryview(self) -> memoryview:
        """A read-only view of the memory (of a copy, if the tensor is not contiguous on the CPU)."""
        dtype = self.dtype
        if dtype not in _BUFFER_FORMATS:
            raise TypeError("memoryview has no %s; convert it with .to('float32')" % dtype)
        contiguous, address = self._contiguous()
        memory = (ctypes.c_char * (self.size * _itemsize(dtype))).from_address(address)
        memory._owner = contiguous._handle
        flat = memoryview(memory).cast("B").toreadonly()
        if self.size == 0:  # which cast() cannot shape
            return flat.cast(_BUFFER_FORMATS[dtype])
        return flat.cast(_BUFFER_FORMATS[dtype], self.shape)

    def tolist(self) -> Any:
        """The elements as numbers in nested lists; a number if the tensor has no dimension."""
        if self.dtype in _BUFFER_FORMATS:
            return self.memoryview().tolist()
        return self.numpy().tolist() if self.dtype in _NUMPY_TYPES else self.to("float32").tolist()

    def item(self) -> Any:
        """The only element as a number."""
        if self.size != 1:
            raise ValueError("only a tensor of one element is a number, this one has %d" % self.size)
        value = self.tolist()
        while isinstance(value, list):
            value = value[0]
        return value

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a tensor without dimensions has no length")
        return shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> "Tensor":
        return index(self, key, _call, as_tensor)

    # ---- computing

    __add__, __radd__ = _operator(operator.add), _operator(operator.add, True)
    __sub__, __rsub__ = _operator(operator.sub), _operator(operator.sub, True)
    __mul__, __rmul__ = _operator(operator.mul), _operator(operator.mul, True)
    __truediv__, __rtruediv__ = _operator(operator.truediv), _operator(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv), _operator(operator.floordiv, True)
    __mod__, __rmod__ = _operator(operator.mod), _operator(operator.mod, True)
    __pow__, __rpow__ = _operator(operator.pow), _operator(operator.pow, True)
    __matmul__, __rmatmul__ = _operator(operator.matmul), _operator(operator.matmul, True)
    __and__, __rand__ = _operator(operator.and_), _operator(operator.and_, True)
    __or__, __ror__ = _operator(operator.or_), _operator(operator.or_, True)
    __xor__, __rxor__ = _operator(operator.xor), _operator(operator.xor, True)
    __lt__, __le__ = _operator(operator.lt), _operator(operator.le)
    __gt__, __ge__ = _operator(operator.gt), _operator(operator.ge)
    __eq__, __ne__ = _operator(operator.eq), _operator(operator.ne)
    __neg__, __pos__ = _operator(operator.neg), _operator(operator.pos)
    __abs__, __invert__ = _operator(operator.abs), _operator(operator.invert)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        """Attributes that only tensors of PyTorch have, read from this one as such a tensor; where PyTorch is not
        installed, those of its array."""
        if name.startswith("_"):
            raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))
        return getattr(_computing(self, _computes_in_numpy(())), name)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of PyTorch, called on tensors of PyTorch in the place of these."""
        args, kwargs = map_leaves(lambda leaf, path: _computing(leaf, False), (tuple(args), kwargs or {}), "")
        return function(*args, **kwargs)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        result = self.numpy()
        if dtype is not None and result.dtype != dtype:
            if copy is False:
                raise ValueError("%s as %s takes a copy" % (self.dtype, dtype))
            return result.astype(dtype)
        return result.copy() if copy else result

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        tensor = self
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy is False or tuple(dl_device) != (_DEVICE_TYPES["cpu"], 0):
                raise BufferError("the tensor is on %s; convert it with .to(device=...)" % self.device)
            tensor = self.to(device="cpu")
        elif copy:
            raise BufferError("copies are left to the consumer")
        return _native.tensor_to_dlpack(tensor._handle, max_version[0] if max_version else 0)

    def __dlpack_device__(self) -> Tuple[int, int]:
        kind, _, index = self.device.partition(":")
        return _DEVICE_TYPES[kind], int(index or 0)

    def __buffer__(self, flags: int) -> memoryview:
        if self.size == 0 and self.ndim != 1:
            raise BufferError("a memoryview of nothing has no shape %s" % (self.shape,))
        return self.memoryview()

    def __reduce__(self) -> Any:
        contiguous, address = self._contiguous()
        dtype = contiguous.dtype
        data = ctypes.string_at(address, contiguous.size * _itemsize(dtype)) if contiguous.size else b""
        return _read, (data, dtype.value, contiguous.shape)

    def __repr__(self) -> str:
        return "Tensor(closed)" if self.closed else _native.tensor_to_string(self._handle)

    def _add_to(self, arguments: Any, name: Optional[str]) -> None:
        _native.arguments_add_tensor(arguments, name, self._handle)

    def _contiguous(self) -> Tuple["Tensor", int]:
        """A tensor whose elements lie at an address, one behind the other."""
        address = _native.tensor_address(self._handle)
        if address or self.size == 0:
            return self, address
        tensor = self.to(device="cpu")
        return tensor, _native.tensor_address(tensor._handle)

    def _exported(self) -> Tuple[Any, dict]:
        dtype = self.dtype
        if dtype not in _NUMPY_TYPES:
            raise TypeError("NumPy has no %s; convert it with .to('float32')" % dtype)
        tensor, address = self._contiguous()
        # NumPy wants an address even where there is nothing.
        data = (address, True) if address else bytes(0)
        interface = {"version": 3, "shape": self.shape, "typestr": _NUMPY_TYPES[dtype], "data": data}
        return tensor._handle, interface


def _computes_in_numpy(operands: Sequence[Any]) -> bool:
    """Whether NumPy computes with these, and not PyTorch, which is imported wherever it is installed."""
    numpy = sys.modules.get("numpy")
    arrays = numpy is not None and any(isinstance(operand, numpy.ndarray) for operand in operands)
    return arrays or sys.modules.get("torch") is None


def _computing(operand: Any, in_numpy: bool) -> Any:
    """A tensor as what computes with it; everything else as it is."""
    if not isinstance(operand, Tensor):
        return operand
    return operand.numpy() if in_numpy else operand.torch()


def _read(data: bytes, dtype: str, shape: Tuple[int, ...]) -> Tensor:
    """Restores a tensor that was pickled, on the CPU."""
    return Tensor(_native.tensor_copy(data, to_code(dtype), shape))


class _Exported:
    """The interface through which NumPy reads the memory of a native tensor."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: Any, interface: dict):
        self._owner = owner
        self.__array_interface__ = interface


def _itemsize(dtype: DType) -> int:
    return (to_code(dtype) >> 8) // 8


def as_tensor(value: Any) -> Tensor:
    """A tensor of whatever holds numbers.

    Shares the memory of arrays and tensors that have DLPack or the buffer protocol; numbers and nested lists of them
    are copied (as float32, int64 or bool).
    """
    return value if isinstance(value, Tensor) else Tensor(native_tensor(value))


def _call(op: str, *args: Any) -> Tensor:
    """Calls an operator of one result on tensors alone."""
    return Tensor(_native.results_tensor(native_call(op, args, {}), 0))

"""Native tensors of whatever holds numbers."""

import array
import sys
from typing import Any, List, Sequence

from . import _native
from ._dtype import DType, is_dtype, to_code
from ._errors import InvalidArgument
from ._reads import untold


def native_tensor(value: Any) -> Any:
    """A native tensor of what holds numbers and is no object of Addend.

    Shares the memory of arrays and tensors that have DLPack or the buffer protocol; numbers and nested lists of them
    are copied (as float32, int64 or bool).
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(value, torch)
    try:
        memoryview(value)
    except TypeError:
        pass
    except ValueError:  # NumPy exports no buffer of types that Python has no name for.
        pass
    else:
        return _native.tensor_from_buffer(value)
    if hasattr(value, "__dlpack__"):
        return _native.tensor_from_dlpack(dlpack_capsule(value))
    if hasattr(value, "__array__"):
        import numpy

        return native_tensor(numpy.asarray(value))
    return _from_numbers(value)


def dlpack_capsule(value: Any) -> Any:
    """The capsule of DLPack that a tensor or an array exports, in the newest form that it knows."""
    export = untold(value.__dlpack__)
    try:
        return export(max_version=(1, 0))
    except TypeError:  # from before DLPack 1.0
        return export()
    except BufferError as error:  # sparse, say
        raise InvalidArgument("the tensor cannot be shared by DLPack: %s" % error) from error


def _from_torch(value: Any, torch: Any) -> Any:
    if value.is_conj() or value.is_neg():
        value = value.resolve_conj().resolve_neg()
    if value.is_meta:
        return _native.tensor_from_torch(value)  # it has no memory to be known by
    if value.device.type != "cpu" or value.layout is not torch.strided or value.is_quantized:
        return _native.tensor_from_dlpack(dlpack_capsule(value.detach()))
    # Not by DLPack, which would call operators: a tracing scope would record them. It also lacks bool in older PyTorch.
    dims, strides = value.shape, ()
    size = value.numel() * value.element_size()
    if size and not value.is_contiguous():
        strides = value.stride()
        last = sum((extent - 1) * stride for extent, stride in zip(dims, strides))
        size = (last + 1) * value.element_size()
    code = to_code(value.dtype)
    return _native.tensor_from_memory(value, value.data_ptr(), size, code, dims, strides)


def _from_numbers(value: Any) -> Any:
    numbers: List[Any] = []
    dims = _flatten(value, numbers)
    if all(isinstance(number, bool) for number in numbers) and numbers:
        code, dtype = "b", DType.bool
    elif all(isinstance(number, int) for number in numbers) and numbers:
        code, dtype = "q", DType.int64
    else:
        code, dtype = "f", DType.float32
    return _native.tensor_copy(array.array(code, numbers), to_code(dtype), dims)


def _flatten(value: Any, numbers: List[Any]) -> List[int]:
    """Appends the numbers of nested lists; returns the shape."""
    if isinstance(value, (bool, int, float)):
        numbers.append(value)
        return []
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or is_dtype(value):
        raise TypeError("%s is no tensor, array or number" % type(value).__name__)
    shapes = [_flatten(element, numbers) for element in value]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("nested lists of a tensor must have the same lengths")
    return [len(shapes)] + (shapes[0] if shapes else [])

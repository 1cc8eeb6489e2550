"""Element types."""

import enum
import functools
from typing import Any


# This function stands before the classes because Python 3.13 and newer compare members of an enumeration while it is made.
def _name_in_torch(value: object) -> str:
    """The name of a dtype or device of PyTorch; "" of anything else."""
    kind = type(value)
    if kind.__module__ != "torch" or kind.__name__ not in ("dtype", "device"):
        return ""
    return str(value).rpartition(".")[2]


class _Name(str):
    """A text that equals the dtype or device of PyTorch that is called so."""

    def __eq__(self, other: object) -> bool:
        return str(self) == (_name_in_torch(other) or other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class DType(_Name, enum.Enum):
    """The type of a tensor's elements. Members are text too: ``tensor.dtype == "float32"``. They equal PyTorch's, so that
    models that compare dtypes do the same as with tensors."""

    uint8 = "uint8"
    int8 = "int8"
    int16 = "int16"
    int32 = "int32"
    int64 = "int64"
    float16 = "float16"
    float32 = "float32"
    float64 = "float64"
    bfloat16 = "bfloat16"
    complex64 = "complex64"
    complex128 = "complex128"
    bool = "bool"

    def __str__(self) -> str:
        return self.value


class Device(_Name):
    """The device of a tensor: ``"cpu"``, ``"cuda:0"``. It equals PyTorch's device of that name."""

    @property
    def type(self) -> str:
        """``"cpu"``, ``"cuda"``."""
        return self.partition(":")[0]

    @property
    def index(self) -> Any:  # type: ignore[override]
        """The number of the device among those of its type; None where there is none."""
        number = self.partition(":")[2]
        return int(number) if number else None


# DLPack's type codes; see addend_dtype in the C interface.
_TYPE_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5}
_CODES = {
    dtype: 0x0806 if dtype is DType.bool else (int(bits) << 8) + _TYPE_CODES[kind]
    for dtype in DType
    for kind, bits in [(dtype.value.rstrip("0123456789"), dtype.value.lstrip("abcdefghijklmnopqrstuvwxyz"))]
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


def from_code(code: int) -> DType:
    return _DTYPES[code]


@functools.lru_cache(maxsize=64)
def to_code(dtype: Any) -> int:
    """The number of a dtype in the C interface; 0 for None."""
    if dtype is None:
        return 0
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype)
    try:
        return _CODES[DType(name.rpartition(".")[2])]
    except ValueError:
        raise TypeError("no dtype %r; there are %s" % (dtype, ", ".join(DType.__members__))) from None


def as_dtype(dtype: Any) -> DType:
    """Converts a `DType`, its name, or a dtype of NumPy or PyTorch to a `DType`."""
    return from_code(to_code(dtype))


def is_dtype(value: Any) -> bool:
    """Whether it is a dtype of Addend, NumPy or PyTorch; a name alone is not, it may be any text."""
    return "dtype" in type(value).__name__.lower()

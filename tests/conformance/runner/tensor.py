"""Tensors of a few numbers, in plain Python.

A tensor has a dtype by the short names of the cases, a shape, and either its bytes (little-endian, row-major) or its
numbers; each is made from the other when it is first asked for. Complex numbers are two numbers each, the real part
first.
"""

import array
import math
import struct
import sys

SIZES = {
    "f64": 8,
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "i64": 8,
    "i32": 4,
    "i16": 2,
    "i8": 1,
    "u8": 1,
    "bool": 1,
    "c64": 8,
    "c128": 16,
}
LONG_NAMES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
FLOATING = ("f64", "f32", "f16", "bf16")
COMPLEX = {"c64": "f32", "c128": "f64"}
# Type codes of array.array, by dtype.
_ARRAYS = {"f64": "d", "f32": "f", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "u8": "B", "bool": "B"}


def real_dtype(dtype):
    """That of real and imaginary parts; of real numbers their own."""
    return COMPLEX.get(dtype, dtype)


def is_floating(dtype):
    return real_dtype(dtype) in FLOATING


class Tensor:
    __slots__ = ("dtype", "shape", "_raw", "_numbers")

    def __init__(self, dtype, shape, numbers=None, raw=None):
        self.dtype = dtype
        self.shape = tuple(shape)
        self._raw = raw
        self._numbers = None
        length = count(self.shape) * (2 if dtype in COMPLEX else 1)
        if numbers is not None:
            if len(numbers) != length:
                raise ValueError("%d numbers for the shape %s" % (len(numbers), list(shape)))
            self._numbers = _rounded(real_dtype(dtype), numbers)
        elif len(raw) != count(self.shape) * SIZES[dtype]:
            raise ValueError("%d bytes for %s%s" % (len(raw), dtype, list(shape)))

    @property
    def numbers(self):
        """A sequence of numbers: what the dtype makes of those that were given."""
        if self._numbers is None:
            self._numbers = _decode(real_dtype(self.dtype), self._raw)
        return self._numbers

    @property
    def raw(self):
        if self._raw is None:
            self._raw = _encode(real_dtype(self.dtype), self._numbers)
        return self._raw

    def __eq__(self, other):
        """True if dtype, shape and bits are the same."""
        return (self.dtype, self.shape, self.raw) == (other.dtype, other.shape, other.raw)

    def __repr__(self):
        return "Tensor(%s%s)" % (self.dtype, list(self.shape))

    def row(self, index):
        """The tensor at a position of the first dimension."""
        shape = self.shape[1:]
        size = count(shape) * SIZES[self.dtype]
        return Tensor(self.dtype, shape, raw=self.raw[index * size : (index + 1) * size])

    def rows(self):
        return [self.row(index) for index in range(self.shape[0])]

    def like(self, numbers):
        return Tensor(self.dtype, self.shape, numbers)

    def on_the_wire(self):
        """Complex numbers as real ones with one more dimension."""
        if self.dtype in COMPLEX:
            return Tensor(COMPLEX[self.dtype], self.shape + (2,), raw=self.raw)
        return self

    def as_complex(self):
        """The opposite."""
        if self.shape[-1:] != (2,) or self.dtype not in COMPLEX.values():
            raise ValueError("a complex tensor is sent as real ones whose last dimension is 2, not as %r" % self)
        dtype = {real: name for name, real in COMPLEX.items()}[self.dtype]
        return Tensor(dtype, self.shape[:-1], raw=self.raw)


def stack(tensors):
    """Tensors of one shape as the rows of another."""
    first = tensors[0]
    return Tensor(first.dtype, (len(tensors),) + first.shape, raw=b"".join(tensor.raw for tensor in tensors))


def full(dtype, shape, number):
    numbers = [number] * count(shape)
    if dtype in COMPLEX:
        numbers = [part for value in numbers for part in (value, 0)]
    return Tensor(dtype, shape, numbers)


def count(shape):
    product = 1
    for extent in shape:
        product *= extent
    return product


def strides(shape):
    """How far apart neighbours of each dimension are, in elements."""
    result = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        result[dim] = result[dim + 1] * shape[dim + 1]
    return result


def broadcast(tensor, shape):
    """The tensor repeated to a shape, as LibTorch does it."""
    shape = tuple(shape)
    if tensor.shape == shape:
        return tensor
    own = (1,) * (len(shape) - len(tensor.shape)) + tensor.shape
    if len(own) != len(shape) or any(a not in (1, b) for a, b in zip(own, shape)):
        raise ValueError("%s does not broadcast to %s" % (list(tensor.shape), list(shape)))
    steps = [0 if a == 1 else step for a, step in zip(own, strides(own))]
    width = SIZES[tensor.dtype]
    raw = tensor.raw
    places = [0]
    for extent, step in zip(shape, steps):
        places = [place + k * step for place in places for k in range(extent)]
    return Tensor(tensor.dtype, shape, raw=b"".join(raw[place * width : (place + 1) * width] for place in places))


def _rounded(dtype, numbers):
    if dtype in _ARRAYS:
        try:
            return array.array(_ARRAYS[dtype], numbers)
        except OverflowError:
            if dtype != "f32":
                raise
            return array.array("f", [_narrow(number) for number in numbers])
    return _decode(dtype, _encode(dtype, numbers))


def _narrow(number):
    """Beyond the largest number of float32 lies infinity."""
    try:
        return array.array("f", [number])[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def _encode(dtype, numbers):
    if dtype in _ARRAYS:
        values = numbers if isinstance(numbers, array.array) else _rounded(dtype, numbers)
        if sys.byteorder == "big":
            values = array.array(values.typecode, values)
            values.byteswap()
        return values.tobytes()
    if dtype == "f16":
        return b"".join(_half(number) for number in numbers)
    return b"".join(struct.pack("<H", _bfloat(number)) for number in numbers)


def _decode(dtype, raw):
    if dtype in _ARRAYS:
        values = array.array(_ARRAYS[dtype])
        values.frombytes(raw)
        if sys.byteorder == "big":
            values.byteswap()
        return values
    if dtype == "f16":
        return struct.unpack("<%de" % (len(raw) // 2), raw)
    halves = struct.unpack("<%dH" % (len(raw) // 2), raw)
    return struct.unpack("<%df" % len(halves), struct.pack("<%dI" % len(halves), *[half << 16 for half in halves]))


def _half(number):
    try:
        return struct.pack("<e", number)
    except OverflowError:
        return struct.pack("<e", math.copysign(math.inf, number))


def _bfloat(number):
    """The upper half of the float32, rounded to nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", _narrow(number)))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40  # NaN stays one
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

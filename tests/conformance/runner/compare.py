"""Comparing tensors: by bits, by an allowed error, by exact zeros. What differs is described, element by element."""

import math
import struct

from .tensor import real_dtype, strides


def same_bits(what, got, expected):
    """None, or what differs. All NaN count as one: languages and processors may write others."""
    found = same_form(what, got, expected)
    if found or got.raw == expected.raw:
        return found
    for index, (a, b) in enumerate(zip(got.numbers, expected.numbers)):
        if (a != b or _negative(a) != _negative(b)) and not (a != a and b != b):
            return "%s differs in its bits at %s: %s instead of %s" % (
                what, _place(got, index), shown(a, got.dtype), shown(b, got.dtype)
            )
    return None


def same_form(what, got, expected, dtype=True):
    """None, or what differs in shape or dtype. `dtype`: whether real numbers of another width differ."""
    if got.shape != expected.shape:
        return "%s has the shape %s instead of %s" % (what, list(got.shape), list(expected.shape))
    if dtype and got.dtype != expected.dtype:
        return "%s is of %s instead of %s" % (what, got.dtype, expected.dtype)
    if got.dtype.startswith("c") != expected.dtype.startswith("c"):
        return "%s is of %s instead of %s" % (what, got.dtype, expected.dtype)
    return None


def close(what, got, expected, allowance, sizes):
    """None, or what differs by more than is allowed. `sizes`: what errors are measured against, one number for all
    elements or one for each."""
    found = same_form(what, got, expected, dtype=False)
    if found:
        return found
    each = sizes if isinstance(sizes, list) else None
    worst, place = -1.0, None
    allowed = 0.0 if each is not None else allowance.at(sizes)
    for index, (a, b) in enumerate(zip(got.numbers, expected.numbers)):
        if a == b:
            continue
        if a != a or b != b or math.isinf(a) or math.isinf(b):
            if a != a and b != b:
                continue
            ratio = math.inf
        else:
            if each is not None:
                allowed = allowance.at(each[index])
            error = abs(a - b)
            ratio = error / allowed if allowed > 0 else math.inf
        if ratio > worst:
            worst, place = ratio, index
    if place is None:
        return None
    if not math.isinf(worst):
        allowance.met(worst)
    if worst <= 1:
        return None
    a, b = got.numbers[place], expected.numbers[place]
    if each is not None:
        allowed = allowance.at(each[place])
    return "%s is %s at %s, expected is %s: off by %.3g (%s), allowed is %.3g" % (
        what, shown(a, got.dtype), _place(got, place), shown(b, expected.dtype), abs(a - b), ulps(a, b, got.dtype), allowed
    )


def zero(what, got, but=None):
    """None, or where a tensor is not exactly zero. `but`: elements that are not looked at."""
    for index, number in enumerate(got.numbers):
        if number != 0 and not (but is not None and but[index]):
            return "%s is %s at %s, it has to be exactly zero" % (what, shown(number, got.dtype), _place(got, index))
    return None


def size_of(*tensors):
    """The largest finite magnitude; what errors of sums of these are measured against."""
    largest = 0.0
    for tensor in tensors:
        for number in tensor.numbers:
            magnitude = abs(number)
            if magnitude > largest and not math.isinf(magnitude):
                largest = magnitude
    return largest


def columns(tensor):
    """For every element of a composition the numbers that its components have there."""
    rows = [row.numbers for row in tensor.rows()]
    return [list(column) for column in zip(*rows)] if rows else []


def mass(parts):
    """The largest sum of magnitudes that components, reference and leftover have at an element."""
    rows = [row.numbers for row in parts.components.rows()] + [parts.reference.numbers, parts.leftover.numbers]
    largest = 0.0
    for column in zip(*rows):
        total = sum(map(abs, column))
        if total > largest and not math.isinf(total):
            largest = total
    return largest


def recovery(parts):
    """Components, reference and leftover together, added up in float64."""
    rows = [row.numbers for row in parts.components.rows()] + [parts.reference.numbers, parts.leftover.numbers]
    return parts.reference.like([math.fsum(column) if all(map(math.isfinite, column)) else sum(column)
                                 for column in zip(*rows)])


def shown(number, dtype):
    if isinstance(number, int):
        return str(number)
    if number != number or math.isinf(number):
        return repr(number)
    return "%.17g (%s)" % (number, float(number).hex()) if real_dtype(dtype) == "f64" else "%.9g (%s)" % (
        number, float(number).hex()
    )


def ulps(a, b, dtype):
    """How many numbers of the dtype lie between two."""
    dtype = real_dtype(dtype)
    if dtype not in ("f64", "f32") or not (math.isfinite(a) and math.isfinite(b)):
        return "no ulps"
    pack, unpack = ("<d", "<q") if dtype == "f64" else ("<f", "<i")
    try:
        bits = [struct.unpack(unpack, struct.pack(pack, number))[0] for number in (a, b)]
    except OverflowError:
        return "no ulps"
    smallest = -(1 << (63 if dtype == "f64" else 31))
    ordered = [number if number >= 0 else smallest - number for number in bits]
    return "%d ulp" % abs(ordered[0] - ordered[1])


def _negative(number):
    return math.copysign(1.0, number) < 0


def _place(tensor, index):
    if tensor.dtype.startswith("c"):
        return "%s of %s" % ("the imaginary part" if index % 2 else "the real part", _position(tensor.shape, index // 2))
    return _position(tensor.shape, index)


def _position(shape, index):
    return "[%s]" % ", ".join(str(index // step % extent) for extent, step in zip(shape, strides(shape)))

"""Unique parts of an operator's results, by which the answers of two implementations of LibTorch can be compared.

Most results are unique to rounding and are compared number by number. Of the others `_TABLE` says in which way they are
not: factors are known up to signs and rotations, an index among equal elements is as good as another one, and side
results for a derivative are an implementation's own business.
"""

import bisect

from . import compare, protocol
from .tensor import COMPLEX, Tensor, count, strides


def close_results(judge, request, got, expected):
    """Says where the results of two answers to a request are further apart than numbers may be, in what is unique."""
    if len(got.results) != len(expected.results):
        judge.say("text", "%d results instead of %d" % (len(got.results), len(expected.results)))
    # Threads answer one behind the other.
    size = max(len(expected.results) // int(request.entries.get("count", "1")), 1)
    for begin in range(0, len(expected.results), size):
        close_each(judge, request, got.results[begin : begin + size], expected.results[begin : begin + size], begin)


def close_each(judge, request, got, expected, begin=0):
    """`close_results` of the results of one thread, the first of which is number `begin`."""
    op = request.entries.get("op", "")
    sense = _TABLE.get(op, _TABLE.get(op.partition(".")[0], ()))
    pairs = []
    for index, (a, b) in enumerate(zip(got, expected)):
        if (a.kind, a.name) != (b.kind, b.name):
            index += begin
            judge.say("text", "result %d is %s %s instead of %s %s" % (index, a.kind, a.name, b.kind, b.name))
        else:
            pairs.append(("result %d" % (begin + index), index, a, b))
    if isinstance(sense, _Factors):
        sense.close(judge, pairs)
        return
    for what, index, a, b in pairs:
        (sense[index] if index < len(sense) else _NUMBERS).close(judge, what, request, a, b)


def undetermined(op):
    """Whether components of an operator's results are not unique, so that only the laws can judge them."""
    sense = _TABLE.get(op, _TABLE.get(op.partition(".")[0], ()))
    return isinstance(sense, _Factors) or _CHOSEN in sense


# ---- one result


class _Numbers:
    """All numbers of all parts."""

    @staticmethod
    def close(judge, what, _, a, b):
        if b.kind == "composition":
            size = compare.mass(b)
            for part in b.parts:
                judge.close("%s of %s" % (part, what), getattr(a, part), b.parts[part], size)
        elif b.kind == "tensor":
            judge.close(what, a.tensor, b.tensor, compare.size_of(b.tensor))


class _WhereMade:
    """All numbers, where both implementations make them."""

    @staticmethod
    def close(judge, what, request, a, b):
        if {part: tensor.shape for part, tensor in a.parts.items()} == {p: t.shape for p, t in b.parts.items()}:
            _NUMBERS.close(judge, what, request, a, b)


class _Nothing:
    """A result that only an implementation's own derivative reads."""

    @staticmethod
    def close(*_):
        pass


class _Chosen:
    """Elements that were chosen from the first argument. Which of equal ones was, and so which components come along, is
    not known; what they sum to is."""

    @staticmethod
    def close(judge, what, request, a, b):
        if b.kind != "composition":
            _NUMBERS.close(judge, what, request, a, b)
            return
        tied = _ties(judge, _source(request), b.value.numbers)
        size = compare.mass(b)
        for part, expected in b.parts.items():
            got = getattr(a, part)
            if part in ("components", "leftover", "residual") and got.shape == expected.shape:
                repeated = tied * (expected.shape[0] if part == "components" else 1)
                got = got.like([y if tie else x for x, y, tie in zip(got.numbers, expected.numbers, repeated)])
            judge.close("%s of %s" % (part, what), got, expected, size)
        _recovers(judge, what, a)


class _Places:
    """Indices of elements that were chosen from the first argument: what is there is unique."""

    def close(self, judge, what, request, a, b):
        found = compare.same_form(what, a.tensor, b.tensor)
        if found:
            judge.say("number", found)
            return
        source = _source(request)
        there = [self._elements(request, source, result.tensor) for result in (a, b)]
        if None in there:
            judge.say("number", what + " has indices outside of the argument")
            return
        there = [Tensor(source.dtype, a.tensor.shape, numbers) for numbers in there]
        judge.close("what is at " + what, *there, compare.size_of(source))

    def _elements(self, request, source, places):
        offsets = self._offsets(request, source.shape, places)
        if any(not 0 <= index < self._extent(request, source.shape) for index in places.numbers):
            return None
        return [source.numbers[offset] for offset in offsets]


class _Along(_Places):
    """Along the dimension that is the argument `position`, called dim; without one, among all elements."""

    def __init__(self, position, default=None):
        self.position = position
        self.default = default

    def _dim(self, request, shape):
        kind, text = _argument(request, self.position, "dim")
        dim = int(text) if kind == "i64" else self.default
        return dim % len(shape) if dim is not None and shape else None

    def _extent(self, request, shape):
        dim = self._dim(request, shape)
        return count(shape) if dim is None else shape[dim]

    def _offsets(self, request, shape, places):
        dim = self._dim(request, shape)
        if dim is None:
            return places.numbers
        steps = strides(shape)
        own = places.shape if len(places.shape) == len(shape) else places.shape[:dim] + (1,) + places.shape[dim:]
        offsets = [0]
        for extent, step, other in zip(own, steps, range(len(shape))):
            offsets = [offset + (0 if other == dim else k * step) for offset in offsets for k in range(extent)]
        return [offset + index * steps[dim] for offset, index in zip(offsets, places.numbers)]


class _Within(_Places):
    """Within the last dimensions, flattened."""

    def __init__(self, dims):
        self.dims = dims

    def _extent(self, _, shape):
        return count(shape[-self.dims :])

    def _offsets(self, request, shape, places):
        plane, own = self._extent(request, shape), count(places.shape[-self.dims :])
        return [position // own * plane + index for position, index in enumerate(places.numbers)]


def _argument(request, position, name):
    """Kind and value of an argument by its name or its place; none where it is not given."""
    found, depth = [], 0
    for kind, own_name, value in protocol.fields(request.entries.get("args", ""), 3):
        depth -= kind == "end"
        if depth == 0 and kind != "end":
            found.append((own_name, kind, value))
        depth += kind == "list"
    for own_name, kind, value in found:
        if own_name == name:
            return kind, value
    if position < len(found) and not found[position][0]:
        return found[position][1:]
    return "none", ""


def _source(request):
    """The first argument's value."""
    _, key = _argument(request, 0, "self")
    for name in (key, key + ".value"):
        if name in request.tensors:
            return request.tensors[name]
    components = request.tensors[key + ".components"]
    rows = components.rows() + [request.tensors[key + part] for part in (".reference", ".leftover")
                                if key + part in request.tensors]
    return Tensor(components.dtype, components.shape[1:], [sum(column) for column in zip(*[r.numbers for r in rows])])


def _ties(judge, source, numbers):
    """Whether two or more elements of the source are equal to a number, to rounding, for each number."""
    ordered = sorted(number for number in source.numbers if number == number)
    allowance, result = judge.allowance(source.dtype), []
    for number in numbers:
        near = allowance.at(abs(number))
        result.append(bisect.bisect_right(ordered, number + near) - bisect.bisect_left(ordered, number - near) > 1)
    return result


def _recovers(judge, what, result):
    judge.close("the recovery of " + what, compare.recovery(result), result.value, compare.mass(result))


# ---- factors


class _Factors:
    """Results that are unique together.

    Args:
        invariants: a function of the results' tensors that gives pairs of words and numbers which are unique.
        alone: places of results that are unique by themselves, and so are their components.
    """

    def __init__(self, invariants, alone=()):
        self.invariants = invariants
        self.alone = alone

    def close(self, judge, pairs):
        composed = False
        for what, index, a, b in pairs:
            for part in b.parts:
                found = compare.same_form("%s of %s" % (part, what), getattr(a, part), b.parts[part], dtype=False)
                if found:
                    judge.say("number", found)
                    return
            if index in self.alone:
                _NUMBERS.close(judge, what, None, a, b)
            if b.kind == "composition":
                composed = True
                _recovers(judge, what, a)
        for part in ("value", "reference") if composed else ("value",):
            sides = []
            for side in (2, 3):
                tensors = [pair[side].parts.get("tensor") or getattr(pair[side], part) for pair in pairs]
                sides.append(self.invariants(*tensors))
            for (words, got), (_, expected) in zip(*sides):
                got, expected = (Tensor("f64", (len(numbers),), numbers) for numbers in (got, expected))
                judge.close("%s of the %ss" % (words, part), got, expected, compare.size_of(expected))


def _of_svd(u, s, vh):
    pairs = [("the product", [])]
    for left, middle, right in zip(_matrices(u), _rows(s), _matrices(vh)):
        scaled = [[x * y for x, y in zip(row, middle)] for row in left]
        pairs[0][1].extend(_flat(_product(scaled, right[: len(middle)])))
    return pairs + [_angles("left vectors", _matrices(u)), _angles("right vectors", map(_adjoint, _matrices(vh)))]


def _of_eigh(w, v):
    pairs = [("the product", [])]
    for middle, vectors in zip(_rows(w), _matrices(v)):
        scaled = [[x * y for x, y in zip(row, middle)] for row in vectors]
        pairs[0][1].extend(_flat(_product(scaled, _adjoint(vectors))))
    return pairs + [_angles("vectors", _matrices(v))]


def _of_qr(q, r):
    if count(q.shape) == 0:  # Only R was asked for.
        return [_angles("columns of R", _matrices(r))]
    product = [number for a, b in zip(_matrices(q), _matrices(r)) for number in _flat(_product(a, b))]
    below = [number for matrix in _matrices(r) for place, row in enumerate(matrix) for number in _flat([row[:place]])]
    return [("the product", product), _angles("columns of Q", _matrices(q)), ("what is below the diagonal", below)]


def _angles(words, matrices):
    """All inner products of the columns."""
    found = [number for matrix in matrices for number in _flat(_product(_adjoint(matrix), matrix))]
    return "the inner products of " + words, found


def _rows(tensor):
    """Along the last dimension."""
    size = tensor.shape[-1]
    return [list(tensor.numbers)[begin : begin + size] for begin in range(0, len(tensor.numbers), max(size, 1))]


def _matrices(tensor):
    """Those of the last two dimensions, as lists of rows; none where there are no numbers."""
    if count(tensor.shape) == 0:
        return []
    height, width = tensor.shape[-2:]
    numbers = list(tensor.numbers)
    if tensor.dtype in COMPLEX:
        numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
    rows = [numbers[begin : begin + width] for begin in range(0, len(numbers), width)]
    return [rows[begin : begin + height] for begin in range(0, len(rows), height)]


def _adjoint(matrix):
    return [[number.conjugate() for number in column] for column in zip(*matrix)]


def _product(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def _flat(matrix):
    numbers = [number for row in matrix for number in row]
    return [part for x in numbers for part in ((x.real, x.imag) if isinstance(x, complex) else (x,))]


# ---- the table

_NUMBERS = _Numbers()
_WHERE_MADE = _WhereMade()
_NOTHING = _Nothing()
_CHOSEN = _Chosen()
_SVD = _Factors(_of_svd, alone=(1,))
_EIGH = _Factors(_of_eigh, alone=(0,))
_QR = _Factors(_of_qr)
_BATCH_NORM = (_NUMBERS, _WHERE_MADE, _WHERE_MADE, _WHERE_MADE)
_EMBEDDING_BAG = (_NUMBERS, _NOTHING, _NOTHING, _NOTHING)

# Senses in which results are unique, by operator or overload; behind the last one: all numbers.
_TABLE = {
    "aten::_batch_norm_with_update": _BATCH_NORM,
    "aten::_embedding_bag": _EMBEDDING_BAG,
    "aten::_embedding_bag_forward_only": _EMBEDDING_BAG,
    "aten::_linalg_eigh": _EIGH,
    "aten::_linalg_svd": _SVD,
    "aten::_native_batch_norm_legit": _BATCH_NORM,
    "aten::_native_batch_norm_legit_no_training": _BATCH_NORM,
    "aten::adaptive_max_pool1d": (_CHOSEN, _Within(1)),
    "aten::adaptive_max_pool2d": (_CHOSEN, _Within(2)),
    "aten::adaptive_max_pool3d": (_CHOSEN, _Within(3)),
    "aten::amax": (_CHOSEN,),
    "aten::amin": (_CHOSEN,),
    "aten::argmax": (_Along(1),),
    "aten::argmin": (_Along(1),),
    "aten::argsort": (_Along(1, -1),),
    "aten::cummax": (_CHOSEN, _Along(1)),
    "aten::cummin": (_CHOSEN, _Along(1)),
    "aten::embedding_bag": _EMBEDDING_BAG,
    "aten::fractional_max_pool2d": (_CHOSEN, _Within(2)),
    "aten::fractional_max_pool3d": (_CHOSEN, _Within(3)),
    "aten::kthvalue": (_CHOSEN, _Along(2, -1)),
    "aten::linalg_eigh": _EIGH,
    "aten::linalg_lstsq": (_NUMBERS, _WHERE_MADE, _WHERE_MADE, _WHERE_MADE),
    "aten::linalg_qr": _QR,
    "aten::linalg_svd": _SVD,
    "aten::log_sigmoid_forward": (_NUMBERS, _WHERE_MADE),
    "aten::max": (_CHOSEN, _Along(1)),
    "aten::max.other": (_NUMBERS,),
    "aten::max_pool1d": (_CHOSEN,),
    "aten::max_pool2d": (_CHOSEN,),
    "aten::max_pool2d_with_indices": (_CHOSEN, _Within(2)),
    "aten::max_pool3d": (_CHOSEN,),
    "aten::max_pool3d_with_indices": (_CHOSEN, _Within(3)),
    "aten::median": (_CHOSEN, _Along(1)),
    "aten::min": (_CHOSEN, _Along(1)),
    "aten::min.other": (_NUMBERS,),
    "aten::mode": (_CHOSEN, _Along(1, -1)),
    "aten::nanmedian": (_CHOSEN, _Along(1)),
    "aten::native_batch_norm": _BATCH_NORM,
    "aten::qr": _QR,
    "aten::sort": (_CHOSEN, _Along(1, -1)),
    "aten::symeig": _EIGH,
    "aten::topk": (_CHOSEN, _Along(2, -1)),
}

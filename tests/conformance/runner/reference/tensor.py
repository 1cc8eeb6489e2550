"""Tensors of Python floats: a shape and the elements in row-major order. Slow, small and easy to check by eye."""

import itertools
import math

Shape = tuple


def numel(shape):
    return math.prod(shape)


def strides_of(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def positions(shape):
    """All indices into a shape, in row-major order."""
    return itertools.product(*(range(size) for size in shape))


def flat_position(index, shape):
    return sum(i * step for i, step in zip(index, strides_of(shape)))


class Tensor:
    __slots__ = ("shape", "data")

    def __init__(self, shape, data):
        self.shape = tuple(shape)
        self.data = list(data)
        if numel(self.shape) != len(self.data):
            raise ValueError(f"{len(self.data)} elements for shape {self.shape}")

    @staticmethod
    def scalar(number):
        return Tensor((), [number])

    @staticmethod
    def full(shape, number):
        return Tensor(shape, [number] * numel(shape))

    @staticmethod
    def nested(lists):
        """From nested lists of numbers."""
        shape = []
        level = lists
        while isinstance(level, (list, tuple)):
            shape.append(len(level))
            if not level:
                break
            level = level[0]
        data = []

        def walk(part, depth):
            if depth == len(shape):
                data.append(part)
                return
            if not isinstance(part, (list, tuple)) or len(part) != shape[depth]:
                raise ValueError("nested lists of unequal lengths")
            for element in part:
                walk(element, depth + 1)

        walk(lists, 0)
        return Tensor(shape, data)

    @property
    def rank(self):
        return len(self.shape)

    def __repr__(self):
        return f"Tensor({self.shape}, {self.data})"

    def at(self, index):
        return self.data[flat_position(index, self.shape)]

    def map(self, f):
        return Tensor(self.shape, [f(x) for x in self.data])

    # ---- moving elements

    def reshape(self, shape):
        shape = list(shape)
        if -1 in shape:
            known = math.prod(s for s in shape if s != -1)
            shape[shape.index(-1)] = len(self.data) // known
        return Tensor(shape, self.data)

    def taken(self, shape, source):
        """The tensor of a shape whose element at an index is this one's at source(index)."""
        return Tensor(shape, [self.at(source(index)) for index in positions(shape)])

    def permute(self, order):
        order = [d % self.rank for d in order]
        back = [order.index(d) for d in range(self.rank)]
        return self.taken([self.shape[d] for d in order], lambda i: tuple(i[back[d]] for d in range(self.rank)))

    def transpose(self, a, b):
        order = list(range(self.rank))
        if order:
            order[a], order[b] = order[b], order[a]
        return self.permute(order)

    def expand(self, shape):
        """Broadcast to a shape: dimensions are aligned at the right, those of one element repeat."""
        shape = tuple(shape)
        lead = len(shape) - self.rank
        shape = tuple(self.shape[d - lead] if s == -1 else s for d, s in enumerate(shape))
        for own, wanted in zip(self.shape, shape[lead:]):
            if own not in (1, wanted):
                raise ValueError(f"shape {self.shape} does not expand to {shape}")
        return self.taken(shape, lambda i: tuple(0 if s == 1 else k for s, k in zip(self.shape, i[lead:])))

    def narrow(self, dim, start, length):
        dim %= self.rank
        shape = list(self.shape)
        shape[dim] = length
        return self.taken(shape, lambda i: i[:dim] + (i[dim] + start,) + i[dim + 1 :])

    def select(self, dim, index):
        dim %= self.rank
        index %= self.shape[dim]
        return self.taken(self.shape[:dim] + self.shape[dim + 1 :], lambda i: i[:dim] + (index,) + i[dim:])

    # ---- arithmetic

    def reduce(self, dims, keep, f):
        """f of the list of elements along some dimensions; no dimensions: all of them."""
        dims = sorted({d % self.rank for d in dims}) if dims else list(range(self.rank))
        kept = [d for d in range(self.rank) if d not in dims]
        groups = {}
        for index in positions(self.shape):
            groups.setdefault(tuple(index[d] for d in kept), []).append(self.at(index))
        shape = tuple(self.shape[d] for d in kept)
        data = [f(groups.get(index, [])) for index in positions(shape)]
        if keep:
            shape = tuple(1 if d in dims else s for d, s in enumerate(self.shape))
        return Tensor(shape, data)

    def sum(self, dims=(), keep=False):
        return self.reduce(dims, keep, math.fsum)


def broadcast_shapes(*shapes):
    rank = max(len(s) for s in shapes)
    result = []
    for d in range(rank):
        size = 1
        for shape in shapes:
            own = shape[d - rank + len(shape)] if d - rank + len(shape) >= 0 else 1
            if own != 1:
                if size not in (1, own):
                    raise ValueError(f"shapes {shapes} do not broadcast")
                size = own
        result.append(size)
    return tuple(result)


def zip_map(f, *tensors):
    """f elementwise, with broadcasting."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    spread = [t if t.shape == shape else t.expand(shape) for t in tensors]
    return Tensor(shape, [f(*elements) for elements in zip(*(t.data for t in spread))])


def plus(a, b):
    return zip_map(lambda x, y: x + y, a, b)


def minus(a, b):
    """The move from b to a: zero where both are the same, even the same infinity."""
    return zip_map(lambda x, y: 0.0 if x == y or (x != x and y != y) else x - y, a, b)


def times(a, b):
    return zip_map(lambda x, y: x * y, a, b)


def scaled(a, number):
    return a.map(lambda x: x * number)


def total(tensors, shape):
    """The sum of several tensors of one shape."""
    tensors = list(tensors)
    return Tensor(shape, [math.fsum(column) for column in zip(*(t.data for t in tensors))]) if tensors else Tensor.full(
        shape, 0.0
    )


def matmul(a, b):
    """A product as LibTorch's: vectors are rows on the left and columns on the right, leading dimensions broadcast."""
    left = a if a.rank > 1 else a.reshape((1,) + a.shape)
    right = b if b.rank > 1 else b.reshape(b.shape + (1,))
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    rows, inner = left.shape[-2:]
    columns = right.shape[-1]
    if right.shape[-2] != inner:
        raise ValueError(f"matrices of shapes {a.shape} and {b.shape}")
    left = left.expand(batch + (rows, inner))
    right = right.expand(batch + (inner, columns))
    data = []
    for index in positions(batch + (rows, columns)):
        lead, i, j = index[:-2], index[-2], index[-1]
        data.append(math.fsum(left.at(lead + (i, k)) * right.at(lead + (k, j)) for k in range(inner)))
    shape = batch + (() if a.rank == 1 else (rows,)) + (() if b.rank == 1 else (columns,))
    return Tensor(shape, data)


def cat(tensors, dim):
    rank = tensors[0].rank
    dim %= rank
    shape = list(tensors[0].shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    data = []
    for index in positions(shape):
        k = index[dim]
        for t in tensors:
            if k < t.shape[dim]:
                data.append(t.at(index[:dim] + (k,) + index[dim + 1 :]))
                break
            k -= t.shape[dim]
    return Tensor(shape, data)


def stack(tensors, dim):
    dim %= tensors[0].rank + 1
    lifted = [t.reshape(t.shape[:dim] + (1,) + t.shape[dim:]) for t in tensors]
    return cat(lifted, dim)

"""Views and rearrangements: elements move, nothing is computed. SPEC.md#views."""

from composition import apply, is_composition, map_linear, marks_of, pay, value_of
from arithmetic import shared_marks
from registry import operator
from tensor import Tensor, cat, positions, stack


def _moving(*names):
    """f(tensor, *arguments) on every row."""

    def register(f):
        operator(*names)(lambda policy, x, *a: map_linear(policy, x, lambda t: f(t, *a)))
        return f

    return register


_moving("aten::reshape", "aten::view")(lambda t, shape: t.reshape(shape))
_moving("aten::permute")(lambda t, dims: t.permute(dims))
_moving("aten::transpose.int")(lambda t, a, b: t.transpose(a, b))
_moving("aten::t")(lambda t: t.transpose(0, 1) if t.rank > 1 else t)
_moving("aten::expand")(lambda t, shape: t.expand(shape))
_moving("aten::clone", "aten::contiguous", "aten::detach", "aten::alias")(lambda t, *a: t)
_moving("aten::select.int")(lambda t, dim, index: t.select(dim, index))


@operator("aten::set_.source_Tensor")
def set_to(policy, x, source):
    """Moves x into the memory of the source, whose elements are not written."""
    return map_linear(policy, source, lambda t: t)


@_moving("aten::squeeze.dim")
def squeeze(t, dim):
    dim %= t.rank
    return t.reshape(t.shape[:dim] + t.shape[dim + 1 :]) if t.shape[dim] == 1 else t


@_moving("aten::unsqueeze")
def unsqueeze(t, dim):
    dim %= t.rank + 1
    return t.reshape(t.shape[:dim] + (1,) + t.shape[dim:])


@_moving("aten::flatten.using_ints")
def flatten(t, start=0, end=-1):
    start, end = start % t.rank, end % t.rank
    return t.reshape(t.shape[:start] + (-1,) + t.shape[end + 1 :])


@_moving("aten::narrow")
def narrow(t, dim, start, length):
    return t.narrow(dim, start % t.shape[dim % t.rank] if start < 0 else start, length)


@_moving("aten::slice.Tensor")
def slice_of(t, dim=0, start=None, end=None, step=1):
    dim %= t.rank
    kept = list(range(t.shape[dim]))[start:end:step]
    shape = t.shape[:dim] + (len(kept),) + t.shape[dim + 1 :]
    return t.taken(shape, lambda i: i[:dim] + (kept[i[dim]],) + i[dim + 1 :])


@_moving("aten::diagonal")
def diagonal(t, offset=0, dim1=0, dim2=1):
    """The diagonal of two dimensions becomes the last one."""
    dim1, dim2 = dim1 % t.rank, dim2 % t.rank
    pairs = [(i, i + offset) for i in range(t.shape[dim1]) if 0 <= i + offset < t.shape[dim2]]
    kept = [d for d in range(t.rank) if d not in (dim1, dim2)]
    shape = [t.shape[d] for d in kept] + [len(pairs)]

    def source(index):
        place = dict(zip(kept, index))
        place[dim1], place[dim2] = pairs[index[-1]]
        return tuple(place[d] for d in range(t.rank))

    return t.taken(shape, source)


@_moving("aten::flip")
def flip(t, dims):
    dims = [d % t.rank for d in dims]
    return t.taken(t.shape, lambda i: tuple(t.shape[d] - 1 - k if d in dims else k for d, k in enumerate(i)))


@_moving("aten::roll")
def roll(t, shifts, dims):
    dims = [d % t.rank for d in dims]

    def source(index):
        index = list(index)
        for shift, d in zip(shifts, dims):
            index[d] = (index[d] - shift) % t.shape[d]
        return tuple(index)

    return t.taken(t.shape, source)


@_moving("aten::repeat")
def repeat(t, repeats):
    lead = len(repeats) - t.rank
    own = t.reshape((1,) * lead + t.shape)
    shape = [r * s for r, s in zip(repeats, own.shape)]
    return own.taken(shape, lambda i: tuple(k % s for k, s in zip(i, own.shape)))


def _triangle(t, keep):
    return Tensor(t.shape, [x if keep(i[-2], i[-1]) else 0.0 for i, x in zip(positions(t.shape), t.data)])


_moving("aten::tril")(lambda t, k=0: _triangle(t, lambda row, column: column <= row + k))
_moving("aten::triu")(lambda t, k=0: _triangle(t, lambda row, column: column >= row + k))


@operator("aten::constant_pad_nd")
def pad(policy, x, pad, value=0):
    """Padding belongs to the reference."""

    def with_border(t, border):
        amounts = [(0, 0)] * (t.rank - len(pad) // 2) + [tuple(pad[2 * k : 2 * k + 2]) for k in range(len(pad) // 2)][::-1]
        shape = [s + a + b for s, (a, b) in zip(t.shape, amounts)]
        data = []
        for index in positions(shape):
            own = tuple(k - a for k, (a, _) in zip(index, amounts))
            inside = all(0 <= k < s for k, s in zip(own, t.shape))
            data.append(t.at(own) if inside else float(border))
        return Tensor(shape, data)

    result = apply(policy, [x], lambda t: with_border(t, value), lambda row: with_border(row, 0.0), marks_of(x))
    return pay(policy, result, with_border(Tensor.full(x.shape, 0.0), value))


def _join(policy, tensors, f):
    """Plain parts belong to the reference."""
    shapes = [t.shape for t in tensors]
    fill = lambda rows: [Tensor.full(s, 0.0) if r is None else r for s, r in zip(shapes, rows)]
    result = apply(policy, tensors, lambda *t: f(list(t)), lambda *rows: f(fill(rows)), shared_marks(*tensors))
    if is_composition(result):
        result = pay(policy, result, f([Tensor.full(t.shape, 0.0) if is_composition(t) else t for t in tensors]))
    return result


@operator("aten::cat")
def cat_of(policy, tensors, dim=0):
    return _join(policy, tensors, lambda t: cat(t, dim))


@operator("aten::stack")
def stack_of(policy, tensors, dim=0):
    return _join(policy, tensors, lambda t: stack(t, dim))


def _pieces(policy, x, dim, sizes):
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(map_linear(policy, x, lambda t, s=s, n=n: t.narrow(dim, s, n)) for s, n in zip(starts, sizes))


@operator("aten::split.Tensor")
def split(policy, x, size, dim=0):
    total = x.shape[dim % x.rank]
    return _pieces(policy, x, dim, [min(size, total - s) for s in range(0, total, size)])


@operator("aten::chunk")
def chunk(policy, x, chunks, dim=0):
    return split(policy, x, -(-x.shape[dim % x.rank] // chunks), dim)


@operator("aten::unbind.int")
def unbind(policy, x, dim=0):
    return tuple(map_linear(policy, x, lambda t, k=k: t.select(dim, k)) for k in range(x.shape[dim % x.rank]))


@operator("aten::pixel_shuffle")
def pixel_shuffle(policy, x, r):
    """[.., C r r, H, W] -> [.., C, H r, W r]"""

    def f(t):
        lead, (c, h, w) = t.shape[:-3], t.shape[-3:]
        own = t.reshape(lead + (c // (r * r), r, r, h, w))
        n = len(lead)
        order = list(range(n)) + [n, n + 3, n + 1, n + 4, n + 2]
        return own.permute(order).reshape(lead + (c // (r * r), h * r, w * r))

    return map_linear(policy, x, f)

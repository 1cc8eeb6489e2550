"""Reading and writing elements by plain indices. SPEC.md#indexing, #writes."""

import math

from arithmetic import as_tensor
from composition import apply, is_composition, map_linear, marks_of
from product import mean_partials
from registry import operator
from tensor import Tensor, flat_position, positions


@operator("aten::index_select")
def index_select(policy, x, dim, index):
    def f(t):
        d = dim % t.rank
        shape = t.shape[:d] + index.shape + t.shape[d + 1 :]
        return t.taken(shape, lambda i: i[:d] + (index.data[i[d]],) + i[d + 1 :])

    return map_linear(policy, x, f)


@operator("aten::gather", "aten::take_along_dim")
def gather(policy, x, *arguments):
    """gather(x, dim, index); take_along_dim(x, index, dim)."""
    index, dim = (arguments[1], arguments[0]) if isinstance(arguments[0], int) else arguments

    def f(t):
        d = dim % t.rank
        return t.taken(index.shape, lambda i: i[:d] + (index.at(i),) + i[d + 1 :])

    return map_linear(policy, x, f)


@operator("aten::index.Tensor")
def index_of(policy, x, indices):
    """Indices for the leading dimensions, of one shape."""

    def f(t):
        shape = indices[0].shape + t.shape[len(indices) :]
        rank = len(indices[0].shape)
        return t.taken(shape, lambda i: tuple(k.at(i[:rank]) % t.shape[d] for d, k in enumerate(indices)) + i[rank:])

    return map_linear(policy, x, f)


def _written(shape, targets, combine, own, source):
    """Elements of `source` written to `targets`, positions in a tensor of `shape`."""
    result = Tensor(shape, own.data)
    for target, value in zip(targets, source):
        at = flat_position(target, shape)
        result.data[at] = combine(result.data[at], value)
    return result


def _write(policy, x, source, targets, combine):
    """`targets`: for each element of the source where it goes. What is overwritten plays no part."""
    zero = lambda like: Tensor.full(like.shape, 0.0)
    f = lambda own, new: _written(x.shape, targets, combine, own, new.data)
    return apply(policy, [x, source], f,
                 lambda own, new: f(zero(x) if own is None else own, zero(source) if new is None else new))


REPLACE = lambda old, new: new
ADD = lambda old, new: old + new


def _along(x, dim, index):
    d = dim % x.rank
    return [i[:d] + (index.at(i),) + i[d + 1 :] for i in positions(index.shape)]


@operator("aten::scatter.src")
def scatter(policy, x, dim, index, source):
    return _write(policy, x, source, _along(x, dim, index), REPLACE)


@operator("aten::scatter_add")
def scatter_add(policy, x, dim, index, source):
    return _write(policy, x, source, _along(x, dim, index), ADD)


@operator("aten::index_add")
def index_add(policy, x, dim, index, source, alpha=1):
    d = dim % x.rank
    targets = [i[:d] + (index.data[i[d]],) + i[d + 1 :] for i in positions(source.shape)]
    return _write(policy, x, source, targets, lambda old, new: old + alpha * new)


@operator("aten::index_copy")
def index_copy(policy, x, dim, index, source):
    d = dim % x.rank
    targets = [i[:d] + (index.data[i[d]],) + i[d + 1 :] for i in positions(source.shape)]
    return _write(policy, x, source, targets, REPLACE)


@operator("aten::index_put")
def index_put(policy, x, indices, source, accumulate=False):
    """Indices of one shape for the leading dimensions; the source has their shape and what lies behind."""
    rank = len(indices[0].shape)
    targets = [tuple(k.at(i[:rank]) % x.shape[d] for d, k in enumerate(indices)) + i[rank:] for i in positions(source.shape)]
    return _write(policy, x, source, targets, ADD if accumulate else REPLACE)


@operator("aten::masked_scatter")
def masked_scatter(policy, x, mask, source):
    """The k-th element that the mask names gets the k-th of the source."""
    targets = [i for i, m in zip(positions(x.shape), mask.expand(x.shape).data) if m]
    flat = lambda t: Tensor((len(targets),), t.data[: len(targets)])
    source = map_linear(policy, source, flat) if is_composition(source) else flat(source)
    return _write(policy, x, source, targets, REPLACE)


@operator("aten::masked_select")
def masked_select(policy, x, mask):
    kept = [k for k, m in enumerate(mask.expand(x.shape).data) if m]
    return map_linear(policy, x, lambda t: Tensor((len(kept),), [t.data[k] for k in kept]))


@operator("aten::scatter_reduce.two")
def scatter_reduce(policy, x, dim, index, source, reduce, include_self=True):
    """Elements that meet in one place: their sum, mean, product or the largest; each a group of its own."""
    from selection import winner_shares

    targets = _along(x, dim, index)
    members = {}
    for k, target in enumerate(targets):
        members.setdefault(flat_position(target, x.shape), []).append(k)
    everything = math.prod(x.shape)
    groups = []
    for at in range(everything):
        met = [everything + k for k in members.get(at, [])]
        groups.append([at] + met if include_self or not met else met)
    weigh = {
        "sum": lambda v, b: [1.0] * len(v),
        "mean": lambda v, b: [1 / len(v)] * len(v),
        "prod": mean_partials,
        "amax": lambda v, b: winner_shares(policy.fast, 1)(v, b)[0],
        "amin": lambda v, b: winner_shares(policy.fast, -1)(v, b)[0],
    }[reduce]
    total = {"sum": math.fsum, "mean": lambda v: math.fsum(v) / len(v), "prod": math.prod, "amax": max, "amin": min}[reduce]
    own = lambda t: [t.at(i) for i in positions(index.shape)]
    joined = lambda a, s: list(a.data) + own(s)
    values = joined(*(getattr(t, "value", t) for t in (x, source)))
    references = joined(*(getattr(t, "reference", t) for t in (x, source)))
    table = [weigh([values[k] for k in g], [references[k] for k in g]) for g in groups]
    f = lambda a, s: Tensor(x.shape, [total([joined(a, s)[k] for k in g]) for g in groups])

    def forward(a, s):
        row = joined(Tensor.full(x.shape, 0.0) if a is None else a, Tensor.full(source.shape, 0.0) if s is None else s)
        return Tensor(x.shape, [math.fsum(w * row[k] for w, k in zip(ws, g)) for ws, g in zip(table, groups)])

    return apply(policy, [x, source], f, forward)

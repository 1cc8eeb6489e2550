"""Choices among elements: who wins on which part of the line, counted between all crossings. SPEC.md#selection."""

import math

from arithmetic import as_tensor, shared_marks
from composition import Composition, apply, is_composition, reference_of, sum_rows, value_of
from product import along, groups_along
from registry import operator
from softmax import over_dimension
from tensor import Tensor, broadcast_shapes, positions, times


def pieces(value, reference):
    """The line cut wherever two elements are equal: (length, elements at the middle)."""
    cuts = {0.0, 1.0}
    n = len(value)
    for i in range(n):
        for j in range(i):
            ahead = reference[i] - reference[j]
            rise = (value[j] - reference[j]) - (value[i] - reference[i])
            if math.isfinite(ahead) and math.isfinite(rise) and rise != 0 and 0 < ahead / rise < 1:
                cuts.add(ahead / rise)
    cuts = sorted(cuts)
    for start, end in zip(cuts, cuts[1:]):
        t = (start + end) / 2
        yield end - start, [b if x == b else b + t * (x - b) for x, b in zip(value, reference)]


def order(value, reference, at_middle):
    """Groups of elements that are one line, from the smallest at a point to the largest."""
    lines = {}
    for k in range(len(value)):
        lines.setdefault((value[k], reference[k]), []).append(k)
    return sorted(lines.values(), key=lambda members: at_middle[members[0]])


def rank_shares(fast):
    """[rank][element]: the part of the line for which an element is the rank-th smallest. Equal lines share."""

    def shares(value, reference):
        n = len(value)
        table = [[0.0] * n for _ in range(n)]
        if fast:
            for rank, k in enumerate(sorted(range(n), key=lambda k: value[k])):
                table[rank][k] = 1.0
            return table
        for length, middle in pieces(value, reference):
            rank = 0
            for members in order(value, reference, middle):
                for _ in members:
                    for k in members:
                        table[rank][k] += length / len(members)
                    rank += 1
        return table

    return shares


def winner_shares(fast, sign):
    """[element]: the part of the line for which it is the largest (sign 1) or smallest (-1)."""

    def shares(value, reference):
        value = [sign * v for v in value]
        reference = [sign * b for b in reference]
        n = len(value)
        if fast:
            first = max(range(n), key=lambda k: value[k])
            return [[float(k == first) for k in range(n)]]
        share = [0.0] * n
        for length, middle in pieces(value, reference):
            winners = order(value, reference, middle)[-1]
            for k in winners:
                share[k] += length / len(winners)
        return [share]

    return shares


def _reduced(shape, dims, keep):
    dims = sorted({d % len(shape) for d in dims}) if dims else list(range(len(shape)))
    kept = [d for d in range(len(shape)) if d not in dims]
    groups = {}
    for index in positions(shape):
        groups.setdefault(tuple(index[d] for d in kept), []).append(index)
    out = tuple(1 if d in dims else s for d, s in enumerate(shape) if keep or d in kept)
    return list(groups.values()), out


def extremum(policy, x, dims, keep, sign):
    groups, shape = _reduced(x.shape, dims, keep)
    best = (lambda v: [max(v)]) if sign > 0 else (lambda v: [min(v)])
    return along(policy, x, groups, shape, winner_shares(policy.fast, sign), best)


def positions_of_extremum(x, dim, keep, sign):
    groups, shape = _reduced(x.shape, [dim], keep)
    data = []
    for members in groups:
        own = [sign * value_of(x).at(i) for i in members]
        data.append(own.index(max(own)))
    return Tensor(shape, data)


for _name, _sign in (("max", 1), ("min", -1)):
    operator("aten::" + _name)(lambda policy, x, s=_sign: extremum(policy, x, [], False, s))
    operator(f"aten::{_name}.dim")(lambda policy, x, dim, keepdim=False, s=_sign: (
        extremum(policy, x, [dim], keepdim, s), positions_of_extremum(x, dim, keepdim, s)))
    operator(f"aten::a{_name}")(lambda policy, x, dim=(), keepdim=False, s=_sign: extremum(
        policy, x, [dim] if isinstance(dim, int) else list(dim), keepdim, s))


# ---- by rank


@operator("aten::sort")
def sort(policy, x, dim=-1, descending=False):
    def weights(value, reference):
        table = rank_shares(policy.fast)(value, reference)
        return table[::-1] if descending else table

    values = over_dimension(policy, x, dim, weights, lambda v: sorted(v, reverse=descending))
    own = dim % x.rank
    index = lambda v: sorted(range(len(v)), key=lambda k: v[k], reverse=descending)
    return values, over_dimension(policy, value_of(x), dim, None, index)


@operator("aten::topk")
def topk(policy, x, k, dim=-1, largest=True, sorted=True):
    values, index = sort(policy, x, dim, largest)
    cut = lambda t: t.narrow(dim, 0, k)
    from composition import map_linear

    return map_linear(policy, values, cut) if is_composition(values) else cut(values), cut(index)


@operator("aten::kthvalue")
def kthvalue(policy, x, k, dim=-1, keepdim=False):
    groups, shape = _reduced(x.shape, [dim], keepdim)
    weights = lambda v, b: [rank_shares(policy.fast)(v, b)[k - 1]]
    values = along(policy, x, groups, shape, weights, lambda v: [sorted(v)[k - 1]])
    index = Tensor(shape, [(lambda v: sorted(range(len(v)), key=lambda j: v[j])[k - 1])(
        [value_of(x).at(i) for i in members]) for members in groups])
    return values, index


@operator("aten::median")
def median(policy, x):
    """The lower one of two."""
    groups, shape = _reduced(x.shape, [], False)
    rank = (len(groups[0]) - 1) // 2
    weights = lambda v, b: [rank_shares(policy.fast)(v, b)[rank]]
    return along(policy, x, groups, shape, weights, lambda v: [sorted(v)[rank]])


@operator("aten::cummax", "aten::cummin")
def cumulative(policy, x, dim, sign=1):
    def weights(value, reference):
        n = len(value)
        return [winner_shares(policy.fast, sign)(value[: k + 1], reference[: k + 1])[0] + [0.0] * (n - k - 1)
                for k in range(n)]

    f = lambda v: [max(v[: k + 1]) for k in range(len(v))]
    where = lambda v: [max(j for j in range(k + 1) if v[j] == max(v[: k + 1])) for k in range(len(v))]
    return over_dimension(policy, x, dim, weights, f), over_dimension(policy, value_of(x), dim, None, where)


# ---- among operands, element by element


def choice(policy, operands, choose):
    """`choose(points)`: weights of the operands at one point; ties are shared."""
    operands = [as_tensor(x) for x in operands]
    operands = [x.anchored(policy) if is_composition(x) else x for x in operands]
    shape = broadcast_shapes(*(x.shape for x in operands))
    values = [value_of(x).expand(shape).data for x in operands]
    references = [reference_of(x).expand(shape).data for x in operands]
    shares = []
    for element in range(len(values[0])):
        value = [v[element] for v in values]
        reference = [b[element] for b in references]
        if policy.fast:
            shares.append(choose(value))
            continue
        mean = [0.0] * len(operands)
        for length, middle in pieces(value, reference):
            mean = [m + length * w for m, w in zip(mean, choose(middle))]
        shares.append(mean)
    weights = [Tensor(shape, [s[k] for s in shares]) for k in range(len(operands))]

    def f(*tensors):
        columns = [t.expand(shape).data for t in tensors]
        return Tensor(shape, [sum(w * p for w, p in zip(choose(list(points)), points) if w)
                              for points in zip(*columns)])

    def forward(*rows):
        return sum_rows([None if r is None else times(w, r) for w, r in zip(weights, rows)], shape)

    return apply(policy, operands, f, forward, shared_marks(*operands))


def _larger(sign):
    def choose(points):
        a, b = points
        return [0.5, 0.5] if a == b else [1.0, 0.0] if sign * a > sign * b else [0.0, 1.0]

    return choose


operator("aten::maximum", "aten::max.other", "aten::fmax")(lambda policy, a, b: choice(policy, [a, b], _larger(1)))
operator("aten::minimum", "aten::min.other", "aten::fmin")(lambda policy, a, b: choice(policy, [a, b], _larger(-1)))


@operator("aten::clamp.Tensor")
def clamp_to_tensors(policy, x, low, high):
    def choose(points):
        v, a, b = points
        return [0.0, 0.0, 1.0] if max(v, a) > b else [0.0, 1.0, 0.0] if v < a else [1.0, 0.0, 0.0]

    return choice(policy, [x, low, high], choose)

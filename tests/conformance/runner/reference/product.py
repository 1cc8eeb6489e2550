"""Matrix products and products of many factors. SPEC.md#products, #long-products."""

import math

from arithmetic import add, bilinear, element_sizes, shared_marks
from composition import apply, is_composition, map_linear, pay, value_of
from quadrature import integrate
from registry import operator
from tensor import Tensor, cat, matmul, plus, positions, scaled, stack, times


@operator("aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot")
def product(policy, a, b):
    return bilinear(policy, a, b, matmul, row_sizes)


def row_sizes(content, coefficient, leads_left):
    """The size of what each number of a coefficient multiplies in a product of matrices: of a row of a content on its right,
    of a column of one on its left."""
    squares = content.map(lambda x: x * x)
    if content.rank > 1:
        squares = squares.sum([content.rank - (1 if leads_left else 2)], True).transpose(-2, -1)
    elif not leads_left and coefficient.rank > 1:
        squares = squares.reshape((squares.shape[0], 1))  # for each row of the coefficient
    sizes = squares.map(math.sqrt)
    return sizes if coefficient.rank > 1 or content.rank == 1 else sizes.reshape((-1,))


@operator("aten::linear")
def linear(policy, x, weight, bias=None):
    """x W^T + bias. Every part in one operator, so that the constant is paid once."""
    flipped = map_linear(policy.inner(), weight, lambda t: t.transpose(0, 1)) if weight.rank == 2 else weight
    return affine_product(policy, bias, x, flipped, 1, 1)


@operator("aten::addmm", "aten::baddbmm", "aten::addmv")
def addmm(policy, addend, a, b, beta=1, alpha=1):
    return affine_product(policy, addend, a, b, beta, alpha)


def affine_product(policy, addend, a, b, beta, alpha):
    inner = policy if policy.bias == "residual" and not policy.overrides else policy.inner()
    result = bilinear(inner, a, b, lambda x, y: scaled(matmul(x, y), alpha), row_sizes)
    if addend is None or beta == 0:
        return result
    shape = result.shape
    spread = lambda t: scaled(t, beta).expand(shape)
    if not is_composition(result):
        return plus(result, spread(addend)) if not is_composition(addend) else add(inner, result, map_linear(inner, addend, spread))
    if is_composition(addend):
        return unmarked(add(inner, result, map_linear(inner, addend, spread)))
    return pay(policy, unmarked(add(inner, result, spread(addend))), spread(addend))


def unmarked(x):
    x.marks = frozenset()
    return x


@operator("aten::addr")
def addr(policy, addend, a, b, beta=1, alpha=1):
    column = lambda t: t.reshape(t.shape + (1,))
    outer = lambda x, y: scaled(times(column(x), y), alpha)
    inner = policy.inner()
    result = unmarked(bilinear(inner, a, b, outer)) if is_composition(a) or is_composition(b) else outer(a, b)
    return add(inner, result, map_linear(inner, addend, lambda t: scaled(t, beta)) if is_composition(addend) else scaled(addend, beta))


def unmarked_copy(x):
    if not is_composition(x):
        return x
    from composition import Composition

    return Composition(x.components, x.reference, x.leftover, frozenset(), x.value)


@operator("aten::outer")
def outer(policy, a, b):
    return bilinear(policy, map_linear(policy, a, lambda t: t.reshape(t.shape + (1,))) if is_composition(a)
                    else a.reshape(a.shape + (1,)), b, times, element_sizes)


@operator("aten::linalg_cross")
def cross(policy, a, b, dim=-1):
    def f(x, y):
        part = lambda t, k: t.select(dim, k)
        minus = lambda i, j: plus(times(part(x, i), part(y, j)), scaled(times(part(x, j), part(y, i)), -1))
        return stack([minus(1, 2), minus(2, 0), minus(0, 1)], dim % x.rank)

    return bilinear(policy, a, b, f)


# ---- many factors along a dimension


def mean_partials(value, reference):
    """For each factor, the mean over the line of the product of all others."""
    n = len(value)

    def others(t):
        point = [b + t * (x - b) for x, b in zip(value, reference)]
        return [math.prod(point[:j] + point[j + 1 :]) for j in range(n)]

    return integrate(others)


def groups_along(shape, dim):
    """Positions that differ along one dimension only, by the index of the result."""
    kept = [d for d in range(len(shape)) if d != dim]
    groups = {}
    for index in positions(shape):
        groups.setdefault(tuple(index[d] for d in kept), []).append(index)
    return groups


def along(policy, x, groups, out_shape, weights_of, f):
    """A result each of whose elements is a sum of weighted elements of one group. `weights_of(values, references)`: a
    list of weights for each result of the group; `f`: the operator on the values of a group."""
    results = lambda t: Tensor(out_shape, [y for members in groups for y in f([t.at(i) for i in members])])
    if not is_composition(x):
        return results(x)
    x = x.anchored(policy)
    table = [weights_of([x.value.at(i) for i in members], [x.reference.at(i) for i in members]) for members in groups]

    def forward(row):
        data = []
        for members, weights in zip(groups, table):
            own = [row.at(i) for i in members]
            data += [math.fsum(w * c for w, c in zip(line, own) if w != 0) for line in weights]
        return Tensor(out_shape, data)

    return apply(policy, [x], results, forward)


@operator("aten::prod", "aten::prod.dim_int")
def prod(policy, x, dim=None, keepdim=False):
    if dim is None:
        groups, shape = [list(positions(x.shape))], ()
    else:
        own = dim % x.rank
        table = groups_along(x.shape, own)
        groups = list(table.values())
        shape = tuple(1 if d == own else s for d, s in enumerate(x.shape) if keepdim or d != own)
    return along(policy, x, groups, shape, lambda v, b: [mean_partials(v, b)], lambda v: [math.prod(v)])


@operator("aten::cumprod")
def cumprod(policy, x, dim):
    """Element k is the product of elements 0..k."""
    own = dim % x.rank
    groups = list(groups_along(x.shape, own).values())
    n = x.shape[own]

    def weights(value, reference):
        return [mean_partials(value[: k + 1], reference[: k + 1]) + [0.0] * (n - k - 1) for k in range(n)]

    last = tuple(s for d, s in enumerate(x.shape) if d != own) + (n,)
    back = [d if d < own else (x.rank - 1 if d == own else d - 1) for d in range(x.rank)]
    result = along(policy, x, groups, last, weights, lambda v: [math.prod(v[: k + 1]) for k in range(n)])
    return map_linear(policy, result, lambda t: t.permute(back)) if is_composition(result) else result.permute(back)

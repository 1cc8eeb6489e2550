"""Sums, means, variances and norms. SPEC.md#reductions."""

import math

from activation import KINKED, SMOOTH
from arithmetic import div, mul, sub
from composition import apply, is_composition, map_linear
from elementwise import pointwise
from registry import OPERATORS, operator
from tensor import Tensor


def linear_reduction(policy, x, f):
    return map_linear(policy, x, f, keeps=False)


def count_of(shape, dims):
    dims = dims or range(len(shape))
    return math.prod(shape[d] for d in dims)


def _dims(dim):
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


@operator("aten::sum", "aten::sum.dim_IntList")
def sum_of(policy, x, dim=None, keepdim=False):
    return linear_reduction(policy, x, lambda t: t.sum(_dims(dim), keepdim) if t.rank else t)


@operator("aten::mean", "aten::mean.dim")
def mean(policy, x, dim=None, keepdim=False):
    dims = _dims(dim)
    return linear_reduction(policy, x, lambda t: t.sum(dims, keepdim).map(lambda v: v / count_of(t.shape, dims)))


@operator("aten::cumsum")
def cumsum(policy, x, dim):
    def f(t):
        d = dim % t.rank
        return Tensor(t.shape, [math.fsum(t.at(i[:d] + (k,) + i[d + 1 :]) for k in range(i[d] + 1))
                                for i in _positions(t.shape)])

    return linear_reduction(policy, x, f)


def _positions(shape):
    from tensor import positions

    return positions(shape)


def square(policy, x):
    return pointwise(policy, x, *SMOOTH["square"][:2])


def root(policy, x):
    return pointwise(policy, x, SMOOTH["sqrt"][0], SMOOTH["sqrt"][1], marks=frozenset({"normalizer"}))


def moments(policy, x, dim, correction, keepdim):
    """Written out: centre, square, sum, quotient."""
    dims = _dims(dim)
    centre = mean(policy, x, dims, True)
    squares = square(policy, sub(policy, x, centre))
    count = count_of(x.shape, dims) - correction
    return div(policy, sum_of(policy, squares, dims, keepdim), float(max(count, 0))), mean(policy, x, dims, keepdim)


@operator("aten::var.correction")
def var(policy, x, dim=None, correction=1, keepdim=False):
    return moments(policy, x, dim, correction, keepdim)[0]


@operator("aten::std.correction")
def std(policy, x, dim=None, correction=1, keepdim=False):
    return root(policy, var(policy, x, dim, correction, keepdim))


@operator("aten::var_mean.correction")
def var_mean(policy, x, dim=None, correction=1, keepdim=False):
    return moments(policy, x, dim, correction, keepdim)


@operator("aten::norm.ScalarOpt_dim", "aten::linalg_vector_norm")
def norm(policy, x, p=2, dim=None, keepdim=False):
    p = 2 if p is None else p
    if p == 2:
        return root(policy, sum_of(policy, square(policy, x), dim, keepdim))
    size = pointwise(policy, x, KINKED["abs"][0], KINKED["abs"][1], smooth=False)
    if p == 1:
        return sum_of(policy, size, dim, keepdim)
    if p == math.inf:
        return OPERATORS["aten::amax"](policy, size, _dims(dim), keepdim)
    power = OPERATORS["aten::pow.Tensor_Scalar"]
    return power(policy, sum_of(policy, power(policy, size, float(p)), dim, keepdim), 1 / p)

"""Functions of two tensors that both move: means of both partial derivatives. SPEC.md#elementwise-path."""

import math

from arithmetic import add, as_tensor, mul, sub
from composition import apply, is_composition, reference_of, sum_rows, value_of
from elementwise import pointwise, step
from normalization import rearranged
from quadrature import integrate
from reduction import root, square
from registry import call, operator
from tensor import Tensor, broadcast_shapes, times, zip_map


def two_sided(policy, a, b, f, partials):
    a, b = as_tensor(a), as_tensor(b)
    a, b = (x.anchored(policy) if is_composition(x) else x for x in (a, b))
    shape = broadcast_shapes(a.shape, b.shape)
    ends = [t.expand(shape).data for t in (value_of(a), reference_of(a), value_of(b), reference_of(b))]
    means = [integrate(lambda t: partials(p + t * (x - p), q + t * (y - q))) for x, p, y, q in zip(*ends)]
    weights = [Tensor(shape, [m[k] for m in means]) for k in range(2)]

    def forward(x, y):
        return sum_rows([None if r is None else times(w, r) for w, r in zip(weights, (x, y))], shape)

    return apply(policy, [a, b], lambda x, y: zip_map(f, x, y), forward)


@operator("aten::atan2")
def atan2(policy, a, b):
    return two_sided(policy, a, b, math.atan2, lambda y, x: [x / (x * x + y * y), -y / (x * x + y * y)])


@operator("aten::pow.Tensor_Tensor")
def power(policy, a, b):
    return two_sided(policy, a, b, math.pow, lambda x, p: [p * x ** (p - 1), x**p * math.log(x)])


@operator("aten::logaddexp")
def logaddexp(policy, a, b):
    f = lambda x, y: max(x, y) + math.log1p(math.exp(-abs(x - y)))
    share = lambda x, y: 1 / (1 + math.exp(y - x))
    return two_sided(policy, a, b, f, lambda x, y: [share(x, y), share(y, x)])


@operator("aten::xlogy.Tensor")
def xlogy(policy, x, y):
    return two_sided(policy, x, y, lambda p, q: p * math.log(q), lambda p, q: [math.log(q), p / q])


@operator("aten::hypot")
def hypot(policy, a, b):
    return root(policy, add(policy, square(policy, a), square(policy, b)))


@operator("aten::glu")
def glu(policy, x, dim=-1):
    half = x.shape[dim] // 2
    first, second = (rearranged(policy, x, lambda t, k=k: t.narrow(dim, k * half, half)) for k in (0, 1))
    return mul(policy, first, call(policy, "aten::sigmoid", second))


@operator("aten::prelu")
def prelu(policy, x, weight):
    """relu(x) + weight (x - relu(x)), a weight for each channel"""

    positive = call(policy, "aten::relu", x)
    meet = lambda t: t.reshape((-1,) + (1,) * (x.rank - 2))
    return add(policy, positive, mul(policy, rearranged(policy, weight, meet), sub(policy, x, positive)))


# ---- operators without a rule of their own: SPEC.md#missing-rule


@operator("aten::igamma")
def igamma(policy, a, x):
    """P(a, x) of a plain whole a: 1 - e^-x (1 + x + .. + x^(a-1) / (a-1)!), with the derivative e^-x x^(a-1) / (a-1)!."""
    order = int(a.data[0])
    f = lambda v: 1 - math.exp(-v) * sum(v**k / math.factorial(k) for k in range(order))
    df = lambda v: math.exp(-v) * v ** (order - 1) / math.factorial(order - 1)
    if policy.missing_rule == "absorb":
        return step(policy, x, f)
    return pointwise(policy.inner(), x, f, df)


@operator("aten::special_chebyshev_polynomial_t.n_scalar")
def chebyshev(policy, x, n):
    """2 x^2 - 1 for n = 2, of which LibTorch knows no derivative: all of it is leftover."""
    return step(policy, x, lambda v: 2 * v * v - 1)

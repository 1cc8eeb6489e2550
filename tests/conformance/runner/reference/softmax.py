"""Softmax and its kin: the mean of the derivative along the line, integrated. SPEC.md#softmax."""

import math

from composition import apply, is_composition
from product import along, groups_along
from quadrature import integrate
from registry import operator


def probabilities(scores):
    top = max(scores)
    if top == -math.inf:
        return [math.nan] * len(scores)
    weights = [math.exp(s - top) for s in scores]
    total = math.fsum(weights)
    return [w / total for w in weights]


def log_sum_exp(scores):
    top = max(scores)
    return top if math.isinf(top) else top + math.log(math.fsum(math.exp(s - top) for s in scores))


def point(value, reference, t):
    """On the line; equal infinities stay."""
    return [b if x == b else b + t * (x - b) for x, b in zip(value, reference)]


def mean_jacobian(value, reference):
    """Rows of the mean of diag p - p p^T."""
    n = len(value)

    def jacobian(t):
        p = probabilities(point(value, reference, t))
        return [(p[i] if i == j else 0.0) - p[i] * p[j] for i in range(n) for j in range(n)]

    flat = integrate(jacobian)
    return [flat[i * n : (i + 1) * n] for i in range(n)]


def mean_probabilities(value, reference):
    return integrate(lambda t: probabilities(point(value, reference, t)))


def over_dimension(policy, x, dim, weights, f, marks=frozenset()):
    """Results of the shape of x, group by group along a dimension."""
    from composition import Composition, map_linear

    own = dim % x.rank
    groups = list(groups_along(x.shape, own).values())
    n = x.shape[own]
    last = tuple(s for d, s in enumerate(x.shape) if d != own) + (n,)
    back = [d if d < own else (x.rank - 1 if d == own else d - 1) for d in range(x.rank)]
    result = along(policy, x, groups, last, weights, f)
    if not is_composition(result):
        return result.permute(back)
    result = map_linear(policy, result, lambda t: t.permute(back))
    result.marks = marks
    return result


@operator("aten::softmax.int", "aten::_softmax")
def softmax(policy, x, dim, dtype=None):
    return over_dimension(policy, x, dim, mean_jacobian, probabilities, frozenset({"attention"}))


@operator("aten::log_softmax.int", "aten::_log_softmax")
def log_softmax(policy, x, dim, dtype=None):
    def weights(value, reference):
        p = mean_probabilities(value, reference)
        n = len(p)
        return [[(i == j) - p[j] for j in range(n)] for i in range(n)]

    def f(scores):
        total = log_sum_exp(scores)
        return [s - total for s in scores]

    return over_dimension(policy, x, dim, weights, f)


@operator("aten::logsumexp")
def logsumexp(policy, x, dim, keepdim=False):
    own = (dim[0] if isinstance(dim, list) else dim) % x.rank
    groups = list(groups_along(x.shape, own).values())
    shape = tuple(1 if d == own else s for d, s in enumerate(x.shape) if keepdim or d != own)
    return along(policy, x, groups, shape, lambda v, b: [mean_probabilities(v, b)], lambda s: [log_sum_exp(s)])


@operator("aten::logcumsumexp")
def logcumsumexp(policy, x, dim):
    """Element k is the logsumexp of elements 0..k."""

    def weights(value, reference):
        n = len(value)
        return [mean_probabilities(value[: k + 1], reference[: k + 1]) + [0.0] * (n - k - 1) for k in range(n)]

    return over_dimension(policy, x, dim, weights, lambda s: [log_sum_exp(s[: k + 1]) for k in range(len(s))])

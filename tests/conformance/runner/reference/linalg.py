"""Solutions of equations: secants through the middle of both ends, written down for each equation. SPEC.md#linalg."""

import math

from composition import apply, is_composition, value_of
from registry import operator
from tensor import Tensor, matmul, plus, positions, scaled, times


def eye(n):
    return Tensor((n, n), [float(i == j) for i in range(n) for j in range(n)])


def inverse(a):
    """The inverse, by elimination with pivots."""
    n = a.shape[0]
    rows = [[a.at((i, j)) for j in range(n)] + [float(i == j) for j in range(n)] for i in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k])]
    return Tensor((n, n), [x for row in rows for x in row[n:]])


def determinant(a):
    """The determinant, by expansion: small matrices only."""
    n = a.shape[0]
    if n == 0:
        return 1.0
    total = 0.0
    for j in range(n):
        minor = Tensor((n - 1, n - 1), [a.at((i, k)) for i in range(1, n) for k in range(n) if k != j])
        total += (-1) ** j * a.at((0, j)) * determinant(minor)
    return total


@operator("aten::linalg_inv", "aten::inverse")
def inv(policy, a):
    """Half of V X W + W X V with V, W the inverses of value and reference, and a minus."""
    if not is_composition(a):
        return inverse(a)
    a = a.anchored(policy)
    v, w = inverse(a.value), inverse(a.reference)

    def forward(row):
        return scaled(plus(matmul(matmul(v, row), w), matmul(matmul(w, row), v)), -0.5)

    return apply(policy, [a], inverse, forward)


@operator("aten::linalg_det", "aten::det")
def det(policy, a):
    """A polynomial in t: its mean gradient, the cofactors, integrated."""
    from quadrature import integrate

    f = lambda t: Tensor.scalar(determinant(t))
    if not is_composition(a):
        return f(a)
    a = a.anchored(policy)
    n = a.shape[0]

    def cofactors(t):
        point = Tensor((n, n), [b + t * (x - b) for x, b in zip(a.value.data, a.reference.data)])
        result = []
        for i, j in positions((n, n)):
            minor = Tensor((n - 1, n - 1), [point.at((k, m)) for k in range(n) for m in range(n) if k != i and m != j])
            result.append((-1) ** (i + j) * determinant(minor))
        return result

    mean = Tensor((n, n), integrate(cofactors))
    return apply(policy, [a], f, lambda row: Tensor.scalar(math.fsum(times(mean, row).data)))


@operator("aten::trace")
def trace(policy, a):
    f = lambda t: Tensor.scalar(math.fsum(t.at((k, k)) for k in range(min(t.shape))))
    return apply(policy, [a], f, f)

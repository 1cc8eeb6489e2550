"""Integrals over 0..1 to the accuracy of a float64, by Clenshaw-Curtis in pieces. No table of nodes: the nodes are
cosines, the weights a sum of cosines, so that nothing here can be wrong in the way that a table in the library is."""

import functools
import math


@functools.lru_cache(maxsize=None)
def rule(n):
    """Nodes and weights of Clenshaw-Curtis with n + 1 points on 0..1; n is even."""
    nodes = []
    weights = []
    for k in range(n + 1):
        nodes.append((1 - math.cos(math.pi * k / n)) / 2)
        total = 1.0
        for j in range(1, n // 2 + 1):
            b = 1 if 2 * j == n else 2
            total -= b * math.cos(2 * j * k * math.pi / n) / (4 * j * j - 1)
        c = 1 if k in (0, n) else 2
        weights.append(c / n * total / 2)
    return nodes, weights


def _piece(f, start, end, n):
    """The integral over a piece, and the largest number that was met."""
    nodes, weights = rule(n)
    points = [f(start + (end - start) * t) for t in nodes]
    peak = max([abs(y) for point in points for y in point], default=0.0)
    return [(end - start) * math.fsum(w * y for w, y in zip(weights, column)) for column in zip(*points)], peak


def integrate(f):
    """The integral over 0..1 of f, which gives a list of numbers; exact to rounding, measured against the largest
    number on the line."""
    result = []
    pieces = [(0.0, 1.0)]
    peak = 0.0
    while pieces:
        start, end = pieces.pop()
        coarse, _ = _piece(f, start, end, 24)
        fine, own_peak = _piece(f, start, end, 48)
        peak = max(peak, own_peak)
        allowed = 2e-15 * peak * (end - start)
        if end - start < 2**-20 or all(abs(a - b) <= allowed for a, b in zip(coarse, fine)):
            result.append(fine)
        else:
            middle = (start + end) / 2
            pieces += [(start, middle), (middle, end)]
    return [math.fsum(column) for column in zip(*result)]

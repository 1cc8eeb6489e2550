"""Elementwise functions of one tensor under every choice of nonlinearity. SPEC.md#pointwise, #nonlinearity."""

import math

from composition import apply, finish, is_composition, quotient
from quadrature import integrate
from tensor import Tensor, times, total, zip_map


def finite(x):
    return not (math.isinf(x) or math.isnan(x))


def guarded(f):
    """f with LibTorch's answers where Python raises."""

    def call(x):
        try:
            return float(f(x))
        except OverflowError:
            return math.inf
        except ZeroDivisionError:
            return math.inf
        except ValueError:
            return math.nan

    return call


def secant(f, df, x, b, smooth):
    """(f(x) - f(b)) / (x - b). Where the ends nearly meet the quotient would lose its digits: there it is taken as what
    it is, the mean of the derivative. Functions with kinks have no derivative to integrate across one, but none is
    needed: their pieces are short formulas without cancellation."""
    if x == b:
        return df(x)
    near = abs(x - b) < 1e-3 * max(abs(x), abs(b), 1e-3)
    if near and (smooth or df(x) == df(b)):
        return integrate(lambda t: [df(b + t * (x - b))])[0]
    return (f(x) - f(b)) / (x - b)


# Machine epsilon of float64.
EPSILON = 2.0**-52


def pointwise(policy, operand, f, df, smooth=True, pole=None, marks=frozenset(), at_rest=0.0):
    """`pole`: where the function is infinite, inside its domain. `df` None: the function is constant but for steps,
    and has the slope `at_rest` where nothing moves."""
    steps = df is None
    f, df = guarded(f), guarded((lambda v: 0.0) if steps else df)
    value_map = lambda t: t.map(f)
    if not is_composition(operand):
        return value_map(operand)
    operand = operand.anchored(policy)
    choice = policy.nonlinearity
    along = choice in ("path", "abs_affine", "hybrid_affine")
    slopes, references = [], []
    for x, b in zip(operand.value.data, operand.reference.data):
        fx, fb = f(x), f(b)
        broken = finite(fx) and (not finite(fb) or (pole is not None and (x - pole) * (b - pole) < 0))
        if broken:
            slope = quotient(fx, x) if choice == "scaling" else 0.0 if choice == "none" else df(x)
            slope = slope if finite(slope) else 0.0
            fb = fx - slope * (x - b)
        elif along:
            rests = steps and abs(x - b) <= 4 * EPSILON * max(abs(x), abs(b))
            slope = at_rest if rests else quotient(fx - fb, x - b) if steps else secant(f, df, x, b, smooth)
        elif choice == "scaling":
            slope = quotient(fx, x)
        elif choice == "gradient":
            slope = df(x)
        else:
            slope = 0.0
        slopes.append(slope if finite(slope) else 0.0)
        references.append(fb)
    slope = Tensor(operand.shape, slopes)
    reference = Tensor(operand.shape, references)
    moved = times(slope, operand.move)
    if choice in ("abs_affine", "hybrid_affine"):
        rows = spread(policy, operand.rows, slope, operand.move)
    else:
        rows = [times(slope, row) for row in operand.rows]
    return finish(policy, value_map(operand.value), reference, rows, moved, marks)


def spread(policy, rows, slope, move):
    """abs_affine and hybrid_affine: every row, the leftover's too, by its magnitude."""
    magnitude = total([r.map(abs) for r in rows], rows[0].shape)
    threshold = math.inf if policy.nonlinearity == "abs_affine" else policy.threshold
    if policy.nonlinearity == "hybrid_affine" and threshold == 0:
        return [times(slope, r) for r in rows]

    def share(c, s, m, a):
        if policy.nonlinearity == "abs_affine" or abs(m) < threshold * a:
            return abs(c) * quotient(m * s, a)
        return c * s

    return [zip_map(share, r, slope, move, magnitude) for r in rows]


def step(policy, operand, f, marks=frozenset()):
    """Constant but for steps: nothing passes. SPEC.md#opaque."""
    if not is_composition(operand):
        return operand.map(f)
    zero = lambda row: Tensor.full(operand.shape, 0.0)
    return apply(policy, [operand], lambda t: t.map(f), zero, marks)

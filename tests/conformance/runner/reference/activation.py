"""Elementwise functions of one tensor, with their derivatives written by hand. SPEC.md#pointwise."""

import math

from composition import apply, is_composition, marks_of, value_of
from elementwise import pointwise
from registry import operator
from tensor import times

GATE = frozenset({"gate"})
ACTIVATION = frozenset({"activation"})
NORMALIZER = frozenset({"normalizer"})
NONE = frozenset()
SQRT2 = math.sqrt(2)


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def d_sigmoid(x):
    return sigmoid(x) * sigmoid(-x)


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def phi(x):
    """The normal distribution function."""
    return math.erfc(-x / SQRT2) / 2


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu(x):
    return x * phi(x)


def d_gelu(x):
    return phi(x) + x * density(x)


K = math.sqrt(2 / math.pi)


def gelu_tanh(x):
    return x / 2 * (1 + math.tanh(K * (x + 0.044715 * x**3)))


def d_gelu_tanh(x):
    t = math.tanh(K * (x + 0.044715 * x**3))
    return (1 + t) / 2 + x / 2 * (1 - t * t) * K * (1 + 3 * 0.044715 * x * x)


def d_tanh(x):
    return 1 / math.cosh(x) ** 2 if abs(x) < 300 else 0.0


def mish(x):
    return x * math.tanh(softplus(x))


def d_mish(x):
    return math.tanh(softplus(x)) + x * d_tanh(softplus(x)) * sigmoid(x)


def sign(x):
    return (x > 0) - (x < 0)


SMOOTH = {
    # name: f, derivative, marks
    "tanh": (math.tanh, d_tanh, NONE),
    "sigmoid": (sigmoid, d_sigmoid, GATE),
    "mish": (mish, d_mish, ACTIVATION),
    "log_sigmoid": (lambda x: -softplus(-x), lambda x: sigmoid(-x), NONE),
    "exp": (math.exp, math.exp, NONE),
    "expm1": (math.expm1, math.exp, NONE),
    "erf": (math.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x), NONE),
    "erfc": (math.erfc, lambda x: -2 / math.sqrt(math.pi) * math.exp(-x * x), NONE),
    "sin": (math.sin, math.cos, NONE),
    "cos": (math.cos, lambda x: -math.sin(x), NONE),
    "tan": (math.tan, lambda x: 1 / math.cos(x) ** 2, NONE),
    "asin": (math.asin, lambda x: 1 / math.sqrt(1 - x * x), NONE),
    "acos": (math.acos, lambda x: -1 / math.sqrt(1 - x * x), NONE),
    "atan": (math.atan, lambda x: 1 / (1 + x * x), NONE),
    "sinh": (math.sinh, math.cosh, NONE),
    "cosh": (math.cosh, math.sinh, NONE),
    "asinh": (math.asinh, lambda x: 1 / math.sqrt(1 + x * x), NONE),
    "acosh": (math.acosh, lambda x: 1 / math.sqrt(x * x - 1), NONE),
    "atanh": (math.atanh, lambda x: 1 / (1 - x * x), NONE),
    "exp2": (lambda x: 2.0**x, lambda x: math.log(2) * 2.0**x, NONE),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x), NORMALIZER),
    "rsqrt": (lambda x: 1 / math.sqrt(x), lambda x: -0.5 * x**-1.5, NORMALIZER),
    "log": (lambda x: -math.inf if x == 0 else math.log(x), lambda x: 1 / x, NONE),
    "log2": (lambda x: -math.inf if x == 0 else math.log2(x), lambda x: 1 / (x * math.log(2)), NONE),
    "log10": (lambda x: -math.inf if x == 0 else math.log10(x), lambda x: 1 / (x * math.log(10)), NONE),
    "log1p": (lambda x: -math.inf if x == -1 else math.log1p(x), lambda x: 1 / (1 + x), NONE),
    "square": (lambda x: x * x, lambda x: 2 * x, NONE),
    "special_entr": (lambda x: 0.0 if x == 0 else -x * math.log(x), lambda x: -math.log(x) - 1, NONE),
    "special_ndtr": (phi, density, NONE),
}

KINKED = {
    "relu": (lambda x: max(x, 0.0), lambda x: float(x > 0), NONE),
    "relu6": (lambda x: min(max(x, 0.0), 6.0), lambda x: float(0 < x < 6), NONE),
    "abs": (abs, sign, NONE),
    "hardsigmoid": (lambda x: min(max(x + 3, 0.0), 6.0) / 6, lambda x: float(-3 < x < 3) / 6, GATE),
    "selu": (
        lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
        lambda x: 1.0507009873554805 * (1 if x > 0 else 1.6732632423543772 * math.exp(x)),
        NONE,
    ),
}


def _register(names, smooth):
    for name, (f, df, marks) in names.items():
        operator("aten::" + name)(
            lambda policy, x, f=f, df=df, marks=marks: pointwise(policy, x, f, df, smooth=smooth, marks=marks)
        )


_register(SMOOTH, True)
_register(KINKED, False)


def _gated(policy, x, f, df, gate, smooth):
    """x times a gate of itself: with frozen gates only the factor x moves."""
    if is_composition(x) and "gate" in policy.freeze:
        factor = value_of(x).map(gate)
        function = lambda t: t.map(f)
        return apply(policy, [x], function, lambda row: times(factor, row), ACTIVATION)
    return pointwise(policy, x, f, df, smooth=smooth, marks=ACTIVATION)


@operator("aten::silu")
def silu(policy, x):
    return _gated(policy, x, lambda v: v * sigmoid(v), lambda v: sigmoid(v) + v * d_sigmoid(v), sigmoid, True)


@operator("aten::hardswish")
def hardswish(policy, x):
    gate = KINKED["hardsigmoid"][0]
    slope = lambda v: 0.0 if v <= -3 else 1.0 if v >= 3 else v / 3 + 0.5
    return _gated(policy, x, lambda v: v * gate(v), slope, gate, False)


@operator("aten::gelu")
def gelu_of(policy, x, approximate="none"):
    f, df = (gelu_tanh, d_gelu_tanh) if approximate == "tanh" else (gelu, d_gelu)
    return pointwise(policy, x, f, df, marks=ACTIVATION)


@operator("aten::softplus")
def softplus_of(policy, x, beta=1, threshold=20):
    """Linear where beta x is above the threshold."""
    f = lambda v: v if v * beta > threshold else softplus(v * beta) / beta
    df = lambda v: 1.0 if v * beta > threshold else sigmoid(v * beta)
    return pointwise(policy, x, f, df, smooth=False)


@operator("aten::elu")
def elu(policy, x, alpha=1, scale=1, input_scale=1):
    f = lambda v: scale * (v if v > 0 else alpha * math.expm1(v * input_scale))
    df = lambda v: scale * (1.0 if v > 0 else alpha * input_scale * math.exp(v * input_scale))
    return pointwise(policy, x, f, df, smooth=False)


@operator("aten::celu")
def celu(policy, x, alpha=1.0):
    return elu(policy, x, alpha, 1, 1 / alpha)


@operator("aten::leaky_relu")
def leaky_relu(policy, x, negative_slope=0.01):
    return pointwise(policy, x, lambda v: v if v > 0 else v * negative_slope,
                     lambda v: 1.0 if v > 0 else negative_slope, smooth=False)


@operator("aten::hardtanh")
def hardtanh(policy, x, min_val=-1, max_val=1):
    return pointwise(policy, x, lambda v: min(max(v, min_val), max_val), lambda v: float(min_val < v < max_val),
                     smooth=False)


@operator("aten::threshold")
def threshold_of(policy, x, threshold, value):
    return pointwise(policy, x, lambda v: v if v > threshold else float(value), lambda v: float(v > threshold),
                     smooth=False)


@operator("aten::softshrink")
def softshrink(policy, x, lambd=0.5):
    return pointwise(policy, x, lambda v: sign(v) * max(abs(v) - lambd, 0.0), lambda v: float(abs(v) > lambd),
                     smooth=False)


@operator("aten::hardshrink")
def hardshrink(policy, x, lambd=0.5):
    return pointwise(policy, x, lambda v: v if abs(v) > lambd else 0.0, lambda v: float(abs(v) > lambd), smooth=False)


@operator("aten::clamp")
def clamp(policy, x, min=None, max=None):
    low = -math.inf if min is None else min
    high = math.inf if max is None else max
    # At a bound LibTorch takes the derivative of the inside.
    return pointwise(policy, x, lambda v: low if v < low else high if v > high else v,
                     lambda v: float(low <= v <= high), smooth=False, marks=marks_if(x))


def marks_if(x):
    return x.marks if is_composition(x) else NONE


@operator("aten::clamp_min")
def clamp_min(policy, x, min):
    return clamp(policy, x, min, None)


@operator("aten::clamp_max")
def clamp_max(policy, x, max):
    return pointwise(policy, x, lambda v: v if v <= max else float(max), lambda v: float(v <= max), smooth=False)


@operator("aten::reciprocal")
def reciprocal(policy, x):
    return pointwise(policy, x, lambda v: 1 / v, lambda v: -1 / (v * v), pole=0.0,
                     marks=frozenset({"denominator"}) | marks_if(x))


@operator("aten::pow.Tensor_Scalar")
def power(policy, x, exponent):
    f = lambda v: float(v**exponent) if not isinstance(v**exponent, complex) else math.nan
    df = lambda v: float(exponent * v ** (exponent - 1)) if exponent != 0 else 0.0
    pole = 0.0 if exponent < 0 else None
    marks = NORMALIZER if exponent in (0.5, -0.5) else NONE
    return pointwise(policy, x, f, df, pole=pole, marks=marks)


@operator("aten::logit")
def logit(policy, x, eps=None):
    return pointwise(policy, x, lambda v: math.log(v / (1 - v)), lambda v: 1 / (v * (1 - v)))


# ---- steps: SPEC.md#equal-ends, and what has steps among others: SPEC.md#opaque


def _half_to_even(x):
    return float(round(x))


for _name, _f in {"round": _half_to_even, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
                  "sign": sign, "sgn": sign}.items():
    _rest = 0.0 if _f is sign else 1.0
    operator("aten::" + _name)(lambda policy, x, f=_f, rest=_rest: pointwise(
        policy, x, lambda v: float(f(v)), None, at_rest=rest))


@operator("aten::frac")
def frac(policy, x):
    """A step passes nothing, what lies between steps passes as it is."""
    return apply(policy, [x], lambda t: t.map(lambda v: v - math.trunc(v)), lambda row: row)

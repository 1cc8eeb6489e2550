"""Normalization layers, written out: centre, square, mean, rsqrt, product. The library has one closed form for all of
it; here every step goes by its own path rule, and the results have to be the same. SPEC.md#normalization."""

import math

from activation import SMOOTH
from arithmetic import add, bilinear, div, mul, sub
from composition import Composition, is_composition, map_linear, pay, value_of
from elementwise import pointwise
from product import unmarked_copy
from reduction import mean, square
from registry import operator
from tensor import Tensor, plus, times


def inverse_deviation(policy, variance, eps):
    return pointwise(policy, add(policy, variance, eps), *SMOOTH["rsqrt"][:2], marks=frozenset({"normalizer"}))


def normalized(policy, groups, eps):
    """Groups [.., size] by their own mean and deviation; a frozen normalizer is one factor that does not move."""
    centred = sub(policy, groups, mean(policy, groups, [-1], True))
    inverse = inverse_deviation(policy, mean(policy, square(policy, unmarked_copy(centred)), [-1], True), eps)
    return bilinear(policy, unmarked_copy(centred), inverse, times)


def rearranged(policy, x, f):
    return map_linear(policy, x, f) if is_composition(x) else f(x)


def scale_and_shift(policy, inner, x, weight, bias, shape):
    """weight x + bias, both of a shape that broadcasts."""
    meet = lambda t: t.reshape(shape)
    if weight is not None:
        x = bilinear(inner, unmarked_copy(x), rearranged(inner, unmarked_copy(weight), meet), times)
    if bias is not None:
        if is_composition(bias):
            return add(inner, x, rearranged(inner, bias, meet))
        return pay(policy, add(inner, x, meet(bias)), meet(bias))
    return x


@operator("aten::layer_norm")
def layer_norm(policy, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    inner = policy.inner()
    size = math.prod(normalized_shape)
    flat = rearranged(inner, x, lambda t: t.reshape((-1, size)))
    done = rearranged(inner, normalized(inner, flat, eps), lambda t: t.reshape(x.shape))
    moving = is_composition(weight) or is_composition(bias)
    outer = inner if moving else policy
    return unmarked_copy(scale_and_shift(outer, inner, done, weight, bias, tuple(normalized_shape)))


@operator("aten::native_layer_norm")
def native_layer_norm(policy, x, normalized_shape, weight, bias, eps):
    """Layer normalization, with the mean and the inverse deviation of each group."""
    inner = policy.inner()
    size = math.prod(normalized_shape)
    lead = x.shape[: x.rank - len(normalized_shape)]
    flat = rearranged(inner, x, lambda t: t.reshape((-1, size)))
    centre = mean(inner, flat, [-1], True)
    inverse = inverse_deviation(inner, mean(inner, square(inner, sub(inner, flat, centre)), [-1], True), eps)
    shape = lead + (1,) * len(normalized_shape)
    statistics = [rearranged(inner, t, lambda t: t.reshape(shape)) for t in (centre, inverse)]
    if "normalizer" in policy.freeze and is_composition(statistics[1]):
        own = statistics[1]
        zero = Tensor.full(shape, 0.0)
        moved = Tensor(shape, [x - b for x, b in zip(own.value.data, own.reference.data)])
        if policy.anchor == "residual":
            statistics[1] = Composition([zero] * own.numc, plus(own.reference, moved), zero, value=own.value)
        else:
            statistics[1] = Composition([zero] * own.numc, own.reference, moved, value=own.value)
    return (layer_norm(policy, x, normalized_shape, weight, bias, eps), *map(unmarked_copy, statistics))


@operator("aten::group_norm")
def group_norm(policy, x, num_groups, weight=None, bias=None, eps=1e-5):
    inner = policy.inner()
    flat = rearranged(inner, x, lambda t: t.reshape((x.shape[0] * num_groups, -1)))
    done = rearranged(inner, normalized(inner, flat, eps), lambda t: t.reshape(x.shape))
    shape = (x.shape[1],) + (1,) * (x.rank - 2)
    outer = inner if is_composition(weight) or is_composition(bias) else policy
    return unmarked_copy(scale_and_shift(outer, inner, done, weight, bias, shape))


@operator("aten::batch_norm")
def batch_norm(policy, x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    inner = policy.inner()
    shape = (x.shape[1],) + (1,) * (x.rank - 2)
    if training or running_mean is None:
        order = [1, 0] + list(range(2, x.rank))
        moved = tuple(x.shape[d] for d in order)
        flat = rearranged(inner, x, lambda t: t.permute(order).reshape((x.shape[1], -1)))
        done = rearranged(inner, normalized(inner, flat, eps), lambda t: t.reshape(moved).permute(order))
        return unmarked_copy(scale_and_shift(inner, inner, done, weight, bias, shape))
    factor = Tensor(running_var.shape, [1 / math.sqrt(v + eps) for v in running_var.data])
    if weight is not None:
        factor = times(factor, weight)
    factor = factor.reshape(shape)
    shift = times(running_mean.reshape(shape), factor).map(lambda v: -v)
    if bias is not None:
        shift = plus(shift, bias.reshape(shape))
    scaled = rearranged(inner, x, lambda t: times(t, factor))
    return pay(policy, unmarked_copy(add(inner, scaled, shift)), shift)


@operator("aten::instance_norm")
def instance_norm(policy, x, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False):
    """Not fused: every step is an operator of its own, to which the whole policy applies."""
    flat = rearranged(policy, x, lambda t: t.reshape((x.shape[0] * x.shape[1], -1)))
    done = rearranged(policy, normalized(policy, flat, eps), lambda t: t.reshape(x.shape))
    meet = lambda t: t.reshape((x.shape[1],) + (1,) * (x.rank - 2))
    if weight is not None:
        done = mul(policy, done, meet(weight))
    return add(policy, done, meet(bias)) if bias is not None else done


@operator("aten::cosine_similarity")
def cosine_similarity(policy, a, b, dim=1, eps=1e-8):
    from activation import clamp_min
    from reduction import root, sum_of

    def unit(x):
        size = clamp_min(policy, root(policy, sum_of(policy, square(policy, x), [dim], True)), eps)
        return div(policy, x, size)

    return sum_of(policy, mul(policy, unit(a), unit(b)), [dim], False)

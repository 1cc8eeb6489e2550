"""Convolutions: a product of image and kernel, and a constant. SPEC.md#convolution."""

import math

from arithmetic import add, bilinear
from composition import is_composition, map_linear, pay
from normalization import rearranged
from product import unmarked, unmarked_copy
from registry import operator
from tensor import Tensor, positions


def correlate(x, w, stride, padding, dilation, groups):
    """Image [N, C, *S], kernel [O, C / groups, *K]."""
    spatial = x.rank - 2
    out = [(x.shape[2 + d] + 2 * padding[d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(spatial)]
    inner = x.shape[1] // groups
    per_group = w.shape[0] // groups
    data = []
    for n, o, *at in positions([x.shape[0], w.shape[0]] + out):
        terms = []
        for c, *k in positions(w.shape[1:]):
            where = [at[d] * stride[d] - padding[d] + k[d] * dilation[d] for d in range(spatial)]
            if all(0 <= p < x.shape[2 + d] for d, p in enumerate(where)):
                terms.append(x.at((n, o // per_group * inner + c, *where)) * w.at((o, c, *k)))
        data.append(math.fsum(terms))
    return Tensor([x.shape[0], w.shape[0]] + out, data)


def spread_transposed(x, w, stride, padding, output_padding, dilation, groups):
    """The transposed one: kernel [C, O / groups, *K]."""
    spatial = x.rank - 2
    out = [(x.shape[2 + d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (w.shape[2 + d] - 1) + output_padding[d] + 1
           for d in range(spatial)]
    channels = w.shape[1] * groups
    inner = x.shape[1] // groups
    result = Tensor.full([x.shape[0], channels] + out, 0.0)
    from tensor import flat_position

    for n, c, *at in positions(x.shape):
        for o, *k in positions(w.shape[1:]):
            where = [at[d] * stride[d] - padding[d] + k[d] * dilation[d] for d in range(spatial)]
            if all(0 <= p < out[d] for d, p in enumerate(where)):
                target = (n, c // inner * w.shape[1] + o, *where)
                result.data[flat_position(target, result.shape)] += x.at((n, c, *at)) * w.at((c, o, *k))
    return result


def _list(value, count):
    value = [value] if isinstance(value, int) else list(value)
    return value * count if len(value) == 1 else value


def convolve(policy, x, weight, bias, f):
    inner = policy.inner()
    result = unmarked(bilinear(inner, x, weight, f)) if is_composition(x) or is_composition(weight) else f(x, weight)
    if bias is None:
        return result
    shape = (bias.shape[0],) + (1,) * (result.rank - 2)
    spread = lambda t: t.reshape(shape)
    if is_composition(bias):
        return add(inner, result, rearranged(inner, unmarked_copy(bias), spread))
    return pay(policy, add(inner, result, spread(bias)), spread(bias))


@operator("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(policy, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    d = x.rank - 2
    f = lambda a, w: correlate(a, w, _list(stride, d), _list(padding, d), _list(dilation, d), groups)
    return convolve(policy, x, weight, bias, f)


@operator("aten::conv_transpose1d", "aten::conv_transpose2d.input")
def conv_transpose(policy, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    d = x.rank - 2
    f = lambda a, w: spread_transposed(a, w, _list(stride, d), _list(padding, d), _list(output_padding, d),
                                       _list(dilation, d), groups)
    return convolve(policy, x, weight, bias, f)

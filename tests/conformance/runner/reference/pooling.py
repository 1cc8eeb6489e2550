"""Pooling: averages are linear, maxima select. SPEC.md#pooling."""

import itertools
import math

from composition import map_linear, value_of
from product import along
from registry import operator
from selection import winner_shares
from tensor import Tensor, positions


def _spread(value, count, otherwise=None):
    if value is None or value == []:
        value = otherwise
    value = [value] if isinstance(value, int) else list(value)
    return value * count if len(value) == 1 else value


def windows(shape, spatial, size, stride, padding, dilation, ceil_mode):
    """The positions of each output's window that are inside the input, and the sizes of the output."""
    lead, sizes = shape[: len(shape) - spatial], shape[len(shape) - spatial :]
    axes, out = [], []
    for d in range(spatial):
        span = sizes[d] + 2 * padding[d] - dilation[d] * (size[d] - 1) - 1
        count = (math.ceil if ceil_mode else math.floor)(span / stride[d]) + 1
        if ceil_mode and (count - 1) * stride[d] >= sizes[d] + padding[d]:
            count -= 1  # the last window has to begin inside
        starts = [o * stride[d] - padding[d] for o in range(count)]
        axes.append([[s + k * dilation[d] for k in range(size[d]) if 0 <= s + k * dilation[d] < sizes[d]] for s in starts])
        out.append(count)
    groups = [
        [index + inner for inner in itertools.product(*(axes[d][o[d]] for d in range(spatial)))]
        for index in positions(lead)
        for o in positions(out)
    ]
    return groups, tuple(lead) + tuple(out)


def max_pool(policy, x, spatial, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    size = _spread(kernel_size, spatial)
    groups, shape = windows(x.shape, spatial, size, _spread(stride, spatial, size), _spread(padding, spatial, 0),
                            _spread(dilation, spatial, 1), ceil_mode)
    return along(policy, x, groups, shape, winner_shares(policy.fast, 1), lambda v: [max(v)])


operator("aten::max_pool1d")(lambda policy, x, *a: max_pool(policy, x, 1, *a))
operator("aten::max_pool2d")(lambda policy, x, *a: max_pool(policy, x, 2, *a))
operator("aten::max_pool3d")(lambda policy, x, *a: max_pool(policy, x, 3, *a))


def adaptive_axis(size, count):
    """Output o covers floor(o size / count) .. ceil((o + 1) size / count)."""
    return [list(range(o * size // count, -(-(o + 1) * size // count))) for o in range(count)]


def adaptive_groups(shape, out):
    spatial = len(out)
    lead, sizes = shape[: len(shape) - spatial], shape[len(shape) - spatial :]
    axes = [adaptive_axis(s, o) for s, o in zip(sizes, out)]
    groups = [
        [index + inner for inner in itertools.product(*(axes[d][o[d]] for d in range(spatial)))]
        for index in positions(lead)
        for o in positions(out)
    ]
    return groups, tuple(lead) + tuple(out)


@operator("aten::adaptive_max_pool2d")
def adaptive_max_pool(policy, x, output_size):
    groups, shape = adaptive_groups(x.shape, output_size)
    values = along(policy, x, groups, shape, winner_shares(policy.fast, 1), lambda v: [max(v)])
    plain = value_of(x)
    plane = x.shape[-len(output_size) :]
    index = []
    for members in groups:
        best = max(members, key=plain.at)
        flat = 0
        for size, k in zip(plane, best[-len(plane) :]):
            flat = flat * size + k
        index.append(flat)
    return values, Tensor(shape, index)


def _means(groups, shape, counts=None):
    def f(t):
        return Tensor(shape, [math.fsum(t.at(i) for i in members) / (counts[k] if counts else len(members))
                              for k, members in enumerate(groups)])

    return f


@operator("aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d")
def adaptive_avg_pool(policy, x, output_size):
    return map_linear(policy, x, _means(*adaptive_groups(x.shape, output_size)))


@operator("aten::avg_pool1d", "aten::avg_pool2d")
def avg_pool(policy, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    spatial = len(kernel_size)
    size = _spread(kernel_size, spatial)
    groups, shape = windows(x.shape, spatial, size, _spread(stride, spatial, size), _spread(padding, spatial, 0),
                            [1] * spatial, ceil_mode)
    counts = [math.prod(size)] * len(groups) if count_include_pad else None
    return map_linear(policy, x, _means(groups, shape, counts))

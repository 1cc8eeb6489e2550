"""Tables read by plain ids. SPEC.md#embedding."""

import math

from composition import map_linear
from registry import operator
from tensor import Tensor, positions


@operator("aten::embedding")
def embedding(policy, table, ids, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    rank = ids.rank
    return map_linear(policy, table, lambda t: t.taken(ids.shape + t.shape[1:], lambda i: (ids.at(i[:rank]), i[-1])),
                      keeps=False)


@operator("aten::embedding_bag")
def embedding_bag(policy, table, ids, offsets, scale_grad_by_freq=False, mode=0, sparse=False, weights=None,
                  include_last_offset=False):
    """Sums (mode 0) or means (mode 1) of the vectors between two offsets."""
    ends = offsets.data[1:] + [len(ids.data)]
    bags = [ids.data[a:b] for a, b in zip(offsets.data, ends)]

    def f(t):
        width = t.shape[1]
        data = []
        for bag in bags:
            scale = 1 / len(bag) if mode == 1 and bag else 1.0
            data += [scale * math.fsum(t.at((k, j)) for k in bag) for j in range(width)]
        return Tensor((len(bags), width), data)

    return map_linear(policy, table, f, keeps=False)

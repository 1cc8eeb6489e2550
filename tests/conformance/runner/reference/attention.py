"""Scaled dot-product attention, as the products and the softmax that it is. SPEC.md#attention."""

import math

from arithmetic import add, mul
from composition import is_composition
from normalization import rearranged
from product import linear, product
from registry import call, operator
from tensor import Tensor


@operator("aten::scaled_dot_product_attention")
def attention(policy, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
    scale = 1 / math.sqrt(query.shape[-1])
    flipped = rearranged(policy, key, lambda t: t.transpose(-2, -1))
    scores = product(policy, mul(policy, query, scale), flipped)
    hidden = None
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        hidden = Tensor((rows, columns), [j > i for i in range(rows) for j in range(columns)])
    elif attn_mask is not None and isinstance(attn_mask.data[0], bool):
        hidden = attn_mask.map(lambda m: not m)
    elif attn_mask is not None:
        scores = add(policy, scores, attn_mask)
    if hidden is not None:
        scores = call(policy, "aten::masked_fill.Scalar", scores, hidden, -math.inf)
    return product(policy, call(policy, "aten::softmax.int", scores, -1), value)


@operator("aten::_native_multi_head_attention")
def multi_head(policy, query, key, value, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
               need_weights=True, average_attn_weights=True, mask_type=None):
    """Projections, attention of every head, and the projection of what they give. A mask hides where it is true:
    [T, T] (type 0), or [batch, T] (type 1)."""
    batch, length = query.shape[:2]
    width = embed_dim // heads

    def project(x, k):
        rows = slice(k * embed_dim, (k + 1) * embed_dim)
        weight = qkv_weight.narrow(0, rows.start, embed_dim)
        done = linear(policy, x, weight, qkv_bias.narrow(0, rows.start, embed_dim))
        return rearranged(policy, done, lambda t: t.reshape((batch, -1, heads, width)).transpose(1, 2))

    q, k, v = (project(x, n) for n, x in enumerate((query, key, value)))
    flipped = rearranged(policy, k, lambda t: t.transpose(-2, -1))
    scores = product(policy, mul(policy, q, 1 / math.sqrt(width)), flipped)
    if mask is not None:
        shape = (batch, 1, 1, mask.shape[1]) if mask_type == 1 else mask.shape
        hidden = mask.reshape(shape).expand((batch, heads) + scores.shape[-2:])
        scores = call(policy, "aten::masked_fill.Scalar", scores, hidden, -math.inf)
    weights = call(policy, "aten::softmax.int", scores, -1)
    context = rearranged(policy, product(policy, weights, v),
                         lambda t: t.transpose(1, 2).reshape((batch, length, embed_dim)))
    result = linear(policy, context, proj_weight, proj_bias)
    if average_attn_weights:
        weights = call(policy, "aten::mean.dim", weights, [1])
    return result, weights


@operator("aten::_masked_softmax")
def masked_softmax(policy, x, mask, dim, mask_type=2):
    """The mask has the shape of the scores and hides where it is true."""
    return call(policy, "aten::softmax.int", call(policy, "aten::masked_fill.Scalar", x, mask, -math.inf), dim)

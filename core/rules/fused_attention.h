// Fused rewrites of attention; see Note [Fused rewrites] in fused.h.
#ifndef ADDEND_CORE_RULES_FUSED_ATTENTION_H_
#define ADDEND_CORE_RULES_FUSED_ATTENTION_H_

#include "core/rules/attention_tiles.h"
#include "core/rules/fused.h"

namespace addend {

// Whether this LibTorch gives zero in rows of which everything is masked; older ones give NaN.
bool MaskedRowsAreZero();
// Whether every query has something to look at, behind what three masks say: a summand, and two of booleans of which
// `shown` tells what takes part and `hidden` what does not; each may be undefined. They broadcast to `scores`, the
// sizes of all scores. Summands have to leave every row near zero, so that adding them loses no digits.
bool LeavesAllRows(const at::Tensor& summand, const at::Tensor& shown, const at::Tensor& hidden,
                   at::IntArrayRef scores);
// Keys [*, S, width] and values [*, S, *] have the leading dimensions of queries [*, T, width], but for fewer heads
// that all queries share alike.
bool AttentionShapesFit(at::IntArrayRef query, at::IntArrayRef key, at::IntArrayRef value);
// The largest norm of the vectors along the last dimension. The norms of queries and of keys bound their products.
double LargestNorm(const at::Tensor& t);
// The rule of addend::attention, which stands for attention as a model writes it out; see Note [Written-out attention]
// in core/run/written_attention.h. No registry has it: no model calls that operator.
const Rule& AttentionRule();
// `steps` is the rewrite of the operator `name`.
Rewrite FusedAttention(const char* name, RewriteFunction steps, BesideAttention beside);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FUSED_ATTENTION_H_

// Fused rewrites of attention; see Note [Fused rewrites] in fused.h.
#ifndef ADDEND_CORE_RULES_FUSED_ATTENTION_H_
#define ADDEND_CORE_RULES_FUSED_ATTENTION_H_

#include "core/rules/attention_tiles.h"
#include "core/rules/fused.h"

namespace addend {

// Whether this LibTorch gives zero in rows of which everything is masked; older ones give NaN.
bool MaskedRowsAreZero();
// `steps` is the rewrite of the operator `name`.
Rewrite FusedAttention(const char* name, RewriteFunction steps, BesideAttention beside);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FUSED_ATTENTION_H_

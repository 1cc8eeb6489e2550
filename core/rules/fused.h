// Rewrites that a rule can stand in for: one map does at once what the operators of the rewrite do one after the other.
//
// Note [Fused rewrites]
// A rewrite costs a node for each operator that it calls, and a recurrent network calls some fifteen of them in every
// step. Where its rule covers a call, the call is recorded whole, and its map is the product of the maps that the
// rewrite's operators would have had: the same coefficients under the same policy, so that both ways give the same rows
// up to rounding. No bracket gets lost: what those of the inner operators come to behind the last one is what the whole
// leaves over, value - reference - L(move). Where that does not hold, or where it takes more than a product of maps,
// the rewrite itself runs: policies that look at all components together, that pay biases, or that take residuals as
// references; choices for single operators; weights that move; tensors on other devices.
#ifndef ADDEND_CORE_RULES_FUSED_H_
#define ADDEND_CORE_RULES_FUSED_H_

#include <string>

#include "core/base/policy.h"
#include "core/rules/registry.h"
#include "core/rules/rewrite.h"
#include "core/rules/rule.h"

namespace addend {

// Null where there is no rewrite, or none that a rule stands in for.
const FusedRule* FusedOf(const Rewrite* rewrite);
// Whether the policy treats every operator of a rewrite alike and by a map of its own.
bool AllowsFused(const Policy& policy);
// As Registry::Find, and where there is a rewrite instead, the rule that stands in for it.
const Rule* RuleOrFused(const Registry& registry, const std::string& rule_name, const std::string& full_name);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FUSED_H_

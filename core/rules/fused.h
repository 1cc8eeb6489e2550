// Fused rewrites: a rule whose one map does at once what the operators of a rewrite do one after the other.
//
// Note [Fused rewrites]
// A rewrite costs a node for each operator that it calls, and a recurrent network calls some fifteen of them in every
// step; the rewrite of attention has tensors of all pairs of positions. If the rule of a fused rewrite covers a call,
// the call is recorded whole, and its map is the product of the maps that the rewrite's operators would have had: the
// same coefficients under the same policy, so that both ways give the same rows to rounding. No bracket is lost: the
// brackets of the inner operators, taken through the later ones, sum to the bracket of the whole, value - reference -
// L(move). The rewrite itself runs where this does not hold, or where a product of maps is not enough: under policies
// that look at all components together, that pay biases, or that take residuals as references; under choices for single
// operators; for weights that move; for tensors on other devices.
#ifndef ADDEND_CORE_RULES_FUSED_H_
#define ADDEND_CORE_RULES_FUSED_H_

#include <string>

#include "core/base/policy.h"
#include "core/rules/registry.h"
#include "core/rules/rewrite.h"
#include "core/rules/rule.h"

namespace addend {

// The fused rewrite; null if there is no rewrite, or none that a rule stands in for.
const FusedRule* FusedOf(const Rewrite* rewrite);
// Whether fused rewrites serve a policy: it treats every operator of a rewrite alike and by a map of its own.
bool AllowsFused(const Policy& policy);
// Finds the rule, as Registry::Find does, or the rule that stands in for a rewrite.
const Rule* RuleOrFused(const Registry& registry, const std::string& rule_name, const std::string& full_name);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FUSED_H_

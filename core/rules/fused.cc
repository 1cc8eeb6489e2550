#include "core/rules/fused.h"

namespace addend {

const FusedRule* FusedOf(const Rewrite* rewrite) {
  return rewrite == nullptr || !rewrite->fused ? nullptr : &*rewrite->fused;
}

bool AllowsFused(const Policy& policy) {
  const bool by_maps = policy.nonlinearity == Nonlinearity::kPath || policy.nonlinearity == Nonlinearity::kScaling ||
                       policy.nonlinearity == Nonlinearity::kGradient || policy.nonlinearity == Nonlinearity::kNone;
  return by_maps && policy.bias == Bias::kResidual && policy.anchor == Anchor::kBaseline && policy.overrides.empty();
}

const Rule* RuleOrFused(const Registry& registry, const std::string& rule_name, const std::string& full_name) {
  if (const Rule* rule = registry.Find(rule_name, full_name)) return rule;
  const FusedRule* fused = FusedOf(registry.FindRewrite(rule_name, full_name));
  return fused == nullptr ? nullptr : &fused->rule;
}

}  // namespace addend

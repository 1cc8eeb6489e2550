// The choices that rules and sweeps consult. A policy is a plain value: passed explicitly, never process-wide.
// Its enumerations and defaults come from policy_choices.txt; docs/policies.md has the formulas.
#ifndef ADDEND_CORE_BASE_POLICY_H_
#define ADDEND_CORE_BASE_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/policy_choices.h"  // IWYU pragma: export

namespace addend {

// Another choice for some operators: of a field that says how an operator is linearized (PolicyKey::by_operator).
struct PolicyOverride {
  std::string selector;  // an operator ("aten::softmax"), or a module path with all that is inside ("encoder.layers.3")
  std::string key;
  std::string value;

  // `op`: "aten::max.dim"; it is also found as "aten::max", and an in-place form by the name of the functional one.
  bool Selects(const std::string& op, const std::string& module_path) const;
};

struct Policy {
  Preset preset = kDefaultPreset;
  int64_t segments = kDefaultSegments;  // pieces of the line from baseline to input; what each gives is added up
  Nonlinearity nonlinearity = kDefaultNonlinearity;
  std::optional<double> nonlinearity_threshold;  // hybrid_affine; unset: see NonlinearityThreshold
  Bias bias = kDefaultBias;
  std::optional<double>
      bias_parameter;              // the threshold of hybrid and sign, the order of norm; unset: see BiasParameter
  std::optional<uint32_t> freeze;  // bits of Freeze; unset: what the preset freezes
  // Bits of Freeze. The move of a product a v, of a coefficient a of one of these kinds that is not frozen and content
  // v from (a', v'), is shared as a dv + v' da: the coefficient moves while the content is the reference's, then the
  // content moves at the coefficient's value. The move of every other product is shared by half.
  uint32_t content_first = kDefaultContentFirst;
  // Bits of Freeze, but for normalizers and denominators: those kinds of content_first whose content takes a share of
  // the interaction, by its magnitude on both sides, and not all of it. See Note [Shares by magnitude] in
  // core/rules/kinds.h.
  uint32_t by_magnitude = kDefaultByMagnitude;
  Conditions conditions = kDefaultConditions;
  ComputeDtype compute_dtype = kDefaultComputeDtype;
  Anchor anchor = kDefaultAnchor;
  MissingRule missing_rule = kDefaultMissingRule;
  OnFailure on_failure = kDefaultOnFailure;
  Check check = kDefaultCheck;
  std::optional<double> tolerance;        // relative recovery tolerance; unset: 8 eps sqrt(numc * depth) of the dtype
  std::vector<PolicyOverride> overrides;  // the last that selects an operator wins, field by field

  // Valid once the preset is resolved (never kAuto).
  uint32_t FrozenKinds() const;
  bool Freezes(Freeze kind) const { return (FrozenKinds() & kind) != 0; }
  // The number that the chosen rule takes: as given, else the default of the choice; 0 where it takes none.
  double NonlinearityThreshold() const;
  double BiasParameter() const;
  // The policy with kAuto replaced by what it stands for.
  Policy Resolved(bool baseline_given) const;
  // The policy that holds for one operator; no overrides are left in it. `op`: "aten::max.dim".
  Policy For(const std::string& op, const std::string& module_path) const;
};

// Sets one field from text, for example ("freeze", "attention+gate") or ("nonlinearity", "hybrid_affine(0.15)"). The
// key "freeze@aten::softmax" sets it for what the selector behind the @ names. Throws InvalidArgument that lists the
// choices.
void SetPolicyField(Policy& policy, const std::string& key, const std::string& value);
// Every field as text, in declaration order, then the overrides; SetPolicyField reads it back.
std::vector<std::pair<std::string, std::string>> DescribePolicy(const Policy& policy);
std::string PresetName(Preset preset);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_POLICY_H_

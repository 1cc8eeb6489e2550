// The choices that rules and sweeps consult. A policy is a plain value: passed explicitly, never process-wide.
#ifndef ADDEND_CORE_BASE_POLICY_H_
#define ADDEND_CORE_BASE_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace addend {

// How faithfully operators are linearized between the baseline and the input.
enum class Preset {
  kAuto,      // faithful where the caller gave a baseline, else fast
  kFaithful,  // the path rule everywhere: nothing is left over
  kFast,      // attention weights, normalizers and denominators are frozen, the winner takes a selection: some leftover
};

// What may be used as a plain coefficient (its value) without reading its own rows. Bits of Policy::freeze.
enum Freeze : uint32_t {
  kFreezeNothing = 0,
  kFreezeAttention = 1u << 0,    // results of softmax
  kFreezeNormalizer = 1u << 1,   // results of rsqrt, sqrt, std and their use inside normalization layers
  kFreezeDenominator = 1u << 2,  // divisors
  kFreezeGate = 1u << 3,         // results of sigmoid
};

enum class MissingRule {
  kError,   // name the operator and stop
  kPath,    // the path rule through the operator's own derivative; counted and named in the report
  kAbsorb,  // everything that it computed becomes leftover; counted and named in the report
};

enum class OnFailure {
  kError,   // a tracing failure stops with the operator's position
  kWarn,    // it is listed in the report
  kAbsorb,  // value - recovery goes to the leftover right after the operator; counted and named in the report
  kIgnore,  // it is only counted
};

enum class Check {
  kEveryOp,  // recovery and bracket of every swept operator
  kOutputs,  // recovery of outputs and probes
  kOff,
};

struct Policy {
  Preset preset = Preset::kAuto;
  std::optional<uint32_t> freeze;  // bits of Freeze; unset: what the preset freezes
  MissingRule missing_rule = MissingRule::kError;
  OnFailure on_failure = OnFailure::kError;
  Check check = Check::kEveryOp;
  std::optional<double> tolerance;  // relative recovery tolerance; unset: 8 eps sqrt(numc * depth) of the dtype

  // Valid once the preset is resolved (never kAuto).
  uint32_t FrozenKinds() const;
  bool Freezes(Freeze kind) const { return (FrozenKinds() & kind) != 0; }
  // The same policy with kAuto replaced by what it stands for.
  Policy Resolved(bool baseline_given) const;
};

// Sets one field from text, for example ("freeze", "attention+gate"). Throws InvalidArgument that lists the choices.
void SetPolicyField(Policy& policy, const std::string& key, const std::string& value);
// Every field as text, in declaration order; SetPolicyField reads it back.
std::vector<std::pair<std::string, std::string>> DescribePolicy(const Policy& policy);
std::string PresetName(Preset preset);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_POLICY_H_

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
  kFreezeGate = 1u << 3,         // results of sigmoid, and of what multiplies by one: silu, gelu
};

// Where masks and indices that operators compute from decomposed tensors come from on the way of the reference.
enum class Conditions {
  kValue,     // those of the value, for the reference too: the reference may be another than the model on the baseline
  kBaseline,  // those of the baseline: the reference is the model on the baseline; the step between them is leftover
};

// How elementwise functions are linearized: L of a component c, for a value x with reference b and move X = x - b. The
// formulas, and what each does where it would divide zero by zero, are in docs/policies.md.
enum class Nonlinearity {
  kPath,          // c (f(x) - f(b)) / X
  kAbsAffine,     // |c| (f(x) - f(b)) / sum |c|
  kHybridAffine,  // abs_affine where |X| is below a threshold times sum |c|, path elsewhere
  kScaling,       // c f(x) / x
  kGradient,      // c f'(x)
  kNone,          // 0: everything is left over
};

// Who is paid the constant of an affine operator, its bias. The reference is f(b) all the same: what components are
// paid is taken from the leftover. S is the sum of the components, A that of their magnitudes.
enum class Bias {
  kResidual,         // nobody
  kAbs,              // c by |c| / A
  kHybrid,           // c by |c| / A where |S| is below a threshold times A, by c / S elsewhere
  kHybridThreshold,  // c by c / S where |S| is above a threshold, by |c| / A elsewhere
  kSign,             // c by c / S, nobody where |S| is below a threshold times A
  kSignThreshold,    // c by c / S where |S| is above a threshold, nobody elsewhere
  kNorm,             // c by its norm over the last dimension
};

// What the reference of an operator is computed from.
enum class Anchor {
  kBaseline,  // the reference of its operands: what the model computes on the baseline
  kResidual,  // their whole residual: after every operator the leftover joins the reference
};

enum class MissingRule {
  kError,   // name the operator and stop
  kPath,    // the path rule through the operator's own derivative; counted and named in the report
  kAbsorb,  // everything that it computed becomes leftover; counted and named in the report
};

enum class OnFailure {
  kError,   // a tracing failure stops with the operator's position
  kWarn,    // it is listed in the report, and a note says so
  kAbsorb,  // value - recovery goes to the leftover right after the operator; counted and named in the report
  kIgnore,  // it is listed in the report, without a note
};

enum class Check {
  kEveryOp,  // recovery and bracket of every swept operator
  kOutputs,  // recovery of outputs and probes
  kOff,
};

// Other choices for some operators. The fields that say how an operator is linearized may differ: preset, nonlinearity,
// bias, freeze, content_first, missing_rule.
struct PolicyOverride {
  std::string selector;  // an operator ("aten::softmax"), or a module path with all that is inside ("encoder.layers.3")
  std::string key;
  std::string value;

  // `op`: "aten::max.dim"; it is also found as "aten::max", and an in-place form by the name of the functional one.
  bool Selects(const std::string& op, const std::string& module_path) const;
};

struct Policy {
  Preset preset = Preset::kAuto;
  int64_t segments = 1;  // pieces that the line from baseline to input is cut into; what each gives is added up
  Nonlinearity nonlinearity = Nonlinearity::kPath;
  std::optional<double> nonlinearity_threshold;  // hybrid_affine; unset: 0.15
  Bias bias = Bias::kResidual;
  std::optional<double>
      bias_parameter;              // the threshold of hybrid and sign, the order of norm; unset: see BiasParameter
  std::optional<uint32_t> freeze;  // bits of Freeze; unset: what the preset freezes
  // Bits of Freeze. The move of a product a v, of a coefficient a of one of these kinds that is not frozen and content
  // v from (a', v'), is shared as a dv + v' da: the coefficient moves while the content is the reference's, then the
  // content moves at the coefficient's value. The move of every other product is shared by half.
  uint32_t content_first = kFreezeAttention | kFreezeNormalizer | kFreezeDenominator;
  Conditions conditions = Conditions::kValue;
  Anchor anchor = Anchor::kBaseline;
  MissingRule missing_rule = MissingRule::kError;
  OnFailure on_failure = OnFailure::kError;
  Check check = Check::kEveryOp;
  std::optional<double> tolerance;        // relative recovery tolerance; unset: 8 eps sqrt(numc * depth) of the dtype
  std::vector<PolicyOverride> overrides;  // the last that selects an operator wins, field by field

  // Valid once the preset is resolved (never kAuto).
  uint32_t FrozenKinds() const;
  bool Freezes(Freeze kind) const { return (FrozenKinds() & kind) != 0; }
  double NonlinearityThreshold() const { return nonlinearity_threshold.value_or(0.15); }
  // 0.15 for hybrid and hybrid_threshold, 0.4 for sign and sign_threshold, infinity for norm.
  double BiasParameter() const;
  // The same policy with kAuto replaced by what it stands for.
  Policy Resolved(bool baseline_given) const;
  // What holds for one operator; no overrides are left in it. `op`: "aten::max.dim".
  Policy For(const std::string& op, const std::string& module_path) const;
  // False where a rule depends on all components together (sums of magnitudes): such a policy has no adjoint, and its
  // components cannot move in chunks.
  bool LinearInComponents() const;
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

// Draws of random numbers. The reference draws with the generator's state of the value's run, so that the noise of both
// is the same: what remains is how the result depends on the parameters of the distribution.
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// A draw overwrites what was there, and the numbers that it is given are plain.
RuleResult Overwrite(const RuleCall&) {
  RuleResult result;
  result.kind = Kind::kAffine;
  return result;
}

// normal(mean, std) is mean + std * noise: linear in both, with the noise of this run. LibTorch's own derivative of it
// is zero. Where std is zero at the value and at the reference the noise has left no trace, and std passes nothing.
RuleResult Normal(const RuleCall& call) {
  const int mean = call.OperandAt("mean");
  const int std = call.OperandAt("std");
  Kind kind = Kind::kAffine;
  std::vector<Term> terms;
  if (mean >= 0) terms.push_back({mean, 1.0});
  if (std >= 0 && call.operands[std].decomposed) {
    kind = Kind::kRewrite;  // std itself cannot be negative, its rows can
    const RuleOutput& output = call.outputs[0];
    const RuleOperand& scale = call.operands[std];
    const auto noise = [&](const at::Tensor& drawn, const at::Tensor& scaled, bool reference) {
      if (mean < 0) return (drawn - call.Double("mean", 0)) / scaled;
      return (drawn - (reference ? call.operands[mean].reference : call.operands[mean].value)) / scaled;
    };
    at::Tensor factor = at::where(scale.value.abs().ge(scale.reference.abs()), noise(output.value, scale.value, false),
                                  noise(output.reference, scale.reference, true));
    terms.push_back({std, factor.masked_fill(at::isfinite(factor).logical_not(), 0)});
  }
  return Elementwise(call, kind, std::move(terms));
}

}  // namespace

void RegisterRandom(Registry& registry) {
  for (const char* name : {"aten::normal.Tensor_float", "aten::normal.float_Tensor", "aten::normal.Tensor_Tensor"}) {
    registry.Register({name, Kind::kAffine, Normal});
  }
  // normal_ and its kind. Draws of zeros and ones do not change with their probability but for steps.
  for (const char* name : {"aten::normal", "aten::uniform", "aten::random", "aten::exponential", "aten::cauchy",
                           "aten::log_normal", "aten::geometric"}) {
    registry.Register({name, Kind::kAffine, Overwrite});
  }
  registry.Register({"aten::bernoulli", Kind::kOpaque, Opaque});
}

}  // namespace addend

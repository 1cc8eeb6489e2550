// Elementwise functions of one tensor. A new one is a line: its name and on which scale it bends.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>

#include <string>

#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

void Register(Registry& registry, const char* name, Curve curve, uint32_t mark = 0, KnownDerivative known = nullptr) {
  registry.Register(
      {name, Kind::kPointwise, [=](const RuleCall& call) { return Pointwise(call, curve, known); }, mark});
}

// Of the functions that networks call most: what autograd does about them takes longer than the operator.
at::Tensor DerivativeOfTanh(const RuleCall&, const at::Tensor& x) { return 1 - at::tanh(x).square(); }
at::Tensor DerivativeOfSigmoid(const RuleCall&, const at::Tensor& x) {
  const at::Tensor y = at::sigmoid(x);
  return y * (1 - y);
}
at::Tensor DerivativeOfGelu(const RuleCall& call, const at::Tensor& x) {
  const std::string approximate = call.num_arguments() > 1 ? call.arguments[1].toStringRef() : "none";
  return at::gelu_backward(at::ones_like(x), x, approximate);
}

// Of functions that are infinite at 0, whose line may cross it.
void RegisterPole(Registry& registry, const char* name) {
  Rule rule{name, Kind::kPointwise, [](const RuleCall& call) { return Pointwise(call, Curve::kPower); }};
  rule.has_poles = true;
  registry.Register(rule);
}
// x times a gate that is computed from x: with frozen gates only the factor x moves, as where a model spells it out.
void RegisterGated(Registry& registry, const char* name, at::Tensor (*gate)(const at::Tensor&)) {
  registry.Register(
      {name, Kind::kPointwise, [gate](const RuleCall& call) {
         if (!call.policy->Freezes(kFreezeGate)) return Pointwise(call, Curve::kSmooth);
         RuleResult result = Elementwise(call, Kind::kPointwise, {{call.OperandAt(0), gate(call.Require(0).value)}});
         result.exact = false;
         return result;
       }});
}

}  // namespace

void RegisterActivation(Registry& registry) {
  Register(registry, "aten::gelu", Curve::kSmooth, 0, DerivativeOfGelu);
  Register(registry, "aten::tanh", Curve::kSmooth, 0, DerivativeOfTanh);
  Register(registry, "aten::sigmoid", Curve::kSmooth, kFreezeGate, DerivativeOfSigmoid);
  RegisterGated(registry, "aten::silu", at::sigmoid);
  Register(registry, "aten::mish", Curve::kSmooth);
  Register(registry, "aten::softplus", Curve::kSmooth);
  Register(registry, "aten::log_sigmoid", Curve::kSmooth);
  Register(registry, "aten::elu", Curve::kSmooth);
  Register(registry, "aten::selu", Curve::kSmooth);
  Register(registry, "aten::celu", Curve::kSmooth);
  Register(registry, "aten::exp", Curve::kSmooth);
  Register(registry, "aten::expm1", Curve::kSmooth);
  Register(registry, "aten::erf", Curve::kSmooth);
  Register(registry, "aten::sin", Curve::kSmooth);
  Register(registry, "aten::cos", Curve::kSmooth);
  Register(registry, "aten::atan", Curve::kSmooth);
  Register(registry, "aten::sinh", Curve::kSmooth);
  Register(registry, "aten::cosh", Curve::kSmooth);

  Register(registry, "aten::sqrt", Curve::kPower, kFreezeNormalizer);
  Register(registry, "aten::rsqrt", Curve::kPower, kFreezeNormalizer);
  Register(registry, "aten::log", Curve::kPower);
  Register(registry, "aten::log2", Curve::kPower);
  Register(registry, "aten::log10", Curve::kPower);
  Register(registry, "aten::log1p", Curve::kPower);
  Register(registry, "aten::square", Curve::kPower);
  RegisterPole(registry, "aten::reciprocal");
  RegisterPole(registry, "aten::pow.Tensor_Scalar");

  Register(registry, "aten::relu", Curve::kUnitPieces);
  Register(registry, "aten::relu6", Curve::kUnitPieces);
  Register(registry, "aten::leaky_relu", Curve::kPiecewiseLinear);
  Register(registry, "aten::hardtanh", Curve::kUnitPieces);
  Register(registry, "aten::hardsigmoid", Curve::kPiecewiseLinear, kFreezeGate);
  RegisterGated(registry, "aten::hardswish", at::hardsigmoid);
  Register(registry, "aten::threshold", Curve::kUnitPieces);
  Register(registry, "aten::softshrink", Curve::kPiecewiseLinear);
  Register(registry, "aten::abs", Curve::kUnitPieces);
  Register(registry, "aten::clamp", Curve::kUnitPieces);
  Register(registry, "aten::clamp_min", Curve::kUnitPieces);
  Register(registry, "aten::clamp_max", Curve::kUnitPieces);
}

}  // namespace addend

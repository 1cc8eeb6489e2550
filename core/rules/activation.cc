// Elementwise functions of one tensor. A new one is a line: its name and on which scale it bends.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

Rule Curved(const char* name, Curve curve, KnownDerivative known = nullptr) {
  return {name, Kind::kPointwise, [=](const RuleCall& call) { return Pointwise(call, curve, known); }};
}

// Derivatives of the functions that networks call most: what autograd does about them takes longer than the operator.
at::Tensor DerivativeOfTanh(const RuleCall&, const at::Tensor& x) { return 1 - at::tanh(x).square(); }
at::Tensor DerivativeOfSigmoid(const RuleCall&, const at::Tensor& x) {
  const at::Tensor y = at::sigmoid(x);
  return y * (1 - y);
}
at::Tensor DerivativeOfGelu(const RuleCall& call, const at::Tensor& x) {
  const std::string approximate = call.String("approximate", "none");
  return at::gelu_backward(at::ones_like(x), x, approximate);
}

// x times a gate that is computed from x: with frozen gates only the factor x moves, as where a model spells it out.
Rule Gated(const char* name, at::Tensor (*gate)(const at::Tensor&)) {
  return {name, Kind::kPointwise, [gate](const RuleCall& call) {
            if (!call.policy->Freezes(kFreezeGate)) return Pointwise(call, Curve::kSmooth);
            RuleResult result =
                Elementwise(call, Kind::kPointwise, {{call.OperandAt("self"), gate(call.Require("self").value)}});
            result.exact = false;
            return result;
          }};
}

// pow(self, exponent): a square root in other words.
uint32_t MarkOfPower(const CallArguments& call, const std::vector<bool>& /*decomposed*/) {
  if (!call.Given("exponent").isScalar()) return 0;
  const c10::Scalar exponent = call.Given("exponent").toScalar();
  return !exponent.isComplex() && std::abs(exponent.toDouble()) == 0.5 ? uint32_t{kFreezeNormalizer} : 0;
}

}  // namespace

void RegisterActivation(Registry& registry) {
  registry.Register(Curved("aten::gelu", Curve::kSmooth, DerivativeOfGelu).Marks(kFreezeActivation));
  registry.Register(Curved("aten::tanh", Curve::kSmooth, DerivativeOfTanh).CoversComplex());
  registry.Register(Curved("aten::sigmoid", Curve::kSmooth, DerivativeOfSigmoid).Marks(kFreezeGate).CoversComplex());
  registry.Register(Gated("aten::silu", at::sigmoid).Marks(kFreezeActivation));
  registry.Register(Curved("aten::mish", Curve::kSmooth).Marks(kFreezeActivation));
  registry.Register(Curved("aten::softplus", Curve::kSmooth));
  registry.Register(Curved("aten::log_sigmoid", Curve::kSmooth));
  registry.Register(Curved("aten::elu", Curve::kSmooth));
  registry.Register(Curved("aten::selu", Curve::kSmooth));
  registry.Register(Curved("aten::celu", Curve::kSmooth));
  registry.Register(Curved("aten::exp", Curve::kSmooth).CoversComplex());
  registry.Register(Curved("aten::expm1", Curve::kSmooth));
  registry.Register(Curved("aten::erf", Curve::kSmooth));
  registry.Register(Curved("aten::sin", Curve::kSmooth).CoversComplex());
  registry.Register(Curved("aten::cos", Curve::kSmooth).CoversComplex());
  registry.Register(Curved("aten::atan", Curve::kSmooth));
  registry.Register(Curved("aten::sinh", Curve::kSmooth).CoversComplex());
  registry.Register(Curved("aten::cosh", Curve::kSmooth).CoversComplex());

  registry.Register(Curved("aten::sqrt", Curve::kPower).Marks(kFreezeNormalizer).CoversComplex());
  registry.Register(Curved("aten::rsqrt", Curve::kPower).Marks(kFreezeNormalizer).CoversComplex());
  registry.Register(Curved("aten::log", Curve::kPower).CoversComplex());
  registry.Register(Curved("aten::log2", Curve::kPower));
  registry.Register(Curved("aten::log10", Curve::kPower));
  registry.Register(Curved("aten::log1p", Curve::kPower));
  registry.Register(Curved("aten::square", Curve::kPower).CoversComplex());
  registry.Register(
      Curved("aten::reciprocal", Curve::kPower).HasPoles().Marks(kFreezeDenominator).KeepsMarks().CoversComplex());
  registry.Register(Curved("aten::pow.Tensor_Scalar", Curve::kPower).HasPoles().MarksBy(MarkOfPower).CoversComplex());

  registry.Register(Curved("aten::relu", Curve::kUnitPieces));
  registry.Register(Curved("aten::relu6", Curve::kUnitPieces));
  registry.Register(Curved("aten::leaky_relu", Curve::kPiecewiseLinear));
  registry.Register(Curved("aten::hardtanh", Curve::kUnitPieces));
  registry.Register(Curved("aten::hardsigmoid", Curve::kPiecewiseLinear).Marks(kFreezeGate));
  registry.Register(Gated("aten::hardswish", at::hardsigmoid).Marks(kFreezeActivation));
  registry.Register(Curved("aten::threshold", Curve::kUnitPieces));
  registry.Register(Curved("aten::softshrink", Curve::kPiecewiseLinear));
  registry.Register(Curved("aten::abs", Curve::kUnitPieces));
  registry.Register(Curved("aten::clamp", Curve::kUnitPieces).KeepsMarks());
  registry.Register(Curved("aten::clamp_min", Curve::kUnitPieces).KeepsMarks());
  registry.Register(Curved("aten::clamp_max", Curve::kUnitPieces).KeepsMarks());
}

}  // namespace addend

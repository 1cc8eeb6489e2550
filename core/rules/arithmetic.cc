// Sums, products and quotients, and the writes that put them into place.
#include <ATen/ops/where.h>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// The factor of a tensor argument that may also be a number.
double Number(const RuleCall& call, int argument, double otherwise) { return call.Double(argument, otherwise); }

RuleResult Sum(const RuleCall& call, double sign_self, double sign_other, int alpha_argument) {
  const double alpha = Number(call, alpha_argument, 1);
  // rsub is other - alpha * self; add and sub are self + alpha * other.
  const double self = sign_self < 0 ? -alpha : 1;
  const double other = sign_self < 0 ? 1 : sign_other * alpha;
  std::vector<Term> terms;
  if (call.OperandAt(0) >= 0) terms.push_back({call.OperandAt(0), self});
  if (call.OperandAt(1) >= 0) terms.push_back({call.OperandAt(1), other});
  return Elementwise(call, Kind::kAffine, std::move(terms));
}

RuleResult Multiply(const RuleCall& call) {
  const int a = call.OperandAt(0);
  const int b = call.OperandAt(1);
  if (b < 0) return Elementwise(call, Kind::kLinear, {{a, Number(call, 1, 1)}});
  const RuleOperand& x = call.operands[a];
  const RuleOperand& y = call.operands[b];
  if (!x.decomposed || !y.decomposed) {
    return Elementwise(call, Kind::kLinear, {{a, y.value}, {b, x.value}});
  }
  // A frozen factor is a plain coefficient; where both are frozen (gate times gate) both move after all.
  const uint32_t frozen = call.policy->FrozenKinds();
  const bool freeze_x = (x.marks & frozen) != 0 && (y.marks & frozen) == 0;
  const bool freeze_y = (y.marks & frozen) != 0 && (x.marks & frozen) == 0;
  if (freeze_x) return Elementwise(call, Kind::kBilinear, {{b, x.value}});
  if (freeze_y) return Elementwise(call, Kind::kBilinear, {{a, y.value}});
  return Elementwise(call, Kind::kBilinear, {{a, Middle(y)}, {b, Middle(x)}});
}

// a / d is the product of a with 1 / d, and 1 / d has the secant slope -1 / (d * reference of d).
RuleResult Divide(const RuleCall& call) {
  if (!call.IsNone(2)) throw Unimplemented("div with a rounding mode");
  const int a = call.OperandAt(0);
  const int d = call.OperandAt(1);
  if (d < 0) return Elementwise(call, Kind::kLinear, {{a, 1 / Number(call, 1, 1)}});
  const RuleOperand& divisor = call.operands[d];
  const at::Tensor inverse = divisor.value.reciprocal();
  if (!divisor.decomposed) return Elementwise(call, Kind::kLinear, {{a, inverse}});
  const bool numerator_moves = a >= 0 && call.operands[a].decomposed;
  const bool frozen = call.policy->Freezes(kFreezeDenominator) ||
                      (call.policy->Freezes(kFreezeNormalizer) && (divisor.marks & kFreezeNormalizer) != 0);
  if (frozen && numerator_moves) return Elementwise(call, Kind::kBilinear, {{a, inverse}});
  const at::Tensor inverse_reference = divisor.reference.reciprocal();
  const at::Tensor slope = -inverse * inverse_reference;
  if (a < 0) return Elementwise(call, Kind::kBilinear, {{d, slope * Number(call, 0, 1)}});
  const at::Tensor middle = Middle(call.operands[a]);
  return Elementwise(call, Kind::kBilinear, {{a, (inverse + inverse_reference) / 2}, {d, middle * slope}});
}

RuleResult Negate(const RuleCall& call) { return Elementwise(call, Kind::kLinear, {{call.OperandAt(0), -1.0}}); }

// What is overwritten plays no part: copy_ passes the rows of its source, a fill passes none.
RuleResult Copy(const RuleCall& call) { return Elementwise(call, Kind::kLinear, {{call.OperandAt(1), 1.0}}); }

RuleResult Fill(const RuleCall& call) {
  if (call.Decomposed(1)) return Elementwise(call, Kind::kLinear, {{call.OperandAt(1), 1.0}});
  RuleResult result;
  result.kind = Kind::kAffine;
  return result;
}

// input + value * t1 * t2: a sum and a product of two.
RuleResult AddProduct(const RuleCall& call) {
  const double scale = call.Double(3, 1);
  const RuleOperand& a = call.Require(1);
  const RuleOperand& b = call.Require(2);
  std::vector<Term> terms;
  if (call.OperandAt(0) >= 0) terms.push_back({call.OperandAt(0), 1.0});
  terms.push_back({call.OperandAt(1), Middle(b) * scale});
  terms.push_back({call.OperandAt(2), Middle(a) * scale});
  return Elementwise(call, Kind::kBilinear, std::move(terms));
}

// The condition is taken from the value and holds for every row.
RuleResult Where(const RuleCall& call) {
  const at::Tensor& condition = call.Require(0).value;
  const at::Tensor take = condition.to(call.outputs[0].value.scalar_type());
  std::vector<Term> terms;
  if (call.OperandAt(1) >= 0) terms.push_back({call.OperandAt(1), take});
  if (call.OperandAt(2) >= 0) terms.push_back({call.OperandAt(2), 1 - take});
  return Elementwise(call, Kind::kAffine, std::move(terms));
}

RuleResult MaskedFill(const RuleCall& call) {
  const at::Tensor mask = call.Require(1).value.to(call.outputs[0].value.scalar_type());
  std::vector<Term> terms = {{call.OperandAt(0), 1 - mask}};
  if (call.OperandAt(2) >= 0) terms.push_back({call.OperandAt(2), mask});
  return Elementwise(call, Kind::kAffine, std::move(terms));
}

}  // namespace

void RegisterArithmetic(Registry& registry) {
  const bool keeps = true;
  registry.Register({"aten::add", Kind::kAffine, [](const RuleCall& c) { return Sum(c, 1, 1, 2); }});
  registry.Register({"aten::sub", Kind::kAffine, [](const RuleCall& c) { return Sum(c, 1, -1, 2); }});
  registry.Register({"aten::rsub", Kind::kAffine, [](const RuleCall& c) { return Sum(c, -1, 1, 2); }});
  registry.Register({"aten::mul", Kind::kBilinear, Multiply, 0, keeps});
  registry.Register({"aten::div", Kind::kBilinear, Divide, 0, keeps});
  registry.Register({"aten::neg", Kind::kLinear, Negate, 0, keeps});
  registry.Register({"aten::addcmul", Kind::kBilinear, AddProduct});
  registry.Register({"aten::copy", Kind::kLinear, Copy, 0, keeps});
  registry.Register({"aten::fill", Kind::kAffine, Fill});
  registry.Register({"aten::zero", Kind::kAffine, Fill});
  registry.Register({"aten::where", Kind::kAffine, Where});
  registry.Register({"aten::masked_fill", Kind::kAffine, MaskedFill, 0, keeps});
}

}  // namespace addend

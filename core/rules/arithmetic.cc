// Sums, products and quotients, and the writes that put them into place.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
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

// a / d is the product of a with 1 / d, and 1 / d has the secant slope -1 / (d * reference of d). Where the reference
// of d is zero there is no secant: the quotient is linearized at the value (Note [Stand-ins]).
RuleResult Divide(const RuleCall& call) {
  if (!call.IsNone(2)) return Opaque(call);  // rounded: constant but for steps
  const int a = call.OperandAt(0);
  const int d = call.OperandAt(1);
  if (d < 0) return Elementwise(call, Kind::kLinear, {{a, 1 / Number(call, 1, 1)}});
  const RuleOperand& divisor = call.operands[d];
  // An integer divisor would be inverted in float32, whatever the output is.
  const at::ScalarType dtype = call.outputs[0].value.scalar_type();
  const at::Tensor inverse = divisor.value.to(dtype).reciprocal();
  if (!divisor.decomposed) return Elementwise(call, Kind::kLinear, {{a, inverse}});
  const at::Tensor inverse_reference = divisor.reference.to(dtype).reciprocal();
  const at::Tensor pole = inverse_reference.isfinite().logical_not_().logical_and_(inverse.isfinite());
  const bool has_pole = pole.any().item<bool>();
  const auto at_value_where_pole = [&](const at::Tensor& tangent, const at::Tensor& secant) {
    return has_pole ? at::where(pole, tangent, secant) : secant;
  };
  const bool numerator_moves = a >= 0 && call.operands[a].decomposed;
  const bool frozen = call.policy->Freezes(kFreezeDenominator) ||
                      (call.policy->Freezes(kFreezeNormalizer) && (divisor.marks & kFreezeNormalizer) != 0);
  RuleResult result;
  if (frozen && numerator_moves) {
    result = Elementwise(call, Kind::kBilinear, {{a, inverse}});
  } else {
    const at::Tensor slope = at_value_where_pole(-inverse * inverse, -inverse * inverse_reference);
    if (a < 0) {
      result = Elementwise(call, Kind::kBilinear, {{d, slope * Number(call, 0, 1)}});
    } else {
      const RuleOperand& numerator = call.operands[a];
      const at::Tensor factor = at_value_where_pole(inverse, (inverse + inverse_reference) / 2);
      const at::Tensor middle = at_value_where_pole(numerator.value, Middle(numerator));
      result = Elementwise(call, Kind::kBilinear, {{a, factor}, {d, middle * slope}});
    }
  }
  if (has_pole) {
    Rows moves;
    for (const int input : result.inputs) moves.push_back(call.Move(input).unsqueeze(0));
    const RuleOutput& output = call.outputs[0];
    result.stand_in = at::where(pole, output.value - result.map->Forward(moves)[0].select(0, 0), output.reference);
  }
  return result;
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

// Each operand where its mask is true. Not a product with the mask: what is not taken may be infinite or NaN.
RuleResult Choose(const RuleCall& call, const std::vector<std::pair<int, at::Tensor>>& choices) {
  RuleResult result;
  result.kind = Kind::kAffine;
  std::vector<at::Tensor> left_out;
  std::vector<at::DimVector> sizes;
  for (const auto& [operand, mask] : choices) {
    if (operand < 0 || !call.operands[operand].decomposed) continue;
    result.inputs.push_back(operand);
    left_out.push_back(mask.logical_not());
    sizes.emplace_back(call.operands[operand].value.sizes());
  }
  if (result.inputs.empty()) return result;
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  result.map = MakeMap(
      call, result.inputs,
      [=](const Rows& rows) -> Rows {
        at::DimVector all;
        all.push_back(rows[0].size(0));
        all.append(output_sizes.begin(), output_sizes.end());
        at::Tensor sum;
        for (size_t k = 0; k < rows.size(); ++k) {
          const at::Tensor aligned = RightAlign(rows[k], static_cast<int64_t>(output_sizes.size())).expand(all);
          const at::Tensor taken = aligned.masked_fill(left_out[k], 0);
          sum = sum.defined() ? sum + taken : taken;
        }
        return {sum};
      },
      [=](const Rows& cotangents) -> Rows {
        Rows out;
        for (size_t k = 0; k < sizes.size(); ++k) {
          out.push_back(at::sum_to(cotangents[0].masked_fill(left_out[k], 0), sizes[k]));
        }
        return out;
      });
  return result;
}

// The condition is taken from the value and holds for every row.
RuleResult Where(const RuleCall& call) {
  const at::Tensor condition = call.Require(0).value.to(at::kBool);
  return Choose(call, {{call.OperandAt(1), condition}, {call.OperandAt(2), condition.logical_not()}});
}

RuleResult MaskedFill(const RuleCall& call) {
  const at::Tensor mask = call.Require(1).value.to(at::kBool);
  return Choose(call, {{call.OperandAt(0), mask.logical_not()}, {call.OperandAt(2), mask}});
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

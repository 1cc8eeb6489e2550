#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <optional>

#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/joint.h"
#include "core/rules/kinds.h"
#include "core/rules/steps.h"

namespace addend {
namespace {

RuleResult Staircase(const RuleCall& call) { return Steps(call, call.OperandAt(call.First()), /*at_rest=*/1); }

RuleResult Sign(const RuleCall& call) { return Steps(call, call.OperandAt(call.First())); }

// 0 or 1, and `values` where the input is 0. Where these move, which it is is taken from the value and holds for every
// row.
RuleResult Heaviside(const RuleCall& call) {
  if (!call.Decomposed("values")) return Steps(call, call.OperandAt("self"));
  const at::Tensor chosen = call.Require("self").value.eq(0).to(call.outputs[0].value.scalar_type());
  RuleResult result = Elementwise(call, Kind::kOpaque, {{call.OperandAt("values"), chosen}});
  result.exact = false;
  return result;
}

}  // namespace

at::Tensor SlopeOfSteps(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& step, double at_rest,
                        bool* exact) {
  const at::Tensor move = MoveOf(value, reference);
  const bool is_double = value.scalar_type() == at::kDouble || value.scalar_type() == at::kComplexDouble;
  const double eps = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const at::Tensor rests = move.abs().le(at::maximum(value.abs(), reference.abs()) * (4 * eps));
  const at::Tensor slope = step / move;
  *exact = !ReadFlag(rests.logical_or(at::isfinite(slope).logical_not_()).logical_and_(step.ne(0)).any());
  return FiniteOrZero(slope).masked_fill(rests, at_rest);
}

bool IsCast(const c10::FunctionSchema& schema) { return schema.name() == "aten::_to_copy"; }

Operator Truncation() { return *Operator::Find("aten::trunc", ""); }

RuleResult Steps(const RuleCall& call, int operand, double at_rest) {
  const RuleOperand& x = call.operands[operand];
  const RuleOutput& output = call.outputs[0];
  const Nonlinearity choice = call.policy->nonlinearity;
  bool exact = true;
  at::Tensor slope = SlopeOfSteps(x.value, x.reference, output.value - output.reference, at_rest, &exact);
  if (choice == Nonlinearity::kScaling) slope = FiniteOrZero(output.value / x.value);
  if (choice == Nonlinearity::kGradient || choice == Nonlinearity::kNone) slope = at::zeros_like(output.value);
  RuleResult result = Elementwise(call, Kind::kPointwise, {{operand, slope}});
  result.exact =
      exact && choice != Nonlinearity::kScaling && choice != Nonlinearity::kGradient && choice != Nonlinearity::kNone;
  const bool hybrid = choice == Nonlinearity::kHybridAffine && call.policy->NonlinearityThreshold() > 0;
  if (choice == Nonlinearity::kAbsAffine || hybrid) {
    std::optional<double> threshold;
    if (hybrid) threshold = call.policy->NonlinearityThreshold();
    result.joint = [slope, threshold](const Rows& rows) -> Rows {
      const at::Tensor aligned = RightAlign(rows[0], slope.dim());
      return {SpreadByMagnitude(aligned.expand(WithRows(aligned.size(0), slope.sizes())), slope, threshold)};
    };
  }
  return result;
}

void RegisterStepwise(Registry& registry) {
  for (const char* name : {"aten::round", "aten::floor", "aten::ceil", "aten::trunc"}) {
    registry.Register({name, Kind::kPointwise, Staircase});
  }
  for (const char* name : {"aten::sign", "aten::sgn"}) registry.Register({name, Kind::kPointwise, Sign});
  registry.Register({"aten::heaviside", Kind::kOpaque, Heaviside});
}

}  // namespace addend

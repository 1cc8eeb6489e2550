#include "core/linearize/target_products.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/program/view.h"
#include "core/run/row_sums.h"

namespace addend {

at::Tensor TargetProducts::Zeros() const { return at::zeros({targets_}, options_); }

at::Tensor TargetProducts::Zeros(int64_t components) const { return at::zeros({targets_, components}, options_); }

at::Tensor TargetProducts::Value(const Operand& operand) const {
  return InDtype(Resolved(trace_.Value(operand)), RowDtype(operand.dtype));
}

at::Tensor TargetProducts::Reference(const Operand& operand) const {
  return InDtype(Resolved(trace_.Reference(operand)), RowDtype(operand.dtype));
}

at::Tensor TargetProducts::Move(const Operand& operand) const { return FiniteMove(Value(operand), Reference(operand)); }

at::Tensor TargetProducts::LargestTerms(const at::Tensor& cotangents, const Operand& operand, double least) const {
  const at::Tensor sizes = MagnitudeOfEach(OfLeftover(cotangents));
  const Version& kept = trace_.At(operand);
  if (kept.IsFinite()) return sizes * std::max({kept.largest_value, kept.largest_reference, least});
  const at::Tensor value = Value(operand);
  const at::Tensor reference = Reference(operand);
  if (value.device().is_cpu()) {
    return sizes * std::max({LargestFinite(value), LargestFinite(reference), least});
  }
  // No number of it is read here: Note [Host reads].
  const auto largest = [](const at::Tensor& tensor) { return MaxFinite(tensor.abs()).to(at::kDouble); };
  return sizes * largest(value).maximum(largest(reference)).clamp_min(least);
}

at::Tensor TargetProducts::OfMove(const at::Tensor& cotangents, const Operand& operand) const {
  const at::Tensor value = Value(operand);
  if (!value.device().is_cpu() && trace_.At(operand).IsFinite()) {
    return SumOfEach(RealProduct(OfLeftover(cotangents), value - Reference(operand)));
  }
  return ProductsWithMove(OfLeftover(cotangents), value, Reference(operand));
}

at::Tensor TargetProducts::OfOutputs(const Node& node, const Rows& behind) const {
  at::Tensor sum;
  for (size_t k = 0; k < behind.size(); ++k) {
    if (!behind[k].defined()) continue;
    const at::Tensor own = OfMove(behind[k], CallOf(node).outputs[k]);
    sum = sum.defined() ? sum + own : own;
  }
  return sum.defined() ? sum : Zeros();
}

at::Tensor TargetProducts::OfInputs(const Node& node, const Rows& back) const {
  at::Tensor sum;
  for (size_t j = 0; j < back.size(); ++j) {
    const at::Tensor own = OfMove(back[j], CallOf(node).operands[node.inputs[j]]);
    sum = sum.defined() ? sum + own : own;
  }
  return sum.defined() ? sum : Zeros();
}

}  // namespace addend

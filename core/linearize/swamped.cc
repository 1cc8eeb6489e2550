#include "core/linearize/swamped.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/host_read.h"
#include "core/rules/kinds.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// Least magnitude of a mask: at this size single precision keeps no more than three digits behind the point.
constexpr double kMask = 4096;
// Distance below the largest of its row at which a score has no weight in a softmax, in double precision either.
constexpr double kOutOfReach = 1000;

// The addend that is not decomposed, in the output's dtype; undefined if none of its elements is as large as a mask.
at::Tensor MaskOf(const RuleCall& call, const Addends& addends) {
  if (addends.count == 0 || call.outputs.empty() || !call.outputs[0].value.defined()) return {};
  const at::Tensor& output = call.outputs[0].value;
  if (output.is_complex() || output.numel() == 0) return {};
  for (int argument = 0; argument < addends.count; ++argument) {
    const double coefficient = addends.coefficient(call, argument);
    const std::string& name = call.NameOf(argument);
    const RuleOperand* operand = call.Find(name);
    if (operand == nullptr) {
      if (argument != 1 || !call.Given(name).isScalar() || call.Given(name).toScalar().isComplex()) continue;
      const double number = coefficient * call.Double(name, 0);
      return std::isfinite(number) && std::abs(number) >= kMask ? at::full({}, number, output.options()) : at::Tensor();
    }
    if (operand->decomposed || !operand->value.defined() || !operand->value.is_floating_point()) continue;
    if (LargestFinite(operand->value) * std::abs(coefficient) < kMask) return {};
    const at::Tensor mask = operand->value.to(output.scalar_type());
    return coefficient == 1 ? mask : mask * coefficient;
  }
  return {};
}

// Whether an element is near the largest of its row, the last dimension.
at::Tensor IsSeen(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.dim() == 0 ? tensor.view({1}) : tensor;
  const at::Tensor finite =
      at::where(at::isfinite(rows), rows, at::full({}, -std::numeric_limits<double>::infinity(), rows.options()));
  return rows.ge(finite.amax(-1, /*keepdim=*/true) - kOutOfReach).view(tensor.sizes());
}

class PartialMap : public LinearMap {
 public:
  PartialMap(std::shared_ptr<const LinearMap> map, at::Tensor without)
      : map_(std::move(map)), without_(std::move(without)) {}

  Rows Forward(const Rows& rows) const override { return Cleared(map_->Forward(rows)); }
  Rows Transpose(const Rows& cotangents) const override { return map_->Transpose(Cleared(cotangents)); }
  Rows TransposeRows(const Rows& cotangents) const override { return map_->TransposeRows(Cleared(cotangents)); }

 private:
  Rows Cleared(Rows rows) const {
    if (rows[0].defined()) rows[0] = rows[0].masked_fill(without_, 0);
    return rows;
  }

  std::shared_ptr<const LinearMap> map_;
  at::Tensor without_;
};

}  // namespace

Swamped FindSwamped(const Call& call, const RuleCall& described, const Addends& addends) {
  Swamped found;
  const at::Tensor mask = MaskOf(described, addends);
  if (!mask.defined()) return found;
  const RuleOutput& output = described.outputs[0];
  const at::Tensor large = mask.abs().ge(kMask).logical_and_(at::isfinite(mask));
  const at::Tensor matters = large.logical_and(IsSeen(output.value).logical_or_(IsSeen(output.reference)));
  if (!ReadFlag(matters.any())) return found;
  found.rounds = true;
  // A whole unit at least is lost: nothing that a score may be is told apart from nothing.
  const at::Tensor coarse = mask.abs().ge(1 / EpsilonOf(call.outputs[0].dtype));
  const at::Tensor same = output.value.eq(mask).logical_and_(output.reference.eq(mask));
  const at::Tensor lost = matters.logical_and(coarse).logical_and_(same);
  found.count = ReadInteger(lost.sum());
  if (found.count == 0) return found;
  found.elements = lost;
  found.value = ReadNumber(output.value.abs().masked_fill(lost.logical_not(), 0).max());
  return found;
}

bool AddsMask(const RuleCall& described, const Addends& addends) { return MaskOf(described, addends).defined(); }

std::shared_ptr<const LinearMap> MapWithout(std::shared_ptr<const LinearMap> map, const at::Tensor& elements) {
  return std::make_shared<PartialMap>(std::move(map), elements);
}

}  // namespace addend

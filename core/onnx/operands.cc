#include "core/onnx/operands.h"

#include <ATen/ops/reshape.h>

namespace addend::onnx {
namespace {

constexpr int64_t kFirstBroadcasting = 7;

// The second operand with dimensions of size 1 behind it, so that its first stands at `axis` of the other.
at::Tensor AlignedAt(int64_t axis, const at::Tensor& a, const at::Tensor& b) {
  std::vector<int64_t> sizes = b.sizes().vec();
  while (axis + static_cast<int64_t>(sizes.size()) < a.dim()) sizes.push_back(1);
  return at::reshape(b, sizes);
}

}  // namespace

std::vector<std::string> OldBroadcast() { return {"axis", "broadcast", "consumed_inputs"}; }

Operands TwoOperands(const Context& context) {
  Operands operands;
  operands.a = context.Tensor(0);
  operands.b = context.Tensor(1);
  if (context.version() < kFirstBroadcasting && context.HasAttribute("axis") && operands.b.dim() > 0) {
    operands.b = AlignedAt(context.Axis(context.IntAttribute("axis"), operands.a.dim()), operands.a, operands.b);
  }
  if (operands.b.dim() <= operands.a.dim()) operands.b_number = context.Number(1);
  if (!operands.b_number && operands.a.dim() <= operands.b.dim()) operands.a_number = context.Number(0);
  return operands;
}

at::Tensor InType(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.scalar_type() == type ? tensor : tensor.to(type);
}

}  // namespace addend::onnx

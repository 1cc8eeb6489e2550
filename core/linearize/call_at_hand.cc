#include "core/linearize/call_at_hand.h"

#include <algorithm>

namespace addend {

std::vector<at::Tensor> TensorsIn(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    ForEachTensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

std::vector<at::Tensor> CallAtHand::Outputs() const {
  if (std::none_of(call.operands.begin(), call.operands.end(), [](const Operand& o) { return o.written; })) {
    return TensorsIn(results);
  }
  std::vector<at::Tensor> tensors;
  ForEachOperand([&](const at::Tensor& tensor, const Operand& operand) {
    if (operand.written && operand.storage >= 0) tensors.push_back(tensor);
  });
  return tensors;
}

}  // namespace addend

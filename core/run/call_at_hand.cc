#include "core/run/call_at_hand.h"

#include <algorithm>

namespace addend {

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

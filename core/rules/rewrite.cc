#include "core/rules/rewrite.h"

namespace addend {

at::Tensor RewriteCall::Tensor(std::string_view argument) const {
  return IsNone(argument) ? at::Tensor() : Given(argument).toTensor();
}

std::vector<at::Tensor> RewriteCall::Tensors(std::string_view argument) const {
  if (IsNone(argument)) return {};
  const c10::IValue& value = Given(argument);
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& element : value.toListRef()) {
    tensors.push_back(element.isTensor() ? element.toTensor() : at::Tensor());
  }
  return tensors;
}

}  // namespace addend

#include "core/rules/rewrite.h"

#include <algorithm>

namespace addend {

int RewriteCall::At(const std::string& argument) const {
  return static_cast<int>(std::find(names.begin(), names.end(), argument) - names.begin());
}

bool RewriteCall::IsNone(int argument) const {
  if (argument >= static_cast<int>(arguments.size())) return true;
  // Operators that are called from C++ get undefined tensors where there are none.
  const c10::IValue& value = arguments[argument];
  return value.isNone() || (value.isTensor() && !value.toTensor().defined());
}

at::Tensor RewriteCall::Tensor(int argument) const {
  return IsNone(argument) ? at::Tensor() : arguments[argument].toTensor();
}

std::vector<at::Tensor> RewriteCall::Tensors(int argument) const {
  if (IsNone(argument)) return {};
  const c10::IValue& value = arguments[argument];
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& element : value.toListRef()) {
    tensors.push_back(element.isTensor() ? element.toTensor() : at::Tensor());
  }
  return tensors;
}

int64_t RewriteCall::Int(int argument, int64_t otherwise) const {
  return IsNone(argument) ? otherwise : arguments[argument].toInt();
}

double RewriteCall::Double(int argument, double otherwise) const {
  return IsNone(argument) ? otherwise : arguments[argument].toScalar().toDouble();
}

bool RewriteCall::Bool(int argument, bool otherwise) const {
  return IsNone(argument) ? otherwise : arguments[argument].toBool();
}

std::vector<int64_t> RewriteCall::Ints(int argument) const {
  if (IsNone(argument)) return {};
  const c10::IValue& value = arguments[argument];
  return value.isInt() ? std::vector<int64_t>{value.toInt()} : value.toIntVector();
}

std::string RewriteCall::String(int argument, const std::string& otherwise) const {
  return IsNone(argument) ? otherwise : arguments[argument].toStringRef();
}

}  // namespace addend

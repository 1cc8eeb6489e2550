// Replaces the tensors in the arguments of a call.
#ifndef ADDEND_CORE_INTERCEPT_REPLACE_TENSORS_H_
#define ADDEND_CORE_INTERCEPT_REPLACE_TENSORS_H_

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

namespace addend {

// Returns the argument with replace(tensor) in place of every tensor.
template <typename Replace>
c10::IValue ReplaceTensors(const c10::IValue& value, Replace replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isList()) {
    const auto elements = value.toListRef();
    const bool tensors = std::any_of(elements.begin(), elements.end(), [](const auto& e) { return e.isTensor(); });
    if (!tensors) return value;
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue& element : elements) {
      list.push_back(element.isTensor() ? c10::IValue(replace(element.toTensor())) : element);
    }
    return list;
  }
  return value;
}

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_REPLACE_TENSORS_H_

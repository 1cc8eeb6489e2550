// Tensors as PyTorch prints them.
#ifndef ADDEND_CORE_COMPOSITION_FORMAT_TENSOR_H_
#define ADDEND_CORE_COMPOSITION_FORMAT_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <string>

namespace addend {

// The text that PyTorch prints for a tensor under its default options. Autograd is not mentioned. Throws
// InvalidArgument for what is neither dense nor made of real numbers or bools.
std::string FormatTensor(const at::Tensor& tensor);

}  // namespace addend

#endif  // ADDEND_CORE_COMPOSITION_FORMAT_TENSOR_H_

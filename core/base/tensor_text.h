// The words for shapes and dtypes in messages and reports.
#ifndef ADDEND_CORE_BASE_TENSOR_TEXT_H_
#define ADDEND_CORE_BASE_TENSOR_TEXT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace addend {

// "[2, 3]"
std::string ShapeText(at::IntArrayRef shape);

// "f32", "i64", "bf16": short, for calls and their operands. Saved programs hold these names.
std::string DtypeName(at::ScalarType dtype);

// "float32", "int64", "bfloat16": as Python names it, without "torch.".
std::string DtypeWord(at::ScalarType dtype);

// "f32[2, 3]"
std::string TensorText(at::ScalarType dtype, at::IntArrayRef shape);
inline std::string TensorText(const at::Tensor& tensor) { return TensorText(tensor.scalar_type(), tensor.sizes()); }

}  // namespace addend

#endif  // ADDEND_CORE_BASE_TENSOR_TEXT_H_

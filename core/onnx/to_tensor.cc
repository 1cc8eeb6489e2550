#include "core/onnx/to_tensor.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/weights/storages.h"

namespace addend::onnx {
namespace {

// The strides of a contiguous tensor.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    strides[k] = stride;
    stride *= std::max<int64_t>(sizes[k], 1);
  }
  return strides;
}

}  // namespace

std::optional<c10::ScalarType> ScalarTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return c10::ScalarType::Float;
    case DataType::kUint8:
      return c10::ScalarType::Byte;
    case DataType::kInt8:
      return c10::ScalarType::Char;
    case DataType::kInt16:
      return c10::ScalarType::Short;
    case DataType::kInt32:
      return c10::ScalarType::Int;
    case DataType::kInt64:
      return c10::ScalarType::Long;
    case DataType::kBool:
      return c10::ScalarType::Bool;
    case DataType::kFloat16:
      return c10::ScalarType::Half;
    case DataType::kDouble:
      return c10::ScalarType::Double;
    case DataType::kComplex64:
      return c10::ScalarType::ComplexFloat;
    case DataType::kComplex128:
      return c10::ScalarType::ComplexDouble;
    case DataType::kBfloat16:
      return c10::ScalarType::BFloat16;
    default:
      return std::nullopt;
  }
}

std::optional<c10::ScalarType> HolderOf(DataType type) {
  if (IsPacked(type)) return IsSigned(type) ? c10::ScalarType::Char : c10::ScalarType::Byte;
  if (type == DataType::kUint16) return c10::ScalarType::Int;
  if (IsWidened(type)) return c10::ScalarType::Long;
  return ScalarTypeOf(type);
}

at::Tensor ToTensor(const TensorData& data, const std::string& where, weights::MemoryBudget* budget) {
  const TensorData unpacked = Unpacked(data, budget);
  const std::optional<c10::ScalarType> dtype = ScalarTypeOf(unpacked.type);
  if (!dtype) {
    throw Unimplemented(absl::StrCat(where, ": elements of type ", NameOf(unpacked.type),
                                     " are not computed with; write the model with another type"));
  }
  budget->Take(weights::kTensorCost);
  weights::SharedStorage storage = weights::MakeStorage(unpacked.bytes, c10::elementSize(*dtype), budget);
  weights::Strided strided;
  strided.dtype = *dtype;
  strided.sizes = unpacked.dims;
  strided.strides = StridesOf(unpacked.dims);
  return weights::MakeTensor(storage, strided, where);
}

}  // namespace addend::onnx

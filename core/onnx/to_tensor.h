// Tensors of LibTorch over the bytes of a model.
#ifndef ADDEND_CORE_ONNX_TO_TENSOR_H_
#define ADDEND_CORE_ONNX_TO_TENSOR_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "core/onnx/tensor_data.h"

namespace addend::onnx {

// LibTorch's type for elements of a type; none where the oldest LibTorch that is supported has none, or they are
// strings. Those of 4 and 2 bits have none: they are unpacked.
std::optional<c10::ScalarType> ScalarTypeOf(DataType type);
// That type, or for integers that LibTorch lacks a type that holds them: int8 or uint8 for those of few bits, int32 for
// uint16, int64 for uint32 and uint64.
std::optional<c10::ScalarType> HolderOf(DataType type);

// Makes a tensor on the CPU: over the bytes themselves, and keeping what they lie in, where they are aligned for their
// type and have an owner; else a copy. Numbers of 4 and 2 bits are unpacked. `where` begins messages. Throws
// Unimplemented for types without a ScalarType, InvalidArgument for truth values that are neither 0 nor 1.
at::Tensor ToTensor(const TensorData& data, const std::string& where, weights::MemoryBudget* budget);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_TO_TENSOR_H_

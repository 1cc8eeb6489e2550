// Tensors of a model as bytes: type, sizes, and where the elements lie, whichever way the file has them.
#ifndef ADDEND_CORE_ONNX_TENSOR_DATA_H_
#define ADDEND_CORE_ONNX_TENSOR_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/onnx/data_type.h"
#include "core/onnx/external_files.h"
#include "core/onnx/model_proto.h"
#include "core/weights/mapped_file.h"
#include "core/weights/memory_budget.h"

namespace addend::onnx {

struct TensorData {
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
  int64_t num_elements = 0;
  // The elements as `raw_data` has them: little-endian, row by row, those of less than 8 bits packed from the lowest
  // bit on. The bytes are those of a mapped file where it holds them so, of any alignment. Without an owner they are
  // those of whoever gave the model as bytes.
  weights::Bytes bytes;
  RepeatedField strings;  // in place of bytes: what kString has
};

// A tensor as messages name it: "model.onnx: the tensor w".
std::string PlaceText(const TensorProto& tensor, const ModelProto& model);

// Finds the elements of a tensor of a model. Throws InvalidArgument where they do not fit its type and sizes, or what
// ExternalFiles::Map() throws.
TensorData ReadTensorData(const TensorProto& tensor, const ModelProto& model, ExternalFiles* files);

// Copies elements of 4 and 2 bits into bytes of their own: int8 for int4 and int2, uint8 for uint4 and uint2. Other
// types stay as they are.
TensorData Unpacked(const TensorData& data, weights::MemoryBudget* budget);
// Elements of type uint16 as such of int32, those of uint32 and uint64 as such of int64. Other types stay as they are.
// `where` begins messages. Throws Unimplemented for a number that int64 does not hold.
TensorData Widened(const TensorData& data, const std::string& where, weights::MemoryBudget* budget);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_TENSOR_DATA_H_

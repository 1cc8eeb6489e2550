// ONNX models (`.onnx`) as they stand in their file: typed, within bounds, nothing resolved and nothing run.
//
// The structs follow onnx.proto of IR version 14. Texts and weights are views of the file, which has to be there as
// long as they are; numbers in lists are decoded when they are asked for. What a program that runs models does not need
// is skipped: documentation of values, training, devices.
#ifndef ADDEND_CORE_ONNX_MODEL_PROTO_H_
#define ADDEND_CORE_ONNX_MODEL_PROTO_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/onnx/data_type.h"
#include "core/onnx/wire.h"
#include "core/weights/mapped_file.h"

namespace addend::onnx {

// The most graphs that are nested in each other, and the most types.
inline constexpr int kDeepestGraph = 64;
inline constexpr int kDeepestType = 32;
// The most dimensions of a tensor: those that LibTorch's iterators accept.
inline constexpr size_t kMostDims = 64;
// The newest version of the format that is known.
inline constexpr int64_t kNewestIrVersion = 14;

// An entry of a map of texts. Values need not be UTF-8, as anybody writes them.
struct Entry {
  absl::string_view key;
  absl::string_view value;
};

// The value of a key; empty where there is none.
absl::string_view Find(const std::vector<Entry>& entries, absl::string_view key);

struct TensorProto {
  absl::string_view name;
  std::vector<int64_t> dims;  // none is negative
  DataType data_type = DataType::kUndefined;
  absl::string_view raw_data;
  RepeatedField values;              // float_data, int32_data, string_data, int64_data, double_data or uint64_data
  bool is_external = false;          // the elements lie in another file
  std::vector<Entry> external_data;  // where
  size_t place = 0;                  // of the message in the file
};

// A dimension: a number, a name, or neither.
struct Dimension {
  int64_t value = -1;  // -1: not a number
  absl::string_view name;
};

struct TypeProto {
  enum class Kind { kNotSaid, kTensor, kSequence, kMap, kOptional, kSparseTensor, kOpaque };
  Kind kind = Kind::kNotSaid;
  DataType data_type = DataType::kUndefined;  // of a tensor's elements, or a map's keys
  bool has_shape = false;                     // of a tensor; without, not even its rank is known
  std::vector<Dimension> dims;
  std::unique_ptr<TypeProto> element;  // of sequences and optionals; a map's values
};

struct ValueInfoProto {
  absl::string_view name;
  TypeProto type;
};

struct AttributeProto;

struct NodeProto {
  std::vector<absl::string_view> inputs;  // an empty name: none
  std::vector<absl::string_view> outputs;
  absl::string_view name;  // may be empty, or that of other nodes too
  absl::string_view op_type;
  absl::string_view domain;
  absl::string_view overload;  // of a function
  absl::string_view doc_string;
  std::vector<AttributeProto> attributes;
  std::vector<Entry> metadata;  // "pkg.torch.onnx.name_scopes", "namespace", ...
  size_t place = 0;             // of the message in the file
};

// A value of the model, and the tensors that it is quantized by.
struct TensorAnnotation {
  absl::string_view tensor_name;
  std::vector<Entry> parameters;  // "SCALE_TENSOR", "ZERO_POINT_TENSOR": names of tensors
};

struct GraphProto {
  absl::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfoProto> inputs;
  std::vector<ValueInfoProto> outputs;
  std::vector<ValueInfoProto> value_infos;  // of values inside; need not name all, nor be right
  std::vector<TensorAnnotation> annotations;
};

// The kinds of content of an attribute; the numbers are those of files.
enum class AttributeType : int32_t {
  kUndefined = 0,  // a reference to an attribute of a function
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,  // refused when a file is read, as its list is
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

const char* NameOf(AttributeType type);

// An attribute of a node: exactly one value or list, which `type` tells.
struct AttributeProto {
  absl::string_view name;
  absl::string_view ref_attr_name;  // the attribute of the function around it whose value this is
  AttributeType type = AttributeType::kUndefined;
  float f = 0;
  int64_t i = 0;
  absl::string_view s;
  RepeatedField list;  // kFloats, kInts, kStrings

  // The messages of an attribute that holds such: one, or those of a list.
  struct Messages {
    std::vector<TensorProto> tensors;
    std::vector<GraphProto> graphs;
    std::vector<TypeProto> types;
  };
  std::unique_ptr<Messages> messages;  // null where there are none

  const std::vector<TensorProto>& tensors() const;
  const std::vector<GraphProto>& graphs() const;
  const std::vector<TypeProto>& types() const;
};

struct OperatorSetIdProto {
  absl::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  absl::string_view name;
  absl::string_view domain;
  absl::string_view overload;
  std::vector<absl::string_view> inputs;
  std::vector<absl::string_view> outputs;
  std::vector<absl::string_view> attributes;       // without a default
  std::vector<AttributeProto> attribute_defaults;  // with one
  std::vector<NodeProto> nodes;
  std::vector<OperatorSetIdProto> opset_imports;
  size_t place = 0;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OperatorSetIdProto> opset_imports;
  absl::string_view producer_name;  // as its version: any bytes
  absl::string_view producer_version;
  absl::string_view domain;
  int64_t model_version = 0;
  GraphProto graph;
  std::vector<Entry> metadata;
  std::vector<FunctionProto> functions;
  size_t num_training_infos = 0;  // which are not read

  weights::Bytes bytes;            // of the file
  std::unique_ptr<WireFile> file;  // its name, and the budget for what is still decoded
};

// Reads a model; `name` stands for its file in messages. Throws InvalidArgument, with the place in the file, for
// whatever is malformed, and Unimplemented, by name, for what is not supported: sparse tensors, segments, fields of
// nodes and attributes that are not known.
ModelProto ReadModelProto(weights::Bytes bytes, const std::string& name);

// Whether bytes are those of an ONNX model, as far as the fields of its outermost message tell.
bool IsOnnx(absl::string_view bytes);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_MODEL_PROTO_H_

#include "core/onnx/model_proto.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend::onnx {
namespace {

std::string Shown(absl::string_view text) { return Quoted(std::string(text)); }

// A piece of a tensor, or one that is stored by its non-zero elements.
Error Refused(const MessageReader& message, const std::string& what, const char* instead) {
  return Unimplemented(absl::StrCat(message.Place(), ": ", what, ", which is not supported; ", instead));
}

Entry ReadEntry(MessageReader message) {
  message.RequireOnce(message.Count(), {1, 2});
  Entry entry;
  while (message.Next()) {
    if (message.field() == 1) entry.key = message.Text();
    if (message.field() == 2) entry.value = message.Bytes();
  }
  return entry;
}

// ----------------------------------------------------------------------------------------------------------- tensors

DataType ReadDataType(const MessageReader& message) {
  const int32_t number = message.Integer32();
  if (number != 0 && !IsDataType(number)) {
    throw Unimplemented(absl::StrCat(message.Place(), ": elements of type ", number,
                                     " are not known to this version of Addend; update Addend, or write the model "
                                     "for an older version of ONNX"));
  }
  return static_cast<DataType>(number);
}

TensorProto ReadTensor(MessageReader message) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {2, 3, 8, 9, 14});
  TensorProto tensor;
  tensor.place = message.place();
  RepeatedField dims;
  message.Reserve(counts[13], &tensor.external_data);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        message.AddTo(&dims, WireType::kVarint);
        break;
      case 2:
        tensor.data_type = ReadDataType(message);
        break;
      case 3:
        throw Refused(message, "a tensor is one segment of a larger one", "write the model with whole tensors");
      case 4:  // float_data
        message.AddTo(&tensor.values, WireType::kFixed32);
        break;
      case 5:   // int32_data
      case 7:   // int64_data
      case 11:  // uint64_data
        message.AddTo(&tensor.values, WireType::kVarint);
        break;
      case 6:  // string_data
        message.AddTo(&tensor.values, WireType::kBytes);
        break;
      case 10:  // double_data
        message.AddTo(&tensor.values, WireType::kFixed64);
        break;
      case 8:
        tensor.name = message.Text();
        break;
      case 9:
        tensor.raw_data = message.Bytes();
        break;
      case 13:
        tensor.external_data.push_back(ReadEntry(message.Message("StringStringEntryProto")));
        break;
      case 14: {
        const int64_t location = message.Integer();
        if (location != 0 && location != 1) message.Fail(absl::StrCat("has the unknown data_location ", location));
        tensor.is_external = location == 1;
        break;
      }
      default:
        break;
    }
  }
  if (dims.size() > kMostDims) {
    message.Fail(absl::StrCat("the tensor ", Shown(tensor.name), " has ", dims.size(), " dimensions; at most ",
                              kMostDims, " are supported"));
  }
  tensor.dims = dims.Integers();
  if (std::any_of(tensor.dims.begin(), tensor.dims.end(), [](int64_t dim) { return dim < 0; })) {
    message.Fail(absl::StrCat("the tensor ", Shown(tensor.name), " has a negative size"));
  }
  return tensor;
}

// The name of a sparse tensor is that of its values.
absl::string_view NameOfSparse(MessageReader message) {
  absl::string_view name;
  while (message.Next()) {
    if (message.field() == 1) name = ReadTensor(message.Message("TensorProto")).name;
  }
  return name;
}

Error RefusedSparse(const MessageReader& message) {
  const absl::string_view name = NameOfSparse(message.Message("SparseTensorProto"));
  return Refused(message, absl::StrCat("the tensor ", Shown(name), " is sparse"), "write the model with dense tensors");
}

// ------------------------------------------------------------------------------------------------------------- types

Dimension ReadDimension(MessageReader message) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {1, 2});
  if (counts[1] + counts[2] > 1) message.Fail("a dimension has both a number and a name");
  Dimension dimension;
  while (message.Next()) {
    // Exporters write -1 for a size that is not known.
    if (message.field() == 1) dimension.value = std::max<int64_t>(message.Integer(), -1);
    if (message.field() == 2) dimension.name = message.Text();
  }
  return dimension;
}

void ReadShape(MessageReader message, TypeProto& type) {
  const FieldCounts counts = message.Count();
  if (counts[1] > kMostDims) {
    message.Fail(absl::StrCat("has ", counts[1], " dimensions; at most ", kMostDims, " are supported"));
  }
  message.Reserve(counts[1], &type.dims);
  while (message.Next()) {
    if (message.field() == 1) type.dims.push_back(ReadDimension(message.Message("Dimension")));
  }
}

TypeProto ReadType(MessageReader message, int depth);

std::unique_ptr<TypeProto> ReadElement(const MessageReader& message, int depth) {
  message.file()->budget.Take(sizeof(TypeProto));
  return std::make_unique<TypeProto>(ReadType(message.Message("TypeProto"), depth + 1));
}

// Reads the inside of a type: a tensor's elements and shape, or a container's elements.
void ReadTypeContent(MessageReader message, int depth, TypeProto& type) {
  message.RequireOnce(message.Count(), {1, 2});
  const bool is_tensor = type.kind == TypeProto::Kind::kTensor || type.kind == TypeProto::Kind::kSparseTensor;
  const bool is_map = type.kind == TypeProto::Kind::kMap;
  while (message.Next()) {
    if (type.kind == TypeProto::Kind::kOpaque) continue;
    if (message.field() == 1) {
      if (is_tensor || is_map) {
        type.data_type = ReadDataType(message);
      } else {
        type.element = ReadElement(message, depth);
      }
    } else if (message.field() == 2 && is_tensor) {
      type.has_shape = true;
      ReadShape(message.Message("TensorShapeProto"), type);
    } else if (message.field() == 2 && is_map) {
      type.element = ReadElement(message, depth);
    }
  }
}

TypeProto::Kind KindOf(uint32_t field) {
  switch (field) {
    case 1:
      return TypeProto::Kind::kTensor;
    case 4:
      return TypeProto::Kind::kSequence;
    case 5:
      return TypeProto::Kind::kMap;
    case 7:
      return TypeProto::Kind::kOpaque;
    case 8:
      return TypeProto::Kind::kSparseTensor;
    case 9:
      return TypeProto::Kind::kOptional;
    default:
      return TypeProto::Kind::kNotSaid;
  }
}

TypeProto ReadType(MessageReader message, int depth) {
  if (depth > kDeepestType) message.Fail(absl::StrCat("types are nested more than ", kDeepestType, " levels deep"));
  TypeProto type;
  while (message.Next()) {
    const TypeProto::Kind kind = KindOf(message.field());
    if (kind == TypeProto::Kind::kNotSaid) continue;
    if (type.kind != TypeProto::Kind::kNotSaid) message.Fail("a type is two types at once");
    type.kind = kind;
    ReadTypeContent(message.Message("TypeProto"), depth, type);
  }
  return type;
}

ValueInfoProto ReadValueInfo(MessageReader message) {
  message.RequireOnce(message.Count(), {1, 2});
  ValueInfoProto value;
  while (message.Next()) {
    if (message.field() == 1) value.name = message.Text();
    if (message.field() == 2) value.type = ReadType(message.Message("TypeProto"), 1);
  }
  return value;
}

// -------------------------------------------------------------------------------------------------- graphs and nodes

GraphProto ReadGraph(MessageReader message, int depth);

AttributeProto::Messages& MessagesOf(AttributeProto& attribute, const MessageReader& message) {
  if (attribute.messages == nullptr) {
    message.file()->budget.Take(sizeof(AttributeProto::Messages));
    attribute.messages = std::make_unique<AttributeProto::Messages>();
  }
  return *attribute.messages;
}

// The type of an attribute that has this field; kUndefined for fields that hold no value.
AttributeType TypeOfField(uint32_t field) {
  switch (field) {
    case 2:
      return AttributeType::kFloat;
    case 3:
      return AttributeType::kInt;
    case 4:
      return AttributeType::kString;
    case 5:
      return AttributeType::kTensor;
    case 6:
      return AttributeType::kGraph;
    case 7:
      return AttributeType::kFloats;
    case 8:
      return AttributeType::kInts;
    case 9:
      return AttributeType::kStrings;
    case 10:
      return AttributeType::kTensors;
    case 11:
      return AttributeType::kGraphs;
    case 14:
      return AttributeType::kTypeProto;
    case 15:
      return AttributeType::kTypeProtos;
    default:
      return AttributeType::kUndefined;
  }
}

void ReadValue(const MessageReader& message, int depth, AttributeProto& attribute) {
  switch (TypeOfField(message.field())) {
    case AttributeType::kFloat:
      attribute.f = message.Float();
      break;
    case AttributeType::kInt:
      attribute.i = message.Integer();
      break;
    case AttributeType::kString:
      attribute.s = message.Bytes();
      break;
    case AttributeType::kFloats:
      message.AddTo(&attribute.list, WireType::kFixed32);
      break;
    case AttributeType::kInts:
      message.AddTo(&attribute.list, WireType::kVarint);
      break;
    case AttributeType::kStrings:
      message.AddTo(&attribute.list, WireType::kBytes);
      break;
    case AttributeType::kTensor:
    case AttributeType::kTensors:
      MessagesOf(attribute, message).tensors.push_back(ReadTensor(message.Message("TensorProto")));
      break;
    case AttributeType::kGraph:
    case AttributeType::kGraphs:
      MessagesOf(attribute, message).graphs.push_back(ReadGraph(message.Message("GraphProto"), depth + 1));
      break;
    default:
      MessagesOf(attribute, message).types.push_back(ReadType(message.Message("TypeProto"), 1));
      break;
  }
}

void ReserveMessages(const MessageReader& message, const FieldCounts& counts, AttributeProto& attribute) {
  if (counts[5] + counts[6] + counts[10] + counts[11] + counts[14] + counts[15] == 0) return;
  AttributeProto::Messages& messages = MessagesOf(attribute, message);
  message.Reserve(counts[5] + counts[10], &messages.tensors);
  message.Reserve(counts[6] + counts[11], &messages.graphs);
  message.Reserve(counts[14] + counts[15], &messages.types);
}

// Compares what an attribute says to be with what it holds. Writers leave out what is zero or empty, and the oldest did
// not say the type.
void CheckAttribute(const MessageReader& message, AttributeType held, AttributeProto& attribute) {
  const auto fail = [&](const std::string& what) {
    message.Fail(absl::StrCat("the attribute ", Shown(attribute.name), " ", what));
  };
  if (attribute.name.empty()) message.Fail("an attribute has no name");
  if (!attribute.ref_attr_name.empty()) {
    if (held != AttributeType::kUndefined) fail("has a value and refers to an attribute of its function");
    return;
  }
  if (attribute.type == AttributeType::kUndefined) attribute.type = held;
  if (attribute.type == AttributeType::kUndefined) fail("has neither a type nor a value");
  if (held == AttributeType::kUndefined) {
    if (attribute.type == AttributeType::kTensor || attribute.type == AttributeType::kGraph ||
        attribute.type == AttributeType::kTypeProto) {
      fail(absl::StrCat("should hold ", NameOf(attribute.type), " and holds nothing"));
    }
    return;
  }
  if (attribute.type != held) {
    fail(absl::StrCat("should hold ", NameOf(attribute.type), " and holds ", NameOf(held)));
  }
}

AttributeProto ReadAttribute(MessageReader message, int depth) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {1, 2, 3, 4, 5, 6, 14, 20, 21});
  AttributeProto attribute;
  AttributeType held = AttributeType::kUndefined;
  ReserveMessages(message, counts, attribute);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        attribute.name = message.Text();
        break;
      case 13:  // doc_string
        break;
      case 20: {
        const int32_t type = message.Integer32();
        if (type < 0 || type > static_cast<int32_t>(AttributeType::kTypeProtos)) {
          message.Fail(absl::StrCat("has the unknown type ", type, " of an attribute"));
        }
        attribute.type = static_cast<AttributeType>(type);
        break;
      }
      case 21:
        attribute.ref_attr_name = message.Text();
        break;
      case 22:
      case 23:
        throw RefusedSparse(message);
      default: {
        const AttributeType type = TypeOfField(message.field());
        if (type == AttributeType::kUndefined) {
          message.RefuseUnknown();
          break;
        }
        if (held != AttributeType::kUndefined && held != type) {
          message.Fail(absl::StrCat("an attribute holds both ", NameOf(held), " and ", NameOf(type)));
        }
        held = type;
        ReadValue(message, depth, attribute);
        break;
      }
    }
  }
  CheckAttribute(message, held, attribute);
  return attribute;
}

NodeProto ReadNode(MessageReader message, int depth) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {3, 4, 6, 7, 8});
  NodeProto node;
  node.place = message.place();
  message.Reserve(counts[1], &node.inputs);
  message.Reserve(counts[2], &node.outputs);
  message.Reserve(counts[5], &node.attributes);
  message.Reserve(counts[9], &node.metadata);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        node.inputs.push_back(message.Text());
        break;
      case 2:
        node.outputs.push_back(message.Text());
        break;
      case 3:
        node.name = message.Text();
        break;
      case 4:
        node.op_type = message.Text();
        break;
      case 5:
        node.attributes.push_back(ReadAttribute(message.Message("AttributeProto"), depth));
        break;
      case 6:
        node.doc_string = message.Bytes();
        break;
      case 7:
        node.domain = message.Text();
        break;
      case 8:
        node.overload = message.Text();
        break;
      case 9:
        node.metadata.push_back(ReadEntry(message.Message("StringStringEntryProto")));
        break;
      case 10:  // on which devices it runs
        break;
      default:
        message.RefuseUnknown();
        break;
    }
  }
  if (node.op_type.empty()) message.Fail(absl::StrCat("the node ", Shown(node.name), " has no op_type"));
  return node;
}

TensorAnnotation ReadAnnotation(MessageReader message) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {1});
  TensorAnnotation annotation;
  message.Reserve(counts[2], &annotation.parameters);
  while (message.Next()) {
    if (message.field() == 1) annotation.tensor_name = message.Text();
    if (message.field() == 2) {
      annotation.parameters.push_back(ReadEntry(message.Message("StringStringEntryProto")));
    }
  }
  return annotation;
}

GraphProto ReadGraph(MessageReader message, int depth) {
  if (depth > kDeepestGraph) message.Fail(absl::StrCat("graphs are nested more than ", kDeepestGraph, " levels deep"));
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {2});
  GraphProto graph;
  message.Reserve(counts[1], &graph.nodes);
  message.Reserve(counts[5], &graph.initializers);
  message.Reserve(counts[11], &graph.inputs);
  message.Reserve(counts[12], &graph.outputs);
  message.Reserve(counts[13], &graph.value_infos);
  message.Reserve(counts[14], &graph.annotations);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        graph.nodes.push_back(ReadNode(message.Message("NodeProto"), depth));
        break;
      case 2:
        graph.name = message.Text();
        break;
      case 5:
        graph.initializers.push_back(ReadTensor(message.Message("TensorProto")));
        break;
      case 11:
        graph.inputs.push_back(ReadValueInfo(message.Message("ValueInfoProto")));
        break;
      case 12:
        graph.outputs.push_back(ReadValueInfo(message.Message("ValueInfoProto")));
        break;
      case 13:
        graph.value_infos.push_back(ReadValueInfo(message.Message("ValueInfoProto")));
        break;
      case 14:
        graph.annotations.push_back(ReadAnnotation(message.Message("TensorAnnotation")));
        break;
      case 15:
        throw RefusedSparse(message);
      default:
        break;
    }
  }
  return graph;
}

// ------------------------------------------------------------------------------------------------------------ models

OperatorSetIdProto ReadOperatorSet(MessageReader message) {
  message.RequireOnce(message.Count(), {1, 2});
  OperatorSetIdProto set;
  while (message.Next()) {
    if (message.field() == 1) set.domain = message.Text();
    if (message.field() == 2) set.version = message.Integer();
  }
  return set;
}

FunctionProto ReadFunction(MessageReader message) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {1, 10, 13});
  FunctionProto function;
  function.place = message.place();
  message.Reserve(counts[4], &function.inputs);
  message.Reserve(counts[5], &function.outputs);
  message.Reserve(counts[6], &function.attributes);
  message.Reserve(counts[7], &function.nodes);
  message.Reserve(counts[9], &function.opset_imports);
  message.Reserve(counts[11], &function.attribute_defaults);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        function.name = message.Text();
        break;
      case 4:
        function.inputs.push_back(message.Text());
        break;
      case 5:
        function.outputs.push_back(message.Text());
        break;
      case 6:
        function.attributes.push_back(message.Text());
        break;
      case 7:
        function.nodes.push_back(ReadNode(message.Message("NodeProto"), /*depth=*/1));
        break;
      case 9:
        function.opset_imports.push_back(ReadOperatorSet(message.Message("OperatorSetIdProto")));
        break;
      case 10:
        function.domain = message.Text();
        break;
      case 11:
        function.attribute_defaults.push_back(ReadAttribute(message.Message("AttributeProto"), /*depth=*/1));
        break;
      case 13:
        function.overload = message.Text();
        break;
      default:
        break;
    }
  }
  if (function.name.empty()) message.Fail("a function has no name");
  return function;
}

void ReadModel(MessageReader message, ModelProto& model) {
  const FieldCounts counts = message.Count();
  message.RequireOnce(counts, {1, 2, 3, 4, 5, 7});
  message.Reserve(counts[8], &model.opset_imports);
  message.Reserve(counts[14], &model.metadata);
  message.Reserve(counts[25], &model.functions);
  model.num_training_infos = counts[20];
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        model.ir_version = message.Integer();
        break;
      case 2:
        model.producer_name = message.Bytes();
        break;
      case 3:
        model.producer_version = message.Bytes();
        break;
      case 4:
        model.domain = message.Text();
        break;
      case 5:
        model.model_version = message.Integer();
        break;
      case 7:
        model.graph = ReadGraph(message.Message("GraphProto"), /*depth=*/1);
        break;
      case 8:
        model.opset_imports.push_back(ReadOperatorSet(message.Message("OperatorSetIdProto")));
        break;
      case 14:
        model.metadata.push_back(ReadEntry(message.Message("StringStringEntryProto")));
        break;
      case 25:
        model.functions.push_back(ReadFunction(message.Message("FunctionProto")));
        break;
      default:
        break;
    }
  }
  if (counts[1] == 0) message.Fail("has no ir_version; this is no ONNX file, or the file is truncated");
  if (counts[7] == 0) message.Fail("has no graph; the file is truncated, or holds no model");
}

}  // namespace

const char* NameOf(AttributeType type) {
  switch (type) {
    case AttributeType::kUndefined:
      return "nothing";
    case AttributeType::kFloat:
      return "a float";
    case AttributeType::kInt:
      return "an integer";
    case AttributeType::kString:
      return "a string";
    case AttributeType::kTensor:
      return "a tensor";
    case AttributeType::kGraph:
      return "a graph";
    case AttributeType::kFloats:
      return "floats";
    case AttributeType::kInts:
      return "integers";
    case AttributeType::kStrings:
      return "strings";
    case AttributeType::kTensors:
      return "tensors";
    case AttributeType::kGraphs:
      return "graphs";
    case AttributeType::kSparseTensor:
      return "a sparse tensor";
    case AttributeType::kSparseTensors:
      return "sparse tensors";
    case AttributeType::kTypeProto:
      return "a type";
    case AttributeType::kTypeProtos:
      return "types";
  }
  return "nothing";
}

absl::string_view Find(const std::vector<Entry>& entries, absl::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? absl::string_view() : found->value;
}

const std::vector<TensorProto>& AttributeProto::tensors() const {
  static const auto& none = *new std::vector<TensorProto>();
  return messages == nullptr ? none : messages->tensors;
}

const std::vector<GraphProto>& AttributeProto::graphs() const {
  static const auto& none = *new std::vector<GraphProto>();
  return messages == nullptr ? none : messages->graphs;
}

const std::vector<TypeProto>& AttributeProto::types() const {
  static const auto& none = *new std::vector<TypeProto>();
  return messages == nullptr ? none : messages->types;
}

ModelProto ReadModelProto(weights::Bytes bytes, const std::string& name) {
  ModelProto model;
  model.bytes = std::move(bytes);
  model.file = std::make_unique<WireFile>(name, absl::string_view(model.bytes.data, model.bytes.size));
  ReadModel(MessageReader(model.file.get(), "ModelProto"), model);
  return model;
}

bool IsOnnx(absl::string_view bytes) {
  constexpr int64_t kMostIrVersion = 64;
  try {
    WireFile file("the file", bytes);
    MessageReader message(&file, "ModelProto");
    int64_t ir_version = 0;
    bool has_graph = false;
    bool has_opset = false;
    while (message.Next()) {
      if (message.field() == 1) ir_version = message.Integer();
      if (message.field() == 7) has_graph = true;
      if (message.field() == 8) has_opset = true;
    }
    return ir_version >= 1 && ir_version <= kMostIrVersion && has_graph && has_opset;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace addend::onnx

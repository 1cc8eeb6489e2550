#include "core/onnx/onnx_testing.h"

#include <cstddef>
#include <cstring>

namespace addend::onnx {
namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

std::string Tag(uint32_t field, uint32_t type) { return VarintBytes(uint64_t{field} << 3 | type); }

template <typename T>
std::string InMemory(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

std::string VarintBytes(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

MessageWriter& MessageWriter::Raw(const std::string& bytes) {
  bytes_ += bytes;
  return *this;
}

MessageWriter& MessageWriter::Varint(uint32_t field, uint64_t value) {
  return Raw(Tag(field, kVarint) + VarintBytes(value));
}

MessageWriter& MessageWriter::Float(uint32_t field, float value) {
  return Raw(Tag(field, kFixed32) + InMemory(std::vector<float>{value}));
}

MessageWriter& MessageWriter::Double(uint32_t field, double value) {
  return Raw(Tag(field, kFixed64) + InMemory(std::vector<double>{value}));
}

MessageWriter& MessageWriter::Bytes(uint32_t field, const std::string& bytes) {
  return Raw(Tag(field, kBytes) + VarintBytes(bytes.size()) + bytes);
}

MessageWriter& MessageWriter::PackedIntegers(uint32_t field, const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += VarintBytes(static_cast<uint64_t>(value));
  return Bytes(field, packed);
}

MessageWriter& MessageWriter::PackedFloats(uint32_t field, const std::vector<float>& values) {
  return Bytes(field, InMemory(values));
}

MessageWriter& MessageWriter::PackedDoubles(uint32_t field, const std::vector<double>& values) {
  return Bytes(field, InMemory(values));
}

MessageWriter TensorMessage(const std::string& name, int32_t data_type, const std::vector<int64_t>& dims) {
  MessageWriter tensor;
  for (const int64_t dim : dims) tensor.Integer(1, dim);
  tensor.Integer(2, data_type).Bytes(8, name);
  return tensor;
}

MessageWriter FloatTensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return TensorMessage(name, 1, dims).Bytes(9, InMemory(values));
}

MessageWriter EntryMessage(const std::string& key, const std::string& value) {
  return MessageWriter().Bytes(1, key).Bytes(2, value);
}

MessageWriter ExternalTensor(const std::string& name, int32_t data_type, const std::vector<int64_t>& dims,
                             const std::vector<std::string>& entries) {
  MessageWriter tensor = TensorMessage(name, data_type, dims).Integer(14, 1);
  for (size_t k = 0; k + 1 < entries.size(); k += 2) tensor.Message(13, EntryMessage(entries[k], entries[k + 1]));
  return tensor;
}

MessageWriter ValueInfo(const std::string& name, const std::vector<int64_t>& dims) {
  MessageWriter shape;
  for (const int64_t dim : dims) {
    shape.Message(1, dim < 0 ? MessageWriter().Bytes(2, "n") : MessageWriter().Integer(1, dim));
  }
  const MessageWriter type = MessageWriter().Message(1, MessageWriter().Integer(1, 1).Message(2, shape));
  return MessageWriter().Bytes(1, name).Message(2, type);
}

MessageWriter NodeMessage(const std::string& op_type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name, const std::string& domain) {
  MessageWriter node;
  for (const std::string& input : inputs) node.Bytes(1, input);
  for (const std::string& output : outputs) node.Bytes(2, output);
  if (!name.empty()) node.Bytes(3, name);
  node.Bytes(4, op_type);
  if (!domain.empty()) node.Bytes(7, domain);
  return node;
}

MessageWriter IntAttribute(const std::string& name, int64_t value) {
  return MessageWriter().Bytes(1, name).Integer(3, value).Integer(20, 2);
}

MessageWriter GraphAttribute(const std::string& name, const MessageWriter& graph) {
  return MessageWriter().Bytes(1, name).Message(6, graph).Integer(20, 5);
}

MessageWriter OperatorSet(const std::string& domain, int64_t version) {
  return MessageWriter().Bytes(1, domain).Integer(2, version);
}

MessageWriter GraphMessage(const GraphParts& parts, const std::string& name) {
  MessageWriter graph;
  for (const MessageWriter& node : parts.nodes) graph.Message(1, node);
  if (!name.empty()) graph.Bytes(2, name);
  for (const MessageWriter& tensor : parts.initializers) graph.Message(5, tensor);
  for (const MessageWriter& input : parts.inputs) graph.Message(11, input);
  for (const MessageWriter& output : parts.outputs) graph.Message(12, output);
  return graph;
}

MessageWriter ModelMessage(const MessageWriter& graph, const std::vector<MessageWriter>& functions,
                           int64_t ir_version) {
  MessageWriter model;
  model.Integer(1, ir_version).Bytes(2, "test").Message(7, graph);
  for (const MessageWriter& function : functions) model.Message(25, function);
  model.Message(8, OperatorSet("", 17));
  return model;
}

GraphParts SmallGraph() {
  GraphParts parts;
  parts.nodes = {NodeMessage("MatMul", {"x", "w"}, {"/m/product"}, "/m/MatMul"),
                 NodeMessage("Relu", {"/m/product"}, {"/m/active"}, "/m/Relu"),
                 NodeMessage("Add", {"/m/active", "b"}, {"y"}, "/Add")};
  parts.initializers = {FloatTensor("w", {3, 2}, {1, -2, 3, -4, 5, -6}),
                        TensorMessage("b", 1, {2}).PackedFloats(4, {0.5F, -0.5F})};
  parts.inputs = {ValueInfo("x", {-1, 3})};
  parts.outputs = {ValueInfo("y", {-1, 2})};
  return parts;
}

std::string SmallModel() { return ModelMessage(GraphMessage(SmallGraph(), "small")).bytes(); }

}  // namespace addend::onnx

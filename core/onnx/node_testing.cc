#include "core/onnx/node_testing.h"

#include <ATen/ATen.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/onnx/onnx_model.h"

namespace addend::onnx {
namespace {

// The number of a type in ONNX.
int32_t NumberOf(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
      return 2;
    case c10::ScalarType::Char:
      return 3;
    case c10::ScalarType::Int:
      return 6;
    case c10::ScalarType::Long:
      return 7;
    case c10::ScalarType::Bool:
      return 9;
    case c10::ScalarType::Double:
      return 11;
    default:
      return 1;
  }
}

MessageWriter ValueOf(const std::string& name, const at::Tensor& value) {
  MessageWriter shape;
  for (const int64_t size : value.sizes()) shape.Message(1, MessageWriter().Integer(1, size));
  const MessageWriter tensor = MessageWriter().Integer(1, NumberOf(value.scalar_type())).Message(2, shape);
  return MessageWriter().Bytes(1, name).Message(2, MessageWriter().Message(1, tensor));
}

MessageWriter TensorOf(const std::string& name, const at::Tensor& value) {
  const at::Tensor packed = value.contiguous();
  const std::string bytes(static_cast<const char*>(packed.data_ptr()), packed.nbytes());
  return TensorMessage(name, NumberOf(value.scalar_type()), value.sizes().vec()).Bytes(9, bytes);
}

class Names : public CallHandler {
 public:
  void Handle(const addend::Operator& op, Stack* stack) override {
    names.push_back(op.schema().name());
    op.Run(stack);
  }
  std::vector<std::string> names;
};

std::vector<c10::IValue> Values(const std::vector<at::Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

MessageWriter FloatAttribute(const std::string& name, float value) {
  return MessageWriter().Bytes(1, name).Float(2, value).Integer(20, 1);
}

MessageWriter TextAttribute(const std::string& name, const std::string& text) {
  return MessageWriter().Bytes(1, name).Bytes(4, text).Integer(20, 3);
}

MessageWriter TextsAttribute(const std::string& name, const std::vector<std::string>& texts) {
  MessageWriter attribute = MessageWriter().Bytes(1, name);
  for (const std::string& text : texts) attribute.Bytes(9, text);
  return attribute.Integer(20, 8);
}

MessageWriter FloatsAttribute(const std::string& name, const std::vector<float>& values) {
  return MessageWriter().Bytes(1, name).PackedFloats(7, values).Integer(20, 6);
}

MessageWriter IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  return MessageWriter().Bytes(1, name).PackedIntegers(8, values).Integer(20, 7);
}

MessageWriter TensorAttribute(const std::string& name, const at::Tensor& value) {
  return MessageWriter().Bytes(1, name).Message(5, TensorOf("", value)).Integer(20, 4);
}

MessageWriter With(MessageWriter node, const std::vector<MessageWriter>& attributes) {
  for (const MessageWriter& attribute : attributes) node.Message(5, attribute);
  return node;
}

MessageWriter IntegerTensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& values) {
  return TensorMessage(name, 7, dims).PackedIntegers(7, values);
}

std::shared_ptr<Model> ModelOfNodes(const std::vector<MessageWriter>& nodes, size_t num_inputs,
                                    const std::vector<MessageWriter>& initializers, int64_t opset, int32_t data_type,
                                    const std::string& domain) {
  GraphParts parts;
  parts.nodes = nodes;
  parts.initializers = initializers;
  for (size_t k = 0; k < num_inputs; ++k) {
    parts.inputs.push_back(MessageWriter().Bytes(1, "x" + std::to_string(k)));
    const MessageWriter type = MessageWriter().Message(1, MessageWriter().Integer(1, data_type));
    if (data_type != 0) parts.inputs.back().Message(2, type);
  }
  parts.outputs = {MessageWriter().Bytes(1, "y")};
  MessageWriter model;
  model.Integer(1, 8).Message(7, GraphMessage(parts)).Message(8, OperatorSet("", opset));
  if (!domain.empty()) model.Message(8, OperatorSet(domain, 1));
  return LoadOnnxBytes(model.bytes().data(), model.bytes().size(), "model.onnx");
}

at::Tensor ResultOf(Model& model, const std::vector<at::Tensor>& inputs) {
  return RunModel(model, Values(inputs), "x").toTensor();
}

std::vector<std::string> OperatorsOf(Model& model, const std::vector<at::Tensor>& inputs) {
  Names names;
  const TracingScope scope(&names);
  model.Run(Values(inputs));
  return names.names;
}

NodeModel& NodeModel::Input(const at::Tensor& value) {
  names_.push_back(absl::StrCat("x", names_.size()));
  parts_.inputs.push_back(ValueOf(names_.back(), value));
  inputs_.emplace_back(value);
  return *this;
}

NodeModel& NodeModel::Constant(const at::Tensor& value) {
  names_.push_back(absl::StrCat("x", names_.size()));
  parts_.initializers.push_back(TensorOf(names_.back(), value));
  return *this;
}

NodeModel& NodeModel::None() {
  names_.emplace_back();
  return *this;
}

NodeModel& NodeModel::Attribute(MessageWriter attribute) {
  attributes_.push_back(std::move(attribute));
  return *this;
}

std::vector<at::Tensor> NodeModel::Run(size_t outputs) const {
  GraphParts parts = parts_;
  std::vector<std::string> results;
  for (size_t k = 0; k < outputs; ++k) {
    results.push_back(absl::StrCat("y", k));
    parts.outputs.push_back(ValueInfo(results.back(), {-1}));
  }
  MessageWriter node = NodeMessage(op_type_, names_, results, "node", domain_);
  for (const MessageWriter& attribute : attributes_) node.Message(5, attribute);
  parts.nodes = {node};
  MessageWriter model;
  model.Integer(1, 8).Bytes(2, "test").Message(7, GraphMessage(parts)).Message(8, OperatorSet("", version_));
  if (!domain_.empty()) model.Message(8, OperatorSet(domain_, domain_version_));
  const auto loaded = LoadOnnxBytes(model.bytes().data(), model.bytes().size(), "model.onnx");
  const c10::IValue result = RunModel(*loaded, inputs_, "x");
  if (outputs == 1) return {result.toTensor()};
  std::vector<at::Tensor> tensors;
  for (const std::string& name : results) tensors.push_back(result.toGenericDict().at(name).toTensor());
  return tensors;
}

}  // namespace addend::onnx

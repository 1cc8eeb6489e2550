#include "core/onnx/operator_testing.h"

#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/onnx/onnx_model.h"

namespace addend::onnx {
namespace {

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

MessageWriter IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  return MessageWriter().Bytes(1, name).PackedIntegers(8, values).Integer(20, 7);
}

MessageWriter TextAttribute(const std::string& name, const std::string& value) {
  return MessageWriter().Bytes(1, name).Bytes(4, value).Integer(20, 3);
}

MessageWriter With(MessageWriter node, const std::vector<MessageWriter>& attributes) {
  for (const MessageWriter& attribute : attributes) node.Message(5, attribute);
  return node;
}

MessageWriter IntegerTensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& values) {
  return TensorMessage(name, 7, dims).PackedIntegers(7, values);
}

std::shared_ptr<Model> NodeModel(const std::vector<MessageWriter>& nodes, size_t num_inputs,
                                 const std::vector<MessageWriter>& initializers, int64_t opset) {
  GraphParts parts;
  parts.nodes = nodes;
  parts.initializers = initializers;
  for (size_t k = 0; k < num_inputs; ++k) {
    parts.inputs.push_back(MessageWriter().Bytes(1, "x" + std::to_string(k)));
  }
  parts.outputs = {MessageWriter().Bytes(1, "y")};
  MessageWriter model;
  model.Integer(1, 8).Message(7, GraphMessage(parts)).Message(8, OperatorSet("", opset));
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

}  // namespace addend::onnx

// Models of one node or a few, for tests of operators.
#ifndef ADDEND_CORE_ONNX_NODE_TESTING_H_
#define ADDEND_CORE_ONNX_NODE_TESTING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {

MessageWriter FloatAttribute(const std::string& name, float value);
MessageWriter TextAttribute(const std::string& name, const std::string& text);
MessageWriter TextsAttribute(const std::string& name, const std::vector<std::string>& texts);
MessageWriter FloatsAttribute(const std::string& name, const std::vector<float>& values);
MessageWriter IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
MessageWriter TensorAttribute(const std::string& name, const at::Tensor& value);

MessageWriter With(MessageWriter node, const std::vector<MessageWriter>& attributes);
// int64.
MessageWriter IntegerTensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& values);

// Nodes that make y of the inputs x0, x1, ..., for which nobody says sizes. `data_type`: that of the inputs; 0: nobody
// says it. `domain`: of which the model has operators beside those of the standard.
std::shared_ptr<Model> ModelOfNodes(const std::vector<MessageWriter>& nodes, size_t num_inputs,
                                    const std::vector<MessageWriter>& initializers = {}, int64_t opset = 17,
                                    int32_t data_type = 0, const std::string& domain = "");

at::Tensor ResultOf(Model& model, const std::vector<at::Tensor>& inputs);
// The names of the operators that a trace of a run sees.
std::vector<std::string> OperatorsOf(Model& model, const std::vector<at::Tensor>& inputs);

class NodeModel {
 public:
  // `version`: of the default domain's operator set; `domain_version`: of that of another domain.
  explicit NodeModel(std::string op_type, std::string domain = "", int64_t version = 17, int64_t domain_version = 1)
      : op_type_(std::move(op_type)), domain_(std::move(domain)), version_(version), domain_version_(domain_version) {}

  NodeModel& Input(const at::Tensor& value);     // of the model
  NodeModel& Constant(const at::Tensor& value);  // in the file
  NodeModel& None();
  NodeModel& Attribute(MessageWriter attribute);

  // The first `outputs` results.
  std::vector<at::Tensor> Run(size_t outputs = 1) const;

 private:
  std::string op_type_;
  std::string domain_;
  int64_t version_;
  int64_t domain_version_;
  std::vector<std::string> names_;
  std::vector<MessageWriter> attributes_;
  GraphParts parts_;
  std::vector<c10::IValue> inputs_;
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_NODE_TESTING_H_

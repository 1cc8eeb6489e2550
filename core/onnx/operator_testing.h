// Models of few nodes, for tests of operators.
#ifndef ADDEND_CORE_ONNX_OPERATOR_TESTING_H_
#define ADDEND_CORE_ONNX_OPERATOR_TESTING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {

MessageWriter FloatAttribute(const std::string& name, float value);
MessageWriter IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
MessageWriter TextAttribute(const std::string& name, const std::string& value);
MessageWriter With(MessageWriter node, const std::vector<MessageWriter>& attributes);
// int64.
MessageWriter IntegerTensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& values);

// Nodes that make y of the inputs x0, x1, ..., for which nobody says types and sizes.
std::shared_ptr<Model> NodeModel(const std::vector<MessageWriter>& nodes, size_t num_inputs,
                                 const std::vector<MessageWriter>& initializers = {}, int64_t opset = 17);

at::Tensor ResultOf(Model& model, const std::vector<at::Tensor>& inputs);
// The names of the operators that a trace of a run sees.
std::vector<std::string> OperatorsOf(Model& model, const std::vector<at::Tensor>& inputs);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_OPERATOR_TESTING_H_

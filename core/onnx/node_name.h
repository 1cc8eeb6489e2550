// Nodes of ONNX models as messages name them.
#ifndef ADDEND_CORE_ONNX_NODE_NAME_H_
#define ADDEND_CORE_ONNX_NODE_NAME_H_

#include <string>

#include "core/onnx/model_proto.h"

namespace addend::onnx {

// The name and the operator of a node: "node /encoder/MatMul (MatMul)"; one without a name is told by what it makes:
// "the node that makes y (com.microsoft.Gelu)".
std::string NameOf(const NodeProto& node);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_NODE_NAME_H_

// The place of a node of an ONNX model in its author's program: module and source lines.
#ifndef ADDEND_CORE_ONNX_NODE_PLACE_H_
#define ADDEND_CORE_ONNX_NODE_PLACE_H_

#include "core/intercept/script_frames.h"
#include "core/onnx/model_proto.h"

namespace addend::onnx {

// Reads the place from what exporters of PyTorch write: the newer one into metadata, the older one into names of nodes
// ("/encoder/layer.0/MatMul"). A node without source lines is one frame itself: its operator, and as the function its
// name, or that of what it makes.
CodePlace PlaceOf(const NodeProto& node);

// The position of a node as errors tell it.
Position PositionOf(const NodeProto& node);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_NODE_PLACE_H_

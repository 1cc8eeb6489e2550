// GELU as exporters write it where their operator set lacks it, as one operator.
#ifndef ADDEND_CORE_ONNX_FUSE_GELU_H_
#define ADDEND_CORE_ONNX_FUSE_GELU_H_

#include <ATen/core/Tensor.h>

#include <deque>

#include "absl/functional/function_ref.h"
#include "core/onnx/graph.h"
#include "core/onnx/plan.h"

namespace addend::onnx {

// Puts one step in place of the five that compute x (1 + erf(x / sqrt(2))) / 2, in any order of its factors, where
// nothing else reads what is between them. Both are explained alike, and the one needs fewer passes over its tensors.
// `constant`: the tensor of a value that is a constant of the file; null for others. `operators`: where
// operators stand that no node of the file is.
void FuseGelu(absl::FunctionRef<const at::Tensor*(int value)> constant, std::deque<Operator>* operators,
              GraphPlan* graph);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_FUSE_GELU_H_

// Operands of operators of two tensors, as the versions of ONNX align them.
#ifndef ADDEND_CORE_ONNX_OPERANDS_H_
#define ADDEND_CORE_ONNX_OPERANDS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/Optional.h>

#include <vector>

#include "core/onnx/context.h"

namespace addend::onnx {

// Names of the attributes that say how operands were aligned before version 7.
std::vector<std::string> OldBroadcast();

// Two operands. At most one is a number too: a known one that gives the result no shape.
struct Operands {
  at::Tensor a;
  at::Tensor b;
  c10::optional<at::Scalar> a_number;
  c10::optional<at::Scalar> b_number;
};

Operands TwoOperands(const Context& context);

// The tensor itself where it has the type: a conversion that does nothing is not for the trace.
at::Tensor InType(const at::Tensor& tensor, at::ScalarType type);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_OPERANDS_H_

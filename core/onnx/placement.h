// The type and the device that a model computes in, in place of those of its file.
#ifndef ADDEND_CORE_ONNX_PLACEMENT_H_
#define ADDEND_CORE_ONNX_PLACEMENT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>

#include "core/onnx/datum.h"

namespace addend::onnx {

struct Placement {
  std::function<c10::ScalarType(c10::ScalarType)> dtype;  // of a type of the file; null: the same
  c10::Device device = c10::Device(c10::kCPU);

  // The type that the model computes in where the file says `type`.
  c10::ScalarType TypeFor(c10::ScalarType type) const;
  // The type of known values where the file says `type`: that, but half types are wider where the model's are.
  c10::ScalarType KnownTypeFor(c10::ScalarType type) const;

  // A value as an operator reads it; see Note [Known values]. None gives an undefined tensor.
  at::Tensor TensorOf(const Datum& datum) const;
  // The value of a constant of the file.
  Datum ConstantOf(const at::Tensor& constant, bool copy) const;
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_PLACEMENT_H_

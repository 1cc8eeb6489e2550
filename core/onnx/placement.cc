#include "core/onnx/placement.h"

#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"

namespace addend::onnx {

c10::ScalarType Placement::TypeFor(c10::ScalarType type) const { return dtype ? dtype(type) : type; }

c10::ScalarType Placement::KnownTypeFor(c10::ScalarType type) const {
  const bool narrow = type == at::kHalf || type == at::kBFloat16;
  return narrow && c10::elementSize(TypeFor(type)) > c10::elementSize(type) ? TypeFor(type) : type;
}

at::Tensor Placement::TensorOf(const Datum& datum) const {
  if (datum.IsSequence()) throw InvalidArgument("a sequence stands where a tensor is needed");
  if (datum.tensor.defined() || !datum.known.defined()) return datum.tensor;
  const TracingPause pause;
  return datum.known.to(device, TypeFor(datum.known.scalar_type()));
}

Datum Placement::ConstantOf(const at::Tensor& constant, bool copy) const {
  const TracingPause pause;
  const c10::ScalarType type = constant.scalar_type();
  Datum datum = Datum::Of(constant.to(device, TypeFor(type), /*non_blocking=*/false, copy), Descent::kConstants);
  const bool is_float = c10::isFloatingType(type) || c10::isComplexType(type);
  if (!is_float || constant.numel() <= kMostKnownFloats) {
    datum.known = constant.to(c10::Device(c10::kCPU), KnownTypeFor(type), /*non_blocking=*/false, copy);
  }
  return datum;
}

}  // namespace addend::onnx

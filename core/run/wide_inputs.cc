#include "core/run/wide_inputs.h"

#include <cstddef>
#include <cstdint>

#include "core/intercept/replace_tensors.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/geometry.h"

namespace addend {

at::Tensor WideInputs::Wide(const at::Tensor& tensor) const {
  if (!on_ || !tensor.defined() || !Continuous(tensor.scalar_type())) return tensor;
  return tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble);
}

at::Tensor WideInputs::Add(const at::Tensor& value) {
  const TracingPause pause;
  at::Tensor wide = Wide(value);
  if (wide.scalar_type() != value.scalar_type()) copies_.push_back({value, wide});
  return wide;
}

at::Tensor WideInputs::Seen(const at::Tensor& tensor) const {
  if (copies_.empty() || !tensor.defined() || !tensor.has_storage()) return tensor;
  for (const Copy& copy : copies_) {
    if (!tensor.is_alias_of(copy.value) || tensor.scalar_type() != copy.value.scalar_type()) continue;
    const int64_t offset = tensor.storage_offset() - copy.value.storage_offset();
    int64_t last = offset;
    for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    if (tensor.numel() > 0 && (offset < 0 || last >= copy.wide.numel())) continue;
    const TracingPause pause;
    return copy.wide.as_strided(tensor.sizes(), tensor.strides(), tensor.numel() > 0 ? offset : 0);
  }
  return tensor;
}

void WideInputs::See(const Operator& op, Stack* stack) const {
  if (copies_.empty()) return;
  const size_t first = stack->size() - op.schema().arguments().size();
  for (size_t a = first; a < stack->size(); ++a) {
    (*stack)[a] = ReplaceTensors((*stack)[a], [&](const at::Tensor& tensor) { return Seen(tensor); });
  }
}

}  // namespace addend

#include "core/model/model_state.h"

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <optional>

#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

bool SameMemory(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// A tensor without the dimensions along which its elements are the same memory, as those that expand() gave.
at::Tensor EachOnce(at::Tensor tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) == 0) tensor = tensor.narrow(d, 0, 1);
  }
  return tensor;
}

}  // namespace

void KeptTensors::Add(const std::string& name, const at::Tensor& tensor, bool elements) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_meta()) return;
  const TracingPause pause;
  const at::Tensor memory = tensor.detach();
  kept_.push_back({name, tensor, memory, elements ? EachOnce(memory).clone() : at::Tensor()});
}

void KeptTensors::Restore() {
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  for (Kept& one : kept_) {
    if (!SameMemory(one.tensor, one.memory)) one.tensor.set_data(one.memory);
    // Batch norms write theirs without counting it.
    if (!one.before.defined() || EachOnce(one.tensor).equal(one.before)) continue;
    std::optional<c10::InferenceMode> inference;
    if (one.tensor.is_inference()) inference.emplace();
    EachOnce(one.tensor).copy_(one.before);
  }
}

std::string KeptTensors::Difference() const {
  const TracingPause pause;
  for (const Kept& one : kept_) {
    if (!SameMemory(one.tensor, one.memory)) return one.name;
    if (one.before.defined() && !EachOnce(one.tensor).equal(one.before)) return one.name;
  }
  return "";
}

}  // namespace addend

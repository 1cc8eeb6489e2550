#include "core/program/differentiation.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <string>

#include "absl/strings/match.h"
#include "core/program/recorder.h"

namespace addend {

bool Differentiates(const Operator& op, const torch::jit::Stack& stack,
                    const std::function<bool(const at::Tensor&)>& inner) {
  if (!c10::GradMode::is_enabled()) return false;
  bool found = false;
  ForEachArgument(op, stack, [&](const at::Tensor& tensor) {
    found = found || (tensor.defined() && tensor.requires_grad() && tensor.is_leaf() && inner(tensor));
  });
  return found;
}

bool IsSaved(const at::Tensor& tensor) {
  return torch::autograd::get_current_graph_task_exec_info() != nullptr && tensor.numel() > 0 &&
         !tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

bool IsTakenApart(const Operator& op, const OperatorTraits& traits) {
  if (traits.gives_plain || traits.returns.empty() || !op.composite()) return false;
  // The steps of one_hot() lose whose id a vector is, and it has no gradient. What linear algebra consists of are
  // factors, whose parts would be other parts.
  const std::string& name = op.schema().name();
  return name != "aten::one_hot" && name != "aten::det" && name != "aten::slogdet" && name != "aten::logdet" &&
         !absl::StartsWith(name, "aten::linalg_");
}

}  // namespace addend

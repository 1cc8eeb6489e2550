// The dtype that operators of a traced run compute in; see Note [Computed in] in core/intercept/operator.h.
#ifndef ADDEND_CORE_RUN_COMPUTE_DTYPE_H_
#define ADDEND_CORE_RUN_COMPUTE_DTYPE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <vector>

#include "core/base/policy.h"
#include "core/intercept/tracing_scope.h"
#include "core/run/wide_inputs.h"

namespace addend {

// Undefined: each computes in that of its arguments.
inline at::ScalarType DtypeOf(ComputeDtype compute) {
  switch (compute) {
    case ComputeDtype::kFloat32:
      return at::kFloat;
    case ComputeDtype::kFloat64:
      return at::kDouble;
    default:
      return at::ScalarType::Undefined;
  }
}

// RAII: while it lives, what this thread computes is computed in that dtype, as a traced run of that policy does.
class ComputeScope : private CallHandler {
 public:
  // `inputs`: those that the traced run decomposes, as the model is given them here.
  ComputeScope(ComputeDtype compute, const std::vector<at::Tensor>& inputs)
      : dtype_(DtypeOf(compute)), wide_inputs_(dtype_) {
    if (dtype_ == at::ScalarType::Undefined) return;
    for (const at::Tensor& input : inputs) wide_inputs_.Add(input);
    scope_.emplace(static_cast<CallHandler*>(this));
  }

  // A tensor of the model as operators see it; see Note [Wide inputs] in wide_inputs.h.
  at::Tensor Seen(const at::Tensor& tensor) const { return wide_inputs_.Seen(tensor); }

 private:
  void Handle(const Operator& op, Stack* stack) override {
    const Operator own = op.ComputedIn(dtype_);
    own.AskForItsDtype(stack);
    wide_inputs_.See(own, stack);
    op.composite() ? own.Expand(stack) : own.Run(stack);
  }
  at::ScalarType computed_in() const override { return dtype_; }

  at::ScalarType dtype_;
  WideInputs wide_inputs_;
  std::optional<TracingScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_COMPUTE_DTYPE_H_

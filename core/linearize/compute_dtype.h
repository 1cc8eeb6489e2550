// The dtype that operators of a traced run compute in; see Note [Computed in] in core/intercept/operator.h.
#ifndef ADDEND_CORE_LINEARIZE_COMPUTE_DTYPE_H_
#define ADDEND_CORE_LINEARIZE_COMPUTE_DTYPE_H_

#include <c10/core/ScalarType.h>

#include <optional>

#include "core/base/policy.h"
#include "core/intercept/tracing_scope.h"

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
  explicit ComputeScope(ComputeDtype compute) : dtype_(DtypeOf(compute)) {
    if (dtype_ != at::ScalarType::Undefined) scope_.emplace(static_cast<CallHandler*>(this));
  }

 private:
  void Handle(const Operator& op, Stack* stack) override {
    const Operator own = op.ComputedIn(dtype_);
    own.AskForItsDtype(stack);
    op.composite() ? own.Expand(stack) : own.Run(stack);
  }

  at::ScalarType dtype_;
  std::optional<TracingScope> scope_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_COMPUTE_DTYPE_H_

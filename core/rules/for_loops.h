// Decides whether loops on the CPU may read a tensor's numbers from memory, in place of LibTorch's operators.
#ifndef ADDEND_CORE_RULES_FOR_LOOPS_H_
#define ADDEND_CORE_RULES_FOR_LOOPS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace addend {

// True if autograd follows what is computed from the tensor, which loops would hide.
inline bool IsFollowed(const at::Tensor& t) { return c10::GradMode::is_enabled() && t.requires_grad(); }

// True if loops may read the tensor, in any layout.
inline bool ForLoops(const at::Tensor& t) {
  return t.device().is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble) && !t.is_neg() &&
         !IsFollowed(t);
}

// True if loops may read the tensor one element after the other.
inline bool ForFlatLoops(const at::Tensor& t) { return ForLoops(t) && t.is_contiguous(); }

// True if loops may read both tensors element by element.
inline bool ForFlatLoops(const at::Tensor& a, const at::Tensor& b) {
  return ForFlatLoops(a) && ForFlatLoops(b) && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
}

// All elements in some order, by a loop that neither a sign nor a gradient matters to.
inline bool IsDenseOnCpu(const at::Tensor& t) {
  return t.device().is_cpu() && t.is_non_overlapping_and_dense() &&
         (t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble);
}

// f(float()) or f(double()), by the dtype of numbers that a loop may read.
template <typename Function>
auto DispatchReal(at::ScalarType dtype, Function&& f) {
  return dtype == at::kFloat ? f(float{}) : f(double{});
}

}  // namespace addend

#endif  // ADDEND_CORE_RULES_FOR_LOOPS_H_

// The decomposed inputs of a run that computes in a wider dtype than theirs.
//
// Note [Wide inputs]
// What a component starts with is value - reference. Where operators compute in float64, that difference has to be
// taken in float64 too, while the model keeps the input that it was given: it may look at its dtype. So each such input
// has a copy in float64, and every operator that is called with the memory of the input gets the same view of the copy.
// What is written into the input goes into the copy.
#ifndef ADDEND_CORE_RUN_WIDE_INPUTS_H_
#define ADDEND_CORE_RUN_WIDE_INPUTS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <vector>

#include "core/intercept/operator.h"

namespace addend {

class WideInputs {
 public:
  // dtype: what operators compute in; nothing happens but for float64.
  explicit WideInputs(at::ScalarType dtype) : on_(dtype == at::kDouble) {}

  // A tensor that says something of an input, in its dtype: float64 for narrower numbers. Undefined stays undefined.
  at::Tensor Wide(const at::Tensor& tensor) const;
  // The copy of an input, which is contiguous; the input itself where it has none. Keep the input while operators run.
  at::Tensor Add(const at::Tensor& value);
  // The view of a copy that a tensor of an input's memory stands for; else the tensor.
  at::Tensor Seen(const at::Tensor& tensor) const;
  // Replaces all arguments on the stack by what Seen() gives for them.
  void See(const Operator& op, Stack* stack) const;

 private:
  struct Copy {
    at::Tensor value;  // as the model has it
    at::Tensor wide;
  };
  bool on_;
  std::vector<Copy> copies_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_WIDE_INPUTS_H_

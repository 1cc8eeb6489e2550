// The arguments and results of an operator that runs in a wider dtype; see Note [Computed in] in operator.h.
#ifndef ADDEND_CORE_INTERCEPT_COMPUTED_IN_H_
#define ADDEND_CORE_INTERCEPT_COMPUTED_IN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <c10/core/ScalarType.h>

#include <vector>

#include "core/intercept/operator.h"

namespace addend {

// Whether the operator takes its result from a table as it is, so that the result is converted instead of the table.
bool TakesFromTable(const c10::FunctionSchema& schema);
// Converts tensors of narrower types among the arguments on the stack to `dtype` (complex ones to its complex type),
// but for those that the operator writes or gives a view of. Returns whether there were any.
bool WidenArguments(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack);

// Narrower tensors that an operator writes, while it runs on wide copies of them: many operators refuse to write wider
// numbers than those of the tensor.
class WrittenWide {
 public:
  // Puts wide copies in place of such arguments on the stack.
  WrittenWide(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack);
  // Once the operator has run: writes, rounded, what is in the copies, and puts the tensors among the results again.
  void PutBack(const c10::FunctionSchema& schema, Stack* stack) const;

 private:
  struct Copy {
    at::Tensor own;
    at::Tensor wide;
  };
  std::vector<Copy> copies_;
};

// Converts those among the results on the stack that are no arguments: a new tensor gets the default dtype where nobody
// asks for one.
void WidenResults(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_COMPUTED_IN_H_

// The arguments and results of an operator that runs in float32; see Note [In float32] in operator.h.
#ifndef ADDEND_CORE_INTERCEPT_IN_FLOAT32_H_
#define ADDEND_CORE_INTERCEPT_IN_FLOAT32_H_

#include <ATen/core/function_schema.h>

#include "core/intercept/operator.h"

namespace addend {

// Whether the operator takes its result from a table as it is, so that the result is converted instead of the table.
bool TakesFromTable(const c10::FunctionSchema& schema);
// Converts tensors of half types among the arguments on the stack, but for those that the operator writes or gives a
// view of.
void WidenArguments(const c10::FunctionSchema& schema, Stack* stack);
// Converts those among the results on the stack.
void WidenResults(Stack* stack);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_IN_FLOAT32_H_

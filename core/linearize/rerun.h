// A recorded call, made again on other tensors.
#ifndef ADDEND_CORE_LINEARIZE_RERUN_H_
#define ADDEND_CORE_LINEARIZE_RERUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "core/intercept/operator.h"
#include "core/program/traced_calls.h"
#include "core/rules/call_arguments.h"

namespace addend {

// The arguments of a call as rules and rewrites read them. `arguments`: by schema position.
CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments);

// Makes the call again, out of place and untraced, on one tensor for each operand, in their order: written operands are
// copied first. Returns the tensors among the results.
std::vector<at::Tensor> Rerun(const Call& call, const std::vector<at::Tensor>& operands);
// Makes the call again with other numbers, strings and lists too, one for each argument of the schema (None for
// tensors).
std::vector<at::Tensor> Rerun(const Call& call, const std::vector<c10::IValue>& arguments,
                              const std::vector<at::Tensor>& operands);

// The arguments of a call on the stack: `given` by schema position, None for tensors, and one tensor for each operand.
// without_out: out= arguments are left out.
Stack StackOf(const Call& call, const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& operands,
              bool without_out);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RERUN_H_

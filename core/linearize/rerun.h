// A recorded call, made again on other tensors.
#ifndef ADDEND_CORE_LINEARIZE_RERUN_H_
#define ADDEND_CORE_LINEARIZE_RERUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "core/program/traced_calls.h"
#include "core/rules/call_arguments.h"

namespace addend {

// The arguments of a call as rules and rewrites read them. `arguments`: by schema position.
CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments);

// One tensor for each of the call's operands, in their order. Out of place: written operands are copied first. Returns
// the tensors among the results. Not traced.
std::vector<at::Tensor> Rerun(const Call& call, const std::vector<at::Tensor>& operands);
// The same with other numbers, strings and lists, one for each argument of the schema (None for tensors).
std::vector<at::Tensor> Rerun(const Call& call, const std::vector<c10::IValue>& arguments,
                              const std::vector<at::Tensor>& operands);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RERUN_H_

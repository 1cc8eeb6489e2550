// A recorded call, made again on other tensors.
#ifndef ADDEND_CORE_LINEARIZE_RERUN_H_
#define ADDEND_CORE_LINEARIZE_RERUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
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

// How the stack of a call is made of its arguments, found once for calls that are made many times.
class StackRecipe {
 public:
  // without_out: out= arguments are left out.
  StackRecipe(const Call& call, bool without_out);
  // `given` by schema position, None for tensors, and one tensor for each operand, in their order.
  Stack Make(const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& operands) const;

 private:
  struct Argument {
    enum class Kind { kPlain, kTensor, kList, kOptionalList, kLeftOut };
    Kind kind = Kind::kPlain;
    size_t operands = 0;     // how many of them it has
    c10::TypePtr element{};  // of an optional list
  };
  std::vector<Argument> arguments_;  // by schema position
};

// Whether a tensor lies in its storage as an operand does.
bool HasLayout(const at::Tensor& tensor, const Operand& operand);
// Bit for bit, NaN being the same as NaN.
bool SameBits(const at::Tensor& a, const at::Tensor& b);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_RERUN_H_

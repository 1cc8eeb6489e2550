// One recorded call, made once more on given tensors.
#ifndef ADDEND_CORE_PROGRAM_INVOKE_H_
#define ADDEND_CORE_PROGRAM_INVOKE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/intercept/operator.h"
#include "core/program/traced_calls.h"

namespace addend {

// How the stack of a call is made of its arguments, found once for calls that are made many times.
class StackRecipe {
 public:
  explicit StackRecipe(const Call& call);
  // `positions`: by tensor the schema position of its argument, ascending. without_out: out= arguments are left out.
  StackRecipe(const c10::FunctionSchema& schema, const std::vector<int16_t>& positions, bool without_out);
  // `given` by schema position, None for tensors (of a list of optional ones: which are there), and the tensors in
  // their order.
  Stack Make(const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& tensors) const;
  // Whether the operator may write tensor k beside its results, so that it is given a copy.
  bool WritesAside(size_t k) const { return aside_[k]; }

 private:
  struct Argument {
    enum class Kind { kPlain, kTensor, kList, kOptionalList, kLeftOut };
    Kind kind = Kind::kPlain;
    size_t tensors = 0;      // how many of them it has
    bool may_lack = false;   // None is a value of its type
    c10::TypePtr element{};  // of an optional list
  };
  std::vector<Argument> arguments_;  // by schema position
  std::vector<bool> aside_;          // by tensor
};

// Outputs of a call that was made once more.
struct Invoked {
  std::vector<at::Tensor> outputs;               // the tensors of `call.outputs`: written, or else returned
  std::vector<c10::IValue> plain;                // results that are no tensors
  absl::flat_hash_map<int, at::Tensor> written;  // by storage: the copy that the call wrote, in one dimension
};

// Makes a call on the storages of its operands, without changing them: what is written, also aside, is copied first.
// `storage(k)`: that of operand k, in one dimension; not asked where the operand is undefined. `plain`: whether results
// that are no tensors are asked for. Throws what the operator throws.
Invoked Invoke(const Call& call, const StackRecipe& recipe, const std::function<const at::Tensor&(size_t)>& storage,
               bool plain = false);

// Makes a call out of place and untraced on one tensor for each operand, in their order: written operands are copied
// first. Where derivatives are asked for, out= forms are replaced by those that return their result. Returns the
// tensors among the results. `arguments`: other numbers, strings and lists than the call's own, by schema position.
std::vector<at::Tensor> Invoke(const Call& call, const std::vector<at::Tensor>& operands);
std::vector<at::Tensor> Invoke(const Call& call, const std::vector<c10::IValue>& arguments,
                               const std::vector<at::Tensor>& operands);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_INVOKE_H_

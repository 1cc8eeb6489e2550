// A call while it runs: what the parts of the tracer hand one another about it.
#ifndef ADDEND_CORE_RUN_CALL_AT_HAND_H_
#define ADDEND_CORE_RUN_CALL_AT_HAND_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "core/intercept/replace_tensors.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/run/reference_cache.h"
#include "core/run/role.h"

namespace addend {

struct CallAtHand {
  // The tensors of `call.outputs`, in their order.
  std::vector<at::Tensor> Outputs() const;
  // Calls `visit(tensor, operand)` for the arguments' tensors in their order.
  template <typename Visit>
  void ForEachOperand(Visit visit) const {
    size_t k = 0;
    for (const c10::IValue& argument : arguments) {
      ForEachTensor(argument, [&](const at::Tensor& tensor) { visit(tensor, call.operands[k++]); });
    }
  }
  // The arguments with the tensors that `replace(tensor, operand)` gives.
  template <typename Replace>
  std::vector<c10::IValue> Replaced(Replace replace) const {
    size_t k = 0;
    std::vector<c10::IValue> replaced;
    for (const c10::IValue& argument : arguments) {
      replaced.push_back(
          ReplaceTensors(argument, [&](const at::Tensor& tensor) { return replace(tensor, call.operands[k++]); }));
    }
    return replaced;
  }

  const Role& role;
  Call& call;
  // The arguments as the model passes them, tensors included; none if the call is neither traced nor writes.
  std::vector<c10::IValue> arguments = {};
  std::vector<c10::IValue> results = {};  // none before it ran
  // The generators that it draws from, as they were before it: on the references it draws the same.
  std::vector<std::pair<at::Generator, at::Tensor>> generators = {};
  // See Note [Kept references].
  RunReferences::Known seen = {};               // what it reads, as it was before it
  const RunReferences::Known* known = nullptr;  // what the last run found, where that is the same
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_CALL_AT_HAND_H_

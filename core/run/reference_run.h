// A call that the model made, made once more on the references of its operands.
//
// Note [References]
// The reference of a tensor is what the recorded operators give on the baseline. Each traced operator is therefore run
// once more, right after the model ran it, on reference tensors of the same geometry. No rule is needed for that, and a
// model without data-dependent branches gives bit for bit what it gives when it is run on the baseline alone.
#ifndef ADDEND_CORE_RUN_REFERENCE_RUN_H_
#define ADDEND_CORE_RUN_REFERENCE_RUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "core/run/call_at_hand.h"
#include "core/run/storage_states.h"
#include "core/run/tracked_ids.h"

namespace addend {

class ReferenceRun {
 public:
  // `states` and `ids` must outlive it. `differentiable`: see TracedRun.
  ReferenceRun(StorageStates* states, const TrackedIds* ids, bool differentiable)
      : states_(states), ids_(ids), differentiable_(differentiable) {}

  // Keeps what the call draws from; before the model makes it.
  static void SaveGenerators(CallAtHand& own);
  // The results of a call that the model made and whose operands are marked; writes the references of what it writes.
  // NaN where the operator fails. Throws FailedPrecondition where rows of ids would begin in that.
  std::vector<c10::IValue> Run(const CallAtHand& own);
  // The results of a call that gives integers, booleans or numbers only. None if it fails.
  std::vector<c10::IValue> RunForIds(const CallAtHand& own);

  // The results of a call that the model has not made, on the values or on the references. Writes copies, and of the
  // references also copies of the arguments that `updates` counts. None where it fails on the references.
  std::vector<c10::IValue> RunAside(const CallAtHand& own, bool on_reference, const std::vector<int>& updates) const;

 private:
  std::vector<c10::IValue> Arguments(const CallAtHand& own);
  std::vector<c10::IValue> StandIns(const CallAtHand& own);

  StorageStates* states_;
  const TrackedIds* ids_;
  bool differentiable_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_REFERENCE_RUN_H_

// Integers and booleans that depend on split inputs, while the model runs: what they are on the baseline, and which
// component each element belongs to. See Note [Ids] in core/run/ids.h.
//
// Note [Steps]
// Many models read ids from floats: a category in a table of floats, a bin. What an operator makes element by element
// of one element of an input (scaled, clamped, rounded, compared with numbers) is made of that element alone. An
// integer read from it is an id of that element, as one given as an integer is: the number of a bin, or of comparisons
// that hold. Which element it is, each float storage knows by its steps until an operator reads several. A boolean
// is no id: masks and branches are conditions.
#ifndef ADDEND_CORE_RUN_TRACKED_IDS_H_
#define ADDEND_CORE_RUN_TRACKED_IDS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/base/error.h"
#include "core/program/traced_calls.h"
#include "core/run/call_at_hand.h"
#include "core/run/ids.h"
#include "core/run/storage_states.h"

namespace addend {

class TrackedIds {
 public:
  // `states` must outlive the ids. `baseline_conditions`: the reference takes the baseline's conditions.
  TrackedIds(StorageStates* states, bool baseline_conditions)
      : states_(states), baseline_conditions_(baseline_conditions) {}

  // Whether an operand's elements are ids still: no comparison and no float led to them.
  bool IsId(const Operand& operand) const;
  bool ReadsIds(const Call& call) const;
  // Whether the baseline gives an operand of the call with another number of elements, or not at all.
  bool ReadsUnknown(const Call& call) const;
  // Throws FailedPrecondition where that is so: the reference cannot have such conditions.
  void RequireKnown(const Call& call) const;
  // Throws FailedPrecondition for a call whose result has other sizes on the baseline, where conditions that it reads
  // make that so: a mask that finds another number of elements.
  void RequireSameSizes(const Call& call) const;
  // Whether rows begin in what a call gives, if that is continuous: ids become numbers there.
  bool StartsRows(const Role& role, const Call& call) const;
  // Whether a call that gives continuous numbers reads, on the baseline, the operand's reference, not its value.
  bool ReadsReference(const Role& role, const Call& call, const Operand& operand) const;
  // Marks the operands of a traced call whose references it reads on the baseline. Calls that give integers, booleans
  // and numbers only read them of all ids and conditions.
  void MarkOnBaseline(const Role& role, bool gives_numbers, Call& call) const;
  // The operator that derived what a call reads of ids and conditions; the call itself where it reads ids as given.
  Position OriginOf(const Call& call) const;
  // Whether all integers and booleans that the call reads are on the baseline what they are in the value.
  bool SameOnBaseline(const CallAtHand& own) const;

  // After a call that gives floats, for each output that has rows: whether they are steps of elements still.
  void FollowSteps(const CallAtHand& own, const Operand& output);

  // Labels of a call's first result, which has `sizes`.
  IdLabels LabelsOf(const CallAtHand& own, at::IntArrayRef sizes) const;
  // Labels of an operand's elements over its whole storage; -1 elsewhere, and everywhere where `labels` is undefined.
  at::Tensor FlatLabels(const at::Tensor& labels, const Operand& operand) const;
  // Integers or booleans that a call gave. `reference`: what it gave on the baseline; undefined, or of other sizes: not
  // known. What was written in place has its reference already. `labels`: undefined where no element has one.
  void Adopt(const Call& call, const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels,
             Operand& output);
  // All results of a call that gives integers and booleans only. `tensors`: its outputs; `references`: what it gave on
  // the baseline, none where that is not known; `own`: labels of the first output.
  void AdoptAll(Call& call, const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& references,
                const IdLabels& own);

 private:
  bool ReadsSteps(const Call& call) const;
  IdOperand IdOf(const at::Tensor& tensor, const Operand& operand) const;
  at::Tensor MovesOf(const Operand& operand, const at::Tensor& value) const;
  void SetLabels(const Operand& output, const at::Tensor& labels);

  StorageStates* states_;
  bool baseline_conditions_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_TRACKED_IDS_H_

// Traces a run: records its calls and keeps, beside them, the values and references that rules will need.
#ifndef ADDEND_CORE_RUN_TRACE_H_
#define ADDEND_CORE_RUN_TRACE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/intercept/first_error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/rules/registry.h"
#include "core/run/call_at_hand.h"
#include "core/run/checkpoints.h"
#include "core/run/inside_place.h"
#include "core/run/kept_references.h"
#include "core/run/read_back.h"
#include "core/run/reference_cache.h"
#include "core/run/reference_run.h"
#include "core/run/rewriting.h"
#include "core/run/role.h"
#include "core/run/starts.h"
#include "core/run/storage_states.h"
#include "core/run/traced_run.h"
#include "core/run/tracked_ids.h"
#include "core/run/unseen_memory.h"
#include "core/run/wide_inputs.h"
#include "core/run/written_attention.h"

namespace addend {

class Tracer : public CallHandler {
 public:
  // The registry and the policy must outlive the tracer.
  Tracer(const Registry* registry, const Policy* policy, int64_t numc, bool differentiable = false);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Reuses references of the last run in the cache where they are the same; Finish() stores those of this run. See Note
  // [Kept references]. Not for runs that autograd follows. Call it before inputs are declared.
  void UseReferences(std::shared_ptr<ReferenceCache> cache);

  // Limits what values and references may take, in bytes, about; see Note [Stretches] in checkpoints.h. The run is then
  // for a sweep back, without references of the last run. Not for runs that autograd follows. Throws InvalidArgument
  // where the policy needs the whole run.
  void LimitMemory(int64_t bytes) { checkpoints_.Limit(bytes, *policy_); }

  // Linearizes attention that the model writes out as one operator; see Note [Written-out attention] in
  // written_attention.h. The run is then for a sweep back that nobody asks what passes through each operator.
  void TakeAttentionWhole() { written_attention_.Begin(); }

  // Declares the decomposed inputs; all tensors are contiguous, cover their storage and have the shape of `value`.
  // A tensor that the model is given, whether it is split or not: before it is told how.
  void Give(const at::Tensor& value) { recorder_.Give(value); }
  // `read_labels`: the component that an element belongs to where an id is read from it. From numc on, those are
  // numbers of elements, which have no component of their own before one is read.
  void AddFloatInput(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels,
                     const at::Tensor& read_labels) {
    starts_.AddFloatInput(wide_inputs_.Add(value), wide_inputs_.Wide(reference), labels, read_labels);
    trace_.elements += value.numel();
  }
  // Adds an input that is given in parts. If operators compute in a wider dtype, the rounding of the parts in their own
  // dtype, by which they miss value - reference, is leftover. `marks`, `depth` and `single` are those of Start.
  void AddParts(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& parts,
                const at::Tensor& leftover = at::Tensor(), uint32_t marks = 0, int64_t depth = 0, bool single = false);
  void AddIds(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& labels) {
    starts_.AddIds(value, reference, labels);
  }
  // Declares a tensor that the run will compute; `reference` and `labels` have its shape. An element without label has
  // its value as its reference. Finish() throws FailedPrecondition where the run did not compute it.
  void AddInside(const InsidePlace& place, const at::Tensor& reference, const at::Tensor& labels) {
    starts_.AddInside(place, reference, labels);
  }

  // Runs an operator of the model and traces it. Throws, with the position, Unimplemented where no rule covers it,
  // FailedPrecondition where it cannot be run on the baseline, and what the operator throws.
  void Handle(const Operator& op, Stack* stack) override;
  at::ScalarType computed_in() const override;
  void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) override;

  Recorder& recorder() { return recorder_; }
  // A tensor of the model as operators see it; see Note [Wide inputs] in wide_inputs.h.
  at::Tensor Seen(const at::Tensor& tensor) const { return wide_inputs_.Seen(tensor); }
  // The storage of a tensor that the model was given or computed; -1: no operator has met it.
  int StorageOf(const at::Tensor& tensor) const { return recorder_.FindStorage(Seen(tensor)); }
  // The first error of Addend's own during the run; see Note [First error].
  std::exception_ptr error() const { return first_error_.error(); }
  // Returns the operand that one of the model's results is, and keeps its storage.
  Operand Output(const at::Tensor& tensor);
  TracedRun Finish();

 private:
  // The ways of an operator: as those that it consists of, as those of its rewrite, or as it is.
  bool IsTakenApart(const Operator& op, const Role& role, const Stack& stack);
  void RunExpanded(const Operator& op, Stack* stack, bool counts);
  std::vector<c10::IValue> RunRewrite(CallAtHand& own);
  void NotePrecision(const Role& role, const Call& call);
  void RunWhole(CallAtHand& own, Stack* stack);
  void BeforeRun(CallAtHand& own);
  void AfterRun(CallAtHand& own);

  // After a call that reads rows or ids: by what it gives.
  void TraceCall(CallAtHand& own);
  void TraceView(CallAtHand& own, const std::vector<at::Tensor>& tensors);
  void TraceGuard(const CallAtHand& own);
  void TraceIds(CallAtHand& own, const std::vector<at::Tensor>& tensors);
  void TraceNumbers(CallAtHand& own, const std::vector<at::Tensor>& tensors);

  void RefuseBytes(const CallAtHand& own, const std::vector<at::Tensor>& tensors) const;
  // Notes the conditions that a call reads. Returns whether they are the same on the baseline.
  bool NoteConditions(const CallAtHand& own);
  // Traces a call that reads floats back which were cast to integers: see Note [Rounding through integers]. Returns
  // false for any other call, and if each integer is made of one element of an input (`starts`): those are ids.
  bool TraceReadBack(CallAtHand& own, const std::vector<at::Tensor>& tensors, bool starts);
  void RequireRule(const CallAtHand& own) const;
  bool KnowsOutputs(const CallAtHand& own) const;
  // Sets the references of outputs and keeps them.
  void SetOutputs(CallAtHand& own, const std::vector<at::Tensor>& tensors, bool starts);
  void SetReference(const CallAtHand& own, size_t k, const at::Tensor& value, const at::Tensor& reference);

  const Policy* policy_;
  TracedRun trace_;
  FirstError first_error_;
  Recorder recorder_;
  Roles roles_;
  StorageStates states_;
  TrackedIds ids_;
  UnseenMemory unseen_;
  bool differentiates_ = false;  // see Note [Differentiation] in core/program/differentiation.h
  KeptReferences kept_;
  ReferenceRun reference_run_;
  Rewriting rewriting_;
  WideInputs wide_inputs_;
  Starts starts_;
  Checkpoints checkpoints_;
  ReadBack read_back_;
  WrittenAttention written_attention_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_TRACE_H_

// Operators that are run as others while the model runs; see Note [Rewrites] in core/rules/rewrite.h.
#ifndef ADDEND_CORE_RUN_REWRITING_H_
#define ADDEND_CORE_RUN_REWRITING_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <vector>

#include "core/base/policy.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/rules/rewrite.h"
#include "core/run/call_at_hand.h"
#include "core/run/kept_references.h"
#include "core/run/reference_run.h"
#include "core/run/storage_states.h"

namespace addend {

class Rewriting {
 public:
  // All must outlive it. `differentiable`: see TracedRun.
  Rewriting(const Policy* policy, bool differentiable, Recorder* recorder, StorageStates* states,
            ReferenceRun* reference_run, KeptReferences* kept)
      : policy_(policy),
        differentiable_(differentiable),
        recorder_(recorder),
        states_(states),
        reference_run_(reference_run),
        kept_(kept) {}

  // Whether the rule that stands in for the rewrite covers the call; see Note [Fused rewrites] in core/rules/fused.h.
  bool IsFused(const CallAtHand& own) const;
  // The results of the operator itself on the values; no scope sees that it runs.
  std::vector<c10::IValue> RunItself(const CallAtHand& own) const;
  // Runs the rewrite with tracing on. Its results have the numbers of `given`, which the operator itself gave. Throws
  // what the rewrite throws, and Internal where its results differ from those.
  std::vector<c10::IValue> Run(CallAtHand& own, const std::vector<c10::IValue>& given);

 private:
  // Expected results of a rewrite, result by result.
  struct Expected {
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> references;  // undefined: the operator fails on them
    bool known = false;                  // the references are the last run's
  };
  // Tensors that a call writes its results to, one for each of them; none if it returns them.
  struct Targets {
    std::vector<at::Tensor> tensors;
    bool is_out = false;
  };

  Expected Expect(CallAtHand& own, const std::vector<c10::IValue>& given);
  static Targets TargetsOf(const CallAtHand& own);
  // The tensor that the model gets as result `k`, of which the rewrite gave `result`.
  at::Tensor ResultFor(const CallAtHand& own, size_t k, const at::Tensor& result, const at::Tensor& value,
                       const Targets& targets, size_t first) const;
  bool IsLastWord(const at::Tensor& result, const Call& call, size_t first) const;
  void Adopt(const CallAtHand& own, size_t k, const at::Tensor& result, const at::Tensor& value,
             const at::Tensor& reference, size_t first, bool known);
  static bool AgreesInDouble(const CallAtHand& own, size_t k);
  Call* MakerOf(int storage, size_t first);

  const Policy* policy_;
  bool differentiable_;
  Recorder* recorder_;
  StorageStates* states_;
  ReferenceRun* reference_run_;
  KeptReferences* kept_;
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_REWRITING_H_

// Attention that a model writes out as operators of its own, found while it runs.
//
// Note [Written-out attention]
// Many models write attention as matmul, a scale, masks, softmax, dropout that does nothing, and matmul. Each of these
// has a rule; but the scores and weights, in value and reference, are as many numbers as there are pairs of positions,
// and a sweep passes through each of them. So a run for a sweep back looks for this pattern. Where it is met, the last
// product is linearized as one call of addend::attention on the query, the key, the value and the masks: one map in
// tiles (Note [Attention in tiles] in core/rules/attention_tiles.h), the product of the maps that the operators would
// have. The call keeps what the model made (Call::made): that is what runs again within a limit of memory. The
// operators between stay in the record. Who asks for something else that is computed from them, such as one weight,
// gets their own nodes; nobody else's rows pass through them.
//
// A pattern is taken only where one map gives the same to rounding: real numbers of one dtype on the CPU, all finite,
// at most one mask of each kind, masks that are no components, leave something to see for every query and hide it
// altogether, and a query and a key that nobody has overwritten since. Everything else is linearized as it is written.
#ifndef ADDEND_CORE_RUN_WRITTEN_ATTENTION_H_
#define ADDEND_CORE_RUN_WRITTEN_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <limits>

#include "absl/container/flat_hash_map.h"
#include "core/base/policy.h"
#include "core/program/traced_calls.h"
#include "core/rules/rule.h"
#include "core/run/call_at_hand.h"
#include "core/run/storage_states.h"

namespace addend {

class WrittenAttention {
 public:
  // Both must outlive it.
  WrittenAttention(const Policy* policy, StorageStates* states) : policy_(policy), states_(states) {}

  // Looks for the pattern from now on, unless the policy rules it out.
  void Begin();
  // After a traced call, which may become one of addend::attention.
  void AfterCall(CallAtHand& own);

 private:
  using Step = AttentionStep;
  // A mask, by its operand and its numbers.
  struct Mask {
    Operand operand;
    at::Tensor value;
  };
  // Calls of a pattern that have been met so far.
  struct Chain {
    Operand last;   // what its last call gave
    Operand query;  // [*, T, width]
    Operand key;    // [*, S, width]
    double scale = 1;
    double reach = 0;  // no score lies farther from zero, before masks
    Mask summand;
    Mask shown;
    Mask hidden;
    double fill = -std::numeric_limits<double>::infinity();  // the largest number that stands for "hidden"
    bool weights = false;                                    // the softmax has been taken
  };

  // The chain that an operand is the last of; null: none.
  const Chain* Find(const Operand& operand) const;
  bool IsFinite(const Operand& operand, const at::Tensor& value) const;
  bool IsNow(const Operand& operand) const;
  bool IsPlain(const Operand& operand) const;
  void Start(const CallAtHand& own);
  // Whether the call goes on with a chain.
  bool Extend(const CallAtHand& own, Step step, Chain* chain) const;
  bool Rescale(const CallAtHand& own, bool divide, Chain* chain) const;
  bool Shift(const CallAtHand& own, size_t mask, Chain* chain) const;
  bool Hide(const CallAtHand& own, Step step, Chain* chain) const;
  bool Fits(const CallAtHand& own, const Chain& chain) const;
  void Replace(CallAtHand& own, const Chain& chain) const;

  const Policy* policy_;
  StorageStates* states_;
  bool on_ = false;
  absl::flat_hash_map<int, Chain> chains_;  // by the storage of `last`
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_WRITTEN_ATTENTION_H_

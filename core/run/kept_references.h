// The references that one run takes from the last, and those that it keeps for the next; see Note [Kept references] in
// core/run/reference_cache.h.
#ifndef ADDEND_CORE_RUN_KEPT_REFERENCES_H_
#define ADDEND_CORE_RUN_KEPT_REFERENCES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/run/call_at_hand.h"
#include "core/run/reference_cache.h"
#include "core/run/storage_states.h"
#include "core/run/tracked_ids.h"

namespace addend {

class KeptReferences {
 public:
  // `states` and `ids` must outlive them. Nothing is kept before Use().
  KeptReferences(StorageStates* states, const TrackedIds* ids) : states_(states), ids_(ids) {}

  void Use(std::shared_ptr<ReferenceCache> cache);
  // The reference of an input, which its state has: kept, and compared with the last run's.
  void AddInput(const Operand& operand);
  // Sets own.seen and own.known: before the model makes the call, which may write what it reads.
  void LookUp(CallAtHand& own) const;
  // Does the same as LookUp for a call that is run as others; see RunReferences::rewrites.
  void LookUpRewrite(CallAtHand& own) const;
  // After the call: the references of its outputs are this run's, and known where they are the last run's.
  void Keep(CallAtHand& own);
  void KeepRewrite(CallAtHand& own, const std::vector<at::Tensor>& references);
  // Puts this run's references into the cache.
  void Store();

 private:
  using Calls = absl::flat_hash_map<int64_t, RunReferences::Known>;

  RunReferences::Known SeenBefore(const CallAtHand& own) const;
  bool IsKnown(const CallAtHand& own, const RunReferences::Known& last) const;
  void LookUpIn(Calls RunReferences::*calls, CallAtHand& own) const;

  StorageStates* states_;
  const TrackedIds* ids_;
  std::shared_ptr<ReferenceCache> cache_;
  std::shared_ptr<const RunReferences> last_run_;  // null: none
  std::shared_ptr<RunReferences> this_run_;        // null: nothing is kept
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_KEPT_REFERENCES_H_

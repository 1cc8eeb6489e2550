// Memory that no operator was seen to write.
//
// Note [Unseen memory]
// Composite operators with kernels of their own write results by pointer. What they consist of is all that a tracing
// scope sees, so such results would look like constants. They are refused: a result of an expanded operator that lies
// in memory that was allocated and that no operator wrote since, or that no operator gave at all.
//
// Note [Saved memory]
// An operator that is recorded whole keeps numbers for its gradient that are none of its results: group_norm() those
// that native_group_norm() gives besides, a mean and a deviation. Where a gradient inside the model reads such numbers
// (see Note [Differentiation] in core/program/differentiation.h), what they would be on the baseline nobody knows.
#ifndef ADDEND_CORE_RUN_UNSEEN_MEMORY_H_
#define ADDEND_CORE_RUN_UNSEEN_MEMORY_H_

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <vector>

#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/run/role.h"

namespace addend {

class UnseenMemory {
 public:
  // `recorder` must outlive it.
  explicit UnseenMemory(Recorder* recorder) : recorder_(recorder) {}

  // A call with these arguments was begun when so many storages were known. See Note [Saved memory].
  void Meet(const Operator& op, const Stack& stack, size_t known);
  // Whether a call computes from saved memory.
  bool ReadsSaved(const Call& call) const;

  // Before a call that is recorded: what it writes is seen.
  void BeforeRun(const Role& role, const Call& call);
  // After a call without rows: whether it gives memory without content, or computes from nothing else.
  void AfterRun(const Role& role, const Call& call);
  // After an operator was run as those that it consists of. Throws Unimplemented where a floating-point or complex
  // result was written unseen. Results that lie in the memory of tensors that it was `given` are none.
  void RequireSeen(const Operator& op, const std::vector<c10::IValue>& results,
                   const std::vector<at::Tensor>& given = {}) const;

 private:
  static bool Has(const std::vector<bool>& storages, int storage);
  static void Set(std::vector<bool>& storages, int storage, bool holds);
  bool IsUnseen(int storage) const { return Has(unseen_, storage); }
  bool MadeInside(int storage) const;
  bool ReadsUnseen(const Call& call) const;

  Recorder* recorder_;
  std::vector<bool> unseen_;  // by storage id: allocated, and no operator has written it since
  std::vector<bool> saved_;   // by storage id
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_UNSEEN_MEMORY_H_

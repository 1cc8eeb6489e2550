// Floats that a model casts to integers and back, found while it runs.
//
// Note [Rounding through integers]
// A layer that is quantised while the model runs rounds its floats, casts them to bytes, and reads these as floats
// again. Integers have no rows: components would end at the first cast. What the second one gives are the floats of the
// first without their fractions, so it is linearized as aten::trunc of them, which shares each step among what crosses
// it. The call keeps what the model made (Call::made). Views and casts to other integers may lie between both casts.
//
// Value and reference are what the integers hold, also where they are too small for a float: that is a step as well.
// Where a reference is not finite, no integer means anything, and it stays what it is. Nothing of this is done where
// somebody wrote the floats or the integers meanwhile, nor behind arithmetic of integers; there, what is read is a
// condition as before. Within a limit of memory the floats and what is read back stay: integers have no reference that
// a call could be made again from.
#ifndef ADDEND_CORE_RUN_READ_BACK_H_
#define ADDEND_CORE_RUN_READ_BACK_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program/traced_calls.h"
#include "core/run/call_at_hand.h"
#include "core/run/storage_states.h"

namespace addend {

class ReadBack {
 public:
  // `states` must outlive it.
  explicit ReadBack(StorageStates* states) : states_(states) {}

  // After a call that gives integers, which may be a cast.
  void AfterIntegers(const CallAtHand& own);
  // The call of aten::trunc that stands for one, with its argument and what it gives on the baseline, of the shape of
  // its result; null where the call reads something else.
  struct Found {
    Call call;
    at::Tensor argument;
    at::Tensor reference;
  };
  std::unique_ptr<Found> StandIn(const CallAtHand& own) const;

 private:
  // A cast that gave all of an integer storage.
  struct Cast {
    int version = 0;
    Operand floats;   // which the integers are of, element by element
    Operand written;  // how the cast laid them out
    // Value and reference of the floats' storage: within a limit of memory the run may have dropped them by the time
    // they are read back.
    at::Tensor value;
    at::Tensor reference;
  };

  bool IsNow(const Operand& operand) const;

  StorageStates* states_;
  absl::flat_hash_map<int, Cast> casts_;  // by the storage of the integers
};

}  // namespace addend

#endif  // ADDEND_CORE_RUN_READ_BACK_H_

// A traced run: its calls and, beside them, the values and references that rules need.
#ifndef ADDEND_CORE_RUN_TRACED_RUN_H_
#define ADDEND_CORE_RUN_TRACED_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/policy.h"
#include "core/program/traced_calls.h"
#include "core/rules/precision.h"

namespace addend {

// One version of a storage; all tensors are one-dimensional over the whole storage, value and reference in its dtype.
struct Version {
  // Notes what is asked of it later, and drops value and reference. `whole`: every element is what its call gave.
  void Drop(bool whole);
  // Take the place of what was there, and forget what was seen of it.
  void SetValue(at::Tensor other);
  void SetReference(at::Tensor other);
  // Forgets what was seen of value and reference, which are others now.
  void Forget();
  // Whether both were seen to be finite.
  bool IsFinite() const { return largest_value >= 0 && largest_reference >= 0; }

  int version = 0;
  // The call that makes it again, where it may be dropped; -1: it is kept for good. See Note [Stretches].
  int64_t made_by = -1;
  at::Tensor value;
  at::Tensor reference;  // undefined: equal to value
  at::Tensor labels;     // int64, of ids and of numbers that begin there; see Note [Ids] and StartsRows
  // Seen to be finite: while it was in the cache, or, on a device, by LookAtNumbers(). False: not looked at.
  bool reference_is_finite = false;
  bool value_is_finite = false;  // also of a version that was dropped
  // The largest magnitudes of value and reference, where both were seen to be finite; negative: not looked at.
  double largest_value = -1;
  double largest_reference = -1;
  // Fingerprint of a dropped version, which it has to have when it is made again; 0: not known.
  uint64_t fingerprint = 0;
};

// A decomposed input, in which rows begin. Exactly one of `labels` and `parts` is defined.
struct Start {
  Operand operand;
  at::Tensor labels;  // int64 over the storage: the component that each element belongs to, -1 for none
  at::Tensor parts;   // [numc, storage numel]
  // Only beside parts: what a composition knows that earlier operators gave.
  at::Tensor leftover;  // [storage numel]; undefined: zero
  uint32_t marks = 0;   // bits of Freeze: where the value comes from
  int64_t depth = 0;    // how many operators led to it
  bool single = false;  // they rounded as single precision does, whatever its dtype
  // Inside the model: the tensor that is split, which may be a part of the operand's storage.
  std::optional<Operand> inside;
};

// Numbers that are plain to rules (conditions, indices, numbers that a program reads) and came from decomposed tensors
// or from ids.
struct Condition {
  Position origin;    // the operator that derived them
  Position use;       // the operator that read them
  bool same = false;  // on the baseline they are the same
  int64_t call = -1;  // the number of the call that read them
};

// A call that used ids in a way in which no component follows.
struct MixedIds {
  Position use;
  bool same = false;  // on the baseline they are the same, so that nothing is missing
};

// Rows that begin in what a call gives, because ids become numbers there.
struct RowStart {
  at::Tensor moves;   // value - reference of each element; of a bag: of each id's vector, [ids, width]
  at::Tensor labels;  // int64: the component of each element, or of each vector along the last dimension; -1: none
  // int64 [ids]: the row of the result that an id's vector is added to; undefined: moves are the result's.
  at::Tensor bags;
};

struct TracedRun : TracedCalls {
  // The first call of each stretch, ascending from 0; empty: everything is kept. See Note [Stretches] in checkpoints.h.
  std::vector<int64_t> stretches;
  int64_t memory_limit = 0;                    // in bytes, about; 0: none
  bool dropped = false;                        // whether something did not fit
  std::vector<std::vector<Version>> versions;  // by storage id, ascending
  std::vector<Start> starts;
  double share = 1;  // of the whole line's ids, which are the same in every piece of it; see Note [Segments]
  int64_t numc = 0;
  int64_t elements = 0;             // of the float inputs that are split by labels
  std::vector<int64_t> row_starts;  // ascending: indices of the calls in which ids become numbers; see StartsRows
  // Values, references and rows stay in autograd's graph.
  bool differentiable = false;
  std::vector<MixedIds> mixed_ids;
  // Calls with rows that read what an operator saved for its gradient; see Note [Saved memory] in unseen_memory.h.
  std::vector<Position> saved;
  // Calls that read conditions or indices that were derived from decomposed tensors or ids. Whose the reference takes,
  // the value's or the baseline's, says Policy::conditions.
  std::vector<Condition> conditions;
  bool baseline_conditions = false;
  // Lowest precision in which a call multiplies float32, by the settings; see Note [Reduced precision].
  std::optional<ReducedPrecision> precision;
  // Calls that handed a number computed from decomposed tensors or ids to the program around them (item(), if).
  std::vector<Condition> guards;

  const Version& At(const Operand& operand) const;
  at::Tensor Value(const Operand& operand) const;
  at::Tensor Reference(const Operand& operand) const;
  at::Tensor Labels(const Operand& operand) const;
  // The tensor that the run on the baseline read in the operand's place.
  at::Tensor OnBaseline(const Operand& operand) const;
  // Whether rows begin in what a call gives: an embedding, a bag or a cast of ids; see Note [Ids].
  bool StartsRows(const Call& call) const;
  RowStart StartOf(const Call& call) const;
  // How many numbers of elements stand behind the components: all, where rows begin in ids that were read from some,
  // else none. See Tracer::AddFloatInput().
  int64_t ElementsRead() const;
  // Whether a call read conditions that are others on the baseline, which its reference has.
  bool StepsOfConditions(const Call& call) const;
  // Whether the operand is something that was dropped.
  bool Misses(const Operand& operand) const;
  // Whether whoever reads numbers of this run waits for a device, so that they are read together: Note [Host reads].
  // Not where autograd follows, which would follow all attempts.
  bool HostWaits() const;
  bool ReferenceIsFinite(const Operand& operand) const;
  bool ValueIsFinite(const Operand& operand) const;
};

// Reads the largest magnitudes of all values and references that rows belong to, if the host waits for a device, by one
// read; skips references that were seen to be finite. See Note [Host reads].
void LookAtNumbers(TracedRun& trace);

// A policy for a run, with the tolerance that its precision asks for if the user chose none.
Policy AtPrecisionOf(const TracedRun& trace, Policy policy);

// The version of a storage that an operand is.
Version& VersionOf(TracedRun& trace, const Operand& operand);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_TRACED_RUN_H_

// Changes references after the model ran, and runs recorded operators again on the new references.
//
// Note [Stand-ins]
// Where f(reference) is not finite although f(value) is (the logarithm of a black pixel, for example), or where a pole
// lies between them (1 / d with a reference of the other sign), no secant means anything. The operator is then
// linearized at the value, and the reference of its output becomes the number at which the line meets the value,
// f(value) - slope * move: its stand-in. What the model computed from that reference is computed once more from the
// stand-in. Such a reference is no longer what the model gives on the baseline, so the report counts it.
#ifndef ADDEND_CORE_LINEARIZE_REFERENCES_H_
#define ADDEND_CORE_LINEARIZE_REFERENCES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/program/traced_calls.h"
#include "core/rules/rule.h"
#include "core/run/traced_run.h"

namespace addend {

// Replaces references, going through the calls of a trace in their order. The given trace stays as the model ran it:
// the first change makes a copy, which shares all tensors that are not changed.
class References {
 public:
  explicit References(std::shared_ptr<const TracedRun> recorded) : recorded_(std::move(recorded)), trace_(recorded_) {}

  // The trace as it was given, and the trace with all changes so far; the same object as long as there is none.
  const std::shared_ptr<const TracedRun>& recorded() const { return recorded_; }
  const std::shared_ptr<const TracedRun>& trace() const { return trace_; }

  // Replaces the reference of a start of rows.
  void ReplaceStart(const Operand& start, const at::Tensor& reference);
  // Adds the leftovers of starts to their references.
  void AbsorbStartLeftovers();
  // Replaces the reference of an output of a call.
  void Replace(const Call& call, size_t output, const at::Tensor& reference);
  // Runs the call on the references of its operands if one of them was changed. `rule`: of the call, or null. Throws
  // Unimplemented if the call draws random numbers that cannot be drawn again.
  void Evaluate(const Call& call, const Rule* rule);

 private:
  void Write(const Operand& target, const at::Tensor& before, const at::Tensor& now);
  at::Tensor BeforeWrite(const Call& call, const Operand& target) const;

  TracedRun& Changed();

  std::shared_ptr<const TracedRun> recorded_;
  std::shared_ptr<const TracedRun> trace_;
  std::shared_ptr<TracedRun> own_;  // trace_, once something was changed
  absl::flat_hash_set<VersionId> changed_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_REFERENCES_H_

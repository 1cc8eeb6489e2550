// References changed after the model ran: recorded operators are run again on what they become.
//
// Note [Stand-ins]
// Where f(reference) is not finite although f(value) is (a logarithm of a black pixel, say), or where a pole lies
// between them (1 / d of references with the other sign), no secant means anything. The operator is linearized at the
// value, and its output's reference becomes what makes the two meet, f(value) - slope * move. Whatever the model
// computed from that reference is then computed once more from its stand-in. Such a reference is no longer what the
// model gives on the baseline: the report counts it.
#ifndef ADDEND_CORE_LINEARIZE_REFERENCES_H_
#define ADDEND_CORE_LINEARIZE_REFERENCES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/linearize/traced_run.h"
#include "core/program/traced_calls.h"
#include "core/rules/rule.h"

namespace addend {

// Goes through the calls of a trace in their order. The trace that is given stays as the model ran it: the first change
// makes a copy, which shares all tensors that are not changed.
class References {
 public:
  explicit References(std::shared_ptr<const TracedRun> recorded) : recorded_(std::move(recorded)), trace_(recorded_) {}

  // The trace as it was given, and with what has been changed so far; the same object as long as nothing has.
  const std::shared_ptr<const TracedRun>& recorded() const { return recorded_; }
  const std::shared_ptr<const TracedRun>& trace() const { return trace_; }

  // Another reference for where rows begin.
  void ReplaceStart(const Operand& start, const at::Tensor& reference);
  // Adds the leftovers that starts bring along to their references.
  void AbsorbStartLeftovers();
  // Another reference for an output of a call.
  void Replace(const Call& call, size_t output, const at::Tensor& reference);
  // Runs the call on the references of its operands where one of them was changed. `rule`: of the call, or null. Throws
  // Unimplemented where the call draws random numbers that cannot be drawn again.
  void Follow(const Call& call, const Rule* rule);

 private:
  void Write(const Operand& target, const at::Tensor& before, const at::Tensor& now);
  at::Tensor BeforeWrite(const Call& call, const Operand& target) const;

  TracedRun& Changed();

  std::shared_ptr<const TracedRun> recorded_;
  std::shared_ptr<const TracedRun> trace_;
  std::shared_ptr<TracedRun> own_;  // trace_, once something was changed
  absl::flat_hash_set<std::pair<int, int>> changed_;  // storage and version
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_REFERENCES_H_

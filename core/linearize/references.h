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
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/linearize/traced_run.h"
#include "core/program/program.h"
#include "core/rules/rule.h"

namespace addend {

// Goes through the calls of a trace in their order. What is changed stays changed in the trace; nothing is written in
// place, so that copies of the trace made before keep what they have.
class References {
 public:
  explicit References(TracedRun* trace) : trace_(trace) {}

  // Another reference for where rows begin.
  void ReplaceStart(const Operand& start, const at::Tensor& reference);
  // Another reference for an output of a call.
  void Replace(const Call& call, size_t output, const at::Tensor& reference);
  // Runs the call on the references of its operands where one of them was changed. `rule`: of the call, or null. Throws
  // Unimplemented where the call draws random numbers that cannot be drawn again.
  void Follow(const Call& call, const Rule* rule);

 private:
  void Write(const Operand& target, const at::Tensor& before, const at::Tensor& now);
  at::Tensor BeforeWrite(const Call& call, const Operand& target) const;

  TracedRun* trace_;
  absl::flat_hash_set<std::pair<int, int>> changed_;  // storage and version
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_REFERENCES_H_

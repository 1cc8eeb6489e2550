// What has to be said first about an explanation: whether the parts of what was asked for add up, how much of them
// cancels, how much is left over, and from which baseline nobody chose.
//
// Note [Two judgements]
// After every operator recovery is judged by what rounding may do to terms of the size that they have, and what was
// missed before is not held against an operator (see sweep.cc): so the operator is found that fails. That allows an
// error without bounds where parts cancel: each norm on its way from a constant input may make them a hundred times
// larger, all of it rightly, until they are larger than what they sum to by more than there are digits. What was asked
// for is therefore judged once more by its own scale, whichever way its parts were found. A failure is a tracing
// failure, and Policy::on_failure decides.
#ifndef ADDEND_CORE_EXPLAIN_OUTCOME_H_
#define ADDEND_CORE_EXPLAIN_OUTCOME_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/report.h"
#include "core/explain/target.h"
#include "core/linearize/adjoint.h"
#include "core/linearize/sweep.h"

namespace addend {

struct Outcome {
  // Of the tensor where it is the largest; see Report.
  double conditioning = 1;
  double leftover_share = 0;
  double worst_error = 0;  // of recovery, over the largest magnitude of the value
  std::vector<OperatorReport> failures;
  std::vector<std::string> notes;
};

// Of the probes of a sweep, by their names. Where failures are absorbed, the probes' leftover is changed. Throws
// Internal with a position where Policy::on_failure is kError.
Outcome JudgeOutputs(const Linearization& linearization, const std::vector<std::string>& names, SweepResult& sweep);

// The same of targets, which are found backward, in two steps: recovery of the rows of `cotangent` [rows, *S] in the
// only probe, whose `value` it is; then what their parts come to.
Outcome JudgeRecovery(const Linearization& linearization, const std::string& name, const at::Tensor& value,
                      const at::Tensor& cotangent, AdjointResult& result);
void JudgeTargets(const Linearization& linearization, const std::string& name,
                  const std::vector<Contributions>& targets, const at::Tensor& cotangent, Outcome& outcome);

// Writes it into a report that says the rest already: its notes come before the others.
void SayFirst(const Outcome& outcome, const PreparedInputs& prepared, const Linearization& linearization,
              Report& report);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_OUTCOME_H_

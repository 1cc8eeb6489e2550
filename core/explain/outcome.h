// The outcome of an explanation, which its notes say first: whether the parts of what was asked for add up, how much of
// them cancels, how much is left over, and whether a baseline was chosen.
//
// Note [Two judgements]
// Recovery is judged twice. After every operator it is judged by what rounding may do to terms of their size, and what
// operands missed already is not held against the operator (Note [Inherited errors]); this finds the operator that
// fails. It allows an unbounded error where parts cancel: each norm on its way from a constant input may make them a
// hundred times larger, all of it rightly, until they exceed their sum by more than there are digits, and a reference
// may be as much larger than the value. Outputs and probes are therefore judged once more by the numbers that people
// read, the scale of their rows (Note [Rows of an output]), whichever way their parts were found, and whatever those
// come to: see RecoveryLimits. A failure is a tracing failure, and Policy::on_failure decides. One thing is no failure:
// a number that is as small as the rounding of what the model itself sums it from.
#ifndef ADDEND_CORE_EXPLAIN_OUTCOME_H_
#define ADDEND_CORE_EXPLAIN_OUTCOME_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/output_scales.h"
#include "core/explain/report.h"
#include "core/explain/target.h"
#include "core/linearize/adjoint.h"
#include "core/linearize/sweep.h"

namespace addend {

struct Outcome {
  // The largest conditioning and leftover share of a tensor; see Report.
  double conditioning = 1;
  double leftover_share = 0;
  double worst_error = 0;  // of recovery, over the largest magnitude of the value
  std::vector<OperatorReport> failures;
  std::vector<std::string> notes;
};

// Judges the probes of a sweep, by their names. If failures are absorbed, the probes' leftover is changed. Throws
// Internal with a position if Policy::on_failure is kError.
Outcome JudgeOutputs(const Linearization& linearization, const std::vector<std::string>& names, SweepResult& sweep);

// Judges targets, which are found backward, in the order of its methods.
class AttributionJudge {
 public:
  // `scales`: of the explained value. `result`: of the rows of `cotangent`, [rows, *S], in the only probe. All of them
  // must outlive the judge.
  AttributionJudge(const Linearization& linearization, const std::string& name, const OutputScales& scales,
                   const at::Tensor& cotangent, AdjointResult* result);

  // Judges the recovery of the rows. If there are more targets than rows, each row is the sum of equally many targets.
  // If failures are absorbed, the leftover of the result is changed.
  void JudgeRows(const std::vector<Target>& targets);
  // Judges the recovery of each example, if examples do not influence each other and a row is the sum of several: such
  // a row tells nothing about a single one. The leftover of an example is what it misses: all of it is rounding if
  // operators left nothing over, and else rounding is guessed from the terms.
  void JudgeExamples(const std::vector<Contributions>& targets);
  // Notes the sizes of the parts. `elements`: what each element gave, as of Attribution::inputs; they may cancel where
  // their components do not.
  void WeighParts(const std::vector<Contributions>& targets, const std::vector<at::Tensor>& elements);

  Outcome outcome;

 private:
  const Linearization& linearization_;
  const Probe& probe_;
  const std::string& name_;
  const OutputScales& scales_;
  const at::Tensor& cotangent_;
  AdjointResult& result_;
  const bool single_;
};

// Notes on the sum of a target's parts, as they stand in an explanation, by the limits of outputs: one, of the target
// that is off most; none where the report of the run has one of the output, which is judged by the same numbers, or the
// policy wants none. at: the tensor; empty: an output. report: null: the parts are of no run.
std::vector<std::string> NotesOfRecovery(const std::string& at, const std::vector<Contributions>& targets,
                                         const Report* report);

// Writes the outcome into a report that is filled otherwise: its notes come before the others.
void SayFirst(const Outcome& outcome, const PreparedInputs& prepared, const Linearization& linearization,
              Report& report);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_OUTCOME_H_

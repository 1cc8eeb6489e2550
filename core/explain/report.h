// The report of a decomposition: errors, leftover, and what was done for each operator.
#ifndef ADDEND_CORE_EXPLAIN_REPORT_H_
#define ADDEND_CORE_EXPLAIN_REPORT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/linearize/sweep.h"

namespace addend {

struct OperatorReport {
  OperatorCheck check;
  Position position;
  std::string call;  // "linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4]"; "the model" where no one call is to blame
  // The number, in a program recorded of the same run, of the model's own call: of this operator, or of the one that
  // was expanded into it.
  int64_t program_call = 0;
};

struct Report {
  Policy policy;          // as used: the preset is resolved
  int64_t operators = 0;  // recorded calls
  int64_t nodes = 0;      // calls that rows passed through
  std::map<std::string, int64_t> operators_by_kind;
  std::vector<OperatorReport> checks;    // in the order of the calls; empty unless Policy::check is every_op
  std::vector<OperatorReport> failures;  // tracing failures that the policy did not make an error
  double worst_recovery_error = 0;       // over all checked operators, relative to the operator's largest value
  double worst_bracket = 0;              // where nothing may be left over
  // Conditioning: the magnitudes of all parts (components and leftover), or that of the reference if it is larger, over
  // that of the value or of the move, value - reference, whichever is smaller; of the output or probe where it is the
  // largest. 1: nothing cancels.
  double conditioning = 1;
  double leftover_share = 0;      // the magnitude of the leftover over that of the move
  bool backward = false;          // components came back from the outputs; `checks` are those of their sum
  int64_t absorbed = 0;           // operators without rule whose effect is leftover
  int64_t absorbed_failures = 0;  // of `failures`, those whose error went to the leftover
  int64_t path_ruled = 0;         // operators ruled by quadrature
  int64_t stand_in_references = 0;
  int64_t unattributed = 0;  // calls that used ids in a way in which no component follows
  // Whether the reference is what the model computes on the baseline: "yes", "no", or "unknown" where a number that the
  // program read (and may have branched on) is another there, a gradient reads what an operator saved unseen, or an
  // input is NaN or infinite where its baseline is not.
  std::string reference_is_model_on_baseline = "unknown";
  std::string reference_reason;  // why not; empty with "yes"
  // The largest difference between the model on the baseline and the reference, over the largest magnitude there, the
  // worst of all outputs; none unless the model ran there (RunOptions::verify_reference).
  std::optional<double> reference_error;
  std::vector<std::string> notes;  // what a reader has to know: guards, ids used otherwise, the preset chosen
  double trace_seconds = 0;        // running the model and its references
  double linearize_seconds = 0;
  double sweep_seconds = 0;
};

// Adds the position of its operator to a check.
OperatorReport Locate(const TracedRun& trace, const OperatorCheck& check);

// Fills the report with what linearizing and sweeping found: counts, checks, whether the reference is the model on the
// baseline, and notes. `auto_preset`: the caller left the preset open.
void FillReport(const Linearization& linearization, const SweepResult& sweep, bool auto_preset, Report& report);

// The checks of a report, failed ones first, then by how near they came to their limits.
std::vector<OperatorReport> WorstFirst(const Report& report);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_REPORT_H_

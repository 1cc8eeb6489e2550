#include "core/explain/report.h"

#include <algorithm>
#include <cmath>

#include "core/explain/notes.h"
#include "core/explain/verify.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

// How much of what is allowed an operator uses; NaN counts as all of it and more.
double Strain(const OperatorCheck& check) {
  const auto ratio = [](double error, double limit) {
    if (std::isnan(error)) return 1e300;
    return limit > 0 ? error / limit : error;
  };
  double strain = ratio(check.recovery_error, check.tolerance);
  if (check.bracket_bound >= 0) strain = std::max(strain, ratio(check.bracket, check.bracket_bound));
  return strain;
}

void FillCounts(const Linearization& linearization, const SweepResult& sweep, Report& report) {
  const TracedRun& trace = *linearization.trace;
  report.policy = linearization.policy;
  report.operators = static_cast<int64_t>(trace.calls.size());
  report.nodes = static_cast<int64_t>(linearization.nodes.size());
  for (const Node& node : linearization.nodes) ++report.operators_by_kind[KindName(node.kind)];
  report.backward = sweep.backward;
  report.absorbed = CountOf(linearization, Kind::kAbsorbed);
  report.path_ruled = CountOf(linearization, Kind::kPath);
  report.stand_in_references = static_cast<int64_t>(linearization.stand_ins.size());
  report.unattributed = static_cast<int64_t>(UnattributedOf(trace).size());
}

void FillChecks(const TracedRun& trace, const SweepResult& sweep, Report& report) {
  for (const OperatorCheck& check : sweep.checks) {
    report.checks.push_back(Locate(trace, check));
    if (check.bracket_bound >= 0) NoteWorst(check.bracket, report.worst_bracket);
  }
  for (const OperatorCheck& failure : sweep.failures) {
    report.failures.push_back(Locate(trace, failure));
    report.absorbed_failures += failure.absorbed;
  }
  report.worst_recovery_error = sweep.worst_recovery_error;
}

}  // namespace

OperatorReport Locate(const TracedRun& trace, const OperatorCheck& check) {
  const Position position = PositionOf(trace, check.call);
  if (check.call < 0) return {check, position, position.op, -1};
  const Call& call = trace.calls[check.call];
  return {check, position, DescribeCall(call), call.program_call};
}

void FillReport(const Linearization& linearization, const SweepResult& sweep, bool auto_preset, Report& report) {
  FillCounts(linearization, sweep, report);
  FillChecks(*linearization.trace, sweep, report);
  FillReference(linearization, report);
  const std::vector<std::string> notes = NotesOf(linearization, sweep, auto_preset);
  report.notes.insert(report.notes.end(), notes.begin(), notes.end());
}

std::vector<OperatorReport> WorstFirst(const Report& report) {
  std::vector<OperatorReport> sorted = report.checks;
  std::stable_sort(sorted.begin(), sorted.end(), [](const OperatorReport& a, const OperatorReport& b) {
    if (a.check.ok() != b.check.ok()) return !a.check.ok();
    return Strain(a.check) > Strain(b.check);
  });
  return sorted;
}

}  // namespace addend

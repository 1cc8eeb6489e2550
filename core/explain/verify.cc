#include "core/explain/verify.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/notes.h"
#include "core/explain/same_run.h"
#include "core/program/differentiation.h"

namespace addend {

void FillReference(const Linearization& linearization, Report& report) {
  const TracedRun& trace = *linearization.trace;
  const auto set = [&](const char* answer, const std::string& reason) {
    report.reference_is_model_on_baseline = answer;
    report.reference_reason = reason;
  };
  if (linearization.policy.anchor == Anchor::kResidual) {
    return set("no", "policy anchor=residual lets the leftover join the reference");
  }
  if (!linearization.stand_ins.empty()) {
    return set("no", "operators that are not finite on the baseline have stand-ins");
  }
  const std::vector<Position> conditions = OriginsOf(trace.conditions, /*only_other=*/true);
  if (!conditions.empty() && !trace.baseline_conditions) {
    return set("no", "conditions or indices are others on the baseline: " + FirstPositions(conditions));
  }
  const std::vector<Position> guards = OriginsOf(trace.guards, /*only_other=*/true);
  if (!guards.empty()) {
    return set("unknown", "the model reads numbers that are others on the baseline: " + FirstPositions(guards));
  }
  if (!trace.saved.empty()) {
    return set("unknown",
               absl::StrCat(kReadsSaved, FirstPositions(trace.saved), "; on the baseline they may be others"));
  }
  set("yes", "");
}

void DoubtReference(const PreparedInputs& prepared, Report& report) {
  const bool replaced = std::any_of(prepared.inputs.begin(), prepared.inputs.end(),
                                    [](const PreparedInput& input) { return input.baseline.defined(); });
  if (!replaced || report.reference_is_model_on_baseline != "yes") return;
  report.reference_is_model_on_baseline = "unknown";
  report.reference_reason = "where an input is NaN or infinite, the reference has the same and not the baseline";
}

void AddModelNotes(const std::vector<std::string>& notes, Report& report) {
  for (const std::string& note : notes) {
    report.notes.push_back(note);
    const bool verified = report.reference_error.has_value() || report.reference_is_model_on_baseline != "yes";
    if (verified || KindOf(note) != NoteKind::kReadsSaved) continue;
    report.reference_is_model_on_baseline = "unknown";
    report.reference_reason = note;
  }
}

void RefuseInside() {
  throw InvalidArgument(
      "verify_reference runs the model on the baseline; where a split starts inside the model, no argument holds that");
}

void CompareReference(const std::string& name, const at::Tensor& reference, const at::Tensor& on_baseline,
                      const std::function<void()>& require_repeatable, Report& report) {
  if (!on_baseline.defined()) return;
  const bool fits = reference.sizes() == on_baseline.sizes();
  const double error = RelativeDifference(reference, on_baseline);
  const bool equal = IsRounding(error, on_baseline);
  if (!equal && require_repeatable) require_repeatable();
  const bool first = !report.reference_error.has_value();
  if (first || !(error <= *report.reference_error)) report.reference_error = error;
  if (equal) {
    // One output that is not equal decides for all.
    if (first) {
      report.reference_is_model_on_baseline = "yes";
      report.reference_reason.clear();
    }
    return;
  }
  const std::string apart = std::isfinite(error) ? absl::StrCat("apart by ", error, " of their largest magnitude")
                                                 : std::string("NaN or infinite in one of both only");
  const std::string found =
      fits ? absl::StrCat("run on the baseline, the model gives other numbers at ", name, ", ", apart)
           : absl::StrCat("run on the baseline, the model gives ", name, " of shape ", ShapeText(on_baseline.sizes()),
                          ", not ", ShapeText(reference.sizes()));
  const std::string known = report.reference_is_model_on_baseline == "yes" ? "" : report.reference_reason;
  report.reference_is_model_on_baseline = "no";
  report.reference_reason = known.empty() ? found : absl::StrCat(found, "; ", known);
  report.notes.insert(report.notes.begin(), NoteOf(NoteKind::kAnotherReference, found));
}

}  // namespace addend

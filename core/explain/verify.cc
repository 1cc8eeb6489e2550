#include "core/explain/verify.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isnan.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/notes.h"
#include "core/linearize/compute_dtype.h"
#include "core/linearize/row_sums.h"
#include "core/model/run_model.h"
#include "core/program/traced_calls.h"

namespace addend {
namespace {

constexpr double kRoundings = 1000;

// The largest difference over the largest magnitude on the baseline (over 1 where that is zero); NaN where the one is
// NaN and the other is not.
double RelativeDifference(const at::Tensor& reference, const at::Tensor& on_baseline) {
  if (on_baseline.numel() == 0) return 0;
  const auto wide = on_baseline.is_complex() ? at::kComplexDouble : at::kDouble;
  const at::Tensor one = reference.to(at::kCPU, wide);
  const at::Tensor other = on_baseline.to(at::kCPU, wide);
  const at::Tensor same = one.eq(other).logical_or(at::isnan(one).logical_and(at::isnan(other)));
  const at::Tensor apart = (one - other).abs().masked_fill(same, 0).max();
  const double scale = LargestFinite(on_baseline);
  return apart.item<double>() / (scale > 0 ? scale : 1);
}

}  // namespace

void JudgeReference(const Linearization& linearization, Report& report) {
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
  set("yes", "");
}

void RefuseInside() {
  throw InvalidArgument(
      "verify_reference runs the model on the baseline; where a split starts inside the model, no argument holds that");
}

std::vector<at::Tensor> RunOnBaseline(Model& model, const PreparedInputs& inputs,
                                      const std::vector<at::Tensor>& written, ComputeDtype compute) {
  std::vector<at::Tensor> contents;
  for (const at::Tensor& tensor : written) contents.push_back(tensor.detach().clone());
  std::vector<c10::IValue> arguments;
  for (const PreparedInput& input : inputs.inputs) arguments.emplace_back(input.reference.clone());
  const c10::IValue result = [&] {
    const ComputeScope scope(compute);
    return RunModel(model, arguments, "the baseline");
  }();
  for (size_t k = 0; k < contents.size(); ++k) written[k].detach().copy_(contents[k]);
  std::vector<at::Tensor> found;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (tensor.defined() && Continuous(tensor.scalar_type())) found.push_back(tensor.detach().clone());
  });
  return found;
}

void CompareReference(const std::string& name, const at::Tensor& reference, const at::Tensor& on_baseline,
                      Report& report) {
  if (!on_baseline.defined()) return;
  const bool fits = reference.sizes() == on_baseline.sizes();
  const double error = fits ? RelativeDifference(reference, on_baseline) : std::numeric_limits<double>::infinity();
  const bool equal = error <= kRoundings * EpsilonOf(on_baseline.scalar_type());
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
  const std::string found = fits ? absl::StrCat("run on the baseline, the model gives other numbers at ", name,
                                                ", apart by ", error, " of their largest magnitude")
                                 : absl::StrCat("run on the baseline, the model gives ", name, " of shape ",
                                                ShapeText(on_baseline.sizes()), ", not ", ShapeText(reference.sizes()));
  const std::string known = report.reference_is_model_on_baseline == "yes" ? "" : report.reference_reason;
  report.reference_is_model_on_baseline = "no";
  report.reference_reason = known.empty() ? found : absl::StrCat(found, "; ", known);
  report.notes.insert(report.notes.begin(), "the reference is not what the model gives on the baseline: " + found);
}

}  // namespace addend

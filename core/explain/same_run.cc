#include "core/explain/same_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isnan.h>

#include <exception>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/program/recorder.h"
#include "core/program/traced_calls.h"
#include "core/recording/check_trace.h"
#include "core/run/compute_dtype.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

constexpr double kRoundings = 1000;

}  // namespace

double RelativeDifference(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (expected.numel() == 0) return 0;
  const auto wide = expected.is_complex() ? at::kComplexDouble : at::kDouble;
  const at::Tensor one = found.to(at::kCPU, wide);
  const at::Tensor other = expected.to(at::kCPU, wide);
  const at::Tensor same = one.eq(other).logical_or(at::isnan(one).logical_and(at::isnan(other)));
  const at::Tensor apart = (one - other).abs().masked_fill(same, 0).max();
  const double scale = LargestFinite(expected);
  return apart.item<double>() / (scale > 0 ? scale : 1);
}

bool IsRounding(double difference, const at::Tensor& expected) {
  return difference <= kRoundings * EpsilonOf(expected.scalar_type());
}

std::vector<at::Tensor> RunPlain(Model& model, const PreparedInputs& inputs, const std::vector<at::Tensor>& values,
                                 ComputeDtype compute, const std::string& which) {
  std::vector<c10::IValue> arguments;
  std::vector<at::Tensor> decomposed;
  for (size_t k = 0; k < values.size(); ++k) {
    const at::Tensor own = values[k].clone(at::MemoryFormat::Contiguous);
    arguments.emplace_back(own);
    if (inputs.inputs[k].kind != Split::Kind::kPlain) decomposed.push_back(own);
  }
  const ComputeScope scope(compute, decomposed);
  const c10::IValue result = RunModel(model, arguments, absl::StrCat(DescribeInputs(values), which));
  const TracingPause pause;
  std::vector<at::Tensor> found;
  ForEachTensor(result, [&](const at::Tensor& tensor) {
    if (tensor.defined() && Continuous(tensor.scalar_type())) found.push_back(scope.Seen(tensor).detach().clone());
  });
  return found;
}

std::string FirstApart(const std::vector<std::pair<std::string, at::Tensor>>& first,
                       const std::vector<at::Tensor>& second) {
  for (size_t k = 0; k < first.size(); ++k) {
    const auto& [name, tensor] = first[k];
    if (k >= second.size() || !IsRounding(RelativeDifference(second[k], tensor), tensor)) return name;
  }
  return "";
}

Error RunsApart(const std::string& output, const std::string& where) {
  return FailedPrecondition(absl::StrCat(
      "two runs of the model give different results at ", output, where.empty() ? "" : absl::StrCat(" (", where, ")"),
      where.empty() ? ""
                    : "; something that neither its buffers nor its other attributes hold goes from run to run: reset "
                      "it at the beginning of a run, or keep it in a buffer"));
}

std::string WhereRunsPart(Model& model, const std::vector<c10::IValue>& inputs) {
  try {
    for (const Finding& finding : CheckTrace(model, inputs).findings) {
      if (!finding.error) continue;
      const std::string place = finding.position.Describe();
      const std::string op = finding.position.op;
      return absl::StrCat(op, op.empty() || place.empty() ? place : absl::StrCat(" (", place, ")"),
                          op.empty() && place.empty() ? "" : ": ", finding.message);
    }
  } catch (const std::exception&) {  // that two runs differ stands without the operator
  }
  return "";
}

}  // namespace addend

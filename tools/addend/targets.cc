#include "tools/addend/targets.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "tools/addend/run.h"

namespace addend::cli {
namespace {

// The first tensor of a result, or an undefined one.
at::Tensor FirstTensor(const c10::IValue& result) {
  if (result.isTensor()) return result.toTensor();
  if (result.isTuple()) {
    for (const c10::IValue& element : result.toTupleRef().elements()) {
      if (element.isTensor()) return element.toTensor();
    }
  }
  return {};
}

// The numbers along the last dimension that an element is one of.
std::vector<double> RowOf(const at::Tensor& value, const std::vector<int64_t>& index) {
  at::Tensor row = value;
  for (size_t d = 0; d + 1 < index.size(); ++d) row = row.select(0, index[d]);
  row = row.to(at::kDouble).contiguous();
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

bool AreProbabilities(const std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) {
    if (!(x >= 0 && x <= 1)) return false;
    sum += x;
  }
  return row.size() > 1 && std::abs(sum - 1) < 1e-3;
}

double Softmax(const std::vector<double>& row, int64_t index) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - largest);
  return std::exp(row[index] - largest) / sum;
}

}  // namespace

namespace {

// An element as a target: a class by its name, or an index.
std::optional<std::vector<int64_t>> FindElement(const std::string& text, const std::vector<std::string>& classes) {
  const auto named = std::find(classes.begin(), classes.end(), text);
  try {
    const Target target = ParseTarget(text);
    if (!target.top1 && target.subtract.empty()) return target.index;
  } catch (const Error&) {
    // No index; a class, if anything.
  }
  if (named == classes.end()) return std::nullopt;
  return std::vector<int64_t>{named - classes.begin()};
}

}  // namespace

Target FindTarget(const std::string& text, const std::vector<std::string>& classes) {
  Target target;
  target.top1 = false;
  // Names may hold a minus themselves, so the whole is looked at before its parts.
  if (const auto whole = FindElement(text, classes)) {
    target.index = *whole;
    return target;
  }
  for (size_t minus = text.find('-'); minus != std::string::npos; minus = text.find('-', minus + 1)) {
    const auto first = FindElement(text.substr(0, minus), classes);
    const auto second = FindElement(text.substr(minus + 1), classes);
    if (!first || !second) continue;
    target.index = *first;
    target.subtract = *second;
    return target;
  }
  try {
    return ParseTarget(text);
  } catch (const Error& error) {
    if (classes.empty()) throw;
    throw InvalidArgument(absl::StrCat(error.what(), ", or a class: ", absl::StrJoin(classes, ", "),
                                       " (A-B for the first minus another)"));
  }
}

// With several it takes one plain run to say so, not a decomposition.
void CheckOneSample(const LoadedRun& run) {
  const at::Tensor& first = run.inputs[0].input.value;
  if (run.row || first.dim() < 2 || first.size(0) < 2) return;
  const at::Tensor output = FirstTensor(RunPlain(run));
  if (!output.defined() || output.dim() < 2 || output.size(0) != first.size(0)) return;
  throw InvalidArgument(absl::StrCat("the input holds ", first.size(0),
                                     " samples, each with a largest output; choose one with --row 0 to --row ",
                                     first.size(0) - 1, ", or an output with --target i,j"));
}

TargetMaker::TargetMaker(const at::Tensor& value, const std::string& at, const Parts& parts, const Report& report)
    : value_(value), at_(at), parts_(parts), report_(report) {
  const bool scores = at.empty() || at == kLogits || at.rfind("output", 0) == 0;
  const int64_t last = value.dim() > 0 ? value.size(-1) : 1;
  named_ = scores && last == static_cast<int64_t>(parts.classes.size());
  if (!named_ && parts.classes_asked) {
    throw InvalidArgument(absl::StrCat("--classes gives ", parts.classes.size(), " names, but ", Described(), " has ",
                                       last, " elements"));
  }
  distribution_ = (named_ || at == kLogits) && last > 1;
}

ExplainedTarget TargetMaker::Make(Contributions found) const {
  ExplainedTarget target;
  target.numbers = std::move(found);
  target.tolerance =
      RecoveryAllowance(target.numbers, value_.scalar_type(), report_.operators, report_.policy.tolerance);
  target.named = named_;
  const Contributions& numbers = target.numbers;
  target.name = NameOf(numbers.index);
  if (!numbers.subtract.empty()) {
    absl::StrAppend(&target.name, " minus ", NameOf(numbers.subtract));
  } else if (distribution_ && value_.dim() > 0) {
    const std::vector<double> row = RowOf(value_, numbers.index);
    target.probability = AreProbabilities(row) ? numbers.value : Softmax(row, numbers.index.back());
  }
  return target;
}

bool TargetMaker::probabilities(const ExplainedTarget& target) const {
  return at_.empty() && value_.dim() > 0 && AreProbabilities(RowOf(value_, target.numbers.index));
}

std::string TargetMaker::Described() const { return at_.empty() ? "output" : at_; }

std::string TargetMaker::NameOf(const std::vector<int64_t>& index) const {
  if (named_) return parts_.classes[index.back()];
  if (index.empty()) return Described();
  return absl::StrCat(Described(), " [", absl::StrJoin(index, ", "), "]");
}

}  // namespace addend::cli

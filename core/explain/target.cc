#include "core/explain/target.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"
#include "core/explain/report.h"
#include "core/linearize/row_sums.h"
#include "core/linearize/settle.h"

namespace addend {
namespace {

Error NotUnderstood(const std::string& text) {
  return InvalidArgument(absl::StrCat("target ", text,
                                      " is not understood; use top1, an element (3, 0,3 or 0,-1,3) or the difference ",
                                      "of two (3-5)"));
}

std::vector<int64_t> ParseIndex(const std::string& text, const std::string& whole) {
  std::vector<int64_t> index;
  for (const auto piece : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(piece, &number)) throw NotUnderstood(whole);
    index.push_back(number);
  }
  return index;
}

// Where the second of two elements begins, behind the minus between them: one that follows a digit is no sign.
size_t FindSecond(const std::string& text) {
  for (size_t k = 1; k < text.size(); ++k) {
    if (text[k] == '-' && absl::ascii_isdigit(static_cast<unsigned char>(text[k - 1]))) return k + 1;
  }
  return std::string::npos;
}

// Completes an index that leaves out leading dimensions of size 1, and checks it.
std::vector<int64_t> Resolve(std::vector<int64_t> index, at::IntArrayRef sizes) {
  const auto fail = [&] {
    return InvalidArgument(
        absl::StrCat("target ", absl::StrJoin(index, ","), " does not fit an output of shape ", ShapeText(sizes)));
  };
  if (index.size() > sizes.size()) throw fail();
  const size_t missing = sizes.size() - index.size();
  std::vector<int64_t> whole;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t i = d < missing ? 0 : index[d - missing];
    if (i < 0) i += sizes[d];  // counted from the end
    if ((d < missing && sizes[d] != 1) || i < 0 || i >= sizes[d]) throw fail();
    whole.push_back(i);
  }
  return whole;
}

}  // namespace

Target ParseTarget(const std::string& text) {
  Target target;
  if (text == "top1") return target;
  target.top1 = false;
  const size_t second = FindSecond(text);
  const bool difference = second != std::string::npos;
  target.index = ParseIndex(difference ? text.substr(0, second - 1) : text, text);
  if (difference) target.subtract = ParseIndex(text.substr(second), text);
  return target;
}

TargetElements FindElements(const at::Tensor& value, const Target& target) {
  TargetElements found;
  if (value.numel() == 0) throw InvalidArgument("the output is empty");
  if (value.is_complex()) {
    throw InvalidArgument("the output is complex; a target is a real number, such as the real part or the magnitude");
  }
  if (target.top1) {
    // The row that is meant: the only one, or the last position of a sequence, [1, positions, classes].
    at::Tensor row = value;
    while (row.dim() > 1) {
      const bool last = row.dim() == 2 && value.dim() > 2;
      if (row.size(0) != 1 && !last) {
        throw InvalidArgument(absl::StrCat("an output of shape ", ShapeText(value.sizes()),
                                           " has more than one largest element; choose a row of the input, or a ",
                                           "target i,j"));
      }
      found.index.push_back(row.size(0) - 1);
      row = row.select(0, row.size(0) - 1);
    }
    if (row.dim() > 0) found.index.push_back(at::argmax(row).item<int64_t>());
  } else {
    found.index = Resolve(target.index, value.sizes());
    if (!target.subtract.empty()) found.subtract = Resolve(target.subtract, value.sizes());
  }
  return found;
}

void AddUp(Contributions& contributions) {
  double sum = 0;
  double mass = 0;
  for (const double part : contributions.contributions) {
    sum += part;
    mass += std::abs(part);
  }
  contributions.recovery = sum + contributions.reference + contributions.leftover;
  mass += std::abs(contributions.leftover);
  contributions.conditioning = mass == 0 ? 1 : mass / std::abs(contributions.value - contributions.reference);
  contributions.mass = mass + std::abs(contributions.reference);
}

double RecoveryAllowance(const Contributions& contributions, at::ScalarType dtype, int64_t operators,
                         std::optional<double> tolerance) {
  const auto terms = static_cast<double>(std::max<size_t>(contributions.contributions.size(), 1)) *
                     static_cast<double>(std::max<int64_t>(operators, 1));
  const double relative = tolerance.value_or(8 * EpsilonOf(dtype) * std::sqrt(terms));
  const bool single = c10::toRealValueType(dtype) != at::kDouble;
  const double own = OwnAllowance(single, contributions.scale, std::abs(contributions.reference), tolerance);
  return std::min(relative * (contributions.mass + std::abs(contributions.value)), own);
}

at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index) {
  for (const int64_t i : index) tensor = tensor.select(0, i);
  return tensor;
}

double NumberAt(const at::Tensor& tensor, const TargetElements& target) {
  const double first = ElementAt(tensor, target.index).item<double>();
  return target.subtract.empty() ? first : first - ElementAt(tensor, target.subtract).item<double>();
}

Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target,
                         const Report* report) {
  Contributions result;
  const TargetElements elements = FindElements(value, target);
  result.index = elements.index;
  result.subtract = elements.subtract;
  result.value = NumberAt(value, elements);
  result.scale = LargestFinite(value);
  result.reference = NumberAt(composition.reference(), elements);
  result.leftover = NumberAt(composition.leftover(), elements);
  at::Tensor parts = composition.components().to(at::kDouble);
  at::Tensor minus = parts;
  for (const int64_t i : result.index) parts = parts.select(1, i);
  if (!result.subtract.empty()) {
    for (const int64_t i : result.subtract) minus = minus.select(1, i);
    parts = parts - minus;
  }
  parts = parts.to(at::kCPU).contiguous();
  result.contributions.assign(parts.data_ptr<double>(), parts.data_ptr<double>() + parts.numel());
  AddUp(result);
  const int64_t operators = report == nullptr ? composition.origin().depth : report->operators;
  result.tolerance = RecoveryAllowance(result, value.scalar_type(), operators,
                                       report == nullptr ? std::nullopt : report->policy.tolerance);
  return result;
}

}  // namespace addend

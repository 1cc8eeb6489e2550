#include "core/explain/target.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace addend {
namespace {

std::vector<int64_t> ParseIndex(const std::string& text, const std::string& whole) {
  std::vector<int64_t> index;
  for (const auto piece : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(piece, &number) || number < 0) {
      throw InvalidArgument(absl::StrCat("target ", whole,
                                         " is not understood; use top1, an element (3 or 0,3) or the "
                                         "difference of two (3-5)"));
    }
    index.push_back(number);
  }
  return index;
}

// Completes an index that leaves out leading dimensions of size 1, and checks it.
std::vector<int64_t> Resolve(std::vector<int64_t> index, at::IntArrayRef sizes) {
  const auto fail = [&] {
    return InvalidArgument(absl::StrCat("target ", absl::StrJoin(index, ","), " does not fit an output of shape [",
                                        absl::StrJoin(sizes, ", "), "]"));
  };
  if (index.size() > sizes.size()) throw fail();
  const size_t missing = sizes.size() - index.size();
  std::vector<int64_t> whole;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t i = d < missing ? 0 : index[d - missing];
    if ((d < missing && sizes[d] != 1) || i >= sizes[d]) throw fail();
    whole.push_back(i);
  }
  return whole;
}

double ElementOf(const at::Tensor& tensor, const std::vector<int64_t>& index) {
  at::Tensor element = tensor;
  for (const int64_t i : index) element = element.select(0, i);
  return element.item<double>();
}

}  // namespace

Target ParseTarget(const std::string& text) {
  Target target;
  if (text == "top1") return target;
  target.top1 = false;
  const std::vector<std::string> sides = absl::StrSplit(text, '-');
  if (sides.size() > 2) ParseIndex("", text);
  target.index = ParseIndex(sides[0], text);
  if (sides.size() == 2) target.subtract = ParseIndex(sides[1], text);
  return target;
}

TargetElements FindElements(const at::Tensor& value, const Target& target) {
  TargetElements found;
  if (value.numel() == 0) throw InvalidArgument("the output is empty");
  if (value.is_complex()) {
    throw InvalidArgument("the output is complex; a target is a real number, such as the real part or the magnitude");
  }
  if (target.top1) {
    for (int64_t d = 0; d + 1 < value.dim(); ++d) {
      if (value.size(d) == 1) continue;
      throw InvalidArgument(
          absl::StrCat("an output of shape [", absl::StrJoin(value.sizes(), ", "),
                       "] has more than one largest element; choose a row of the input, or a target i,j"));
    }
    const int64_t largest = at::argmax(value).item<int64_t>();
    found.index.assign(value.dim(), 0);
    if (value.dim() > 0) found.index.back() = largest;
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
  contributions.conditioning = mass == 0 ? 1 : mass / std::abs(sum);
  contributions.mass = mass + std::abs(contributions.reference) + std::abs(contributions.leftover);
}

Contributions Contribute(const at::Tensor& value, const Composition& composition, const Target& target) {
  Contributions result;
  const TargetElements elements = FindElements(value, target);
  result.index = elements.index;
  result.subtract = elements.subtract;
  const auto number = [&](const at::Tensor& tensor) {
    return ElementOf(tensor, result.index) - (result.subtract.empty() ? 0 : ElementOf(tensor, result.subtract));
  };
  result.value = number(value);
  result.reference = number(composition.reference());
  result.leftover = number(composition.leftover());
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
  return result;
}

}  // namespace addend

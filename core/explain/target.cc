#include "core/explain/target.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend {
namespace {

using Quantity = Target::Quantity;

constexpr char kTop1[] = "top1";
// The only element of a tensor without dimensions.
constexpr char kNoIndex[] = "()";

// Whether elements are written behind a name, as of an output: "treated,0-control,0".
bool NamesOutputs(const std::string& text) {
  for (const absl::string_view piece : absl::StrSplit(text, absl::ByAnyChar("+-:"))) {
    const bool named = !piece.empty() && absl::ascii_isalpha(static_cast<unsigned char>(piece[0]));
    if (named && absl::StrContains(piece, ",")) return true;
  }
  return false;
}

Error NotUnderstood(const std::string& text) {
  return InvalidArgument(
      absl::StrCat("target ", text, " is not understood; use top1, an element (3, 0,3 or 0,-1,3; () where there is ",
                   "only one), the difference of two (3-5), probability:3, log_probability:3, entropy, entropy:5, ",
                   "continuation:12,55,7, a sum of such targets (sum:3+5), or of a region (sum:0,2,:,10:20)",
                   NamesOutputs(text) ? "; a target is of one output, which `at` names: explain one number of each "
                                        "output and add or subtract contributions, reference and leftover, which are "
                                        "exactly those of the sum or the difference"
                                      : ""));
}

std::vector<int64_t> ParseIndex(absl::string_view text, const std::string& whole) {
  std::vector<int64_t> index;
  for (const auto piece : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(piece, &number)) throw NotUnderstood(whole);
    index.push_back(number);
  }
  return index;
}

// "0,2,:,10:20", of which at least one is a range.
Target ParseRegion(absl::string_view text, const std::string& whole) {
  Target target;
  target.quantity = Quantity::kRegion;
  target.top1 = false;
  const auto number = [&](absl::string_view own) {
    int64_t parsed = 0;
    if (!absl::SimpleAtoi(own, &parsed)) throw NotUnderstood(whole);
    return parsed;
  };
  for (const absl::string_view own : absl::StrSplit(text, ',')) {
    const size_t colon = own.find(':');
    Target::Span span;
    if (colon == absl::string_view::npos) {
      span.begin = number(own);
      span.one = true;
    } else {
      if (colon > 0) span.begin = number(own.substr(0, colon));
      if (colon + 1 < own.size()) span.end = number(own.substr(colon + 1));
    }
    target.region.push_back(span);
  }
  return target;
}

// Position at which the second of two elements begins, behind the minus between them: one that follows a digit is no
// sign.
size_t FindSecond(absl::string_view text) {
  for (size_t k = 1; k < text.size(); ++k) {
    if (text[k] == '-' && absl::ascii_isdigit(static_cast<unsigned char>(text[k - 1]))) return k + 1;
  }
  return absl::string_view::npos;
}

// The largest element, an element, or the difference of two. whole: what the text is part of.
Target ParseElement(absl::string_view text, const std::string& whole) {
  Target target;
  if (text == kTop1) return target;
  target.top1 = false;
  if (text == kNoIndex) return target;
  const size_t second = FindSecond(text);
  const bool difference = second != absl::string_view::npos;
  target.index = ParseIndex(difference ? text.substr(0, second - 1) : text, whole);
  if (difference) target.subtract = ParseIndex(text.substr(second), whole);
  return target;
}

std::string IndexText(const std::vector<int64_t>& index) { return absl::StrJoin(index, ","); }

void AppendSpan(std::string* out, const Target::Span& span) {
  if (span.one || span.begin != 0) absl::StrAppend(out, span.begin);
  if (!span.one) out->append(":");
  if (!span.one && span.end) absl::StrAppend(out, *span.end);
}

// Text of an element, also for its probability.
std::string PlaceText(const Target& target) {
  if (target.top1) return kTop1;
  if (target.index.empty()) return kNoIndex;
  return absl::StrCat(IndexText(target.index), target.subtract.empty() ? "" : "-", IndexText(target.subtract));
}

// Finds the places of targets in one tensor.
class Places {
 public:
  // sequence: the last two dimensions are positions and classes; there is one before them.
  Places(const at::Tensor& value, bool sequence, const Target& asked)
      : value_(value), sequence_(sequence), asked_(asked) {}

  // The place in its row of each example's largest element; the first dimension of `values` counts examples, of which
  // value is one.
  std::vector<int64_t> LargestOfEach(const at::Tensor& values) const {
    at::Tensor rows = values;
    const std::vector<int64_t> row = *OwnRow();
    for (const int64_t i : row) rows = rows.select(1, i);
    const at::Tensor places = at::argmax(rows.reshape({values.size(0), -1}), 1).to(at::kCPU).contiguous();
    return {places.data_ptr<int64_t>(), places.data_ptr<int64_t>() + places.numel()};
  }

  Target Find(const Target& target) const {
    Target found = target;
    found.top1 = false;
    switch (target.quantity) {
      case Quantity::kProbability:
      case Quantity::kLogProbability:
        if (value_.dim() == 0) throw NoDistribution();
        [[fallthrough]];
      case Quantity::kElement:
        found.index = target.top1 ? Largest() : Element(target.index);
        if (!target.subtract.empty()) found.subtract = Element(target.subtract);
        return found;
      case Quantity::kEntropy:
        if (value_.dim() == 0) throw NoDistribution();
        found.index = Row(target.index);
        return found;
      case Quantity::kContinuation:
        CheckContinuation(target.ids);
        found.index.assign(value_.dim() - 2, 0);
        return found;
      case Quantity::kSum:
        for (Target& part : found.parts) part = Find(part);
        return found;
      case Quantity::kRegion:
        found.region = Region(target.region);
        return found;
    }
    return found;
  }

 private:
  Error DoesNotFit() const {
    const bool of_one = value_.dim() > 1 && value_.size(0) > 1 && asked_.index.size() + 1 == value_.sizes().size();
    return InvalidArgument(
        absl::StrCat("target ", TargetText(asked_), " does not fit an output of shape ", ShapeText(value_.sizes()),
                     of_one ? "; if its first dimension counts examples, ask for each_example" : ""));
  }

  Error NoDistribution() const {
    return InvalidArgument(
        absl::StrCat("target ", TargetText(asked_), " asks for a distribution, but the output is a single number"));
  }

  // Completes an index that leaves out leading dimensions of size 1, and checks it.
  std::vector<int64_t> Complete(const std::vector<int64_t>& index, at::IntArrayRef sizes) const {
    if (index.size() > sizes.size()) throw DoesNotFit();
    const size_t missing = sizes.size() - index.size();
    std::vector<int64_t> whole;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t i = d < missing ? 0 : index[d - missing];
      if (i < 0) i += sizes[d];  // counted from the end
      if ((d < missing && sizes[d] != 1) || i < 0 || i >= sizes[d]) throw DoesNotFit();
      whole.push_back(i);
    }
    return whole;
  }

  // The row along the last dimension that is meant where none is named: the only one, or that of the last position.
  std::optional<std::vector<int64_t>> OwnRow() const {
    std::vector<int64_t> row;
    for (int64_t d = 0; d + 1 < value_.dim(); ++d) {
      const bool position = sequence_ && d + 2 == value_.dim();
      if (value_.size(d) != 1 && !position) return std::nullopt;
      row.push_back(value_.size(d) - 1);
    }
    return row;
  }

  std::vector<int64_t> Largest() const {
    const auto row = OwnRow();
    if (!row) {
      throw InvalidArgument(absl::StrCat("an output of shape ", ShapeText(value_.sizes()),
                                         " has more than one largest element; choose a row of the input, or a ",
                                         "target i,j"));
    }
    std::vector<int64_t> index = *row;
    if (value_.dim() > 0) index.push_back(at::argmax(ElementAt(value_, index)).item<int64_t>());
    return index;
  }

  std::vector<int64_t> Element(const std::vector<int64_t>& index) const {
    if (index.size() == 1 && sequence_) {
      if (std::optional<std::vector<int64_t>> whole = OwnRow()) {
        whole->push_back(index[0]);
        return Complete(*whole, value_.sizes());
      }
    }
    return Complete(index, value_.sizes());
  }

  // Completes a region as Complete() does an index; one that takes all of a dimension keeps its end open.
  std::vector<Target::Span> Region(const std::vector<Target::Span>& region) const {
    const at::IntArrayRef sizes = value_.sizes();
    if (region.size() > sizes.size()) throw DoesNotFit();
    const size_t missing = sizes.size() - region.size();
    std::vector<Target::Span> whole(missing, {0, std::nullopt, true});
    for (size_t d = 0; d < missing; ++d) {
      if (sizes[d] != 1) throw DoesNotFit();
    }
    for (size_t d = missing; d < sizes.size(); ++d) {
      Target::Span span = region[d - missing];
      const auto counted = [&](int64_t i) { return i < 0 ? i + sizes[d] : i; };
      span.begin = counted(span.begin);
      if (span.end) span.end = counted(*span.end);
      const int64_t end = span.one ? span.begin + 1 : span.end.value_or(sizes[d]);
      if (span.begin < 0 || span.begin >= end || end > sizes[d]) throw DoesNotFit();
      if (!span.one && end == sizes[d]) span.end.reset();
      whole.push_back(span);
    }
    return whole;
  }

  std::vector<int64_t> Row(const std::vector<int64_t>& index) const {
    if (!index.empty()) return Complete(index, value_.sizes().slice(0, value_.dim() - 1));
    const auto row = OwnRow();
    if (!row) {
      throw InvalidArgument(absl::StrCat("an output of shape ", ShapeText(value_.sizes()),
                                         " has more than one distribution; choose a row of the input, or the ",
                                         "position, such as entropy:0"));
    }
    return *row;
  }

  void CheckContinuation(const std::vector<int64_t>& ids) const {
    const int64_t dim = value_.dim();
    bool fits = dim >= 2;
    for (int64_t d = 0; d + 2 < dim; ++d) fits = fits && value_.size(d) == 1;
    if (!fits) {
      throw InvalidArgument(absl::StrCat("target ", TargetText(asked_),
                                         " needs an output of the shape [1, positions, classes], not ",
                                         ShapeText(value_.sizes())));
    }
    const auto count = static_cast<int64_t>(ids.size());
    if (count >= value_.size(dim - 2)) {
      throw InvalidArgument(absl::StrCat(
          "target ", TargetText(asked_), " has ", count, " ids, but the input has ", value_.size(dim - 2),
          "; give the model the prompt and its continuation in one, of which the ", "target's ids are the last"));
    }
    for (const int64_t id : ids) {
      if (id < 0 || id >= value_.size(dim - 1)) throw DoesNotFit();
    }
  }

  const at::Tensor value_;
  const bool sequence_;
  const Target& asked_;
};

void RequireNumbers(const at::Tensor& value) {
  if (value.numel() == 0) throw InvalidArgument("the output is empty");
  if (value.is_complex()) {
    throw InvalidArgument("the output is complex; a target is a real number, such as the real part or the magnitude");
  }
}

bool AsksForTop1(const Target& target) {
  const Quantity quantity = target.quantity;
  const bool of_element =
      quantity == Quantity::kElement || quantity == Quantity::kProbability || quantity == Quantity::kLogProbability;
  return of_element && target.top1;
}

bool HasTop1(const Target& target) {
  return AsksForTop1(target) || std::any_of(target.parts.begin(), target.parts.end(), HasTop1);
}

// Puts the place of the largest element where a target that was found asks for it.
void SetLargest(const Target& asked, int64_t place, Target& found) {
  if (AsksForTop1(asked) && !found.index.empty()) found.index.back() = place;
  for (size_t k = 0; k < asked.parts.size(); ++k) SetLargest(asked.parts[k], place, found.parts[k]);
}

void InExample(int64_t example, Target& target) {
  if (target.quantity == Quantity::kSum) {
    for (Target& part : target.parts) InExample(example, part);
    return;
  }
  if (target.quantity == Quantity::kRegion) {
    target.region.insert(target.region.begin(), {example, std::nullopt, true});
    return;
  }
  target.index.insert(target.index.begin(), example);
  if (!target.subtract.empty()) target.subtract.insert(target.subtract.begin(), example);
}

}  // namespace

bool operator==(const Target::Span& a, const Target::Span& b) {
  return a.begin == b.begin && a.end == b.end && a.one == b.one;
}

bool operator==(const Target& a, const Target& b) {
  return a.quantity == b.quantity && a.top1 == b.top1 && a.index == b.index && a.subtract == b.subtract &&
         a.ids == b.ids && a.parts == b.parts && a.region == b.region;
}

const char* QuantityWord(Quantity quantity) {
  switch (quantity) {
    case Quantity::kElement:
    case Quantity::kRegion:
      return "";
    case Quantity::kProbability:
      return "probability";
    case Quantity::kLogProbability:
      return "log_probability";
    case Quantity::kEntropy:
      return "entropy";
    case Quantity::kContinuation:
      return "continuation";
    case Quantity::kSum:
      return "sum";
  }
  return "";
}

bool IsRegionText(const std::string& text) {
  return absl::StrContains(text, ":") && !absl::ascii_isalpha(static_cast<unsigned char>(text[0]));
}

Target ParseTarget(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  const bool more = colon != std::string::npos;
  const absl::string_view rest = more ? absl::string_view(text).substr(colon + 1) : absl::string_view();
  for (const Quantity quantity : {Quantity::kProbability, Quantity::kLogProbability, Quantity::kEntropy,
                                  Quantity::kContinuation, Quantity::kSum}) {
    if (word != QuantityWord(quantity)) continue;
    if (!more && quantity != Quantity::kEntropy) throw NotUnderstood(text);
    Target target;
    if (quantity == Quantity::kProbability || quantity == Quantity::kLogProbability) {
      target = ParseElement(rest, text);
      if (!target.subtract.empty()) {
        throw InvalidArgument(absl::StrCat("target ", text,
                                           " is no single element; the difference of two log-probabilities of one ",
                                           "position is that of the elements themselves, ", std::string(rest)));
      }
    } else {
      target.top1 = false;
      if (quantity == Quantity::kEntropy && more) target.index = ParseIndex(rest, text);
      if (quantity == Quantity::kContinuation) target.ids = ParseIndex(rest, text);
      if (quantity == Quantity::kSum) {
        for (const auto part : absl::StrSplit(rest, '+')) {
          const std::string own(part);
          target.parts.push_back(IsRegionText(own) ? ParseRegion(own, text) : ParseTarget(own));
          if (target.parts.back().quantity == Quantity::kSum) throw NotUnderstood(text);
        }
      }
    }
    target.quantity = quantity;
    return target;
  }
  return ParseElement(text, text);
}

std::string TargetText(const Target& target) {
  const std::string word = QuantityWord(target.quantity);
  switch (target.quantity) {
    case Quantity::kElement:
      return PlaceText(target);
    case Quantity::kProbability:
    case Quantity::kLogProbability:
      return absl::StrCat(word, ":", PlaceText(target));
    case Quantity::kEntropy:
      return absl::StrCat(word, target.index.empty() ? "" : ":", IndexText(target.index));
    case Quantity::kContinuation:
      return absl::StrCat(word, ":", IndexText(target.ids));
    case Quantity::kSum:
      return absl::StrCat(word, ":", absl::StrJoin(target.parts, "+", [](std::string* out, const Target& part) {
                            out->append(TargetText(part));
                          }));
    case Quantity::kRegion:
      return absl::StrJoin(target.region, ",", AppendSpan);
  }
  return "";
}

Target FindElements(const at::Tensor& value, const Target& target) {
  RequireNumbers(value);
  return Places(value, value.dim() > 2, target).Find(target);
}

std::vector<Target> FindElementsOfEach(const at::Tensor& value, const std::vector<Target>& targets) {
  RequireNumbers(value);
  std::vector<Target> found;
  found.reserve(value.size(0));
  // Those that were asked for before, as they are found in one example: a batch asks for few different ones.
  constexpr size_t kMost = 64;
  std::vector<std::pair<const Target*, Target>> known;
  std::vector<int64_t> largest;
  for (int64_t i = 0; i < value.size(0); ++i) {
    const Target& target = targets[targets.size() == 1 ? 0 : i];
    auto own = std::find_if(known.begin(), known.end(), [&](const auto& one) { return *one.first == target; });
    if (own == known.end()) {
      if (known.size() == kMost) known.clear();
      const Places places(value.select(0, i), value.dim() > 2, target);
      known.emplace_back(&target, places.Find(target));
      own = known.end() - 1;
      if (largest.empty() && HasTop1(target)) largest = places.LargestOfEach(value);
    }
    found.push_back(own->second);
    if (!largest.empty()) SetLargest(target, largest[i], found.back());
    InExample(i, found.back());
  }
  return found;
}

at::Tensor ElementAt(at::Tensor tensor, const std::vector<int64_t>& index) {
  for (const int64_t i : index) tensor = tensor.select(0, i);
  return tensor;
}

}  // namespace addend

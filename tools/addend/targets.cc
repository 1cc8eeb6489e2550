#include "tools/addend/targets.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/document/explanation.h"
#include "core/explain/target_numbers.h"
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

// An element as a target: a class by its name, or an index.
std::optional<std::vector<int64_t>> FindElement(const std::string& text, const std::vector<std::string>& classes) {
  const auto named = std::find(classes.begin(), classes.end(), text);
  try {
    const Target target = ParseTarget(text);
    if (target.quantity == Target::Quantity::kElement && !target.top1 && target.subtract.empty()) return target.index;
  } catch (const Error&) {
    // No index; a class, if anything.
  }
  if (named == classes.end()) return std::nullopt;
  return std::vector<int64_t>{named - classes.begin()};
}

// An element, or the difference of two, of which at least one may be a class by its name.
std::optional<Target> FindDifference(const std::string& text, const std::vector<std::string>& classes) {
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
  return std::nullopt;
}

// A quantity of a class by its name: "log_probability:German", "continuation:the,cat", "sum:German+entropy".
std::optional<Target> FindQuantity(const std::string& text, const std::vector<std::string>& classes) {
  using Quantity = Target::Quantity;
  const size_t colon = text.find(':');
  if (classes.empty() || colon == std::string::npos) return std::nullopt;
  const std::string word = text.substr(0, colon);
  const std::string rest = text.substr(colon + 1);
  for (const Quantity quantity :
       {Quantity::kProbability, Quantity::kLogProbability, Quantity::kContinuation, Quantity::kSum}) {
    if (word != QuantityWord(quantity)) continue;
    Target target;
    target.quantity = quantity;
    target.top1 = false;
    if (quantity == Quantity::kSum) {
      for (const auto part : absl::StrSplit(rest, '+')) {
        const std::string own(part);
        target.parts.push_back(IsRegionText(own) ? ParseTarget(absl::StrCat("sum:", own)).parts[0]
                                                 : FindTarget(own, classes));
        if (target.parts.back().quantity == Quantity::kSum) return std::nullopt;
      }
    } else if (quantity == Quantity::kContinuation) {
      for (const auto part : absl::StrSplit(rest, ',')) {
        const auto id = FindElement(std::string(part), classes);
        if (!id) return std::nullopt;
        target.ids.push_back(id->at(0));
      }
    } else {
      const auto element = FindElement(rest, classes);
      if (!element) return std::nullopt;
      target.index = *element;
    }
    return target;
  }
  return std::nullopt;
}

}  // namespace

Target FindTarget(const std::string& text, const std::vector<std::string>& classes) {
  if (const auto found = FindDifference(text, classes)) return *found;
  if (const auto found = FindQuantity(text, classes)) return *found;
  try {
    return ParseTarget(text);
  } catch (const Error& error) {
    if (classes.empty()) throw;
    throw InvalidArgument(absl::StrCat(error.what(), ", or a class: ", absl::StrJoin(classes, ", "),
                                       " (A-B for the first minus another)"));
  }
}

bool NeedsOneSample(const Target& target) {
  if (target.quantity == Target::Quantity::kSum) {
    return std::any_of(target.parts.begin(), target.parts.end(), NeedsOneSample);
  }
  return target.top1;
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

void CheckClasses(const std::string& option, const at::Tensor& value, const std::string& at,
                  const std::vector<std::string>& classes) {
  if (option.empty() || HasClasses(value, at, classes)) return;
  throw InvalidArgument(absl::StrCat("--classes gives ", classes.size(), " names, but ", at.empty() ? "output" : at,
                                     " has ", value.dim() > 0 ? value.size(-1) : 1, " elements"));
}

std::vector<std::string> NotesOn(const at::Tensor& value, const std::string& at, const Contributions& target) {
  const bool element = target.target.quantity == Target::Quantity::kElement;
  if (!at.empty() || !element || !AreProbabilities(value, target.target.index)) return {};
  return {"these are probabilities; --at logits explains the scores that they were made from"};
}

}  // namespace addend::cli

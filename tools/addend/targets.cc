#include "tools/addend/targets.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/document/explanation.h"
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

void CheckClasses(const std::string& option, const at::Tensor& value, const std::string& at,
                  const std::vector<std::string>& classes) {
  if (option.empty() || HasClasses(value, at, classes)) return;
  throw InvalidArgument(absl::StrCat("--classes gives ", classes.size(), " names, but ", at.empty() ? "output" : at,
                                     " has ", value.dim() > 0 ? value.size(-1) : 1, " elements"));
}

std::vector<std::string> NotesOn(const at::Tensor& value, const std::string& at, const Contributions& target) {
  if (!at.empty() || !AreProbabilities(value, target.index)) return {};
  return {"these are probabilities; --at logits explains the scores that they were made from"};
}

}  // namespace addend::cli

#include "core/model/run_model.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend {

std::string SentenceOf(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  std::vector<std::string> lines;
  for (const auto line : absl::StrSplit(text, '\n')) {
    const auto trimmed = absl::StripAsciiWhitespace(line);
    if (!trimmed.empty()) lines.emplace_back(trimmed.data(), trimmed.size());
  }
  if (lines.empty()) return "no reason given";
  if (!absl::StrContains(text, "TorchScript interpreter")) return lines.front();
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (absl::StartsWith(*line, "RuntimeError: ")) return line->substr(14);
  }
  return lines.back();
}

std::string DescribeInputs(const std::vector<at::Tensor>& inputs) {
  return absl::StrJoin(inputs, ", ",
                       [](std::string* out, const at::Tensor& input) { absl::StrAppend(out, TensorText(input)); });
}

Error FailsOn(const std::string& described, const std::exception& error) {
  return InvalidArgument(absl::StrCat("the model fails on an input ", described, ": ", SentenceOf(error)));
}

c10::IValue RunModel(Model& model, const std::vector<c10::IValue>& inputs, const std::string& described) {
  c10::AutoGradMode no_grad(false);
  try {
    return model.Run(inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw FailsOn(described, e);
  }
}

}  // namespace addend

// Explains one number that a model computes.
#include "core/explain/decompose.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/document/explanation.h"
#include "core/document/svg.h"
#include "core/explain/outcome.h"
#include "core/explain/target.h"
#include "core/explain/target_numbers.h"
#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/run.h"
#include "tools/addend/table.h"
#include "tools/addend/targets.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr int64_t kMaxOtherTargets = 20;

// Probes among the selectors of --at, without doubles; outputs are no probes.
std::vector<std::string> ProbesOf(const std::vector<std::string>& at) {
  std::vector<std::string> probes;
  for (const std::string& selector : at) {
    const bool output = selector == "output" || selector.rfind("output.", 0) == 0;
    if (!output && std::find(probes.begin(), probes.end(), selector) == probes.end()) probes.push_back(selector);
  }
  return probes;
}

const Decomposed& FindExplained(const Decomposition& decomposition, const std::string& at) {
  if (at.empty()) return decomposition.outputs.at(0);
  for (const auto* list : {&decomposition.outputs, &decomposition.probes}) {
    for (const Decomposed& one : *list) {
      if (one.name == at) return one;
    }
  }
  throw InvalidArgument(
      absl::StrCat("the model has no ", at, "; it has ", Plural(decomposition.outputs.size(), "output")));
}

// Other elements of a row: all in order, or the largest by falling value if a page has no room for all.
std::vector<int64_t> OthersOf(const at::Tensor& row, int64_t without) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < row.size(0); ++i) {
    if (i != without) others.push_back(i);
  }
  if (static_cast<int64_t>(others.size()) <= kMaxOtherTargets) return others;
  const at::Tensor numbers = row.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* values = numbers.data_ptr<double>();
  const auto larger = [&](int64_t a, int64_t b) {
    return std::isnan(values[b]) ? !std::isnan(values[a]) : values[a] > values[b];
  };
  std::stable_sort(others.begin(), others.end(), larger);
  others.resize(kMaxOtherTargets);
  return others;
}

// The one asked for, then others of its row, so that a page can change between them.
std::vector<ExplainedTarget> MakeTargets(const ExplainedRun& run, const std::string& at, const Target& asked,
                                         const Decomposed& explained) {
  const at::Tensor& value = explained.value;
  const auto make = [&](const Target& target) {
    return DescribeTarget(value, at, run.classes, Contribute(value, explained.composition, target, &run.report));
  };
  std::vector<ExplainedTarget> targets = {make(asked)};
  Target other = targets[0].numbers.target;
  const bool of_class = other.quantity == Target::Quantity::kElement ||
                        other.quantity == Target::Quantity::kProbability ||
                        other.quantity == Target::Quantity::kLogProbability;
  if (value.dim() == 0 || !of_class) return targets;
  const bool difference = !other.subtract.empty();
  other.subtract.clear();
  at::Tensor row = value;
  for (size_t d = 0; d + 1 < other.index.size(); ++d) row = row.select(0, other.index[d]);
  for (const int64_t i : OthersOf(row, difference ? -1 : other.index.back())) {
    other.index.back() = i;
    // A class that is masked has no logarithm of its probability.
    const bool possible = std::isfinite(ElementAt(value, other.index).item<double>());
    if (!possible && other.quantity != Target::Quantity::kElement) continue;
    targets.push_back(make(other));
  }
  return targets;
}

void AddTensors(const Decomposed& one, const std::string& prefix, TensorFile& file) {
  const Composition& composition = one.composition;
  file.tensors.emplace_back(prefix + "components", composition.components().contiguous());
  file.tensors.emplace_back(prefix + "reference", composition.reference().contiguous());
  file.tensors.emplace_back(prefix + "leftover", composition.leftover().contiguous());
  file.tensors.emplace_back(prefix + "value", one.value.detach().contiguous());
}

// Every composition of the run: those of the first output without a prefix, others as "NAME/components".
TensorFile TensorsOf(const Decomposition& decomposition, const Explanation& explanation, const Json& record) {
  TensorFile file;
  for (const Decomposed& output : decomposition.outputs) {
    AddTensors(output, &output == &decomposition.outputs[0] ? "" : output.name + "/", file);
  }
  for (const Decomposed& probe : decomposition.probes) AddTensors(probe, probe.name + "/", file);
  Json target = record["targets"][0];
  target["at"] = record["at"];
  file.metadata = MetadataOf(record);
  file.metadata["target"] = Dump(target);
  const std::vector<std::string>& classes = explanation.run->classes;
  if (!classes.empty()) file.metadata["classes"] = Dump(Json(classes));
  return file;
}

}  // namespace

int RunDecompose(const DecomposeArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  ParsePolicy(arguments.run.policy);
  if (arguments.top < 0) throw InvalidArgument("--top is the number of contributions to show, which is not negative");
  CheckOutputs({{"--out", arguments.out}, {"--html", arguments.html}, {"--svg", arguments.svg}},
               SourcesOf(arguments.run, {arguments.names, arguments.classes}));

  LoadedRun run = Load(arguments.run);
  FindInside(run);
  ExplainedRun described = DescribeRun(run, arguments.names, arguments.classes);
  Explanation explanation;
  explanation.at = arguments.at.empty() ? "" : arguments.at[0];
  const Target asked = FindTarget(arguments.target, described.classes);

  if (NeedsOneSample(asked) && explanation.at.empty()) CheckOneSample(run);
  auto options = OptionsOf<DecomposeOptions>(run);
  options.probes = ProbesOf(arguments.at);
  const Decomposition decomposition = Decompose(run, std::move(options));
  described.report = decomposition.report;

  const Decomposed& explained = FindExplained(decomposition, explanation.at);
  for (const std::string& selector : arguments.at) FindExplained(decomposition, selector);
  CheckClasses(arguments.classes, explained.value, explanation.at, described.classes);
  explanation.targets = MakeTargets(described, explanation.at, asked, explained);
  explanation.run = std::make_shared<const ExplainedRun>(std::move(described));
  std::vector<Contributions> numbers;
  for (const ExplainedTarget& target : explanation.targets) numbers.push_back(target.numbers);
  explanation.notes = NotesOfRecovery(explanation.at, numbers, &explanation.run->report);
  for (std::string& note : NotesOn(explained.value, explanation.at, numbers[0])) {
    explanation.notes.push_back(std::move(note));
  }
  for (std::string& note :
       NotesOfTarget(explained.value, explanation.targets[0].numbers.target, InputsOf(*explanation.run))) {
    explanation.notes.push_back(std::move(note));
  }
  if (explanation.at.empty() && decomposition.outputs.size() > 1) {
    explanation.notes.push_back(absl::StrCat("the model has ", decomposition.outputs.size(),
                                             " outputs; this is the first, --at output.1 is the next"));
  }

  const Writer writer = ThisProgram();
  const Json record = ExplanationJson(explanation, writer);
  std::string text =
      arguments.json ? Dump(record, 1) + "\n" : ExplanationTable(run, explanation, arguments.top, terminal);
  // Drawn before anything is written, since numbers that are not finite are refused.
  const std::string picture = arguments.svg.empty() ? "" : ExplanationSvg(explanation);
  if (!arguments.html.empty()) WriteFileWhole(arguments.html, ExplanationHtml(explanation, writer));
  if (!arguments.svg.empty()) WriteFileWhole(arguments.svg, picture);
  if (!arguments.out.empty()) WriteTensorFile(arguments.out, TensorsOf(decomposition, explanation, record));
  if (!arguments.json) {
    if (!arguments.html.empty()) absl::StrAppend(&text, "\nPage written: ", arguments.html, "\n");
    if (!arguments.svg.empty()) absl::StrAppend(&text, "\nPicture written: ", arguments.svg, "\n");
    if (!arguments.out.empty()) absl::StrAppend(&text, "\nTensors written: ", arguments.out, "\n");
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli

// Explains one number that a model computes.
#include "core/explain/decompose.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/explain/target.h"
#include "core/explain/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/explanation.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/parts.h"
#include "tools/addend/record.h"
#include "tools/addend/run.h"
#include "tools/addend/table.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr int64_t kMaxOtherTargets = 20;
constexpr char kLogits[] = "logits";

// A target as text: what the core reads, or the name of a class.
Target FindTarget(const std::string& text, const std::vector<std::string>& classes) {
  const auto named = std::find(classes.begin(), classes.end(), text);
  try {
    return ParseTarget(text);
  } catch (const Error& error) {
    if (named == classes.end()) {
      if (classes.empty()) throw;
      throw InvalidArgument(absl::StrCat(error.what(), ", or a class: ", absl::StrJoin(classes, ", ")));
    }
  }
  Target target;
  target.top1 = false;
  target.index = {named - classes.begin()};
  return target;
}

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

// The largest element is one of each sample: with several it takes one plain run to say so, not a decomposition.
void CheckOneSample(const LoadedRun& run) {
  const at::Tensor& first = run.inputs[0].input.value;
  if (run.row || first.dim() < 2 || first.size(0) < 2) return;
  const at::Tensor output = FirstTensor(RunPlain(run));
  if (!output.defined() || output.dim() < 2 || output.size(0) != first.size(0)) return;
  throw InvalidArgument(absl::StrCat("the input holds ", first.size(0),
                                     " samples, each with a largest output; choose one with --row 0 to --row ",
                                     first.size(0) - 1, ", or an output with --target i,j"));
}

// What is asked for with --at, without doubles; outputs are no probes.
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

// Makes the targets of one tensor.
class TargetMaker {
 public:
  TargetMaker(const Decomposed& explained, const std::string& at, const Parts& parts, const Report& report)
      : explained_(explained), at_(at), parts_(parts) {
    const at::Tensor& value = explained.value;
    const bool scores = at.empty() || at == kLogits || at.rfind("output", 0) == 0;
    const int64_t last = value.dim() > 0 ? value.size(-1) : 1;
    named_ = scores && last == static_cast<int64_t>(parts.classes.size());
    if (!named_ && parts.classes_asked) {
      throw InvalidArgument(absl::StrCat("--classes gives ", parts.classes.size(), " names, but ", Described(), " has ",
                                         last, " elements"));
    }
    distribution_ = (named_ || at == kLogits) && last > 1;
    const double epsilon = value.scalar_type() == at::kDouble     ? std::numeric_limits<double>::epsilon()
                           : value.scalar_type() == at::kHalf     ? 9.8e-4
                           : value.scalar_type() == at::kBFloat16 ? 7.9e-3
                                                                  : std::numeric_limits<float>::epsilon();
    const double terms = static_cast<double>(parts.parts.size()) * std::max<int64_t>(1, report.operators);
    tolerance_ = report.policy.tolerance.value_or(8 * epsilon * std::sqrt(terms));
  }

  ExplainedTarget Make(const Target& asked) const {
    ExplainedTarget target;
    target.numbers = Contribute(explained_.value, explained_.composition, asked);
    target.tolerance = tolerance_ * (target.numbers.mass + std::abs(target.numbers.value));
    target.named = named_;
    const Contributions& numbers = target.numbers;
    target.name = NameOf(numbers.index);
    if (!numbers.subtract.empty()) {
      absl::StrAppend(&target.name, " minus ", NameOf(numbers.subtract));
    } else if (distribution_ && explained_.value.dim() > 0) {
      const std::vector<double> row = RowOf(explained_.value, numbers.index);
      target.probability = AreProbabilities(row) ? numbers.value : Softmax(row, numbers.index.back());
    }
    return target;
  }

  bool probabilities(const ExplainedTarget& target) const {
    return at_.empty() && explained_.value.dim() > 0 && AreProbabilities(RowOf(explained_.value, target.numbers.index));
  }

 private:
  std::string Described() const { return at_.empty() ? "output" : at_; }
  std::string NameOf(const std::vector<int64_t>& index) const {
    if (named_) return parts_.classes[index.back()];
    if (index.empty()) return Described();
    return absl::StrCat(Described(), " [", absl::StrJoin(index, ", "), "]");
  }

  const Decomposed& explained_;
  const std::string& at_;
  const Parts& parts_;
  bool named_ = false;
  bool distribution_ = false;
  double tolerance_ = 0;
};

// The one asked for, then the others of its row, so that a page can change between them.
std::vector<ExplainedTarget> MakeTargets(const TargetMaker& maker, const Target& asked, const at::Tensor& value) {
  std::vector<ExplainedTarget> targets = {maker.Make(asked)};
  if (value.dim() == 0) return targets;
  Target other;
  other.top1 = false;
  other.index = targets[0].numbers.index;
  const bool difference = !targets[0].numbers.subtract.empty();
  const int64_t first = other.index.back();
  for (int64_t i = 0; i < value.size(-1) && static_cast<int64_t>(targets.size()) <= kMaxOtherTargets; ++i) {
    if (i == first && !difference) continue;
    other.index.back() = i;
    targets.push_back(maker.Make(other));
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
TensorFile TensorsOf(const Decomposition& decomposition, const Explanation& explanation) {
  TensorFile file;
  for (const Decomposed& output : decomposition.outputs) {
    AddTensors(output, &output == &decomposition.outputs[0] ? "" : output.name + "/", file);
  }
  for (const Decomposed& probe : decomposition.probes) AddTensors(probe, probe.name + "/", file);
  const Json record = ExplanationRecord(explanation);
  Json names = Json::array();
  for (const Part& part : explanation.parts.parts) names.push_back(part.name);
  Json target = record["targets"][0];
  target["at"] = record["at"];
  file.metadata = {{"names", Dump(names)},
                   {"target", Dump(target)},
                   {"model", Dump(record["model"])},
                   {"inputs", Dump(record["inputs"])},
                   {"preset", record["preset"].get<std::string>()},
                   {"policy", Dump(record["policy"])},
                   {"libtorch", Dump(record["libtorch"])},
                   {"addend", Dump(record["addend"])}};
  if (!explanation.parts.classes.empty()) file.metadata["classes"] = Dump(Json(explanation.parts.classes));
  return file;
}

}  // namespace

int RunDecompose(const DecomposeArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  ParsePolicy(arguments.run.policy);
  if (arguments.top < 0) throw InvalidArgument("--top is the number of contributions to show, which is not negative");
  for (const std::string& path : {arguments.out, arguments.html}) {
    if (!path.empty()) CheckWritable(path, SourcesOf(arguments.run));
  }
  if (!arguments.out.empty() && arguments.out == arguments.html) {
    throw InvalidArgument("--out and --html name the same file");
  }

  Explanation explanation;
  explanation.run = Load(arguments.run);
  explanation.parts = DescribeParts(explanation.run, arguments.names, arguments.classes);
  explanation.at = arguments.at.empty() ? "" : arguments.at[0];
  const Target asked = FindTarget(arguments.target, explanation.parts.classes);

  if (asked.top1 && explanation.at.empty()) CheckOneSample(explanation.run);
  DecomposeOptions options;
  options.policy = explanation.run.policy;
  options.probes = ProbesOf(arguments.at);
  const Decomposition decomposition = Decompose(explanation.run, std::move(options));
  explanation.report = decomposition.report;

  const Decomposed& explained = FindExplained(decomposition, explanation.at);
  for (const std::string& selector : arguments.at) FindExplained(decomposition, selector);
  const TargetMaker maker(explained, explanation.at, explanation.parts, explanation.report);
  explanation.targets = MakeTargets(maker, asked, explained.value);
  if (maker.probabilities(explanation.targets[0])) {
    explanation.notes.push_back("these are probabilities; --at logits explains the scores that they were made from");
  }
  if (explanation.at.empty() && decomposition.outputs.size() > 1) {
    explanation.notes.push_back(absl::StrCat("the model has ", decomposition.outputs.size(),
                                             " outputs; this is the first, --at output.1 is the next"));
  }

  const Json record = ExplanationRecord(explanation);
  std::string text = arguments.json ? Dump(record, 1) + "\n" : ExplanationTable(explanation, arguments.top, terminal);
  if (!arguments.html.empty()) WriteFileWhole(arguments.html, MakePage(record));
  if (!arguments.out.empty()) WriteTensorFile(arguments.out, TensorsOf(decomposition, explanation));
  if (!arguments.json) {
    if (!arguments.html.empty()) absl::StrAppend(&text, "\nPage written: ", arguments.html, "\n");
    if (!arguments.out.empty()) absl::StrAppend(&text, "\nTensors written: ", arguments.out, "\n");
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli

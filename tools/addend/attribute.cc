// Explains numbers that a model computes by one sweep back, whatever the number of parts.
#include "core/explain/attribute.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/decision_log.h"
#include "core/audit/model_source.h"
#include "core/audit/record.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/document/explanation.h"
#include "core/document/reasons.h"
#include "core/document/svg.h"
#include "core/program/graph.h"
#include "core/program/graph_record.h"
#include "core/program/tensor_io.h"
#include "core/recording/record_program.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/reasons.h"
#include "tools/addend/run.h"
#include "tools/addend/table.h"
#include "tools/addend/targets.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

// "contributions": [targets, numc]; "NAME/elements": [targets, *input] for every input that is split.
TensorFile TensorsOf(const Attribution& attribution, const LoadedRun& run, const Json& record) {
  TensorFile file;
  const auto count = static_cast<int64_t>(attribution.targets.size());
  at::Tensor contributions = at::zeros({count, attribution.numc}, at::kDouble);
  at::Tensor sums = at::zeros({3, count}, at::kDouble);
  for (int64_t t = 0; t < count; ++t) {
    const Contributions& target = attribution.targets[t];
    contributions[t].copy_(at::tensor(target.contributions, at::kDouble));
    sums.select(1, t).copy_(at::tensor({target.value, target.reference, target.leftover}, at::kDouble));
  }
  file.tensors.emplace_back("contributions", contributions);
  file.tensors.emplace_back("value", sums[0].clone());
  file.tensors.emplace_back("reference", sums[1].clone());
  file.tensors.emplace_back("leftover", sums[2].clone());
  for (size_t k = 0; k < attribution.inputs.size(); ++k) {
    if (!attribution.inputs[k].defined()) continue;
    file.tensors.emplace_back(run.inputs[k].name + "/elements", attribution.inputs[k].contiguous());
  }
  Json targets = record["targets"];
  for (Json& target : targets) target.erase("contributions");
  file.metadata = MetadataOf(record);
  file.metadata["targets"] = Dump(targets);
  file.metadata["at"] = Dump(record["at"]);
  return file;
}

// The model as a graph, with what passed through its operators on the way to each target.
std::string PageOf(const Attribution& attribution, const LoadedRun& run, const Explanation& explanation) {
  const std::vector<at::Tensor> values = run.Values();
  const auto program = Record(*run.model, {values.begin(), values.end()}).program;
  const std::vector<std::vector<double>> passed = PassedByCall(attribution, program->calls.size());
  std::vector<CallNumbers> numbers(passed.size());
  for (size_t t = 0; t < passed.size(); ++t) {
    numbers[t].name = absl::StrCat("passed to ", explanation.targets[t].name);
    numbers[t].values = passed[t];
  }
  return GraphPage(Graph(program), run.model_path, numbers);
}

// Appends the decision to its log, with the reasons that are told of it, if there are some.
void AppendRecord(const AttributeArguments& arguments, const LoadedRun& run, const AttributeOptions& options,
                  const Explanation& explanation, const std::optional<Reasons>& reasons, DecisionLog& log) {
  auto source = std::make_shared<ModelSource>();
  source->sha256 = std::make_shared<const LazyDigest>([digest = run.model_sha256] { return digest; });
  if (!arguments.run.dtype.empty()) source->dtype = DtypeOfWord(arguments.run.dtype);
  AuditedDecision decision;
  decision.explanation = &explanation;
  decision.options = options;
  decision.model = std::move(source);
  decision.input_names = run.model->InputNames();
  DecisionOptions record;
  record.keep_inputs = arguments.keep_inputs;
  // Parse the text of the document, in which numbers that are not finite are null.
  if (reasons) record.reasons = Json::parse(Dump(ReasonsJson(*reasons)));
  log.Append(DecisionJson(decision, ThisProgram(), record));
}

}  // namespace

int RunAttribute(const AttributeArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  ParsePolicy(arguments.run.policy);
  if (arguments.top < 0) throw InvalidArgument("--top is the number of contributions to show, which is not negative");
  CheckOutputs({{"--out", arguments.out},
                {"--html", arguments.html},
                {"--svg", arguments.svg},
                {"--graph", arguments.graph},
                {"--log", arguments.log},
                {"--log", arguments.log.empty() ? "" : arguments.log + ".torn", /*beside=*/true}},
               SourcesOf(arguments.run, {arguments.names, arguments.classes, arguments.reasons}));
  if ((arguments.nodes || !arguments.graph.empty()) && arguments.run.request.each_example) {
    throw InvalidArgument("--nodes and --graph show what passed to targets one by one, which --each-example adds up");
  }
  if (!arguments.svg.empty() && (arguments.targets.size() > 1 || arguments.run.request.each_example)) {
    throw InvalidArgument("--svg draws one number: give one --target and no --each-example, or --html for all of them");
  }
  std::optional<Concepts> concepts;
  if (!arguments.reasons.empty()) concepts = LoadConcepts(arguments.reasons);
  if (arguments.keep_inputs && arguments.log.empty())
    throw InvalidArgument("--keep-inputs needs a --log to keep them in");
  std::optional<DecisionLog> log;
  if (!arguments.log.empty()) {
    // One that is no log, or is open elsewhere, is found before anything is computed; a new one is begun behind that.
    if (FileExists(arguments.log)) log.emplace(arguments.log);
  }

  LoadedRun run = Load(arguments.run);
  if (!arguments.log.empty() && !run.Several().empty()) throw InvalidArgument(kOneBaseline);
  FindInside(run);
  ExplainedRun described = DescribeRun(run, arguments.names, arguments.classes);
  auto options = OptionsOf<AttributeOptions>(run);
  options.operators = arguments.nodes || !arguments.graph.empty();
  options.targets.clear();
  for (const std::string& text : arguments.targets) options.targets.push_back(FindTarget(text, described.classes));
  if (options.targets.empty()) options.targets.emplace_back();
  const bool top1 = std::any_of(options.targets.begin(), options.targets.end(), NeedsOneSample);
  if (top1 && options.at.empty() && !options.each_example) CheckOneSample(run);

  const BaselinesAttribution found = Attribute(run, options);
  const Attribution& attribution = found.mean;
  described.report = attribution.report;
  CheckClasses(arguments.classes, attribution.value, options.at, described.classes);
  Explanation explanation =
      Explain(attribution, arguments.nodes, options.at, std::make_shared<const ExplainedRun>(std::move(described)));
  for (size_t t = 0; t < found.spread.size(); ++t) explanation.targets[t].spread = found.spread[t];
  explanation.notes = NotesOn(attribution.value, options.at, attribution.targets[0]);
  const Json record = ExplanationJson(explanation, ThisProgram());
  // Drawn before anything is written, since numbers that are not finite are refused.
  const std::string picture = arguments.svg.empty() ? "" : ExplanationSvg(explanation);
  std::optional<Reasons> reasons;
  if (concepts) {
    reasons = FindReasons(attribution, options.each_example, options.at, *explanation.run, *concepts, ThisProgram());
    reasons->notes.insert(reasons->notes.end(), explanation.notes.begin(), explanation.notes.end());
  }

  if (!arguments.log.empty()) {
    if (!log) log.emplace(arguments.log);
    AppendRecord(arguments, run, options, explanation, reasons, *log);
  }
  std::string text;
  if (arguments.json) {
    text = Dump(reasons ? ReasonsJson(*reasons) : record, 1) + "\n";
  } else if (reasons) {
    text = absl::StrCat(RunHeader(run, explanation.run->report, terminal), "\n",
                        ReasonsTable(*reasons, NotesBehindHeader(reasons->notes), terminal));
  } else {
    text = ExplanationTable(run, explanation, arguments.top, terminal);
    // The table shows the first; the others follow in the same way, without what they have in common.
    for (size_t t = 1; t < explanation.targets.size(); ++t) {
      absl::StrAppend(&text, "\n", TargetTable(explanation, t, arguments.top, terminal));
    }
  }
  if (log && !arguments.json) {
    const LogState state = log->state();
    if (state.torn_bytes > 0) {
      absl::StrAppend(&text, "\n", Plural(state.torn_bytes, "byte"),
                      " of a record that was never acknowledged: moved to ", state.path, ".torn\n");
    }
    absl::StrAppend(&text, "\nRecord ", state.records, " written: ", state.path, "\n", "Its hash: ", state.hash, "\n");
  }
  if (!arguments.out.empty()) {
    WriteTensorFile(arguments.out, TensorsOf(attribution, run, record));
    if (!arguments.json) absl::StrAppend(&text, "\nTensors written: ", arguments.out, "\n");
  }
  if (!arguments.html.empty()) {
    WriteFileWhole(arguments.html,
                   reasons ? ReasonsHtml(Dump(ReasonsJson(*reasons))) : ExplanationHtml(explanation, ThisProgram()));
    if (!arguments.json) absl::StrAppend(&text, "\nPage written: ", arguments.html, "\n");
  }
  if (!arguments.svg.empty()) {
    WriteFileWhole(arguments.svg, picture);
    if (!arguments.json) absl::StrAppend(&text, "\nPicture written: ", arguments.svg, "\n");
  }
  if (!arguments.graph.empty()) {
    WriteFileWhole(arguments.graph, PageOf(attribution, run, explanation));
    if (!arguments.json) absl::StrAppend(&text, "\nPage written: ", arguments.graph, "\n");
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli

// The command trace: a run's operators under their source lines, its graph, and the program that can be kept.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/explain/recorded_model.h"
#include "core/model/torchscript.h"
#include "core/program/code_trace.h"
#include "core/program/graph.h"
#include "core/program/graph_record.h"
#include "core/program/program_file.h"
#include "core/program/tensor_io.h"
#include "core/recording/check_trace.h"
#include "core/recording/export_torchscript.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/record_program.h"
#include "core/recording/requirements.h"
#include "tools/addend/commands.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

void RefuseContradictions(const TraceArguments& arguments) {
  if (arguments.json && !arguments.graph.empty()) {
    throw InvalidArgument("--json is the code trace; the graph as JSON is --graph json");
  }
  if (arguments.graph == "html" && arguments.out.empty()) {
    throw InvalidArgument("--graph html is a page for a browser; say where it goes with --out FILE");
  }
  if (!arguments.others.empty() && !arguments.check && arguments.save.empty() && arguments.export_to.empty()) {
    throw InvalidArgument(
        "--with is for --check, which tries further inputs, and for --save and --export, which learn "
        "sizes from them");
  }
  if (arguments.out_of_place && !arguments.check) throw InvalidArgument("--out-of-place is for --check");
  if (arguments.require && (arguments.check || !arguments.save.empty() || !arguments.export_to.empty() ||
                            !arguments.graph.empty() || !arguments.out.empty())) {
    throw InvalidArgument("--require runs nothing, so there is nothing to check, save, export or show");
  }
  if (!arguments.others.empty() && arguments.others.size() % arguments.run.inputs.size() != 0) {
    throw InvalidArgument(absl::StrCat("--with is given ", arguments.others.size(),
                                       " times, but each further run takes ", arguments.run.inputs.size(),
                                       " inputs, as --input does"));
  }
  if (!arguments.save.empty() && FileExists(arguments.save)) {
    throw InvalidArgument(absl::StrCat("--save ", arguments.save, " is a file; a program is saved as a folder"));
  }
  std::vector<Output> outputs = {
      {"--out", arguments.out}, {"--export", arguments.export_to}, {"--save", arguments.save, /*beside=*/true}};
  if (FolderExists(arguments.save)) {
    for (const char* name : {"/program.json", "/weights.safetensors"}) {
      outputs.push_back({"--save", arguments.save + name});
    }
  }
  std::vector<std::string> others;
  for (const std::string& other : arguments.others) others.push_back(ParseTensorPlace(other).path);
  CheckOutputs(outputs, SourcesOf(arguments.run, others));
}

std::vector<std::vector<c10::IValue>> Others(const TraceArguments& arguments) {
  std::vector<std::vector<c10::IValue>> sets;
  for (size_t k = 0; k < arguments.others.size(); ++k) {
    if (k % arguments.run.inputs.size() == 0) sets.emplace_back();
    sets.back().emplace_back(LoadTensor(arguments.others[k], arguments.run));
  }
  return sets;
}

std::string GuardText(const RecordedProgram& program, const RecordedGuard& guard) {
  std::ostringstream what;
  what << guard.value;
  return absl::StrCat(DescribeCall(program, guard.call), " gave ", what.str(), " (",
                      PositionOf(program, guard.call).Describe(), ")");
}

// Modules whose name alone means several tensors, and how to name one: what probes, `--at` and splits inside take. They
// are found in one more run; where that fails, the trace is as good without.
std::vector<std::string> Several(Model& model, const std::vector<at::Tensor>& values) {
  try {
    return ModulesOfSeveral(model, values);
  } catch (const Error&) {
    return {};
  }
}

// Facts that a reader of the trace has to know beside it; each a line that begins with "# ".
std::string Summary(const RecordedProgram& program, const std::vector<std::string>& several) {
  std::string out = absl::StrCat("# ", Plural(program.calls.size(), "operator"), " recorded\n");
  for (const RecordedGuard& guard : program.guards) {
    absl::StrAppend(&out, "# guard: ", Clean(GuardText(program, guard)), "\n");
  }
  for (const FreeDimension& dimension : program.free) {
    absl::StrAppend(&out, "# ", Clean(DescribeDimension(program, dimension.input, dimension.dim)),
                    " may have other sizes",
                    dimension.Limited() ? absl::StrCat(", from ", dimension.least, " to ", dimension.most) : "", "\n");
  }
  for (const std::string& module : several) absl::StrAppend(&out, "# ", Clean(module), "\n");
  return out;
}

std::string FindingsText(const CheckReport& report, const Terminal& terminal) {
  std::string out;
  size_t errors = 0;
  for (const Finding& finding : report.findings) {
    errors += finding.error ? 1 : 0;
    std::vector<std::string> where;
    if (const std::string position = finding.position.Describe(); !position.empty()) where.push_back(position);
    if (finding.input_set >= 0) where.push_back(absl::StrCat("further input ", finding.input_set));
    out += Wrap(Clean(absl::StrCat(finding.error ? "error: " : "note: ", finding.message,
                                   where.empty() ? "" : absl::StrCat(" (", absl::StrJoin(where, ", "), ")"))),
                terminal.width, 2);
  }
  absl::StrAppend(&out, Plural(report.recording.program->calls.size(), "operator"), " checked, ", errors,
                  " found that the recording does not hold for\n");
  return out;
}

std::string RequirementsText(const std::vector<UnmetRequirement>& unmet, const Terminal& terminal) {
  std::string out;
  for (const UnmetRequirement& requirement : unmet) {
    const std::string where = requirement.position.Describe();
    out += Wrap(Clean(absl::StrCat(requirement.error ? "error: " : "note: ", requirement.message,
                                   where.empty() ? "" : absl::StrCat(" (", where, ")"))),
                terminal.width, 2);
  }
  return unmet.empty() ? "Nothing is missing.\n" : out;
}

int RunRequire(const TraceArguments& arguments, const LoadedRun& run, const Model& model,
               const std::vector<c10::IValue>& values, const Terminal& terminal) {
  const std::vector<UnmetRequirement> unmet =
      run.program ? UnmetRequirements(*run.program, values) : UnmetRequirements(model, values);
  WriteStdout(arguments.json ? Dump(RequirementsRecord(unmet), 1) + "\n" : RequirementsText(unmet, terminal));
  const bool fails = std::any_of(unmet.begin(), unmet.end(), [](const auto& requirement) { return requirement.error; });
  return fails ? kDoesNotAddUp : kSuccess;
}

// Writes the files that are to be kept of a recording.
void Keep(const TraceArguments& arguments, const RecordedProgram& program) {
  if (!arguments.save.empty()) SaveProgram(program, arguments.save);
  if (!arguments.export_to.empty()) ExportTorchScript(program, arguments.export_to);
}

// Writes `text` where it was asked for, and tells on the terminal what else was written. What other programs read stays
// as it is.
void Give(const TraceArguments& arguments, const std::string& text) {
  const bool to_file = !arguments.out.empty();
  if (to_file) {
    WriteFileWhole(arguments.out, text);
  } else {
    // The code trace may be coloured; it escapes what is in names itself.
    arguments.json ? WriteStdout(text) : WriteStdoutAsIs(text);
    if (arguments.json || !arguments.graph.empty()) return;
  }
  for (const std::string& path : {arguments.save, arguments.export_to, arguments.out}) {
    if (!path.empty() && !IsDevicePath(path)) WriteStdout(absl::StrCat("Written: ", path, "\n"));
  }
}

std::string Shown(const TraceArguments& arguments, const std::shared_ptr<const RecordedProgram>& program,
                  const std::function<std::vector<std::string>()>& several, const Terminal& terminal) {
  if (!arguments.graph.empty()) {
    const Graph graph(program);
    if (arguments.graph == "json") return Dump(GraphRecord(graph), 1) + "\n";
    if (arguments.graph == "dot") return GraphDot(graph);
    return GraphPage(graph, arguments.run.model);
  }
  const bool to_file = !arguments.out.empty();
  CodeTraceOptions options;
  options.names = arguments.names;
  options.marks = arguments.marks;
  options.color = arguments.color || (!to_file && isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr);
  if (arguments.json) return Dump(CodeTraceRecord(*program, options), 1) + "\n";
  const std::string text = CodeTrace(*program, options) + Summary(*program, several());
  if (terminal.utf8 || to_file) return text;
  return absl::StrReplaceAll(text, {{"\u2502", "|"}, {"\u2b07\ufe0f", "v"}});
}

// Sizes are learned from further inputs; for a file, which follows sizes as the model does, from the one input
// otherwise.
std::shared_ptr<const RecordedProgram> Recorded(const TraceArguments& arguments, const LoadedRun& run, Model& model,
                                                const std::vector<c10::IValue>& values) {
  std::vector<std::vector<c10::IValue>> examples = Others(arguments);
  // A saved program knows its sizes.
  if (run.program && examples.empty() && arguments.methods.empty() && !arguments.export_to.empty()) return run.program;
  examples.insert(examples.begin(), values);
  const bool learn = examples.size() > 1 || !arguments.export_to.empty();
  return learn ? RecordSizes(model, examples).program : Record(model, values).program;
}

}  // namespace

int RunTrace(const TraceArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  RefuseContradictions(arguments);
  const LoadedRun run = Load(arguments.run);
  const std::vector<at::Tensor> tensors = run.Values();
  const std::vector<c10::IValue> values(tensors.begin(), tensors.end());
  const std::shared_ptr<Model> model = arguments.methods.empty() ? run.model : MethodsOf(*run.model, arguments.methods);
  if (arguments.require) return RunRequire(arguments, run, *model, values, terminal);
  if (arguments.check) {
    CheckOptions options;
    options.inputs = Others(arguments);
    options.out_of_place = arguments.out_of_place;
    const CheckReport report = CheckTrace(*model, values, options);
    Keep(arguments, *report.recording.program);
    Give(arguments, arguments.json ? Dump(FindingsRecord(report), 1) + "\n" : FindingsText(report, terminal));
    return report.ok() ? kSuccess : kDoesNotAddUp;
  }
  const std::shared_ptr<const RecordedProgram> program = Recorded(arguments, run, *model, values);
  Keep(arguments, *program);
  Give(arguments, Shown(
                      arguments, program, [&] { return Several(*model, tensors); }, terminal));
  return kSuccess;
}

}  // namespace addend::cli

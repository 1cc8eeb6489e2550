// Every operator of a run with its recovery error and its bracket, worst first; the outputs beside expected ones.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/program/tensor_io.h"
#include "core/rules/rule.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/expected.h"
#include "tools/addend/files.h"
#include "tools/addend/inputs.h"
#include "tools/addend/run.h"
#include "tools/addend/table.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

constexpr size_t kShown = 20;
// Columns; with the spaces between them they take 80.
constexpr int kIndexWidth = 5;
constexpr int kKindWidth = 9;
constexpr int kNumberWidth = 7;
constexpr int kPairWidth = 2 * kNumberWidth + 1;

bool WasSet(const std::vector<std::string>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const std::string& field) { return field.rfind(key + "=", 0) == 0; });
}

// "linear -> [1, 96, 64]" of "linear(f32[1, 96, 64], ...) -> f32[1, 96, 64]".
std::string ShortCall(const std::string& call) {
  const size_t open = call.find('(');
  const size_t arrow = call.rfind(" -> ");
  if (open == std::string::npos || arrow == std::string::npos) return call;
  const size_t shape = call.find('[', arrow);
  return absl::StrCat(call.substr(0, open), shape == std::string::npos ? "" : " " + call.substr(shape));
}

// Position of the operator without its number, which has a column of its own.
std::string Where(Position position) {
  position.op_index = -1;
  return position.Describe();
}

std::string Row(const OperatorReport& reported, const Terminal& terminal) {
  const OperatorCheck& check = reported.check;
  const int call_width = terminal.width - 1 - kIndexWidth - kKindWidth - 2 * kPairWidth - kNumberWidth - 5;
  const bool judged = check.bracket_bound >= 0;
  const auto pair = [](const std::string& found, const std::string& allowed) {
    return absl::StrCat(PadLeft(found, kNumberWidth), " ", PadLeft(allowed, kNumberWidth));
  };
  std::string out = absl::StrCat(check.ok() ? " " : "!", PadLeft(absl::StrCat("#", check.call), kIndexWidth), " ",
                                 PadRight(CutEnd(Clean(ShortCall(reported.call)), call_width, terminal), call_width),
                                 " ", PadRight(KindName(check.kind), kKindWidth), " ",
                                 pair(Small(check.recovery_error), Small(check.tolerance)), " ",
                                 pair(Small(check.bracket), judged ? Small(check.bracket_bound) : "any"), " ",
                                 PadLeft(Small(check.leftover), kNumberWidth), "\n");
  const std::string where = Clean(Where(reported.position));
  const int indent = kIndexWidth + 2;
  if (!where.empty()) {
    absl::StrAppend(&out, std::string(indent, ' '), CutEnd(where, terminal.width - indent, terminal), "\n");
  }
  const std::string then = check.absorbed ? "; absorbed into the leftover\n" : "\n";
  if (!check.recovered) {
    absl::StrAppend(&out, std::string(indent, ' '), "FAILED: its parts do not add up to its value", then);
  }
  if (!check.bracket_holds) {
    absl::StrAppend(&out, std::string(indent, ' '), "FAILED: its rule left something over", then);
  }
  return out;
}

std::string Head(const Terminal& terminal) {
  const int call_width = terminal.width - 1 - kIndexWidth - kKindWidth - 2 * kPairWidth - kNumberWidth - 5;
  const std::string found = absl::StrCat(PadLeft("found", kNumberWidth), " ", PadLeft("allowed", kNumberWidth));
  const std::string blank = absl::StrCat(" ", std::string(kIndexWidth, ' '), " ", std::string(call_width, ' '), " ",
                                         std::string(kKindWidth, ' '), " ");
  return absl::StrCat(blank, PadLeft("recovery error", kPairWidth), " ", PadLeft("bracket", kPairWidth), "    left\n",
                      " ", PadLeft("op", kIndexWidth), " ",
                      PadRight(CutEnd("operator and its result", call_width, terminal), call_width), " ",
                      PadRight("kind", kKindWidth), " ", found, " ", found, "    over\n");
}

std::string CheckTable(const LoadedRun& run, const Report& report, const std::vector<OperatorReport>& sorted,
                       size_t failed, bool all, const Terminal& terminal) {
  std::string out = RunHeader(run, report, terminal);
  absl::StrAppend(&out, "\n", Head(terminal));
  const size_t shown = all ? sorted.size() : std::min(sorted.size(), std::max(kShown, failed));
  for (size_t k = 0; k < shown; ++k) out += Row(sorted[k], terminal);
  if (shown < sorted.size()) {
    absl::StrAppend(&out, "  and ", Plural(sorted.size() - shown, "operator"),
                    " with smaller errors (--all shows them)\n");
  }
  absl::StrAppend(
      &out, "\n",
      Wrap("Errors are relative to the operator's largest value. Recovery: the parts of its result add up to it. "
           "Bracket: what its rule fails to attribute of the difference between input and baseline; \"any\" where "
           "the policy lets it leave something over.",
           terminal.width),
      "\n");
  for (const std::string& note : report.notes) {
    if (note.rfind("preset auto", 0) != 0) out += Wrap("Note: " + Clean(note), terminal.width, 2);
  }
  std::string summary = absl::StrCat(Plural(sorted.size(), "operator"), " checked, ", failed, " failed");
  if (!sorted.empty()) {
    const OperatorReport& worst = sorted.front();
    const std::string where = Clean(Where(worst.position));
    absl::StrAppend(&summary, "; worst: #", worst.check.call, " ", Clean(ShortCall(worst.call)),
                    where.empty() ? "" : " (" + where + ")", ", recovery error ", Small(worst.check.recovery_error),
                    " of ", Small(worst.check.tolerance), " allowed");
    if (worst.check.bracket_bound >= 0) {
      absl::StrAppend(&summary, ", bracket ", Small(worst.check.bracket), " of ", Small(worst.check.bracket_bound));
    }
  }
  return out + Wrap(summary, terminal.width, 2);
}

}  // namespace

int RunCheck(const CheckArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  if (arguments.within && arguments.expect.empty()) {
    throw InvalidArgument("--within is about the outputs that --expect names; give one");
  }
  if (arguments.within && !(*arguments.within >= 0)) throw InvalidArgument("--within is a number that is not negative");
  std::vector<std::string> files;
  for (const std::string& text : arguments.expect) files.push_back(ParseTensorPlace(text).path);
  CheckOutputs({}, SourcesOf(arguments.run, files));
  const std::vector<ExpectedOutput> expected = LoadExpected(arguments);
  LoadedRun run = Load(arguments.run);
  if (run.policy.check != Check::kEveryOp) {
    throw InvalidArgument("addend check looks at every operator: leave out --policy check=...");
  }
  FindInside(run);
  auto options = OptionsOf<DecomposeOptions>(run);
  if (!WasSet(arguments.run.policy, "on_failure")) options.policy.on_failure = OnFailure::kWarn;
  options.everything = true;
  const Decomposition decomposition = Decompose(run, options);
  const Report& report = decomposition.report;
  const std::vector<ComparedOutput> compared =
      CompareOutputs(expected, decomposition, arguments.run.row, arguments.within);
  const std::vector<OperatorReport> sorted = WorstFirst(report);
  const auto failed = static_cast<size_t>(
      std::count_if(sorted.begin(), sorted.end(), [](const OperatorReport& r) { return !r.check.ok(); }));
  if (arguments.json) {
    Json record = CheckJson(DescribeFiles(run, report), sorted, ThisProgram());
    record["expected"] = ComparedJson(compared);
    WriteStdout(Dump(record, 1) + "\n");
  } else {
    WriteStdout(CheckTable(run, report, sorted, failed, arguments.all, terminal) +
                ComparedText(compared, terminal.width));
  }
  const bool is_expected =
      std::all_of(compared.begin(), compared.end(), [](const ComparedOutput& one) { return one.ok(); });
  return failed > 0 || !report.failures.empty() || !is_expected ? kDoesNotAddUp : kSuccess;
}

}  // namespace addend::cli

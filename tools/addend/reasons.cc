// Tells the reasons of decisions, here of explanations that were stored.
#include "tools/addend/reasons.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"

namespace addend::cli {
namespace {

std::string Heading(const Reasons& reasons, const Decision& decision) {
  const bool adverse = reasons.side == Concepts::Side::kAdverse;
  const std::string number = absl::StrCat(Clean(decision.name), " = ", Number(decision.value, 4), " (reference ",
                                          Number(decision.reference, 4), ")");
  switch (decision.outcome) {
    case Decision::Outcome::kReasons:
      return absl::StrCat("Reasons ", adverse ? "against" : "for", " ", number, ", the largest first");
    case Decision::Outcome::kNoPrincipalReason:
      return absl::StrCat("No principal reason ", adverse ? "against" : "for", " ", number);
    default:
      return absl::StrCat("No reason can be told of ", Clean(decision.name));
  }
}

// A text behind what its first line begins with; its other lines begin below itself.
std::string Beside(const std::string& begin, const std::string& text, const Terminal& terminal) {
  const int wide = DisplayWidth(begin);
  std::string out;
  for (const auto line : absl::StrSplit(Wrap(text, terminal.width - wide), '\n', absl::SkipEmpty())) {
    absl::StrAppend(&out, out.empty() ? begin : std::string(wide, ' '), line, "\n");
  }
  return out;
}

std::string DecisionTable(const Reasons& reasons, const Decision& decision, const Terminal& terminal) {
  std::string out = Wrap(Heading(reasons, decision), terminal.width, 2);
  if (decision.outcome != Decision::Outcome::kNotFinite) {
    std::vector<double> column = {decision.others, decision.leftover};
    for (const Reason& reason : decision.reasons) column.push_back(reason.contribution);
    const NumberFormat format(column, 4);
    int wide = 0;
    for (const double x : column) wide = std::max(wide, DisplayWidth(format.Signed(x)));
    const auto line = [&](const std::string& number, const std::string& place, const std::string& text) {
      out += Beside(absl::StrCat(PadLeft(place, 4), "  ", PadLeft(number, wide), "  "), Clean(text), terminal);
    };
    for (size_t i = 0; i < decision.reasons.size(); ++i) {
      const Reason& reason = decision.reasons[i];
      const Reasons::NamedConcept& own = reasons.concepts[reason.concept_number];
      const std::string code = own.code.empty() ? "" : absl::StrCat(" [", own.code, "]");
      line(format.Signed(reason.contribution), absl::StrCat(i + 1, "."), reason.text + code);
    }
    line(format.Signed(decision.others), "", "all other concepts");
    line(format.Signed(decision.leftover), "",
         absl::StrCat("leftover; recovery error ", Small(decision.recovery_error)));
  }
  for (const std::string& note : decision.notes) out += Wrap("Note: " + Clean(note), terminal.width, 2);
  return out;
}

}  // namespace

Concepts LoadConcepts(const std::string& path) {
  try {
    return ReadConcepts(ReadFileWhole(path));
  } catch (const Error& error) {
    if (error.code() != absl::StatusCode::kInvalidArgument) throw;
    throw InvalidArgument(absl::StrCat(path, ": ", error.what()));
  }
}

std::string ReasonsTable(const Reasons& reasons, const std::vector<std::string>& notes, const Terminal& terminal) {
  std::string out;
  for (size_t i = 0; i < reasons.decisions.size(); ++i) {
    if (i > 0) out += "\n";
    if (reasons.each_example) absl::StrAppend(&out, "Row ", i, "\n");
    out += DecisionTable(reasons, reasons.decisions[i], terminal);
  }
  if (!notes.empty()) out += "\n";
  for (const std::string& note : notes) out += Wrap("Note: " + Clean(note), terminal.width, 2);
  return out;
}

int RunReasons(const ReasonsArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  CheckOutputs({{"--html", arguments.html}}, {arguments.explanation, arguments.concepts});
  const Concepts concepts = LoadConcepts(arguments.concepts);
  const std::string stored = ReadFileWhole(arguments.explanation);
  Explanation explanation;
  try {
    explanation = ReadExplanation(stored);
  } catch (const Error& error) {
    throw InvalidArgument(absl::StrCat(arguments.explanation, ": ", error.what()));
  }
  const Reasons reasons = FindReasons(explanation, concepts, ThisProgram());
  const Json record = ReasonsJson(reasons);
  std::string text = arguments.json ? Dump(record, 1) + "\n" : ReasonsTable(reasons, reasons.notes, terminal);
  if (!arguments.html.empty()) {
    WriteFileWhole(arguments.html, ReasonsHtml(Dump(record)));
    if (!arguments.json) absl::StrAppend(&text, "\nPage written: ", arguments.html, "\n");
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli

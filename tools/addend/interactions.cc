// Shows what the contributions of groups owe to each other.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/document/interactions_json.h"
#include "core/program/tensor_io.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/reasons.h"
#include "tools/addend/run.h"
#include "tools/addend/table.h"
#include "tools/addend/targets.h"

namespace addend::cli {
namespace {

// Part of one group's contribution that it owes to another group.
struct Owed {
  size_t by = 0;
  size_t to = 0;
  double part = 0;
};

// The largest first, equal ones in the order of the groups; zeros are left out.
std::vector<Owed> LargestOwed(const Interactions& found, size_t at_most) {
  std::vector<Owed> owed;
  for (size_t i = 0; i < found.matrix.size(); ++i) {
    for (size_t j = 0; j < found.matrix.size(); ++j) {
      if (i != j && found.matrix[i][j] != 0) owed.push_back({i, j, found.matrix[i][j]});
    }
  }
  std::stable_sort(owed.begin(), owed.end(),
                   [](const Owed& a, const Owed& b) { return std::abs(a.part) > std::abs(b.part); });
  if (owed.size() > at_most) owed.resize(at_most);
  return owed;
}

std::string Table(const Interactions& found, const std::vector<BoundConcept>& groups, const std::string& name,
                  size_t top, const Terminal& terminal) {
  std::vector<size_t> order(groups.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(found.contributions[a]) > std::abs(found.contributions[b]);
  });
  const size_t shown = std::min(order.size(), top);
  const std::vector<Owed> owed = LargestOwed(found, top);
  std::vector<double> column = {found.numbers.leftover};
  for (size_t k = 0; k < shown; ++k) {
    column.push_back(found.contributions[order[k]]);
    column.push_back(found.matrix[order[k]][order[k]]);
  }
  for (const Owed& one : owed) column.push_back(one.part);
  const NumberFormat format(column, 4);
  int wide = 12;
  for (const double x : column) wide = std::max(wide, DisplayWidth(format.Signed(x)));
  const auto line = [&](const std::string& number, const std::string& other, const std::string& text) {
    const std::string begin = absl::StrCat(PadLeft(number, wide), "  ", PadLeft(other, wide), "  ");
    const std::string whole = begin + CutEnd(Clean(text), terminal.width - DisplayWidth(begin), terminal);
    return absl::StrCat(absl::StripTrailingAsciiWhitespace(whole), "\n");
  };
  std::string out = Wrap(absl::StrCat("What the parts of ", Clean(name), " = ", Number(found.numbers.value, 4),
                                      " (reference ", Number(found.numbers.reference, 4), ") owe to each other"),
                         terminal.width, 2);
  out += line("contribution", "of it alone", "");
  for (size_t k = 0; k < shown; ++k) {
    const size_t i = order[k];
    out += line(format.Signed(found.contributions[i]), format.Signed(found.matrix[i][i]), groups[i].name);
  }
  if (order.size() > shown) out += line("", "", absl::StrCat("and ", Plural(order.size() - shown, "other group")));
  out += line(format.Signed(found.numbers.leftover), "",
              absl::StrCat("leftover; recovery error ", Small(found.numbers.recovery - found.numbers.value)));
  if (!owed.empty()) absl::StrAppend(&out, "\n", line("", "owed", "by what to what, the largest first"));
  for (const Owed& one : owed) {
    out += line("", format.Signed(one.part), absl::StrCat(groups[one.by].name, " to ", groups[one.to].name));
  }
  absl::StrAppend(&out, "\n",
                  Wrap(absl::StrCat("Asymmetry ", Number(found.asymmetry, 2),
                                    ": 0 where each owes as much as it is owed, 1 where debts go one way only"),
                       terminal.width, 2));
  return out;
}

}  // namespace

int RunInteractions(const InteractionsArguments& arguments) {
  const Terminal terminal = StdoutTerminal();
  ParsePolicy(arguments.run.policy);
  if (arguments.top < 0) throw InvalidArgument("--top is the number of lines to show, which is not negative");
  CheckOutputs({{"--html", arguments.html}},
               SourcesOf(arguments.run, {arguments.concepts, arguments.names, arguments.classes}));
  const Concepts concepts = arguments.concepts.empty() ? Concepts() : LoadConcepts(arguments.concepts);

  LoadedRun run = Load(arguments.run);
  ExplainedRun described = DescribeRun(run, arguments.names, arguments.classes);
  auto options = OptionsOf<AttributeOptions>(run);
  options.targets = {FindTarget(arguments.target, described.classes)};
  if (NeedsOneSample(options.targets[0]) && options.at.empty()) CheckOneSample(run);
  std::vector<std::string> names;
  for (const Component& component : described.components.list) names.push_back(component.name);
  const std::vector<BoundConcept> groups = BindConcepts(concepts, names);

  const Interactions found = FindInteractions(run, GroupsOf(groups, names.size()), options);
  described.report = found.attribution.report;
  CheckClasses(arguments.classes, found.attribution.value, options.at, described.classes);
  const Json record = InteractionsJson(found, groups, described, options.at, ThisProgram());
  std::string text;
  if (arguments.json) {
    text = Dump(record, 1) + "\n";
  } else {
    text = absl::StrCat(
        RunHeader(run, described.report, terminal), "\n",
        Table(found, groups, record["name"].get<std::string>(), static_cast<size_t>(arguments.top), terminal));
    for (const std::string& note : NotesBehindHeader(described.report.notes)) {
      text += Wrap("Note: " + Clean(note), terminal.width, 2);
    }
  }
  if (!arguments.html.empty()) {
    WriteFileWhole(arguments.html, InteractionsHtml(Dump(record)));
    if (!arguments.json) absl::StrAppend(&text, "\nPage written: ", arguments.html, "\n");
  }
  WriteStdout(text);
  return kSuccess;
}

}  // namespace addend::cli

// Every operator that has a rule.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/rules/registry.h"
#include "tools/addend/commands.h"
#include "tools/addend/describe.h"
#include "tools/addend/files.h"
#include "tools/addend/text.h"

namespace addend::cli {
namespace {

struct Entry {
  std::string name;
  Kind kind;
};

// Rules and rewrites, in the order of their names.
std::vector<Entry> Entries() {
  std::vector<Entry> entries;
  for (const Rule* rule : Registry::Default().All()) entries.push_back({rule->name, rule->kind});
  for (const Rewrite* rewrite : Registry::Default().AllRewrites()) entries.push_back({rewrite->name, Kind::kRewrite});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

// Two columns of rules for people; one rule a line for grep.
std::string OpsTable(const std::vector<Entry>& rules, const Terminal& terminal, bool in_columns) {
  size_t name_width = 0;
  for (const Entry& rule : rules) name_width = std::max(name_width, rule.name.size());
  const auto entry = [&](const Entry& rule) {
    return absl::StrCat(PadRight(rule.name, static_cast<int>(name_width)), "  ", KindName(rule.kind));
  };
  const int column_width = terminal.width / 2;
  int widest = 0;
  for (const Entry& rule : rules) widest = std::max(widest, DisplayWidth(entry(rule)));
  std::string out;
  if (!in_columns || widest + 1 > column_width) {
    for (const Entry& rule : rules) absl::StrAppend(&out, entry(rule), "\n");
  } else {
    const size_t half = (rules.size() + 1) / 2;
    for (size_t k = 0; k < half; ++k) {
      const bool second = half + k < rules.size();
      absl::StrAppend(&out, second ? PadRight(entry(rules[k]), column_width) + entry(rules[half + k]) : entry(rules[k]),
                      "\n");
    }
  }
  return absl::StrCat(out, Plural(rules.size(), "operator"), " with a rule\n");
}

}  // namespace

int RunOps(const OpsArguments& arguments) {
  const std::vector<Entry> rules = Entries();
  if (!arguments.json) {
    WriteStdout(OpsTable(rules, StdoutTerminal(), ::isatty(STDOUT_FILENO) == 1));
    return kSuccess;
  }
  Json operators = Json::array();
  for (const Entry& rule : rules) operators.push_back({{"name", rule.name}, {"kind", KindName(rule.kind)}});
  const Json record = {{"format", "addend.operators"},
                       {"version", 1},
                       {"addend", WriterJson(ThisProgram())},
                       {"operators", std::move(operators)}};
  WriteStdout(Dump(record, 1) + "\n");
  return kSuccess;
}

}  // namespace addend::cli

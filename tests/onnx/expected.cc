#include "tests/onnx/expected.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"

namespace addend {
namespace {

const char* WordOf(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kPassed:
      return "passed";
    case Outcome::Kind::kRefused:
      return "refused";
    case Outcome::Kind::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

ExpectedOutcomes ExpectedOutcomes::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw NotFound(absl::StrCat("there is no file ", path));
  ExpectedOutcomes expected;
  std::optional<Entry> section;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const auto fail = [&](const std::string& what) {
      throw InvalidArgument(absl::StrCat(path, ":", number, ": ", what));
    };
    if (line.empty() || line[0] == '#') continue;
    absl::string_view text = line;
    if (absl::ConsumePrefix(&text, "  ")) {
      if (!section) fail("a test stands before any reason");
      if (!expected.entries_.emplace(std::string(text), *section).second)
        fail(absl::StrCat(text, " stands here twice"));
      continue;
    }
    for (const Outcome::Kind kind : {Outcome::Kind::kRefused, Outcome::Kind::kFailed}) {
      absl::string_view reason = line;
      if (!absl::ConsumePrefix(&reason, absl::StrCat(WordOf(kind), ": ")) || reason.empty()) continue;
      section = Entry{kind, std::string(reason)};
      text = "";
    }
    if (!text.empty()) fail("a reason begins with \"refused: \" or \"failed: \", a test with two spaces");
  }
  return expected;
}

std::string ExpectedOutcomes::DifferenceOf(const std::string& test, const Outcome& outcome) const {
  const auto found = entries_.find(test);
  const bool passed = outcome.kind == Outcome::Kind::kPassed;
  if (found == entries_.end()) return passed ? "" : "should pass";
  const Entry& entry = found->second;
  if (passed) return absl::StrCat("passes; take it off the list, where it is ", WordOf(entry.kind));
  if (outcome.kind == entry.kind && absl::StrContains(outcome.what, entry.reason)) return "";
  return absl::StrCat("should be ", WordOf(entry.kind), ": ", entry.reason);
}

std::vector<std::string> ExpectedOutcomes::Missing(const std::vector<SuiteTest>& tests) const {
  std::vector<std::string> missing;
  for (const auto& [name, entry] : entries_) {
    if (std::none_of(tests.begin(), tests.end(),
                     [&, &name = name](const SuiteTest& test) { return test.name == name; })) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace addend

// Tests of the documents about eager calls: names exist, and the example in the text is the one that is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  std::string line;
  while (std::getline(stream, line)) lines.push_back(line);
  return lines;
}

std::set<std::string> Words(const std::string& text) {
  static const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
  std::set<std::string> words;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) words.insert(at->str());
  return words;
}

std::string WithoutComments(const std::string& text) { return std::regex_replace(text, std::regex("//[^\n]*"), ""); }

TEST(FromPydecTest, EveryNewNameExists) {
  std::set<std::string> known;
  for (const char* header :
       {"core/base/policy.h", "core/base/policy_choices.h", "core/eager/argument.h", "core/composition/call_options.h",
        "core/composition/composition.h", "core/composition/composition_methods.inc",
        "core/eager/composition_operators.h", "core/eager/composition_ops.h", "core/explain/decompose.h",
        "core/eager/eager.h", "core/explain/input.h", "core/explain/run_options.h", "core/program/tensor_io.h",
        "core/rules/registry.h"}) {
    for (const std::string& word : Words(WithoutComments(Read(header)))) known.insert(word);
  }
  // Words of the language and of LibTorch, and those that stand for an argument in the table.
  for (const char* word : {"for", "const", "std", "cout", "kDouble", "layout",   "unbind",   "w",    "v",     "x", "y",
                           "t",   "i",     "p",   "on",   "train",   "embedded", "function", "file", "inputs"}) {
    known.insert(word);
  }
  int rows = 0;
  int names = 0;
  for (const std::string& line : Lines(Read("docs/from_pydec.md"))) {
    if (line == "## In Python") break;  // which a test in Python reads
    if (line.rfind("| ", 0) != 0 || line.rfind("| PyDec |", 0) == 0) continue;
    // A cell ends at a bar with spaces around it; names of operators hold none.
    std::vector<std::string> cells;
    std::string rest = line.substr(2);
    for (size_t bar = rest.find("|"); bar != std::string::npos; bar = rest.find("|")) {
      cells.push_back(rest.substr(0, bar));
      rest = rest.substr(bar + 1);
    }
    ASSERT_EQ(cells.size(), 4u) << line;
    ++rows;
    static const std::regex code("`([^`]*)`");
    for (std::sregex_iterator at(cells[2].begin(), cells[2].end(), code), end; at != end; ++at) {
      const std::string text = std::regex_replace((*at)[1].str(), std::regex("\"[^\"]*\""), "");
      for (const std::string& word : Words(text)) {
        EXPECT_TRUE(known.count(word) > 0) << word << " in: " << line;
        ++names;
      }
    }
  }
  EXPECT_GT(rows, 80);
  EXPECT_GT(names, 200);
}

// The lines between two that hold the marks, without their indentation; empty lines do not count.
std::vector<std::string> Between(const std::string& text, const std::string& from, const std::string& to) {
  std::vector<std::string> found;
  bool inside = false;
  for (const std::string& line : Lines(text)) {
    if (inside && line.find(to) != std::string::npos) break;
    const size_t begin = line.find_first_not_of(' ');
    // How comments are aligned behind the code is a matter of layout.
    if (inside && begin != std::string::npos) {
      found.push_back(std::regex_replace(line.substr(begin), std::regex(" +//"), " //"));
    }
    inside = inside || line.find(from) != std::string::npos;
  }
  return found;
}

TEST(EagerPageTest, ShowsTheExampleThatIsRun) {
  const std::vector<std::string> shown = Between(Read("docs/eager.md"), "using addend::Composition;", "```");
  const std::vector<std::string> run = Between(Read("docs/examples/eager.cc"), "[docs/eager.md", "docs/eager.md]");
  EXPECT_GT(run.size(), 10u);
  EXPECT_EQ(shown, run);
}

}  // namespace

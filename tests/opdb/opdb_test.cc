// Every differentiable entry of PyTorch's operator database through Addend: what nobody here wrote judges the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/opdb/database.h"
#include "tests/opdb/laws.h"
#include "tests/opdb/page.h"
#include "tests/opdb/refused.h"

namespace addend {
namespace {

std::string Joined(const std::set<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "+") + part;
  return text;
}

// One line for each entry and preset, for whoever wants all numbers.
void Note(const Entry& entry, const char* preset, const Outcome& outcome, int64_t few, int64_t many) {
  const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (folder == nullptr) return;
  std::ofstream file(std::string(folder) + "/opdb.tsv", std::ios::app);
  file << entry.name << '\t' << preset << '\t' << outcome.runs << '\t' << outcome.wrong.size() << '\t'
       << outcome.refused.size() << '\t' << outcome.stand_ins << '\t' << outcome.worst_recovery << '\t'
       << outcome.worst_leftover << '\t' << few << '\t' << many << '\t' << Joined(outcome.kinds) << '\t'
       << Joined(outcome.linear) << '\t' << Joined(outcome.operators) << '\t'
       << (!outcome.wrong.empty()     ? outcome.wrong.front()
           : !outcome.refused.empty() ? outcome.refused.front()
                                      : "")
       << '\n';
}

// Takes out the broken laws that are known and explained; tells whether there was one.
bool TakeExceptions(const std::string& entry, Outcome& outcome) {
  const auto known = Exceptions().find(entry);
  if (known == Exceptions().end()) return false;
  const auto explained = [&](const std::string& message) {
    return message.find(": " + known->second.law) != std::string::npos;
  };
  const auto rest = std::remove_if(outcome.wrong.begin(), outcome.wrong.end(), explained);
  const bool some = rest != outcome.wrong.end();
  outcome.wrong.erase(rest, outcome.wrong.end());
  return some;
}

// Results of the tests that have run so far.
Results& Found() {
  static Results& results = *new Results;
  return results;
}

class OpDbTest : public testing::TestWithParam<size_t> {
 protected:
  const Entry& TheEntry() const { return TheDatabase().entries()[GetParam()]; }

  void Pass(Preset preset, const char* name) {
    const Entry& entry = TheEntry();
    ASSERT_FALSE(entry.samples.empty()) << "no sample of " << entry.name;
    Outcome outcome;
    std::pair<int64_t, int64_t> calls;
    for (const SampleInfo& info : entry.samples) {
      const Sample sample = TheDatabase().Load(info);
      Judge(sample, entry.random, preset, outcome);
      if (calls.first == 0) calls = CountCalls(sample, preset);
    }
    const bool excepted = TakeExceptions(entry.name, outcome);
    Note(entry, name, outcome, calls.first, calls.second);
    auto& result = preset == Preset::kFaithful ? Found()[entry.name].first : Found()[entry.name].second;
    result = {true, outcome, calls};
    if (Refused().count(entry.name) == 0) {
      for (size_t k = 0; k < outcome.refused.size() && k < 3; ++k) ADD_FAILURE() << "refused: " << outcome.refused[k];
      EXPECT_EQ(calls.first, calls.second) << "operators called for 2 and for 64 components";
      EXPECT_GT(outcome.runs, 0);
    } else {
      EXPECT_FALSE(outcome.refused.empty()) << "passes: take it out of refused.h";
      for (const std::string& error : outcome.refused) {
        const bool named = error.find("aten::") != std::string::npos || error.find("input ") != std::string::npos;
        EXPECT_TRUE(named) << "names neither operator nor input: " << error;
      }
    }
    EXPECT_EQ(excepted, Exceptions().count(entry.name) > 0) << "passes: take it out of the exceptions";
    for (size_t k = 0; k < outcome.wrong.size() && k < 3; ++k) ADD_FAILURE() << "wrong: " << outcome.wrong[k];
  }
};

TEST_P(OpDbTest, Faithful) { Pass(Preset::kFaithful, "faithful"); }
TEST_P(OpDbTest, Fast) { Pass(Preset::kFast, "fast"); }

std::string NameOf(const testing::TestParamInfo<size_t>& info) {
  std::string name = TheDatabase().entries()[info.param].name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name + "_" + std::to_string(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, OpDbTest, testing::Range<size_t>(0, TheDatabase().entries().size()), NameOf);

// Sizes of the database in the versions whose pages are committed: fewer entries would mean that some are skipped
// unseen.
const std::map<std::string, size_t>& Sizes() {
  static const auto& sizes = *new std::map<std::string, size_t>{{"1.13", 489}, {"2.15", 549}};
  return sizes;
}

// Compares the page with what was found; writes it where ADDEND_OPS_PAGE says. Only a run of everything can tell, or
// one of a part (--gtest_filter) that is given the opdb.tsv of the rest as ADDEND_OPS_FOUND.
class PageEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    if (const char* path = std::getenv("ADDEND_OPS_FOUND")) AddResults(path, Found());
  }

  void TearDown() override {
    if (Found().size() != TheDatabase().entries().size()) return;
    for (const auto& entry : Found()) {
      if (!entry.second.first.ran || !entry.second.second.ran) return;
    }
    const std::string version = TheDatabase().version();
    const std::string page = OpsPage(Found(), version);
    if (const char* path = std::getenv("ADDEND_OPS_PAGE")) {
      std::ofstream(path) << page;
      return;
    }
    if (Sizes().count(version) == 0) return;
    const std::string name = OpsPageName(version);
    std::ifstream file(name);
    const std::string committed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_TRUE(page == committed) << name << " is stale; write it anew with\n"
                                   << "  bazel test //tests/opdb:opdb_test --test_env=ADDEND_OPS_PAGE=$PWD/" << name
                                   << " --spawn_strategy=local";
  }
};

const testing::Environment* const page_environment = testing::AddGlobalTestEnvironment(new PageEnvironment);

TEST(OpDbSizeTest, HasEveryEntry) {
  const auto size = Sizes().find(TheDatabase().version());
  EXPECT_GE(TheDatabase().entries().size(), size == Sizes().end() ? Sizes().begin()->second : size->second);
}

}  // namespace
}  // namespace addend

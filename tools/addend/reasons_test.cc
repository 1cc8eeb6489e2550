// Runs `addend attribute --reasons` and `addend reasons`.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReasonsTest : public ProgramTest {
 protected:
  // A description with these keys; its path.
  std::string Describe(const std::string& name, const std::string& keys) const {
    const std::string path = Path(name);
    std::ofstream(path) << "{\"format\": \"addend.concepts\", \"version\": 1" << keys << "}";
    return path;
  }
  const Arguments command_ = Arguments{"attribute"} + Examples()[0].input + Arguments{"--target", "0"};
};

TEST_F(ReasonsTest, SumColumnsByConceptAndStandInATable) {
  const Json whole = Json::parse(Run(command_ + Arguments{"--json"}).out);
  double worst = 0;
  for (size_t k = 0; k < whole["components"].size(); ++k) {
    if (whole["components"][k]["name"].get<std::string>().rfind("worst ", 0) == 0) {
      worst += whole["targets"][0]["contributions"][k].get<double>();
    }
  }
  const std::string side = worst < 0 ? "negative" : "positive";
  const std::string turned = Describe("turned.json", R"(, "adverse": ")" + side + R"(", "at_most": 2, "concepts": [
      {"name": "Worst values", "code": "W", "components": ["worst *"], "text": "{concept} moved it by {contribution}"}])");
  const Result result = Run(command_ + Arguments{"--reasons", turned, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  const Json& decision = record["decisions"][0];
  EXPECT_EQ(record["format"], "addend.reasons");
  ASSERT_GE(decision["reasons"].size(), 1u);
  EXPECT_EQ(decision["reasons"][0]["concept"], "Worst values");
  EXPECT_NEAR(decision["reasons"][0]["contribution"].get<double>(), worst, 1e-9 * std::abs(worst));
  double sum =
      decision["reference"].get<double>() + decision["others"].get<double>() + decision["leftover"].get<double>();
  for (const Json& reason : decision["reasons"]) sum += reason["contribution"].get<double>();
  EXPECT_NEAR(sum, decision["value"].get<double>() + decision["recovery_error"].get<double>(), 1e-9);
  const Result table = Run(command_ + Arguments{"--reasons", turned, "--html", Path("page.html")});
  ASSERT_EQ(table.code, 0) << table.err;
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, HasSubstr("Worst values moved it by "));
  EXPECT_THAT(table.out, HasSubstr("[W]"));
  EXPECT_THAT(table.out, HasSubstr("all other concepts"));
  EXPECT_THAT(table.out, HasSubstr("leftover; recovery error"));
  EXPECT_THAT(ReadFile(Path("page.html")), HasSubstr("addend.reasons"));
}

TEST_F(ReasonsTest, OfAStoredExplanationAreTheSame) {
  const std::string concepts = Describe("concepts.json", R"(, "text": "{concept} {value} {baseline}")");
  const std::string stored = Path("stored.json");
  std::ofstream(stored) << Run(command_ + Arguments{"--json"}).out;
  const Json live = Json::parse(Run(command_ + Arguments{"--reasons", concepts, "--json"}).out);
  const Result again = Run({"reasons", stored, concepts, "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["decisions"], live["decisions"]);
  const Result table = Run({"reasons", stored, concepts});
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, HasSubstr(live["decisions"][0]["reasons"][0]["text"].get<std::string>()));
  std::ofstream(Path("other.json")) << "{}";
  ExpectError({"reasons", Path("other.json"), concepts}, "other.json: json is no explanation");
}

TEST_F(ReasonsTest, AreToldOfEachRow) {
  const at::Tensor rows = ReadTensorFile(HeldoutOf("breast_cancer")).Find("input")->narrow(0, 0, 3).contiguous();
  const std::string path = Save("rows.safetensors", rows);
  const std::string concepts = Describe("concepts.json", R"(, "text": "{concept} {value}")");
  const Arguments all = {"attribute", ModelOf("breast_cancer"), "--input", path, "--target", "0", "--reasons",
                         concepts};
  const Result result = Run(all + Arguments{"--each-example", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json decisions = Json::parse(result.out)["decisions"];
  ASSERT_EQ(decisions.size(), 3u);
  for (int row = 0; row < 3; ++row) {
    const Json alone = Json::parse(Run(all + Arguments{"--row", std::to_string(row), "--json"}).out)["decisions"][0];
    ASSERT_EQ(alone["reasons"].size(), decisions[row]["reasons"].size());
    for (size_t k = 0; k < alone["reasons"].size(); ++k) {
      EXPECT_EQ(alone["reasons"][k]["text"], decisions[row]["reasons"][k]["text"]);
      EXPECT_NEAR(alone["reasons"][k]["contribution"].get<double>(),
                  decisions[row]["reasons"][k]["contribution"].get<double>(), 1e-5);
    }
  }
  const Result table = Run(all + Arguments{"--each-example"});
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, HasSubstr("Row 2\n"));
  ExpectError(all + Arguments{"--each-example", "--nodes"}, "--each-example adds up");
}

TEST_F(ReasonsTest, SayWhatIsWrongWithADescription) {
  const auto refused = [&](const std::string& keys, const std::string& message) {
    const std::string path = Describe("wrong.json", keys);
    ExpectError(command_ + Arguments{"--reasons", path}, message);
  };
  refused(R"(, "text": "{vlaue}")", "wrong.json: the text has the placeholder {vlaue}");
  refused(R"(, "thresold": 1)", "there is no \"thresold\"");
  refused(R"(, "concepts": [{"name": "A", "components": ["nothing"]}])", "names the component nothing");
  ExpectError(command_ + Arguments{"--reasons", "/nowhere.json"}, "/nowhere.json");
  const std::string high = Describe("high.json", R"(, "threshold": 1e9)");
  const Result none = Run(command_ + Arguments{"--reasons", high});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("No principal reason against"));
  EXPECT_THAT(none.out, Not(HasSubstr("   1.")));
}

}  // namespace
}  // namespace addend::cli

// Runs `addend interactions`, and `addend attribute` against several baselines.
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::HasSubstr;

class InteractionsTest : public ProgramTest {
 protected:
  // Two concepts of the columns of the first example; the others stand for themselves.
  std::string Groups() const {
    const std::string path = Path("groups.json");
    std::ofstream(path) << R"({"format": "addend.concepts", "version": 1, "concepts": [
        {"name": "Worst values", "components": ["worst *"]}, {"name": "Means", "components": ["mean *"]}]})";
    return path;
  }
  const Arguments asked_ = Examples()[0].input + Arguments{"--target", "0"};
};

TEST_F(InteractionsTest, RowsAddUpToTheContributionsOfAttribute) {
  const Result result = Run(Arguments{"interactions"} + asked_ + Arguments{"--concepts", Groups(), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["format"], "addend.interactions");
  const Json whole = Json::parse(Run(Arguments{"attribute"} + asked_ + Arguments{"--json"}).out);
  std::map<std::string, double> contributions;
  for (size_t k = 0; k < whole["components"].size(); ++k) {
    contributions[whole["components"][k]["name"]] = whole["targets"][0]["contributions"][k];
  }
  double all = record["reference"].get<double>() + record["leftover"].get<double>();
  ASSERT_EQ(record["groups"][0]["name"], "Worst values");
  ASSERT_EQ(record["groups"][1]["name"], "Means");
  for (const Json& group : record["groups"]) {
    double own = 0;
    for (const Json& component : group["components"]) own += contributions.at(component);
    EXPECT_NEAR(group["contribution"].get<double>(), own, 1e-5);
    double row = 0;
    for (const Json& entry : group["interactions"]) row += entry.get<double>();
    EXPECT_NEAR(row, group["contribution"].get<double>(), 1e-9);
    all += row;
  }
  EXPECT_NEAR(all, record["value"].get<double>(), 1e-4);
}

TEST_F(InteractionsTest, StandInATableAndOnAPage) {
  const Arguments command = Arguments{"interactions"} + asked_ + Arguments{"--concepts", Groups()};
  const Result table = Run(command + Arguments{"--html", Path("page.html"), "--top", "3"});
  ASSERT_EQ(table.code, 0) << table.err;
  ExpectNarrow(table.out);
  EXPECT_THAT(table.out, HasSubstr("owe to each other"));
  EXPECT_THAT(table.out, HasSubstr("Worst values"));
  EXPECT_THAT(table.out, HasSubstr("other groups"));
  EXPECT_THAT(table.out, HasSubstr("leftover; recovery error"));
  EXPECT_THAT(table.out, HasSubstr("Asymmetry"));
  EXPECT_THAT(ReadFile(Path("page.html")), HasSubstr("addend.interactions"));
}

TEST_F(InteractionsTest, SayWhatIsWrong) {
  const Arguments command = Arguments{"interactions"} + asked_;
  ExpectError(command + Arguments{"--concepts", "/nowhere.json"}, "/nowhere.json");
  ExpectError(command + Arguments{"--top", "-1"}, "--top");
  ExpectError(Arguments{"interactions"} + Examples()[0].input + Arguments{"--target", "77"}, "77");
}

TEST_F(InteractionsTest, MeansOverRowsOfAFile) {
  const at::Tensor rows = ReadTensorFile(HeldoutOf("breast_cancer")).Find("input")->narrow(0, 0, 2).contiguous();
  const std::string path = Save("rows.safetensors", rows);
  const Arguments sample = {ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer"), "--target", "0", "--json"};
  const Arguments command = Arguments{"attribute"} + sample;
  const auto numbers = [&](const std::string& baseline) {
    const Result result = Run(command + Arguments{"--baseline", baseline});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["targets"][0];
  };
  const Json mean = numbers("rows:" + path);
  const Json one = numbers(Save("first.safetensors", rows.narrow(0, 0, 1).contiguous()));
  const Json other = numbers(Save("second.safetensors", rows.narrow(0, 1, 1).contiguous()));
  ASSERT_TRUE(mean.contains("baselines"));
  EXPECT_EQ(mean["baselines"]["count"], 2);
  EXPECT_NEAR(mean["reference"].get<double>(), (one["reference"].get<double>() + other["reference"].get<double>()) / 2,
              1e-5);
  for (size_t c = 0; c < mean["contributions"].size(); ++c) {
    const double a = one["contributions"][c];
    const double b = other["contributions"][c];
    EXPECT_NEAR(mean["contributions"][c].get<double>(), (a + b) / 2, 1e-5);
    EXPECT_NEAR(mean["baselines"]["standard_errors"][c].get<double>(), std::abs(a - b) / 2, 1e-5);
  }
  EXPECT_FALSE(one.contains("baselines"));
  // The nearer of the two alone.
  const Json nearest = numbers("nearest:1:" + path);
  EXPECT_EQ(nearest["baselines"]["count"], 1);
  ExpectError(command + Arguments{"--baseline", "nearest:3:" + path}, "holds 2 rows, which is fewer");
  ExpectError(command + Arguments{"--baseline", "nearest:x:" + path}, "whole number");
  ExpectError(command + Arguments{"--baseline", "rows:/nowhere.npy"}, "/nowhere.npy");
  ExpectError(command + Arguments{"--baseline", "rows:" + path, "--log", Path("log.jsonl")}, "cannot be recorded");
  ExpectError(Arguments{"decompose"} + sample + Arguments{"--baseline", "rows:" + path}, "for addend attribute");
}

}  // namespace
}  // namespace addend::cli

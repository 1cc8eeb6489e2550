// Runs `addend check`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using CheckTest = ProgramTest;

TEST_F(CheckTest, PassesOnTheExampleModels) {
  for (const Example& example : Examples()) {
    SCOPED_TRACE(example.name);
    const Result result = Run(Arguments{"check"} + example.input);
    EXPECT_EQ(result.code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr(" operators checked, 0 failed; worst: #"));
    ExpectNarrow(result.out);
    const Json record = Json::parse(Run(Arguments{"check"} + example.input + Arguments{"--json"}).out);
    ASSERT_GT(record["operators"].size(), 5);
    for (const Json& one : record["operators"]) EXPECT_TRUE(one["ok"]) << one;
    EXPECT_THAT(record["operators"][0]["file"].get<std::string>(), HasSubstr(example.name + ".py"));
  }
}

TEST_F(CheckTest, FailsWhereRoundingIsNotAllowed) {
  const Arguments strict = Arguments{"check"} + Examples()[1].input + Arguments{"--policy", "tolerance=1e-12"};
  const Result result = Run(strict);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("FAILED: its parts do not add up"));
  EXPECT_THAT(result.out, Not(HasSubstr(", 0 failed")));
  ExpectNarrow(result.out);
  // The worst come first, and failures before everything else.
  const Json operators = Json::parse(Run(strict + Arguments{"--json"}).out)["operators"];
  EXPECT_FALSE(operators[0]["ok"]);
  // An error of a check is one line, but not the user's fault.
  const Result stopped = Run(strict + Arguments{"--policy", "on_failure=error"});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, AllOf(StartsWith("addend: "), HasSubstr("digits.py:")));
}

}  // namespace
}  // namespace addend::cli

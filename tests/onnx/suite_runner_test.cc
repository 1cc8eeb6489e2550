// A suite of three models: one passes, one is refused, one is expected to give something else.
#include "tests/onnx/suite_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend {
namespace {

namespace fs = std::filesystem;
using onnx::FloatTensor;
using testing::HasSubstr;
using testing::Not;

class SuiteRunner : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    AddTest("node/test_relu", "Relu", {0, 2});
    AddTest("node/test_unknown", "NoSuchOperator", {0, 2});
    AddTest("simple/test_neg", "Neg", {1, 3});  // -2 is right
  }

  // y of x = [-1, 2].
  void AddTest(const std::string& name, const std::string& op, const std::vector<float>& expected) {
    onnx::GraphParts parts;
    parts.nodes = {onnx::NodeMessage(op, {"x"}, {"y"})};
    parts.inputs = {onnx::ValueInfo("x", {2})};
    parts.outputs = {onnx::ValueInfo("y", {2})};
    const fs::path set = folder_ / "suite" / name / "test_data_set_0";
    fs::create_directories(set);
    Write(set.parent_path() / "model.onnx", onnx::ModelMessage(onnx::GraphMessage(parts)).bytes());
    Write(set / "input_0.pb", FloatTensor("x", {2}, {-1, 2}).bytes());
    Write(set / "output_0.pb", FloatTensor("y", {2}, expected).bytes());
  }

  static void Write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  struct Told {
    bool fine = false;
    std::string text;
  };

  Told Run(const std::string& list, SuiteOptions options = {}) {
    options.suite = (folder_ / "suite").string();
    if (!list.empty()) {
      options.expected = (folder_ / "list.txt").string();
      Write(options.expected, list);
    }
    std::ostringstream out;
    Told told;
    told.fine = RunSuite(options, out);
    told.text = out.str();
    return told;
  }

  fs::path folder_;
};

constexpr char kRight[] =
    "# Three tests.\n"
    "refused: is of an operator that is not supported\n"
    "  node/test_unknown\n"
    "\n"
    "failed: output 0 differs by up to 5\n"
    "  simple/test_neg\n";

TEST_F(SuiteRunner, TellsEachTestAndCounts) {
  const Told told = Run("");
  EXPECT_FALSE(told.fine);
  EXPECT_THAT(told.text, HasSubstr("node/test_relu passed\n"));
  EXPECT_THAT(told.text, HasSubstr("node/test_unknown refused: the node that makes y (NoSuchOperator)"));
  EXPECT_THAT(told.text, HasSubstr("simple/test_neg failed: output 0 differs by up to 5"));
  EXPECT_THAT(told.text, HasSubstr("\n1 failed\n1 passed\n1 refused\n1 not as they should be\n"));
}

TEST_F(SuiteRunner, AListThatIsRightIsKept) {
  SuiteOptions quiet;
  quiet.quiet = true;
  const Told told = Run(kRight, quiet);
  EXPECT_TRUE(told.fine);
  EXPECT_EQ(told.text, "1 failed\n1 passed\n1 refused\n");
}

TEST_F(SuiteRunner, WhatNewlyPassesFails) {
  const Told told = Run(std::string(kRight) + "  node/test_relu\n");
  EXPECT_FALSE(told.fine);
  EXPECT_THAT(told.text, HasSubstr("NOT AS EXPECTED: node/test_relu passes; take it off the list, where it is failed"));
}

TEST_F(SuiteRunner, WhatNoLongerPassesFails) {
  const Told told = Run("refused: is of an operator that is not supported\n  node/test_unknown\n");
  EXPECT_FALSE(told.fine);
  EXPECT_THAT(told.text, HasSubstr("NOT AS EXPECTED: simple/test_neg should pass"));
  EXPECT_THAT(told.text, Not(HasSubstr("NOT AS EXPECTED: node")));
}

TEST_F(SuiteRunner, AnotherReasonFails) {
  const Told refused = Run("refused: another sentence\n  node/test_unknown\nfailed: differs\n  simple/test_neg\n");
  EXPECT_FALSE(refused.fine);
  EXPECT_THAT(refused.text, HasSubstr("NOT AS EXPECTED: node/test_unknown should be refused: another sentence"));
  const Told failed = Run("failed: is of an operator\n  node/test_unknown\nfailed: differs\n  simple/test_neg\n");
  EXPECT_FALSE(failed.fine);
  EXPECT_THAT(failed.text, HasSubstr("NOT AS EXPECTED: node/test_unknown should be failed"));
}

TEST_F(SuiteRunner, AListOfAnotherSuiteFails) {
  const Told told = Run(std::string(kRight) + "  node/test_gone\n");
  EXPECT_FALSE(told.fine);
  EXPECT_THAT(told.text, HasSubstr("NOT AS EXPECTED: node/test_gone is on the list, and not in the suite"));
}

TEST_F(SuiteRunner, RunsAPart) {
  SuiteOptions part;
  part.only = "relu";
  EXPECT_EQ(Run("", part).text, "node/test_relu passed\n1 passed\n");
  part.only = "none of these";
  EXPECT_FALSE(Run("", part).fine);
  SuiteOptions chunk;
  chunk.chunk = 2;
  chunk.chunks = 3;
  EXPECT_THAT(Run("", chunk).text, HasSubstr("\n1 refused\n"));
}

TEST_F(SuiteRunner, ChecksLaws) {
  SuiteOptions options;
  options.laws = true;
  options.only = "relu";
  EXPECT_EQ(Run("", options).text, "node/test_relu passed\nnode/test_relu laws held\n1 laws held\n1 passed\n");
}

TEST_F(SuiteRunner, RefusesListsThatAreNone) {
  ExpectError(absl::StatusCode::kInvalidArgument, {"list.txt:1: a test stands before any reason"},
              [&] { Run("  node/test_relu\n"); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"list.txt:3: node/test_relu stands here twice"},
              [&] { Run("failed: x\n  node/test_relu\n  node/test_relu\n"); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"list.txt:1: a reason begins with"},
              [&] { Run("passed: node/test_relu\n"); });
}

}  // namespace
}  // namespace addend

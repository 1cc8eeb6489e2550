// Runs `addend check`.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "core/program/tensor_io.h"
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

// A model whose outputs are known without the library: the sum of a row, each number plus one, a count.
class ExpectTest : public ProgramTest {
 protected:
  ExpectTest() {
    torch::jit::Module module("sums");
    module.define(R"(
def forward(self, x: Tensor) -> Dict[str, Tensor]:
  return {"sum": x.sum(1), "more": x + 1, "count": x.gt(0).sum(1)}
)");
    module.save(Path("sums.pt"));
    arguments_ = {"check", Path("sums.pt"), "--input", Save("rows.npy", at::tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}))};
  }

  // Lines that were wrapped, whole.
  Result Expect(const Arguments& arguments) const {
    Result result = Run(arguments_ + arguments);
    result.out = absl::StrReplaceAll(result.out, {{"\n  ", " "}});
    return result;
  }
  std::string Sum(double second) const { return Save("sum.npy", at::tensor({3.0, second})); }

  Arguments arguments_;
};

TEST_F(ExpectTest, ComparesTheOutputs) {
  const Result same = Expect({"--expect", Sum(7)});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("sum.npy#input: largest difference 0, relative 0 of 1.0e-04 allowed"));
  const Result other = Expect({"--expect", Sum(7.07)});
  EXPECT_EQ(other.code, 1);
  // 0.07 of 7.07, at the second row.
  EXPECT_THAT(other.out, AllOf(HasSubstr("FAILED: output.sum beside "), HasSubstr("largest difference 7.0e-02 at [1]"),
                               HasSubstr("relative 9.9e-03 of 1.0e-04 allowed"), HasSubstr(", 0 failed")));
  EXPECT_EQ(Expect({"--expect", Sum(7.07), "--within", "0.01"}).code, 0);
  EXPECT_EQ(Expect({"--expect", Sum(7.07), "--within", "0.0098"}).code, 1);
}

TEST_F(ExpectTest, ComparesSeveralInOrderOrByName) {
  const at::Tensor sum = at::tensor({3.0, 7.0});
  const at::Tensor more = at::tensor({2.0, 3.0, 4.0, 5.0}).view({2, 2});
  const std::string all = Path("all.safetensors");
  WriteTensorFile(all, {{{"count", at::tensor({2, 2}, at::kLong)}, {"more", more}, {"output.sum", sum}}, {}});
  const Arguments in_order = {"--expect", all + "#output.sum", "--expect", all + "#more", "--expect", all + "#count"};
  for (const Arguments& given : {Arguments{"--expect", all}, in_order}) {
    const Json record = Json::parse(Expect(given + Arguments{"--json"}).out);
    ASSERT_EQ(record["expected"].size(), 3);
    for (const Json& one : record["expected"]) {
      EXPECT_TRUE(one["ok"]) << one;
      EXPECT_EQ(one["difference"], 0) << one;
    }
  }
  // A name counts where it is that of an output.
  const Json record = Json::parse(Expect({"--expect", all + "#count", "--json"}).out);
  EXPECT_EQ(record["expected"][0]["output"], "output.count");
  // Integers are equal, or not.
  WriteTensorFile(all, {{{"count", at::tensor({2, 1}, at::kLong)}, {"more", more}}, {}});
  const Result wrong = Expect({"--expect", all, "--within", "10"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, HasSubstr("FAILED: output.count"));
  EXPECT_THAT(wrong.out, Not(HasSubstr("FAILED: output.more")));
}

TEST_F(ExpectTest, TakesTheRow) {
  EXPECT_EQ(Expect({"--row", "1", "--expect", Sum(7)}).code, 0);
  EXPECT_EQ(Expect({"--row", "1", "--expect", Sum(8)}).code, 1);
  EXPECT_EQ(Expect({"--row", "0", "--expect", Sum(8)}).code, 0);
}

TEST_F(ExpectTest, RefusesWhatDoesNotFit) {
  ExpectError(arguments_ + Arguments{"--expect", Save("three.npy", at::ones({3}))},
              "three.npy: the shape is [3], and output.sum of the model has [2]");
  ExpectError(arguments_ + Arguments{"--expect", Path("none.npy")}, "none.npy");
  ExpectError(arguments_ + Arguments{"--within", "0.1"}, "--expect");
  ExpectError(arguments_ + Arguments{"--expect", Sum(7), "--within", "-1"}, "--within is a number");
  const std::string all = Path("all.safetensors");
  WriteTensorFile(all, {{{"some", at::ones({2})}, {"sum", at::ones({2})}}, {}});
  ExpectError(arguments_ + Arguments{"--expect", all}, "the model gives output.sum, output.more, output.count");
  Arguments many = arguments_;
  for (int k = 0; k < 4; ++k) many = many + Arguments{"--expect", k == 1 ? Save("m.npy", at::ones({2, 2})) : Sum(7)};
  ExpectError(many, "the model gives 3 tensors");
}

// Numbers that PyTorch gave for the TorchScript file of the same network.
TEST_F(CheckTest, AnOnnxModelGivesWhatAnotherRuntimeGave) {
  const std::string models = "tests/conformance/models/";
  const TensorFile inputs = ReadTensorFile(models + "mlp.safetensors");
  torch::jit::Module module = torch::jit::load(models + "mlp.pt");
  const at::Tensor scores = module.forward({*inputs.Find("table")}).toTensor().detach();
  const Arguments check = {"check",    models + "mlp.onnx",       "--input", models + "mlp.safetensors#table",
                           "--expect", Save("scores.npy", scores)};
  EXPECT_EQ(Run(check).code, 0);
  EXPECT_EQ(Run(Arguments(check.begin(), check.end() - 1) + Arguments{Save("off.npy", scores * 1.001)}).code, 1);
}

}  // namespace
}  // namespace addend::cli

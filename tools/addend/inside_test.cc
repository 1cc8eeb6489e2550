// Splits that start inside the model, in the commands that take them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using InsideTest = ProgramTest;

// The file has what plain PyTorch computes of the second half of the model.
constexpr char kHeads[] = "tests/conformance/models/heads";

at::Tensor OfHeads(const std::string& name) { return *ReadTensorFile(absl::StrCat(kHeads, ".safetensors")).Find(name); }

Arguments Heads(const std::string& command) {
  return {command, absl::StrCat(kHeads, ".pt"), "--input", absl::StrCat(kHeads, ".safetensors#table")};
}

const Arguments& ByHead() {
  static const auto& arguments = *new Arguments{"--inside",   "aten::contiguous:dim=1",
                                                "--baseline", absl::StrCat(kHeads, ".safetensors#baseline"),
                                                "--target",   "2,1"};
  return arguments;
}

TEST_F(InsideTest, DecomposesFromInsideTheModel) {
  const std::string out = Path("out.safetensors");
  const std::string page = Path("page.html");
  Result result = Run(Heads("decompose") + ByHead() + Arguments{"--out", out, "--html", page});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Inside 1"), HasSubstr("aten::contiguous"), HasSubstr("f32[4, 2, 3]"),
                                HasSubstr("position 0"), HasSubstr("split: plain"), HasSubstr("Baseline 1 tests/")));
  EXPECT_THAT(ReadFile(page), HasSubstr("</html>"));
  const TensorFile file = ReadTensorFile(out);
  for (const char* name : {"components", "reference"}) {
    EXPECT_LE((*file.Find(name) - OfHeads(name)).abs().max().item<double>(), 1e-5) << name;
  }
  EXPECT_LE((*file.Find("value") - OfHeads("output")).abs().max().item<double>(), 1e-5);
  result = Run(Heads("decompose") + ByHead() + Arguments{"--json", "--names", "left,right"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["kind"], "list");
  EXPECT_EQ(record["components"][1]["name"], "right");
  EXPECT_EQ(record["components"][1]["value"], nullptr);
  EXPECT_FALSE(record["inputs"][0]["inside"].get<bool>());
  const Json& inside = record["inputs"][1];
  EXPECT_TRUE(inside["inside"].get<bool>());
  EXPECT_EQ(inside["name"], "aten::contiguous");
  EXPECT_EQ(inside["path"], nullptr);
  EXPECT_EQ(inside["shape"], Json({4, 2, 3}));
  EXPECT_EQ(inside["split"], "dim=1");
  for (size_t head = 0; head < 2; ++head) {
    EXPECT_NEAR(record["targets"][0]["contributions"][head].get<double>(),
                OfHeads("components")[head][2][1].item<double>(), 1e-5);
  }
  // Neurons, by labels of a file; one of them is in no part.
  const std::string labels = Save("labels.safetensors", at::ones({1, 2, 3}, at::kLong).cumsum(2) - 2);
  result = Run(Heads("check") + Arguments{"--inside", "aten::contiguous:labels=" + labels});
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  ExpectNarrow(result.out);
}

TEST_F(InsideTest, AttributesToWhatIsInsideTheModel) {
  const std::string out = Path("out.safetensors");
  const std::string graph = Path("graph.html");
  const Result result =
      Run(Heads("attribute") + ByHead() + Arguments{"--target", "3,0", "--nodes", "--out", out, "--graph", graph});
  ASSERT_EQ(result.code, 0) << result.err;
  ExpectNarrow(result.out);
  const at::Tensor elements = *ReadTensorFile(out).Find("aten::contiguous/elements");
  ASSERT_EQ(elements.sizes(), at::IntArrayRef({2, 4, 2, 3}));
  // Rows do not look at each other behind the heads.
  at::Tensor expected = at::zeros({2, 4, 2, 3});
  expected[0][2].copy_(OfHeads("elements")[1][2]);
  expected[1][3].copy_(OfHeads("elements")[0][3]);
  EXPECT_LE((elements - expected).abs().max().item<double>(), 1e-5);
  EXPECT_THAT(ReadFile(graph), HasSubstr("passed to"));
}

TEST_F(InsideTest, SplitsInsideThatDoNotFit) {
  const auto expect = [&](const std::string& inside, const std::string& message) {
    ExpectError(Heads("decompose") + Arguments{"--inside", inside}, message);
  };
  expect("aten::contiguous", "does not say how the tensor is split");
  expect(":dim=1", "does not say how the tensor is split");
  expect("aten::contiguous:parts=x", "along dimensions or by labels");
  expect("aten::contiguous:plain", "along dimensions or by labels");
  expect("aten::contiguous:labels=nowhere", "there is no file nowhere");
  expect("aten::contiguous:dim=3", "aten::contiguous of shape f32[4, 2, 3] has no dimension 3");
  expect("aten::linear:dim=1", "calls aten::linear 3 times");
  for (const char* command : {"decompose", "attribute", "check"}) {
    ExpectError(Heads(command) + Arguments{"--inside", "nowhere:dim=1"}, "nothing inside the model is called nowhere");
    ExpectError({command, absl::StrCat(kHeads, ".pt"), "--input", absl::StrCat(kHeads, ".safetensors#table:dim=1"),
                 "--inside", "aten::contiguous:dim=1"},
                "where a split starts inside, the arguments are plain");
  }
  for (const char* command : {"decompose", "attribute"}) {
    ExpectError(Heads(command) + ByHead() + Arguments{"--inside", "aten::softmax:dim=0", "--baseline", "0"},
                "depends on another split already");
  }
  ExpectError(Heads("decompose") + Arguments{"--baseline", "0", "--baseline", "1", "--inside", "mix:dim=1"},
              "--baseline is given 2 times, but 1 input is split");
}

}  // namespace
}  // namespace addend::cli

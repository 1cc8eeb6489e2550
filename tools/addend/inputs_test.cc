// How files become inputs: tensors of files, rows, labels and parts; and models, inputs, splits and baselines that do
// not fit.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/program/tensor_io.h"
#include "tools/addend/testing.h"

namespace addend::cli {
namespace {

using InputsTest = ProgramTest;

TEST_F(InputsTest, RowsOfABatchAreThoseOfTheFile) {
  const Result result = Run({"decompose", ModelOf("language"), "--input", HeldoutOf("language") + ":labels=segments",
                             "--baseline", "token:mask_token", "--row", "41", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  const TensorFile file = ReadTensorFile(HeldoutOf("language"));
  const Json text = Json::parse(file.metadata.at("texts"))[41];
  EXPECT_EQ(record["text"], text);
  EXPECT_EQ(record["inputs"][0]["row"], 41);
  EXPECT_EQ(record["inputs"][0]["shape"], Json({1, 96}));
  // The words are spelled by the vocabulary, since the file names only those of its samples.
  std::string spelled;
  for (const Json& component : record["components"]) spelled += component["name"].get<std::string>();
  EXPECT_EQ(spelled, text.get<std::string>());
}

TEST_F(InputsTest, InputsMayHaveColonsAndTensorNames) {
  const at::Tensor input = *ReadTensorFile(SampleOf("breast_cancer")).Find("input");
  const std::string path = Path("a:b.safetensors");
  WriteTensorFile(path, {{{"first", input}, {"second", input * 2}}, {}});
  const auto value = [&](const std::string& text) {
    const Result result = Run({"decompose", ModelOf("breast_cancer"), "--input", text, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out)["components"][0]["value"].get<double>();
  };
  EXPECT_EQ(value(path + "#second"), 2 * value(path + "#first:dim=1"));
  ExpectError({"decompose", ModelOf("breast_cancer"), "--input", path}, "several tensors (first, second)");
}

TEST_F(InputsTest, LabelsAndPartsComeFromOtherFiles) {
  const at::Tensor input = *ReadTensorFile(SampleOf("breast_cancer")).Find("input");
  at::Tensor labels = at::zeros({1, 30}, at::kLong);
  labels.slice(1, 10).fill_(1);
  labels.slice(1, 20).fill_(-1);
  const std::string label_path = Save("labels.safetensors", labels);
  Result result = Run({"decompose", ModelOf("breast_cancer"), "--input",
                       absl::StrCat(SampleOf("breast_cancer"), ":labels=", label_path), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["components"].size(), 2);
  const std::string part_path = Save("parts.safetensors", (input / 4).expand({3, 1, 30}).contiguous());
  result = Run({"decompose", ModelOf("breast_cancer"), "--input",
                absl::StrCat(SampleOf("breast_cancer"), ":parts=", part_path), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_EQ(record["components"].size(), 3);
  EXPECT_LT(RelativeError(record["targets"][0]), 1e-5);
}

TEST_F(InputsTest, ModelsThatAreNone) {
  const std::string text = Path("text.pt");
  std::ofstream(text) << "no model";
  const std::string empty = Path("empty.pt");
  std::ofstream(empty).close();
  const Arguments input = {"--input", SampleOf("digits")};
  ExpectError(Arguments{"decompose", Path("missing.pt")} + input, "cannot open");
  ExpectError(Arguments{"decompose", text} + input, "is not a TorchScript file");
  ExpectError(Arguments{"decompose", empty} + input, "is not a TorchScript file");
  ExpectError(Arguments{"decompose", Path("")} + input, "is not a TorchScript file");
  ExpectError(Arguments{"check", SampleOf("digits")} + input, "is not a TorchScript file");
}

TEST_F(InputsTest, InputsThatDoNotFit) {
  const auto expect = [&](const std::string& input, const std::string& message) {
    ExpectError({"decompose", ModelOf("breast_cancer"), "--input", input, "--html", Path("page.html")}, message);
  };
  const std::string text = Path("text.npy");
  std::ofstream(text) << "no tensor";
  expect(Path("missing.npy"), "cannot open");
  expect(text, "a .npy or .safetensors file is expected");
  expect(Path(""), "it is a folder");
  expect(Save("shape.safetensors", at::zeros({1, 7})), "The size of tensor a (7) must match the size of tensor b (30)");
  expect(Save("double.safetensors", at::zeros({1, 30}, at::kDouble)), "--dtype float32");
  expect(Save("number.safetensors", at::zeros({})), "cannot be split");
  ExpectError(
      {"decompose", ModelOf("language"), "--input", Save("token.safetensors", at::full({1, 96}, 100000, at::kLong))},
      "index out of range");
}

TEST_F(InputsTest, SplitsThatDoNotFit) {
  const auto expect = [&](const std::string& split, const std::string& message) {
    ExpectError({"decompose", ModelOf("breast_cancer"), "--input", SampleOf("breast_cancer") + split}, message);
  };
  expect(":dim=5", "has no dimension 5 to split along");
  expect(":dim=-3", "has no dimension -3");
  expect(":dim=1,1", "twice");
  expect(":dim=x", "is no split; use plain, dim=1");
  expect(":rows", "is no split; use plain, dim=1");
  expect(":plain", "no input is split");
  expect(":labels=nowhere", "has no tensor nowhere (it has input, label)");
  expect(":labels=input", "labels are integers");
  expect("#nowhere", "has no tensor nowhere; it has input, label");
}

TEST_F(InputsTest, RowsThatAreNotThere) {
  const Arguments batch = {"decompose", ModelOf("breast_cancer"), "--input", HeldoutOf("breast_cancer")};
  ExpectError(batch, "choose one with --row 0 to --row 199");
  ExpectError(batch + Arguments{"--row", "200"}, "--row 200 is out of range");
  ExpectError(batch + Arguments{"--row", "-1"}, "--row -1 is out of range");
  ExpectError(Table() + Arguments{"--row", "1"}, "has 1 row, number 0");
  // A baseline with as many rows gives the row of that number.
  ExpectError(batch + Arguments{"--row", "7", "--baseline", HeldoutOf("breast_cancer")}, "is that row itself");
}

TEST_F(InputsTest, LabelsOfAsManyRowsAsColumns) {
  const std::string rows = Save("square.safetensors", at::rand({30, 30}));
  const at::Tensor labels = at::arange(30, at::kLong).floor_divide(10);
  const auto asked = [&](const at::Tensor& own) {
    return Arguments{"decompose", ModelOf("breast_cancer"),
                     "--row",     "2",
                     "--input",   absl::StrCat(rows, ":labels=", Save("labels.safetensors", own)),
                     "--json"};
  };
  ExpectError(asked(labels), "may be those of its rows or of its last dimensions");
  const Result result = Run(asked(labels.unsqueeze(0)));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["components"].size(), 3);
}

TEST_F(InputsTest, BaselinesThatDoNotFit) {
  const Arguments text = {"decompose", ModelOf("language"), "--input", SampleOf("language")};
  ExpectError(Table() + Arguments{"--baseline", "missing.npy"}, "there is no such file, and it is no number");
  ExpectError(Table() + Arguments{"--baseline", "nan"}, "not finite");
  ExpectError(Table() + Arguments{"--baseline", "mean:missing.npy"}, "there is no file missing.npy");
  ExpectError(Table() + Arguments{"--baseline", "mean"}, "it is for images");
  ExpectError(Table() + Arguments{"--baseline", "buffer:none"}, "the model holds no tensor of that name");
  const Result result =
      Run(Table() + Arguments{"--baseline", "mean:" + HeldoutOf("breast_cancer"), "--verify-reference", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json record = Json::parse(result.out);
  EXPECT_LE(record["report"]["reference_error"].get<double>(), 1e-4);
  EXPECT_EQ(record["inputs"][0]["baseline_sha256"].get<std::string>().size(), 64u);
  ExpectError(Table() + Arguments{"--baseline", "token:0"}, "holds numbers, not token ids");
  ExpectError(Table() + Arguments{"--baseline", "0", "--baseline", "1"}, "given 2 times, but 1 input is split");
  ExpectError(Table() + Arguments{"--baseline", Save("b.safetensors", at::zeros({1, 7}))},
              "baseline of shape f32[1, 7]");
  ExpectError(text + Arguments{"--baseline", "token:nothing"}, "nothing is neither a number nor a token");
  ExpectError(text + Arguments{"--baseline", "1.5"}, "is a token id, not 1.5");
  ExpectError(text + Arguments{"--baseline", "token:5000"}, "index out of range");
}

}  // namespace
}  // namespace addend::cli

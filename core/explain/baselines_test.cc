// Baselines by a word, each against the number that it stands for, computed another way.
#include "core/explain/baselines.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/linearize/small_models.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

using at::Tensor;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Save(const std::string& name, TensorFile file) {
  const std::string path = testing::TempDir() + "/" + name;
  WriteTensorFile(path, file);
  return path;
}

Tensor Found(const std::string& word, const Tensor& value,
             const std::vector<std::pair<std::string, Tensor>>& held = {}) {
  return BaselineOfWord(word, value, held).expand(value.sizes());
}

TEST(BaselineWords, MeanAndMedianOfAFileOfRows) {
  const Tensor rows = at::tensor({1.0, 10.0, 2.0, 30.0, 6.0, 20.0, 7.0, 0.0}, at::kDouble).view({4, 2});
  const std::string path = Save("rows.safetensors", {{{"input", rows}, {"other", rows * 2}}, {}});
  const Tensor value = Random({1, 2}, 1);
  EXPECT_TRUE(at::equal(Found("mean:" + path, value), at::tensor({4.0, 15.0}, at::kDouble).view({1, 2})));
  EXPECT_TRUE(at::equal(Found("median:" + path, value), at::tensor({2.0, 10.0}, at::kDouble).view({1, 2})));
  EXPECT_TRUE(at::equal(Found("mean:" + path + "#other", value), at::tensor({8.0, 30.0}, at::kDouble).view({1, 2})));
  EXPECT_EQ(FileOfBaselineWord("mean:" + path + "#other"), path);
  EXPECT_EQ(FileOfBaselineWord("blur:3"), "");
  ExpectError(kInvalid, {"other", "#NAME"}, [&] {
    BaselineOfWord("mean:" + Save("two.safetensors", {{{"a", rows}, {"other", rows}}, {}}), value, {});
  });
  ExpectError(absl::StatusCode::kNotFound, {"none.npy"}, [&] { BaselineOfWord("mean:none.npy", value, {}); });
  ExpectError(kInvalid, {"no floating-point"}, [&] {
    BaselineOfWord("mean:" + Save("ids.safetensors", {{{"input", at::ones({2, 2}, at::kLong)}}, {}}), value, {});
  });
}

TEST(BaselineWords, ATensorThatTheModelHolds) {
  const Tensor mean = at::tensor({1.0, 2.0, 3.0}, at::kDouble);
  const std::vector<std::pair<std::string, Tensor>> held = {{"norm.running_mean", mean},
                                                            {"weight", at::ones({5, 7}, at::kDouble)}};
  const Tensor image = Found("buffer:norm.running_mean", Random({2, 3, 4, 5}, 1), held);
  EXPECT_TRUE(at::equal(image.select(1, 2), at::full({2, 4, 5}, 3.0, at::kDouble)));
  EXPECT_TRUE(at::equal(Found("buffer:norm.running_mean", Random({2, 3}, 1), held).select(0, 1), mean));
  ExpectError(kInvalid, {"norm.running_mean would fit"}, [&] { Found("buffer:mean", Random({2, 3}, 1), held); });
  ExpectError(kInvalid, {"[5, 7]", "[2, 3]"}, [&] { Found("buffer:weight", Random({2, 3}, 1), held); });
  ExpectError(kInvalid, {"none that fits"}, [&] { Found("buffer:x", Random({2, 4}, 1), held); });
}

TEST(BaselineWords, ImagesOfOneColourAndBlurredOnes) {
  const Tensor value = Random({2, 3, 8, 6}, 3);
  const Tensor mean = Found("mean", value);
  EXPECT_NEAR(mean[1][2][7][5].item<double>(), value[1][2].sum().item<double>() / 48, 1e-14);
  EXPECT_TRUE(at::equal(mean[1][2], mean[1][2][0][0].expand({8, 6})));

  // Each pixel is the mean of all, weighted by a Gaussian of the distance.
  const Tensor blurred = Found("blur:1.5", value);
  double weights = 0;
  double sum = 0;
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 6; ++x) {
      const double weight = std::exp(-((y - 2) * (y - 2) + (x - 1) * (x - 1)) / (2 * 1.5 * 1.5));
      weights += weight;
      sum += weight * value[0][1][y][x].item<double>();
    }
  }
  EXPECT_NEAR(blurred[0][1][2][1].item<double>(), sum / weights, 1e-14);
  const Tensor constant = at::full({1, 1, 5, 5}, 3.0, at::kFloat);
  EXPECT_TRUE(at::allclose(Found("blur", constant), constant.to(at::kDouble), 1e-14));
  EXPECT_LT(at::std(Found("blur:100", value)[0][0]).item<double>(), 0.01);
}

TEST(BaselineWords, WhatDoesNotFitIsSaid) {
  const Tensor row = Random({1, 4}, 1);
  ExpectError(kInvalid, {"images", "[1, 4]", "mean:FILE"}, [&] { BaselineOfWord("mean", row, {}); });
  ExpectError(kInvalid, {"images"}, [&] { BaselineOfWord("blur", row, {}); });
  for (const char* word : {"blur:", "blur:x", "blur:-1", "blur:0", "blur:inf"}) {
    ExpectError(kInvalid, {"number of pixels"}, [&] { BaselineOfWord(word, Random({1, 4, 4}, 1), {}); });
  }
  ExpectError(kInvalid, {"token"}, [&] { BaselineOfWord("mean", at::ones({1, 4, 4}, at::kLong), {}); });
  ExpectError(kInvalid, {"no such word", "buffer:NAME"}, [&] { BaselineOfWord("black", row, {}); });
  EXPECT_FALSE(IsBaselineWord("black"));
}

TEST(BaselineWords, ADecompositionMeasuresFromThere) {
  const Tensor image = Random({1, 3, 6, 6}, 4);
  const Tensor mean = at::tensor({0.5, -1.0, 2.0}, at::kDouble);
  const auto model = TracedModel(FromFunction(
      [](const std::vector<Tensor>& in) {
        return in[0].tanh().sum({2, 3});
      },
      {{"running_mean", mean}}));
  Input input;
  input.value = image;
  input.split = Split::AlongDims({2, 3});
  for (const auto& [word, baseline] :
       {std::pair<std::string, Tensor>{"buffer:running_mean", mean.view({1, 3, 1, 1}).expand_as(image)},
        {"mean", image.mean({2, 3}, true).expand_as(image)}}) {
    input.baseline = Baseline::Named(word);
    const Decomposition result = model.Decompose({input});
    EXPECT_TRUE(at::allclose(result.outputs[0].composition.reference(), baseline.tanh().sum({2, 3}), 1e-12));
    EXPECT_EQ(result.report.policy.preset, Preset::kFaithful) << "a baseline was given";
  }
  input.baseline = Baseline::Named("buffer:mean");
  ExpectError(kInvalid, {"input 0", "running_mean would fit"}, [&] { model.Decompose({input}); });
}

TEST(BaselineWords, InsideTheModelTheValueIsNotKnownYet) {
  const Tensor held = at::tensor({1.0, 2.0, 3.0}, at::kDouble);
  const auto model =
      TracedModel(FromFunction([](const std::vector<Tensor>& in) { return (in[0] * 2).tanh(); }, {{"held", held}}));
  Input plain;
  plain.value = Random({2, 3, 4, 4}, 1);
  const auto from = [&](const std::string& word) {
    return model.Decompose({plain, Input::Inside("aten::mul", Split::AlongDims({1}), Baseline::Named(word))});
  };
  EXPECT_TRUE(at::allclose(from("buffer:held").outputs[0].composition.reference(),
                           held.view({1, 3, 1, 1}).tanh().expand({2, 3, 4, 4})));
  ExpectError(kInvalid, {"known only when the model runs"}, [&] { from("blur"); });
}

}  // namespace
}  // namespace addend

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(OnnxRandom, DrawsTheSameNumbersFromASeed) {
  const auto model = ModelOfNodes(
      {With(NodeMessage("RandomNormal", {}, {"y"}, "noise"), {IntsAttribute("shape", {1000}), FloatAttribute("seed", 7),
                                                              FloatAttribute("mean", 3), FloatAttribute("scale", 2)})},
      0);
  const Tensor drawn = ResultOf(*model, {});
  EXPECT_NEAR(drawn.mean().item<double>(), 3, 0.3);
  EXPECT_NEAR(drawn.std().item<double>(), 2, 0.2);
  EXPECT_TRUE(at::equal(ResultOf(*model, {}), drawn));
  EXPECT_THAT(model->Notes(), ElementsAre(HasSubstr("at random")));
}

TEST(OnnxRandom, DrawsOtherNumbersWithoutASeed) {
  const auto model = ModelOfNodes(
      {With(NodeMessage("RandomUniformLike", {"x0"}, {"y"}), {FloatAttribute("low", 2), FloatAttribute("high", 3)})},
      1);
  const Tensor drawn = ResultOf(*model, {at::zeros({1000})});
  EXPECT_GE(drawn.min().item<double>(), 2);
  EXPECT_LE(drawn.max().item<double>(), 3);
  EXPECT_FALSE(at::equal(ResultOf(*model, {at::zeros({1000})}), drawn));
}

TEST(OnnxRandom, DrawsByLogarithmsOfChances) {
  const auto model = ModelOfNodes(
      {With(NodeMessage("Multinomial", {"x0"}, {"y"}), {IntAttribute("sample_size", 50), FloatAttribute("seed", 1)})},
      1);
  const Tensor drawn = ResultOf(*model, {at::tensor({-100.0F, 5.0F, -100.0F}).reshape({1, 3})});
  EXPECT_TRUE(at::equal(drawn, at::ones({1, 50}, at::kInt)));
}

// In version 6 the default is training.
TEST(OnnxRandom, RefusesDropoutOfTraining) {
  const Tensor x = at::ones({3});
  const auto old = ModelOfNodes({NodeMessage("Dropout", {"x0"}, {"y"})}, 1, {}, 6);
  ExpectError(absl::StatusCode::kUnimplemented, {"Dropout", "inference"}, [&] { ResultOf(*old, {x}); });
  const auto tested =
      ModelOfNodes({With(NodeMessage("Dropout", {"x0"}, {"y"}), {IntAttribute("is_test", 1)})}, 1, {}, 6);
  EXPECT_TRUE(at::equal(ResultOf(*tested, {x}), x));
}

}  // namespace
}  // namespace addend::onnx

// Traps of normalizations that the suite of ONNX leaves out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// Whether the elements of the result are these, whatever its sizes.
testing::AssertionResult Holds(const Tensor& result, const std::vector<double>& elements) {
  const Tensor flat = at::flatten(result).to(at::kDouble);
  const Tensor expected = at::tensor(elements, at::kDouble);
  if (flat.sizes() == expected.sizes() && at::allclose(flat, expected, 1e-4, 1e-6)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << flat << " instead of " << expected;
}

Tensor Along(const std::string& op, int64_t version) {
  return NodeModel(op, "", version)
      .Input(at::tensor({0.0F, 0.0F, 0.0F, 1.0F}).reshape({1, 2, 2}))
      .Attribute(IntAttribute("axis", 1))
      .Run()[0];
}

// Before version 13 all dimensions from the axis on are one.
TEST(Normalizations, SoftmaxOfOldModelsIsFlat) {
  const double e = std::exp(1.0);
  EXPECT_TRUE(Holds(Along("Softmax", 11), {1 / (3 + e), 1 / (3 + e), 1 / (3 + e), e / (3 + e)}));
  EXPECT_TRUE(Holds(Along("Softmax", 13), {0.5, 1 / (1 + e), 0.5, e / (1 + e)}));
  EXPECT_TRUE(Holds(Along("Hardmax", 12), {0, 0, 0, 1}));
  EXPECT_TRUE(Holds(Along("Hardmax", 13), {1, 0, 0, 1}));
  const double z = std::log(3 + e);
  EXPECT_TRUE(Holds(Along("LogSoftmax", 12), {-z, -z, -z, 1 - z}));
}

NodeModel Batch(int64_t version, const Tensor& factors) {
  NodeModel model("BatchNormalization", "", version);
  model.Input(at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).reshape({2, 1, 2}));
  model.Constant(factors).Constant(at::zeros_like(factors)).Constant(at::ones_like(factors));
  model.Constant(at::ones_like(factors)).Attribute(FloatAttribute("epsilon", 0));
  return model;
}

TEST(Normalizations, ElementsOfOldBatchesAreChannels) {
  const Tensor factors = at::tensor({1.0F, 10.0F}).reshape({1, 2});
  EXPECT_TRUE(Holds(Batch(7, factors).Attribute(IntAttribute("spatial", 0)).Run()[0], {0, 10, 2, 30}));
  EXPECT_TRUE(Holds(Batch(9, at::tensor({2.0F})).Run()[0], {0, 2, 4, 6}));
}

TEST(Normalizations, RefusesStatisticsOfTraining) {
  ExpectError(absl::StatusCode::kUnimplemented, {"node (BatchNormalization)", "statistics of training"},
              [] { Batch(9, at::tensor({2.0F})).Run(2); });
}

// Scales of groups at version 18, of channels from 21 on.
TEST(Normalizations, ScalesOfGroups) {
  const auto run = [](int64_t version, const Tensor& scale) {
    return NodeModel("GroupNormalization", "", version)
        .Input(at::tensor({1.0F, 3.0F, 1.0F, 3.0F}).reshape({1, 4, 1}))
        .Constant(scale)
        .Constant(at::zeros_like(scale))
        .Attribute(IntAttribute("num_groups", 2))
        .Attribute(FloatAttribute("epsilon", 0))
        .Run()[0];
  };
  EXPECT_TRUE(Holds(run(18, at::tensor({1.0F, 2.0F})), {-1, 1, -2, 2}));
  EXPECT_TRUE(Holds(run(21, at::tensor({1.0F, 2.0F, 3.0F, 4.0F})), {-1, 2, -3, 4}));
}

// ONNX Runtime writes it into models of older versions.
TEST(Normalizations, LayerNormalizationOfOldModels) {
  EXPECT_TRUE(Holds(NodeModel("LayerNormalization", "", 9)
                        .Input(at::tensor({1.0F, 3.0F}).reshape({1, 2}))
                        .Constant(at::tensor({1.0F, 2.0F}))
                        .Attribute(FloatAttribute("epsilon", 0))
                        .Run()[0],
                    {-1, 2}));
}

TEST(Normalizations, RowsOfZerosStayZeros) {
  const auto run = [](int64_t p) {
    return NodeModel("LpNormalization")
        .Input(at::tensor({3.0F, -4.0F, 0.0F, 0.0F}).reshape({2, 2}))
        .Attribute(IntAttribute("p", p))
        .Run()[0];
  };
  EXPECT_TRUE(Holds(run(2), {0.6, -0.8, 0, 0}));
  EXPECT_TRUE(Holds(run(1), {3.0 / 7, -4.0 / 7, 0, 0}));
}

}  // namespace
}  // namespace addend::onnx

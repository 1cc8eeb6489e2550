// Linear models and support vector machines. What they give for classes is what ONNX Runtime 1.32 gives.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr char kDomain[] = "ai.onnx.ml";

testing::AssertionResult Holds(const Tensor& result, const std::vector<double>& elements) {
  const Tensor flat = at::flatten(result).to(at::kDouble);
  const Tensor expected = at::tensor(elements, at::kDouble);
  if (flat.sizes() == expected.sizes() && at::allclose(flat, expected, 1e-5, 1e-6)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << flat << " instead of " << expected;
}

Tensor Rows() { return at::tensor({-1.0F, 1.0F, 0.2F}).reshape({3, 1}); }

TEST(LinearModels, Regressor) {
  NodeModel model("LinearRegressor", kDomain);
  model.Attribute(FloatsAttribute("coefficients", {1, 2, 3, 4})).Attribute(IntAttribute("targets", 2));
  NodeModel with = model;
  with.Input(at::tensor({1.0F, 10.0F, 2.0F, 20.0F}).reshape({2, 2}))
      .Attribute(FloatsAttribute("intercepts", {0.5, -0.5}));
  EXPECT_TRUE(Holds(with.Run()[0], {21.5, 42.5, 42.5, 85.5}));
  // One row of integers, without intercepts.
  EXPECT_TRUE(Holds(model.Input(at::tensor({1, 10}, at::kLong)).Run()[0], {21, 43}));
}

NodeModel Classifier(const std::vector<float>& coefficients, const std::vector<float>& intercepts,
                     const std::vector<int64_t>& labels, const std::string& transform) {
  NodeModel model("LinearClassifier", kDomain);
  model.Input(Rows())
      .Attribute(FloatsAttribute("coefficients", coefficients))
      .Attribute(FloatsAttribute("intercepts", intercepts))
      .Attribute(IntsAttribute("classlabels_ints", labels))
      .Attribute(TextAttribute("post_transform", transform));
  return model;
}

TEST(LinearModels, Classifier) {
  const std::vector<Tensor> two = Classifier({2}, {0.3F}, {5, 9}, "LOGISTIC").Run(2);
  EXPECT_TRUE(Holds(two[0], {5, 9, 9}));
  EXPECT_TRUE(Holds(two[1], {0.8455348, 0.1544652, 0.09112296, 0.9088771, 0.33181223, 0.6681878}));
  const std::vector<Tensor> three = Classifier({0.2F, -0.2F, 0.1F}, {0.3F, 0.3F, 0}, {5, 9, 11}, "SOFTMAX").Run(2);
  EXPECT_TRUE(Holds(three[0], {9, 5, 5}));
  EXPECT_TRUE(Holds(three[1].narrow(0, 0, 1), {0.30206412, 0.4506267, 0.24730916}));
  ExpectError(absl::StatusCode::kUnimplemented, {"LinearClassifier", "otherwise than the standard"}, [] {
    Classifier({2}, {0.3F}, {5, 9}, "NONE").Run(2);
  });
}

NodeModel Machine(const std::string& op_type, const std::string& kernel) {
  NodeModel model(op_type, kDomain);
  model.Input(Rows())
      .Attribute(TextAttribute("kernel_type", kernel))
      .Attribute(FloatsAttribute("kernel_params", {0.5F, 0.1F, 3}));
  return model;
}

TEST(LinearModels, KernelsOfARegressor) {
  const auto run = [](const char* kernel) {
    NodeModel model = Machine("SVMRegressor", kernel);
    model.Attribute(FloatsAttribute("coefficients", {1, -1}))
        .Attribute(FloatsAttribute("support_vectors", {0.5F, -0.3F}));
    return model.Attribute(FloatsAttribute("rho", {0.1F})).Attribute(IntAttribute("n_supports", 2)).Run()[0];
  };
  EXPECT_TRUE(Holds(run("LINEAR"), {-0.7, 0.9, 0.26}));
  EXPECT_TRUE(Holds(run("POLY"), {0.081, 0.143, 0.103032}));
  EXPECT_TRUE(Holds(run("RBF"), {-0.35805207, 0.55293953, 0.17350057}));
  EXPECT_TRUE(Holds(run("SIGMOID"), {-0.2938037, 0.4863339, 0.17899916}));
}

NodeModel VectorClassifier(const std::vector<float>& coefficients, const std::vector<float>& vectors,
                           const std::vector<float>& rho, const std::vector<int64_t>& labels) {
  NodeModel model = Machine("SVMClassifier", "LINEAR");
  model.Attribute(FloatsAttribute("coefficients", coefficients))
      .Attribute(FloatsAttribute("support_vectors", vectors))
      .Attribute(IntsAttribute("vectors_per_class", std::vector<int64_t>(labels.size(), 1)))
      .Attribute(FloatsAttribute("rho", rho))
      .Attribute(IntsAttribute("classlabels_ints", labels));
  return model;
}

TEST(LinearModels, PairsOfClasses) {
  const std::vector<Tensor> two = VectorClassifier({1, -1}, {0.5F, -0.3F}, {0.1F}, {5, 9}).Run(2);
  EXPECT_TRUE(Holds(two[0], {9, 5, 5}));
  EXPECT_TRUE(Holds(two[1], {0.7, -0.7, -0.9, 0.9, -0.26, 0.26}));
  const std::vector<Tensor> three =
      VectorClassifier({1, -1, 0.5F, 0.3F, 0.2F, -0.7F}, {0.5F, -0.3F, 0.8F}, {0.1F, 0.2F, 0.3F}, {5, 9, 11}).Run(2);
  EXPECT_TRUE(Holds(three[0], {9, 5, 5}));
  EXPECT_TRUE(Holds(three[1], {-0.7, -0.35, 0.92, 0.9, 0.75, -0.32, 0.26, 0.31, 0.176}));
  ExpectError(absl::StatusCode::kUnimplemented, {"SVMClassifier", "prob_a"}, [] {
    NodeModel model = VectorClassifier({1, -1}, {0.5F, -0.3F}, {0.1F}, {5, 9});
    model.Attribute(FloatsAttribute("prob_a", {-1})).Attribute(FloatsAttribute("prob_b", {0})).Run(2);
  });
}

}  // namespace
}  // namespace addend::onnx

// Tensors of code that computes with the same LibTorch, by the address of an at::Tensor.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/relu.h>
#include <gmock/gmock.h>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LibTorchTest : public CApiTest {};

const at::Tensor& Seen(const std::shared_ptr<void>& at_tensor) { return *static_cast<at::Tensor*>(at_tensor.get()); }

TEST_F(LibTorchTest, StorageStridesAndGradientsAreKept) {
  const at::Tensor columns = at::arange(6, at::kDouble).reshape({2, 3}).t();
  const Tensor tensor = Tensor::FromLibTorch(&columns);
  EXPECT_THAT(tensor.sizes(), ElementsAre(3, 2));
  EXPECT_EQ(tensor.dtype(), ADDEND_FLOAT64);
  EXPECT_EQ(Numbers(tensor), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  const std::shared_ptr<void> back = tensor.ToLibTorch();
  EXPECT_TRUE(Seen(back).is_same(columns));
  EXPECT_THAT(Seen(back).strides(), ElementsAre(1, 3));

  const at::Tensor learned = at::ones({2}).requires_grad_();
  const at::Tensor doubled = learned * 2;
  const Tensor known = Tensor::FromLibTorch(&doubled);
  EXPECT_TRUE(Seen(known.ToLibTorch()).requires_grad());
  EXPECT_EQ(Seen(known.ToLibTorch()).grad_fn(), doubled.grad_fn());
  EXPECT_TRUE(Seen(Tensor::FromLibTorch(&learned).ToLibTorch()).is_leaf());
}

TEST_F(LibTorchTest, EitherSideKeepsTheMemory) {
  Tensor kept;
  std::shared_ptr<void> given;
  {
    const at::Tensor numbers = at::arange(3, at::kDouble);
    kept = Tensor::FromLibTorch(&numbers);
    given = Tensor::Copy<float>({4, 5}, {2}).ToLibTorch();
  }
  EXPECT_EQ(Numbers(kept), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(Seen(given)[1].item<float>(), 5);
}

TEST_F(LibTorchTest, WhatIsNoDenseTensorIsRefused) {
  addend_tensor* made = nullptr;
  const auto refused = [&made](const at::Tensor& tensor) {
    return Outcome(addend_tensor_from_libtorch(&tensor, &made));
  };
  EXPECT_EQ(refused({}).code, ADDEND_INVALID_ARGUMENT);
  EXPECT_THAT(refused({}).message, HasSubstr("at_tensor is undefined"));
  EXPECT_EQ(refused(at::ones({2, 2}).to_sparse()).code, ADDEND_UNIMPLEMENTED);
  const Outcome quantized = refused(at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8));
  EXPECT_EQ(quantized.code, ADDEND_UNIMPLEMENTED);
  EXPECT_THAT(quantized.message, HasSubstr("dequantize"));
  EXPECT_EQ(Outcome(addend_tensor_from_libtorch(nullptr, &made)).message, "at_tensor is NULL");
  EXPECT_EQ(made, nullptr);
  addend_libtorch_tensor_release(nullptr);
}

// A model of other code, whose parameters are learned.
struct Network {
  at::Tensor weight = at::arange(6, at::kDouble).reshape({2, 3}).sub(2).requires_grad_();
  at::Tensor bias = at::ones({2}, at::kDouble).requires_grad_();
  at::Tensor mean = at::ones({2}, at::kDouble) * 0.5;
  at::Tensor variance = at::ones({2}, at::kDouble) * 4;

  at::Tensor Run(const at::Tensor& x, LiveScope* scope) const {
    scope->SetModule("encoder");
    const at::Tensor hidden = at::relu(at::linear(x, weight, bias));
    scope->SetModule("norm");
    const at::Tensor normed = at::batch_norm(hidden, {}, {}, mean, variance, false, 0.1, 0.0, false);
    scope->SetModule("");
    return normed;
  }
  Request Asked(const at::Tensor& x) const {
    Request request;
    request.Input(Tensor::FromLibTorch(&x), "x").SplitAlong({1}).Baseline(0.0).Target("0,1").Operators();
    request.Parameter("encoder.weight", Tensor::FromLibTorch(&weight));
    request.Parameter("encoder.bias", Tensor::FromLibTorch(&bias));
    request.Buffer("norm.mean", Tensor::FromLibTorch(&mean)).Buffer("norm.variance", Tensor::FromLibTorch(&variance));
    return request;
  }
};

// relu(-2 * 1 - 1 * 2 + 1) = 0 and relu(1 * 1 + 2 * 2 + 3 * 3 + 1) = 15, of which (15 - 0.5) / 2 is left.
TEST_F(LibTorchTest, LiveModelsAreDecomposedWithTheirModules) {
  const Network network;
  const at::Tensor x = (at::arange(3, at::kDouble) + 1).reshape({1, 3});
  TracingScope scope(network.Asked(x));
  const at::Tensor y = network.Run(x, &scope);
  scope.AddOutput("y", Tensor::FromLibTorch(&y));
  const Results results = scope.End();
  const Explanation explanation = results.Explain("0,1");
  EXPECT_NEAR(explanation.value(), 7.25, 1e-12);
  EXPECT_NEAR(explanation.recovery_error(), 0, 1e-12);
  ExpectNear(Numbers(results.composition().component(2)), {0, 4.5}, 1e-12);
  for (const char* name : {"\"encoder\"", "\"norm\"", "encoder.weight", "encoder.bias", "norm.mean"}) {
    EXPECT_THAT(results.ReportJson(), HasSubstr(name));
  }
}

TEST_F(LibTorchTest, LiveModelsAreAttributedWithTheirModules) {
  const Network network;
  const at::Tensor x = (at::arange(3, at::kDouble) + 1).reshape({1, 3});
  AttributionScope scope(network.Asked(x));
  const at::Tensor y = network.Run(x, &scope);
  scope.AddOutput("y", Tensor::FromLibTorch(&y));
  const Attribution attribution = scope.End();
  ExpectNear(Numbers(attribution.input()), {0.5, 2, 4.5}, 1e-12);
  EXPECT_THAT(attribution.Json(), HasSubstr("\"module_path\":\"encoder\""));
  EXPECT_THAT(attribution.Json(), HasSubstr("\"module_path\":\"norm\""));
}

}  // namespace
}  // namespace addend::api

// The module that the project's first example is about: a submodule, a chain of two linear layers and a parameter that
// is added, decomposed into the four numbers of its input.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "core/explain/decompose.h"
#include "core/model/nn_module.h"

namespace addend {
namespace {

struct SubModule : torch::nn::Module {
  SubModule() { linear = register_module("linear", torch::nn::Linear(4, 3)); }
  at::Tensor forward(const at::Tensor& x) { return identity->forward(linear->forward(x)); }
  torch::nn::Linear linear = nullptr;
  torch::nn::Identity identity = register_module("identity", torch::nn::Identity());
};

struct MyModel : torch::nn::Module {
  MyModel() {
    submodel = register_module("submodel", std::make_shared<SubModule>());
    linear = register_module("linear", torch::nn::Sequential(torch::nn::Linear(3, 3), torch::nn::Linear(3, 2)));
    param = register_parameter("param", at::randn({2}));
  }
  at::Tensor forward(const at::Tensor& x) { return linear->forward(submodel->forward(x)) + param; }
  std::shared_ptr<SubModule> submodel;
  torch::nn::Sequential linear = nullptr;
  at::Tensor param;
};

class SeedMlp : public testing::Test {
 protected:
  SeedMlp() {
    at::manual_seed(0);
    model_ = std::make_shared<MyModel>();
    input_ = at::rand({4});
  }

  Input Split() const {
    Input input;
    input.value = input_;
    input.split = Split::AlongDims({0});
    return input;
  }

  std::shared_ptr<MyModel> model_;
  at::Tensor input_;
};

TEST_F(SeedMlp, BothTruthsHold) {
  at::NoGradGuard no_grad;
  const Decomposition result = TracedModel(FromModule(model_)).Decompose({Split()});
  const Composition& parts = result.outputs[0].composition;
  EXPECT_EQ(parts.numc(), 4);
  EXPECT_TRUE(at::equal(result.outputs[0].value, model_->forward(input_)));
  EXPECT_TRUE(at::allclose(parts.recovery(), model_->forward(input_), 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(parts.reference(), model_->forward(at::zeros({4}))));
  EXPECT_EQ(parts.leftover().abs().max().item<float>(), 0);
  // An affine model has one Jacobian, which autograd knows: component i is its column i times input i.
  c10::AutoGradMode grad(true);
  at::Tensor columns = at::zeros({4, 2});
  for (int64_t out = 0; out < 2; ++out) {
    const at::Tensor leaf = input_.clone().requires_grad_();
    model_->forward(leaf)[out].backward();
    columns.select(1, out).copy_(leaf.grad() * input_);
  }
  EXPECT_TRUE(at::allclose(parts.components(), columns, 1e-5, 1e-6));
}

TEST_F(SeedMlp, PrintsComponentsAndResidual) {
  const Composition input = Composition::Diagonal(at::tensor({0.6853, 0.1793, 0.2301, 0.4074}, at::kFloat), {0});
  EXPECT_EQ(input.ToString(),
            "composition 0:\n"
            "tensor([0.6853, 0.0000, 0.0000, 0.0000])\n"
            "composition 1:\n"
            "tensor([0.0000, 0.1793, 0.0000, 0.0000])\n"
            "composition 2:\n"
            "tensor([0.0000, 0.0000, 0.2301, 0.0000])\n"
            "composition 3:\n"
            "tensor([0.0000, 0.0000, 0.0000, 0.4074])\n"
            "residual:\n"
            "tensor([0., 0., 0., 0.])");
}

TEST_F(SeedMlp, CompositionsGoInAndRunIsThePlainModel) {
  at::NoGradGuard no_grad;
  const TracedModel traced(FromModule(model_));
  const Decomposition result = traced.Decompose({Input::Of(Composition::Diagonal(input_, {0}))});
  EXPECT_EQ(result.numc, 4);
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.recovery(), model_->forward(input_), 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(traced.Run({input_}).toTensor(), model_->forward(input_)));
}

TEST_F(SeedMlp, OperatorsAreNamedByTheirParameters) {
  DecomposeOptions options;
  options.probes = {"submodel.linear"};
  const Decomposition result = TracedModel(FromModule(model_)).Decompose({Split()}, options);
  at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(result.probes[0].value, model_->submodel->forward(input_), 1e-6, 1e-6));
}

}  // namespace
}  // namespace addend

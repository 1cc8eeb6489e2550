// TorchScript files as models: what is loaded, what is refused, and how it runs.
#include "core/model/torchscript.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>

#include "core/base/error.h"
#include "core/model/run_model.h"

namespace addend {
namespace {

using testing::HasSubstr;

std::string SavedScript(const std::string& name, const std::string& source) {
  torch::jit::Module module("model");
  module.register_parameter("weight", at::full({3}, 2.0), /*is_buffer=*/false);
  module.define(source);
  const std::string path = testing::TempDir() + name;
  module.save(path);
  return path;
}

at::Tensor RunOn(Model& model, const at::Tensor& x) { return RunModel(model, {x}, "x").toTensor(); }

std::string WhyNot(const std::string& path) {
  try {
    LoadTorchScript(path);
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "loaded";
}

TEST(TorchScript, RunsAsSaved) {
  const std::string path =
      SavedScript("runs.pt", "def forward(self, x: Tensor) -> Tensor:\n  return x * self.weight\n");
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0}, at::kFloat);
  EXPECT_TRUE(at::equal(RunOn(*LoadTorchScript(path), x), x * 2));
  ScriptOptions options;
  options.dtype = at::kDouble;
  EXPECT_EQ(RunOn(*LoadTorchScript(path, options), x.to(at::kDouble)).scalar_type(), at::kDouble);
}

TEST(TorchScript, IsCopiedToADevice) {
  const std::string path = SavedScript(
      "copied.pt", "def forward(self, x: Tensor) -> Tensor:\n  return x * self.weight + torch.tensor([1., 2., 3.])\n");
  const std::shared_ptr<Model> model = LoadTorchScript(path);
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0}, at::kFloat);
  const std::shared_ptr<Model> copy = CopyTo(*model, at::kCPU);
  EXPECT_TRUE(at::equal(copy->Run({x}).toTensor(), model->Run({x}).toTensor()));
  EXPECT_FALSE(copy->NamedTensors()[0].second.is_alias_of(model->NamedTensors()[0].second));
  const std::shared_ptr<Model> wide = CopyTo(*model, at::kCPU, at::kDouble);
  EXPECT_EQ(wide->NamedTensors()[0].second.scalar_type(), at::kDouble);
  EXPECT_EQ(model->NamedTensors()[0].second.scalar_type(), at::kFloat);
  EXPECT_THROW(CopyTo(*FromFunction([](const std::vector<at::Tensor>& in) { return in[0]; }), at::kCPU), Error);
  if (!at::hasCUDA()) {
    EXPECT_THROW(CopyTo(*model, at::Device("cuda:0")), Error);
  }
}

// LibTorch's modules branch like this one; the fused operator has no rule, its parts have.
TEST(TorchScript, TakesThePartsOfFusedAttention) {
  const std::string path = SavedScript("fused.pt", R"(
def forward(self, x: Tensor) -> Tensor:
  if torch.is_grad_enabled():
    return x * 2
  return torch._native_multi_head_attention(x, x, x, 3, 1, x, x, x, x)[0]
)");
  EXPECT_TRUE(at::equal(RunOn(*LoadTorchScript(path), at::ones({3})), at::full({3}, 2.0)));
}

TEST(TorchScript, RefusesWhatIsNone) {
  EXPECT_THAT(WhyNot(testing::TempDir() + "missing.pt"), HasSubstr("No such file"));
  EXPECT_THAT(WhyNot(testing::TempDir()), HasSubstr("is not a TorchScript file"));
  const std::string path = testing::TempDir() + "text.pt";
  std::ofstream(path) << "not a model";
  EXPECT_THAT(WhyNot(path), HasSubstr("is not a TorchScript file; save one with"));
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THAT(WhyNot(path), HasSubstr("it is empty"));
}

}  // namespace
}  // namespace addend

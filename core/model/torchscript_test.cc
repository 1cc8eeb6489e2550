// TorchScript files as models: what is loaded, what is refused, and how it runs.
#include "core/model/torchscript.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
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
  const std::shared_ptr<Model> copy = model->To(at::kCPU);
  EXPECT_TRUE(at::equal(copy->Run({x}).toTensor(), model->Run({x}).toTensor()));
  EXPECT_FALSE(copy->NamedTensors()[0].second.is_alias_of(model->NamedTensors()[0].second));
  const std::shared_ptr<Model> wide = model->To(at::kCPU, at::kDouble);
  EXPECT_EQ(wide->NamedTensors()[0].second.scalar_type(), at::kDouble);
  EXPECT_EQ(model->NamedTensors()[0].second.scalar_type(), at::kFloat);
  EXPECT_THROW(FromFunction([](const std::vector<at::Tensor>& in) { return in[0]; })->To(at::kCPU), Error);
  if (!at::hasCUDA()) {
    EXPECT_THROW(model->To(at::Device("cuda:0")), Error);
  }
}

TEST(TorchScript, KeepsItsMethodsOnAnotherDevice) {
  torch::jit::Module module("model");
  module.define(
      "def forward(self, x: Tensor) -> Tensor:\n  return x\ndef twice(self, x: Tensor) -> Tensor:\n  return x * 2\n");
  const std::string path = testing::TempDir() + "methods.pt";
  module.save(path);
  const std::shared_ptr<Model> twice = MethodsOf(*LoadTorchScript(path), {"twice"});
  EXPECT_TRUE(at::equal(twice->To(at::kCPU)->Run({at::ones({2})}).toTensor(), at::full({2}, 2.0)));
}

// Outputs that the modules of a model tell, as text: "inner:0 = 4".
class Told : public CallHandler {
 public:
  void Handle(const Operator& op, Stack* stack) override { op.Run(stack); }
  void AddModuleOutput(const std::string& path, int64_t index, const at::Tensor& tensor) override {
    told.push_back(absl::StrCat(path, ":", index, " = ", tensor.defined() ? tensor[0].item<double>() : -1.0));
  }
  std::vector<std::string> told;
};

std::vector<std::string> ToldBy(Model& model, const at::Tensor& x) {
  Told told;
  const TracingScope scope(&told);
  model.Run({x});
  return told.told;
}

TEST(TorchScript, TellsWhatModulesReturn) {
  torch::jit::Module inner("inner");
  inner.define(R"(
def forward(self, x: Tensor) -> Tuple[Tensor, Optional[Tensor], List[Tensor]]:
  y = x * 2
  z = y + 1
  return (z, None, [x, y])
def other(self, x: Tensor) -> Tensor:
  return x
)");
  torch::jit::Module same("same");
  same.define("def forward(self, x: Tensor) -> Tensor:\n  return x\n");
  torch::jit::Module module("model");
  module.register_module("inner", inner);
  module.register_module("same", same);
  module.define(R"(
def forward(self, x: Tensor) -> Tensor:
  for i in range(2):
    if i > 0:
      x = self.same.forward(x)
    x = self.inner.forward(x)[0] + self.inner.other(x)
  return self.same.forward(x)
)");
  const std::string path = testing::TempDir() + "tells.pt";
  module.save(path);
  const std::vector<std::string> want = {"inner:0 = 3", "inner:1 = 1", "inner:2 = 2", "same:0 = 4",
                                         "inner:0 = 9", "inner:1 = 4", "inner:2 = 8", "same:0 = 13"};
  const std::shared_ptr<Model> model = LoadTorchScript(path);
  EXPECT_EQ(ToldBy(*model, at::ones({1})), want);
  EXPECT_EQ(ToldBy(*model->To(at::kCPU), at::ones({1})), want);
  EXPECT_EQ(ToldBy(*MethodsOf(*model, {"forward"}), at::ones({1})), want);
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

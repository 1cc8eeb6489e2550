// The trained models on held-out data: both truths in float32 and float64, and what `fast` leaves over.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/explain/target.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr char kModels[] = "docs/examples/models/";
// Each of the speaker's has a thousand outputs for each of 128 tokens.
int64_t SamplesOf(const std::string& model) { return model == "speaker" ? 2 : 12; }

struct RealModel {
  std::string name;
  at::ScalarType dtype;
};

std::string NameOf(const RealModel& model) {
  return model.name + (model.dtype == at::kDouble ? "_float64" : "_float32");
}
void PrintTo(const RealModel& model, std::ostream* out) { *out << NameOf(model); }

class RealModels : public testing::TestWithParam<RealModel> {
 protected:
  std::string folder() const { return kModels + GetParam().name + "/"; }
  double tolerance() const { return GetParam().dtype == at::kDouble ? 1e-10 : 1e-5; }

  TracedModel Load() const {
    ScriptOptions options;
    options.dtype = GetParam().dtype;
    return TracedModel(LoadTorchScript(folder() + "model.pt", options));
  }

  // Sample `row`, split and with the baseline that the model's page tells.
  Input Sample(const TensorFile& held_out, int64_t row) const {
    Input input;
    input.value = held_out.Find("input")->narrow(0, row, 1);
    if (input.value.is_floating_point()) input.value = input.value.to(GetParam().dtype);
    if (GetParam().name == "breast_cancer") {
      input.split = Split::AlongDims({1});
      input.baseline = Baseline::Of(ReadTensorFile(folder() + "baseline.npy").tensors[0].second.to(GetParam().dtype));
    } else if (GetParam().name == "digits") {
      input.split = Split::AlongDims({2, 3});
      input.baseline = Baseline::Of(0.0);
    } else {
      input.split = Split::ByLabels(held_out.Find("segments")->narrow(0, row, 1));
      input.baseline = Baseline::Token(0);
    }
    return input;
  }

  // The model by LibTorch alone, on the input that stands for nothing.
  at::Tensor RunAlone(const at::Tensor& input) const {
    torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    at::NoGradGuard no_grad;
    torch::jit::Module module = torch::jit::load(folder() + "model.pt");
    module.eval();
    module.to(GetParam().dtype);
    return module.forward({input}).toTensor();
  }
};

TEST_P(RealModels, FaithfulHoldsBothTruthsOnHeldOutSamples) {
  const TensorFile held_out = ReadTensorFile(folder() + "heldout.safetensors");
  const TracedModel model = Load();
  for (int64_t row = 0; row < SamplesOf(GetParam().name); ++row) {
    SCOPED_TRACE(row);
    const Input input = Sample(held_out, row);
    const Decomposition result = model.Decompose({input});
    EXPECT_EQ(result.report.policy.preset, Preset::kFaithful);
    const at::Tensor& value = result.outputs[0].value;
    const Composition& parts = result.outputs[0].composition;
    EXPECT_TRUE(at::equal(value, RunAlone(input.value)));
    const at::Tensor labels = input.split.labels;
    at::Tensor nothing = input.baseline.tensor.defined() ? input.baseline.tensor.expand_as(input.value)
                                                         : at::full_like(input.value, input.baseline.number);
    if (labels.defined()) nothing = at::where(labels.lt(0), input.value, nothing);
    EXPECT_TRUE(at::equal(parts.reference(), RunAlone(nothing)));
    const double scale = value.abs().max().item<double>();
    EXPECT_LE((parts.recovery() - value).abs().max().item<double>(), tolerance() * scale);
    EXPECT_LE(parts.leftover().abs().max().item<double>(), tolerance() * scale);
    EXPECT_GT(parts.components().abs().max().item<double>(), 0.1 * scale);
    EXPECT_TRUE(result.report.failures.empty());
    EXPECT_EQ(result.report.absorbed, 0);
  }
}

TEST_P(RealModels, FastReportsWhatItLeaves) {
  const TensorFile held_out = ReadTensorFile(folder() + "heldout.safetensors");
  DecomposeOptions options;
  options.policy.preset = Preset::kFast;
  const Decomposition result = Load().Decompose({Sample(held_out, 0)}, options);
  const at::Tensor& value = result.outputs[0].value;
  const Composition& parts = result.outputs[0].composition;
  const double scale = value.abs().max().item<double>();
  EXPECT_LE((parts.recovery() - value).abs().max().item<double>(), tolerance() * scale);
  double reported = 0;
  for (const OperatorReport& entry : result.report.checks) reported = std::max(reported, entry.check.leftover);
  if (GetParam().name == "breast_cancer") {  // nothing in an MLP is frozen
    EXPECT_EQ(reported, 0);
  } else {
    EXPECT_GT(reported, 1e-3);
    EXPECT_GT(parts.leftover().abs().max().item<double>(), 0);
  }
}

// Every operator is checked, and each claim of nothing left over is far from its bound.
TEST_P(RealModels, EveryOperatorPassesItsCheck) {
  DecomposeOptions options;
  options.everything = true;
  const TensorFile held_out = ReadTensorFile(folder() + "heldout.safetensors");
  const Decomposition result = Load().Decompose({Sample(held_out, 1)}, options);
  EXPECT_GE(result.report.checks.size(), 5u);
  for (const OperatorReport& entry : result.report.checks) {
    EXPECT_TRUE(entry.check.ok()) << entry.call;
    EXPECT_GT(entry.check.tolerance, 0) << entry.call;
  }
}

TEST_P(RealModels, RunIsBitIdentical) {
  const TensorFile held_out = ReadTensorFile(folder() + "heldout.safetensors");
  const Input input = Sample(held_out, 2);
  EXPECT_TRUE(at::equal(Load().Run({input.value}).toTensor(), RunAlone(input.value)));
}

// A contribution explains a class; the difference of two classes is the difference of their contributions.
TEST_P(RealModels, TargetsAreElementsAndDifferences) {
  const TensorFile sample = ReadTensorFile(folder() + "sample.safetensors");
  const Decomposition result = Load().Decompose({Sample(sample, 0)});
  const at::Tensor& value = result.outputs[0].value;
  const Composition& parts = result.outputs[0].composition;
  const Contributions top = Contribute(value, parts, ParseTarget("top1"));
  EXPECT_EQ(top.target.index.back(), sample.Find("label")->item<int64_t>());  // the sample is classified correctly
  const Contributions zero = Contribute(value, parts, ParseTarget("0"));
  const Contributions one = Contribute(value, parts, ParseTarget("1"));
  const Contributions difference = Contribute(value, parts, ParseTarget("0-1"));
  EXPECT_NEAR(difference.value, zero.value - one.value, 1e-12);
  EXPECT_NEAR(difference.recovery, difference.value, 1e-4 * std::max(1.0, difference.mass));
  for (size_t i = 0; i < difference.contributions.size(); ++i) {
    EXPECT_NEAR(difference.contributions[i], zero.contributions[i] - one.contributions[i], 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealModels,
                         testing::Values(RealModel{"breast_cancer", at::kFloat},
                                         RealModel{"breast_cancer", at::kDouble}, RealModel{"digits", at::kFloat},
                                         RealModel{"digits", at::kDouble}, RealModel{"language", at::kFloat},
                                         RealModel{"language", at::kDouble}, RealModel{"speaker", at::kFloat},
                                         RealModel{"speaker", at::kDouble}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace addend

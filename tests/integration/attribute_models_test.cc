// One sweep back and a decomposition forward give the same numbers on whole models: the trained ones and those of the
// conformance suite.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/model/torchscript.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

struct WholeModel {
  std::string name;
  std::string model;
  std::string inputs;
  std::vector<std::string> arguments;  // by name
};

void PrintTo(const WholeModel& model, std::ostream* out) { *out << model.name; }

std::vector<WholeModel> WholeModels() {
  std::vector<WholeModel> all;
  const std::string trained = "docs/examples/models/";
  for (const char* name : {"breast_cancer", "digits", "language", "speaker"}) {
    all.push_back({name, trained + name + "/model.pt", trained + name + "/sample.safetensors", {"input"}});
  }
  const std::string suite = "tests/conformance/models/";
  const auto add = [&](const std::string& name, std::vector<std::string> arguments) {
    all.push_back({name, suite + name + ".pt", suite + name + ".safetensors", std::move(arguments)});
  };
  add("mlp", {"table"});
  add("relu_network", {"image"});
  add("cnn", {"image"});
  add("lstm", {"sequence"});
  add("gru", {"sequence"});
  add("transformer_encoder", {"tokens"});
  add("transformer_decoder", {"tokens", "memory"});
  add("unet", {"image"});
  add("mixed", {"table", "image", "tokens"});
  add("awkward", {"table"});
  add("nested", {"table"});
  return all;
}

class BothWays : public testing::TestWithParam<std::tuple<WholeModel, const char*>> {
 protected:
  static Policy PolicyUnderTest() {
    Policy policy;
    const std::string text = std::get<1>(GetParam());
    policy.preset = text.find("fast") == 0 ? Preset::kFast : Preset::kFaithful;
    if (text == "faithful_in_pieces") policy.segments = 3;
    return policy;
  }

  static std::vector<Input> Inputs() {
    const WholeModel& model = std::get<0>(GetParam());
    const TensorFile file = ReadTensorFile(model.inputs);
    std::vector<Input> inputs;
    for (const std::string& name : model.arguments) {
      Input input;
      input.value = *file.Find(name);
      if (input.value.is_floating_point()) {
        input.value = input.value.to(at::kDouble);
        std::vector<int64_t> dims;
        for (int64_t d = 1; d < input.value.dim(); ++d) dims.push_back(d);
        input.split = Split::AlongDims(dims);
        // Neither zero nor like the input: maxima, gates and norms all move.
        input.baseline = Baseline::Of(input.value.mean() * 0.5 - 0.1 * input.value.flip({0, 1}));
      } else {
        input.split = Split::AlongDims({1});
        input.baseline = Baseline::Token(0);
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }
};

TEST_P(BothWays, GiveTheSameContributions) {
  ScriptOptions script;
  script.dtype = at::kDouble;
  const TracedModel model(LoadTorchScript(std::get<0>(GetParam()).model, script));
  const std::vector<Input> inputs = Inputs();
  DecomposeOptions forward;
  forward.policy = PolicyUnderTest();
  const Decomposition whole = model.Decompose(inputs, forward);
  ASSERT_FALSE(whole.outputs.empty());
  for (const Decomposed& output : whole.outputs) {
    std::vector<int64_t> first;
    std::vector<int64_t> last;
    for (const int64_t size : output.value.sizes()) {
      first.push_back(0);
      last.push_back(size - 1);
    }
    AttributeOptions options;
    options.policy = forward.policy;
    options.at = output.name;
    options.targets.resize(3);
    for (Target& target : options.targets) target.top1 = false;
    options.targets[0].index = first;
    options.targets[1].index = last;
    options.targets[2].index = last;
    options.targets[2].subtract = first;
    const Attribution found = Attribute(model, inputs, options);
    ASSERT_EQ(found.numc, whole.numc);
    for (size_t t = 0; t < options.targets.size(); ++t) {
      const Contributions& own = found.targets[t];
      const Contributions other = Contribute(output.value, output.composition, options.targets[t]);
      const double scale = std::max(1.0, other.mass);
      EXPECT_LE(std::abs(own.leftover - other.leftover), 1e-10 * scale) << output.name;
      EXPECT_EQ(own.value, other.value);
      EXPECT_EQ(own.reference, other.reference);
      ASSERT_EQ(own.contributions.size(), other.contributions.size());
      for (size_t c = 0; c < own.contributions.size(); ++c) {
        EXPECT_LE(std::abs(own.contributions[c] - other.contributions[c]), 1e-10 * scale)
            << output.name << " component " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BothWays,
                         testing::Combine(testing::ValuesIn(WholeModels()),
                                          testing::Values("faithful", "fast", "faithful_in_pieces")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace addend

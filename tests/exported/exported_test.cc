// Exported programs of other PyTorch versions on this LibTorch: what they give, recorded, replayed, checked, explained.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/exported/exported_model.h"
#include "core/model/run_model.h"
#include "core/model/torchscript.h"
#include "core/program/program_file.h"
#include "core/program/replay.h"
#include "core/recording/check_trace.h"
#include "core/recording/learn_sizes.h"
#include "core/recording/record_program.h"
#include "core/recording/requirements.h"
#include "tests/exported/written.h"

namespace addend {
namespace {

using at::Tensor;
using c10::IValue;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kData = "tests/exported/data/";  // NOLINT

std::vector<std::string> Committed() {
  std::vector<std::string> paths;
  for (const char* version : {"2.6", "2.14"}) {
    for (std::string& path : ExportedProgramsIn(kData + version)) paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<IValue> Copies(const std::vector<IValue>& inputs) {
  std::vector<IValue> copies;
  for (const IValue& input : inputs) copies.emplace_back(input.toTensor().clone());
  return copies;
}

class Written : public testing::TestWithParam<std::string> {};

TEST_P(Written, GivesWhatItsWriterGave) {
  const WrittenResult result = RunWritten(GetParam());
  EXPECT_EQ(result.refusal, "");
  EXPECT_LT(result.difference, 1e-5);
}

TEST_P(Written, IsRecordedAndReplayed) {
  const auto model = LoadExported(GetParam());
  const WrittenCall call = WrittenCalls(GetParam())[0];
  const Recording recording = Record(*model, Copies(call.inputs));
  const auto decoded =
      std::make_shared<const RecordedProgram>(DecodeProgram(EncodeProgram(*recording.program), "the program"));
  const IValue replayed = Replay(decoded).Run(Copies(call.inputs)).output;
  EXPECT_LT(LargestDifference(call.outputs, replayed), 1e-5);
  const std::vector<Tensor> live = TensorsIn(recording.output);
  const std::vector<Tensor> again = TensorsIn(replayed);
  ASSERT_EQ(live.size(), again.size());
  for (size_t k = 0; k < live.size(); ++k) EXPECT_TRUE(at::allclose(live[k], again[k], 0, 0, /*equal_nan=*/true)) << k;
}

TEST_P(Written, PassesTheCheckOfItsRecording) {
  const auto model = LoadExported(GetParam());
  CheckOptions options;
  options.strict = false;
  options.out_of_place = true;
  const CheckReport report = CheckTrace(*model, WrittenCalls(GetParam())[0].inputs, options);
  for (const Finding& finding : report.findings) EXPECT_FALSE(finding.error) << finding.message;
}

// Every component comes back: components, leftover and reference are the value.
TEST_P(Written, IsExplained) {
  const auto model = LoadExported(GetParam());
  std::vector<Input> inputs;
  bool continuous = false;
  const WrittenCall call = WrittenCalls(GetParam())[0];
  for (const IValue& given : call.inputs) {
    Input input;
    input.value = given.toTensor().clone();
    if (input.value.is_floating_point() && input.value.dim() > 0) {
      input.split = Split::AlongDims({input.value.dim() - 1});
      continuous = true;
    } else {
      input.split = Split::Plain();
    }
    inputs.push_back(std::move(input));
  }
  if (!continuous && inputs[0].value.scalar_type() == at::kLong) {
    inputs[0].split = Split::AlongDims({inputs[0].value.dim() - 1});
    inputs[0].baseline = Baseline::Token(0);
  } else if (!continuous) {
    GTEST_SKIP() << "takes neither numbers nor tokens";
  }
  AttributeOptions options;
  options.targets[0].top1 = false;
  std::vector<Tensor> outputs = TensorsIn(RunModel(*model, Copies(call.inputs), "it"));
  ASSERT_FALSE(outputs.empty());
  if (!outputs[0].is_floating_point()) GTEST_SKIP() << "gives no floating-point numbers first";
  options.targets[0].index = std::vector<int64_t>(static_cast<size_t>(outputs[0].dim()), 0);
  const Attribution found = Attribute(TracedModel(model), inputs, options);
  const Contributions& target = found.targets[0];
  double sum = target.reference + target.leftover;
  for (const double contribution : target.contributions) sum += contribution;
  EXPECT_NEAR(sum, target.value, 1e-4 * std::max(1.0, target.mass));
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path = info.param;
  std::string name = path.stem().string() + "_" + path.parent_path().filename().string();
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Committed, Written, testing::ValuesIn(Committed()), TestName);

std::string Committed(const std::string& name) { return kData + "2.14/" + name; }

// The model whose exported form is mlp.pt2, as TorchScript.
std::shared_ptr<Model> ScriptedMlp(const Model& exported) {
  torch::jit::Module module("mlp");
  for (const auto& [name, tensor] : exported.NamedTensors()) {
    std::string attribute = name;
    std::replace(attribute.begin(), attribute.end(), '.', '_');
    module.register_parameter(attribute, tensor, /*is_buffer=*/false);
  }
  module.define(R"(
def forward(self, x: Tensor) -> Tensor:
  h = torch.relu(torch.linear(x, self.layers_0_weight, self.layers_0_bias))
  return torch.linear(h, self.layers_2_weight, self.layers_2_bias)
)");
  const std::string path = testing::TempDir() + "mlp.pt";
  module.save(path);
  return LoadTorchScript(path);
}

TEST(Exported, IsExplainedLikeTheSameTorchScriptModel) {
  const auto exported = LoadExported(Committed("mlp.pt2"));
  const auto core = LoadExported(Committed("mlp-core.pt2"));
  const auto scripted = ScriptedMlp(*exported);
  Input input;
  input.value = WrittenCalls(Committed("mlp.pt2"))[0].inputs[0].toTensor();
  input.split = Split::AlongDims({0, 1});
  AttributeOptions options;
  options.targets[0].top1 = false;
  options.targets[0].index = {1, 2};
  const auto contributions = [&](const std::shared_ptr<Model>& model) {
    return Attribute(TracedModel(model), {input}, options).targets[0].contributions;
  };
  EXPECT_EQ(contributions(exported), contributions(scripted));
  // addmm and linear round apart.
  const auto decomposed = contributions(core);
  const auto expected = contributions(scripted);
  ASSERT_EQ(decomposed.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(decomposed[k], expected[k], 1e-5);
}

TEST(Exported, TellsTheAuthorsLines) {
  const auto model = LoadExported(Committed("mlp.pt2"));
  EXPECT_THAT(model->ModulePaths(), ElementsAre("layers", "layers.0", "layers.2", "layers.1"));
  const Recording recording = Record(*model, WrittenCalls(Committed("mlp.pt2"))[0].inputs);
  const Position position = PositionOf(*recording.program, 0);
  EXPECT_EQ(position.module_path, "layers.0");
  EXPECT_THAT(position.file, HasSubstr("write.py"));
  EXPECT_GT(position.line, 0);
  EXPECT_EQ(recording.program->inputs[0].name, "x");
  EXPECT_EQ(recording.program->values[FindValue(*recording.program, "layers.0.weight")].kind, ValueKind::kParameter);
}

TEST(Exported, ListsWhatARunLacks) {
  const auto model = LoadExported(Committed("training.pt2"));
  EXPECT_THAT(model->Notes(), ElementsAre(HasSubstr("batch_norm(training=True), dropout(train=True)")));
  const auto unmet = UnmetRequirements(*model, {at::ones({3, 5})});
  ASSERT_EQ(unmet.size(), 3);
  EXPECT_THAT(unmet[0].message, HasSubstr("dimension 1: 5, the model was exported for 4 only"));
  EXPECT_TRUE(unmet[0].error);
  EXPECT_EQ(unmet[1].kind, RequirementKind::kMode);
  EXPECT_EQ(unmet[1].position.module_path, "norm");
  EXPECT_EQ(unmet[2].kind, RequirementKind::kMode);
}

TEST(Exported, LearnsSizes) {
  const auto model = LoadExported(Committed("language.pt2"));
  const auto tokens = [](int64_t batch, int64_t length) {
    return std::vector<IValue>{at::arange(batch * length).remainder(11).view({batch, length})};
  };
  const Recording recording = RecordSizes(*model, {tokens(2, 5), tokens(3, 7), tokens(5, 4)});
  const Replay replay(recording.program);
  for (const auto& inputs : {tokens(4, 9), tokens(7, 3)}) {
    const Tensor expected = TensorsIn(model->Run(inputs))[0];
    EXPECT_TRUE(at::equal(TensorsIn(replay.Run(inputs).output)[0], expected));
  }
  EXPECT_THAT(MessageOf([&] { model->Run(tokens(70, 5)); }),
              HasSubstr("input tokens, dimension 0: 70, the model was exported for 2 to 64"));
}

TEST(Exported, GuardsABranchTakenOnData) {
  const auto model = LoadExported(Committed("cond.pt2"));
  const Tensor x = at::ones({3, 4});
  const Recording recording = Record(*model, {x});
  ASSERT_EQ(recording.program->guards.size(), 1);
  EXPECT_EQ(recording.program->guards[0].kind, GuardKind::kNumber);
  const Replay replay(recording.program);
  EXPECT_TRUE(at::equal(replay.Run({x * 2}).output.toTensor(), model->Run({x * 2}).toTensor()));
  EXPECT_THAT(MessageOf([&] { replay.Run({-x}); }), HasSubstr("a guard does not hold"));
}

// Each run begins with what the file holds, on whatever thread: no run sees what another one writes.
TEST(Exported, BuffersAreNoMatterOfOtherThreads) {
  const auto model = LoadExported(Committed("counter.pt2"));
  const TracedModel traced(model);
  std::atomic<int> wrong = 0;
  const auto work = [&](int thread) {
    const c10::AutoGradMode no_grad(false);
    const Tensor x = at::full({3, 4}, thread + 1.0);
    const Tensor expected = x + x.sum(0);
    Input input;
    input.value = x;
    input.split = Split::AlongDims({1});
    for (int k = 0; k < 100; ++k) {
      if (!at::equal(TensorsIn(traced.Run({x}))[0], expected)) ++wrong;
      const Decomposition found = traced.Decompose({input});
      if (!at::equal(found.outputs[0].value, expected)) ++wrong;
      if (!at::allclose(found.outputs[0].composition.components().sum(0), expected)) ++wrong;
      const Recording recording = Record(*model, {x});
      if (!at::equal(Replay(recording.program).Run({x}).output.toTensor(), expected)) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& [name, tensor] : model->NamedTensors()) EXPECT_EQ(tensor.abs().sum().item<double>(), 0) << name;
}

TEST(Exported, ComputesInFloat64) {
  ScriptOptions options;
  options.dtype = at::kDouble;
  for (const char* name : {"mlp.pt2", "batch-core.pt2"}) {
    const auto wide = LoadExported(Committed(name), options);
    std::vector<IValue> inputs;
    const WrittenCall call = WrittenCalls(Committed(name))[0];
    for (const IValue& input : call.inputs) {
      const Tensor& tensor = input.toTensor();
      inputs.emplace_back(tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor);
    }
    const Tensor result = TensorsIn(wide->Run(inputs))[0];
    EXPECT_EQ(result.scalar_type(), at::kDouble);
    EXPECT_TRUE(at::allclose(result.to(at::kFloat), call.outputs[0], 1e-4, 1e-5));
  }
}

}  // namespace
}  // namespace addend

// TorchScript files and recorded programs are decomposed alike: the same numbers, the same positions.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/model/program_model.h"
#include "core/model/script_testing.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using at::Tensor;

using DecomposedScripts = ScriptTest;

TEST_P(DecomposedScripts, DecomposeAsTheModelsDo) {
  const Recording recording = Record(*model_, Inputs());
  std::vector<Input> inputs;
  for (const Tensor& tensor : inputs_) {
    Input input;
    input.value = tensor;
    input.split = Split::AlongDims({1});
    inputs.push_back(input);
  }
  const Decomposition expected = TracedModel(model_).Decompose(inputs);
  const Decomposition found = TracedModel(FromProgram(recording.program)).Decompose(inputs);
  ASSERT_EQ(found.outputs.size(), expected.outputs.size());
  for (size_t k = 0; k < expected.outputs.size(); ++k) {
    const Composition& a = expected.outputs[k].composition;
    const Composition& b = found.outputs[k].composition;
    EXPECT_TRUE(Same(found.outputs[k].value, expected.outputs[k].value));
    EXPECT_TRUE(Same(b.components(), a.components()));
    EXPECT_TRUE(Same(b.reference(), a.reference()));
    EXPECT_TRUE(Same(b.leftover(), a.leftover()));
  }
  ASSERT_EQ(found.report.checks.size(), expected.report.checks.size());
  for (size_t k = 0; k < expected.report.checks.size(); ++k) {
    EXPECT_EQ(found.report.checks[k].position.Describe(), expected.report.checks[k].position.Describe());
    EXPECT_EQ(found.report.checks[k].position.parameters, expected.report.checks[k].position.parameters);
    EXPECT_EQ(found.report.checks[k].call, expected.report.checks[k].call);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, DecomposedScripts, testing::ValuesIn(ScriptCases()),
                         [](const auto& info) { return info.param.model; });

TEST(DecomposedScript, GivesTheSourceLineOfAnOperator) {
  torch::jit::Module module("model");
  module.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "  y = x * x\n"
      "  return torch.special_airy_ai(y)\n");
  const std::string path = testing::TempDir() + "line.pt";
  module.save(path);
  Input input;
  input.value = at::tensor({1.0, 2.0, 3.0}, at::kFloat);
  input.split = Split::AlongDims({0});
  try {
    TracedModel(LoadTorchScript(path)).Decompose({input});
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.position().op, "aten::special_airy_ai");
    EXPECT_EQ(e.position().op_index, 1);
    EXPECT_EQ(e.position().line, 3);
    EXPECT_THAT(e.what(), testing::HasSubstr("no composition rule for aten::special_airy_ai (op #1, "));
    EXPECT_THAT(e.what(), testing::HasSubstr(":3); see docs/extending.md"));
  }
}

}  // namespace
}  // namespace addend

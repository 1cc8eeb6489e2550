// A recorded program is decomposed as the model it was recorded from: the same numbers, the same positions.
#include "core/model/program_model.h"

#include <gtest/gtest.h>

#include "core/explain/decompose.h"
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
  const Decomposition expected = Trace(model_).Decompose(inputs);
  const Decomposition found = Trace(FromProgram(recording.program)).Decompose(inputs);
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

}  // namespace
}  // namespace addend

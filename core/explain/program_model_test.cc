// A recorded program is decomposed as the model it was recorded from: the same numbers, the same positions.
#include "core/explain/program_model.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/explain/decompose.h"
#include "core/explain/record_program.h"
#include "core/explain/small_models.h"
#include "core/explain/tensor_io.h"
#include "core/explain/torchscript.h"

namespace addend {
namespace {

using at::Tensor;

// Bit for bit: dtype, sizes, strides, and every element, NaN included.
testing::AssertionResult Same(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.strides() != b.strides()) {
    return testing::AssertionFailure() << a.toString() << a.sizes() << " and " << b.toString() << b.sizes();
  }
  const Tensor x = a.detach().resolve_conj().resolve_neg().contiguous();
  const Tensor y = b.detach().resolve_conj().resolve_neg().contiguous();
  if (x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "elements differ";
}

struct ScriptCase {
  std::string model;
  std::vector<std::string> inputs;
};
void PrintTo(const ScriptCase& script, std::ostream* out) { *out << script.model; }

class DecomposedScripts : public testing::TestWithParam<ScriptCase> {
 protected:
  DecomposedScripts() : model_(LoadTorchScript(Folder() + GetParam().model + ".pt")) {
    const TensorFile file = ReadTensorFile(Folder() + GetParam().model + ".safetensors");
    for (const std::string& name : GetParam().inputs) inputs_.push_back(file.Find(name)->clone());
  }
  static std::string Folder() { return "tests/conformance/models/"; }
  std::vector<c10::IValue> Inputs() const {
    std::vector<c10::IValue> copies;
    for (const Tensor& input : inputs_) copies.emplace_back(input.clone());
    return copies;
  }

  std::shared_ptr<Model> model_;
  std::vector<Tensor> inputs_;
};

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

INSTANTIATE_TEST_SUITE_P(Conformance, DecomposedScripts,
                         testing::Values(ScriptCase{"awkward", {"same_branch"}}, ScriptCase{"cnn", {"image"}},
                                         ScriptCase{"gru", {"sequence"}}, ScriptCase{"lstm", {"sequence"}},
                                         ScriptCase{"mixed", {"table", "image", "tokens"}},
                                         ScriptCase{"mlp", {"table"}}, ScriptCase{"nested", {"table"}},
                                         ScriptCase{"relu_network", {"image"}},
                                         ScriptCase{"transformer_decoder", {"tokens", "memory"}},
                                         ScriptCase{"transformer_encoder", {"tokens"}}, ScriptCase{"unet", {"image"}}),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace addend

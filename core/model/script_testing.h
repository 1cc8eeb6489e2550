// The models of the conformance suite as test parameters, and tensors compared bit for bit.
#ifndef ADDEND_CORE_MODEL_SCRIPT_TESTING_H_
#define ADDEND_CORE_MODEL_SCRIPT_TESTING_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/program/recorder.h"
#include "core/program/tensor_io.h"

namespace addend {

// Bit for bit: dtype, sizes, strides, and every element, NaN included.
inline testing::AssertionResult Same(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.strides() != b.strides()) {
    return testing::AssertionFailure() << a.toString() << a.sizes() << " and " << b.toString() << b.sizes();
  }
  const at::Tensor x = a.detach().resolve_conj().resolve_neg().contiguous();
  const at::Tensor y = b.detach().resolve_conj().resolve_neg().contiguous();
  if (x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "elements differ";
}

// Tensors, of which there have to be some, bit for bit.
inline void ExpectSame(const c10::IValue& a, const c10::IValue& b) {
  const std::vector<at::Tensor> x = TensorsIn({a});
  const std::vector<at::Tensor> y = TensorsIn({b});
  ASSERT_EQ(x.size(), y.size());
  ASSERT_FALSE(x.empty());
  for (size_t k = 0; k < x.size(); ++k) EXPECT_TRUE(Same(x[k], y[k])) << "tensor " << k;
}

struct ScriptCase {
  std::string model;
  std::vector<std::string> inputs;
};
inline void PrintTo(const ScriptCase& script, std::ostream* out) { *out << script.model; }

// Every model, with the names of the inputs in the file beside it.
inline std::vector<ScriptCase> ScriptCases() {
  return {{"awkward", {"same_branch"}},
          {"cnn", {"image"}},
          {"gru", {"sequence"}},
          {"lstm", {"sequence"}},
          {"mixed", {"table", "image", "tokens"}},
          {"mlp", {"table"}},
          {"nested", {"table"}},
          {"relu_network", {"image"}},
          {"transformer_decoder", {"tokens", "memory"}},
          {"transformer_encoder", {"tokens"}},
          {"unet", {"image"}}};
}

// The parameter's model and copies of its inputs. Parameters require no gradients: some releases of LibTorch compute
// in another order where they do (2.6, GRU), even with gradients turned off, which changes the last bits.
class ScriptTest : public testing::TestWithParam<ScriptCase> {
 protected:
  ScriptTest() : model_(LoadTorchScript(Folder() + GetParam().model + ".pt")) {
    const TensorFile file = ReadTensorFile(Folder() + GetParam().model + ".safetensors");
    for (const std::string& name : GetParam().inputs) inputs_.push_back(file.Find(name)->clone());
    for (const auto& [name, tensor] : model_->NamedTensors()) at::Tensor(tensor).set_requires_grad(false);
  }
  static std::string Folder() { return "tests/conformance/models/"; }
  std::vector<c10::IValue> Inputs() const {
    std::vector<c10::IValue> copies;
    for (const at::Tensor& input : inputs_) copies.emplace_back(input.clone());
    return copies;
  }

  std::shared_ptr<Model> model_;
  std::vector<at::Tensor> inputs_;
};

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_SCRIPT_TESTING_H_

// Activations, held to their formulas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

TEST(Activations, SwiGluWeighsItsSecondInput) {
  const Tensor gate = at::randn({3, 4}), value = at::randn({3, 4});
  for (const float alpha : {1.0F, 1.5F}) {
    const auto y =
        NodeModel("SwiGLU", "", 28).Input(gate).Input(value).Attribute(FloatAttribute("alpha", alpha)).Run(1);
    EXPECT_TRUE(at::allclose(y[0], gate * (gate * alpha).sigmoid() * value, 1e-5, 1e-6));
  }
  ExpectError(absl::StatusCode::kInvalidArgument, {"the inputs are not of one size"},
              [&] { NodeModel("SwiGLU", "", 28).Input(gate).Input(value[0]).Run(1); });
}

}  // namespace
}  // namespace addend::onnx

// Quantization: constants are computed, numbers that descend from an input are refused.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

TEST(Quantized, ConstantsAreDequantizedByAxis) {
  const Tensor q = at::randint(-128, 128, {4, 6}, at::kChar);
  const Tensor scale = at::rand({6}) + 0.1, zero = at::randint(-9, 9, {6}, at::kChar);
  const Tensor y = NodeModel("DequantizeLinear").Constant(q).Constant(scale).Constant(zero).Run()[0];
  EXPECT_TRUE(at::allclose(y, (q.to(at::kFloat) - zero) * scale));
  const Tensor rows = at::rand({4}) + 0.1;
  const Tensor by_row =
      NodeModel("DequantizeLinear").Constant(q).Constant(rows).Attribute(IntAttribute("axis", 0)).Run()[0];
  EXPECT_TRUE(at::allclose(by_row, q.to(at::kFloat) * rows.unsqueeze(1)));
}

// Half to even, then the zero point, then saturation.
TEST(Quantized, ConstantsAreRoundedHalfToEven) {
  const Tensor x = at::tensor({0.5F, 1.5F, 2.5F, -0.5F, 300.0F, -300.0F});
  const Tensor y =
      NodeModel("QuantizeLinear").Constant(x).Constant(at::tensor(1.0F)).Constant(at::tensor(3, at::kByte)).Run()[0];
  EXPECT_TRUE(at::equal(y, at::tensor({3, 5, 5, 3, 255, 0}, at::kByte)));
}

TEST(Quantized, NumbersOfAnInputAreRefused) {
  const Tensor x = at::randn({2, 3}), one = at::tensor(1.0F);
  ExpectError(absl::StatusCode::kUnimplemented, {"node (QuantizeLinear)", "conditions"},
              [&] { NodeModel("QuantizeLinear").Input(x).Constant(one).Run(); });
  ExpectError(absl::StatusCode::kUnimplemented, {"node (DynamicQuantizeLinear)", "conditions"},
              [&] { NodeModel("DynamicQuantizeLinear").Input(x).Run(3); });
}

// Products of integers that an input holds have no components to lose, and are exact.
TEST(Quantized, IntegersOfAnInputAreMultiplied) {
  const Tensor a = at::randint(0, 256, {3, 5}, at::kByte), b = at::randint(0, 256, {5, 4}, at::kByte);
  const Tensor rows = at::randint(0, 256, {3}, at::kByte), columns = at::randint(0, 256, {4}, at::kByte);
  const Tensor y = NodeModel("MatMulInteger").Input(a).Constant(b).Constant(rows).Constant(columns).Run()[0];
  const Tensor expected = (a.to(at::kLong) - rows.to(at::kLong).unsqueeze(1)).mm(b.to(at::kLong) - columns);
  EXPECT_TRUE(at::equal(y, expected.to(at::kInt)));
}

}  // namespace
}  // namespace addend::onnx

// Traps of convolutions that the suite of ONNX leaves out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// Whether the elements of the result are these, whatever its sizes.
testing::AssertionResult Holds(const Tensor& result, const std::vector<double>& elements) {
  const Tensor flat = at::flatten(result).to(at::kDouble);
  const Tensor expected = at::tensor(elements, at::kDouble);
  if (flat.sizes() == expected.sizes() && at::allclose(flat, expected, 1e-4, 1e-6)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << flat << " instead of " << expected;
}

Tensor Transposed(std::vector<int64_t> output_shape, const std::string& auto_pad) {
  return NodeModel("ConvTranspose")
      .Input(at::tensor({1.0F, 2.0F}).reshape({1, 1, 2}))
      .Constant(at::tensor({1.0F, 10.0F, 100.0F}).reshape({1, 1, 3}))
      .Constant(at::tensor({0.5F}))
      .Attribute(IntsAttribute("strides", {2}))
      .Attribute(IntsAttribute("output_shape", std::move(output_shape)))
      .Attribute(TextAttribute("auto_pad", auto_pad))
      .Run()[0];
}

// The result without padding is 1, 10, 102, 20, 200.
TEST(Convolutions, OutputShapeDividesThePadding) {
  EXPECT_TRUE(Holds(Transposed({4}, "NOTSET"), {10.5, 102.5, 20.5, 200.5}));
  EXPECT_TRUE(Holds(Transposed({4}, "SAME_LOWER"), {10.5, 102.5, 20.5, 200.5}));
  EXPECT_TRUE(Holds(Transposed({4}, "SAME_UPPER"), {1.5, 10.5, 102.5, 20.5}));
  EXPECT_TRUE(Holds(Transposed({1, 1, 6}, "NOTSET"), {1.5, 10.5, 102.5, 20.5, 200.5, 0.5}));
}

TEST(Convolutions, DeformedWindowsWithoutMovesAreWindows) {
  const Tensor x = at::arange(40, at::kFloat).reshape({1, 2, 4, 5});
  const Tensor weight = at::arange(24, at::kFloat).reshape({2, 2, 2, 3});
  const Tensor result = NodeModel("DeformConv", "", 19)
                            .Input(x)
                            .Constant(weight)
                            .Input(at::zeros({1, 12, 4, 3}))
                            .Attribute(IntsAttribute("pads", {1, 0, 0, 0}))
                            .Run()[0];
  EXPECT_TRUE(at::allclose(result, at::conv2d(at::constant_pad_nd(x, {0, 0, 1, 0}), weight), 1e-4));
}

TEST(Convolutions, RefusesWindowsThatDoNotFit) {
  ExpectError(absl::StatusCode::kInvalidArgument, {"node (Conv)", "does not fit into 2"}, [] {
    NodeModel("Conv").Input(at::ones({1, 1, 2})).Constant(at::ones({1, 1, 3})).Run();
  });
}

}  // namespace
}  // namespace addend::onnx

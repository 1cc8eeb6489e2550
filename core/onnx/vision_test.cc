// Traps of regions that the suite of ONNX leaves out.
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

Tensor Image() { return at::arange(16, at::kFloat).reshape({1, 1, 4, 4}); }

TEST(Vision, MaximaOfRegions) {
  NodeModel model("MaxRoiPool");
  model.Input(Image()).Input(at::tensor({0.0F, 0.0F, 0.0F, 3.0F, 3.0F, 0.0F, 2.0F, 3.0F, 6.0F, 6.0F}).reshape({2, 5}));
  // The second region reaches beyond the image: what lies there is zero.
  EXPECT_TRUE(Holds(model.Attribute(IntsAttribute("pooled_shape", {2, 2})).Run()[0], {5, 7, 13, 15, 15, 0, 0, 0}));
}

// Half an element lies between the versions.
TEST(Vision, OldRegionsAreNotMoved) {
  const auto run = [](int64_t version) {
    return NodeModel("RoiAlign", "", version)
        .Input(Image())
        .Input(at::tensor({1.0F, 1.0F, 2.0F, 2.0F}).reshape({1, 4}))
        .Constant(at::tensor({0}, at::kLong))
        .Run()[0];
  };
  EXPECT_TRUE(Holds(run(10), {7.5}));
  EXPECT_TRUE(Holds(run(16), {5}));
}

TEST(Vision, RefusesRegionsOfNoImage) {
  ExpectError(absl::StatusCode::kInvalidArgument, {"node (RoiAlign)", "lies in image 1 of 1"}, [] {
    NodeModel("RoiAlign", "", 16).Input(Image()).Input(at::zeros({1, 4})).Constant(at::tensor({1}, at::kLong)).Run();
  });
}

Tensor Suppressed(const std::vector<int64_t>& most) {
  NodeModel model("NonMaxSuppression", "", 11);
  const Tensor boxes = at::tensor({0.0F, 0.0F, 1.0F, 1.0F, 0.0F, 0.0F, 1.0F, 1.0F, 2.0F, 2.0F, 3.0F, 3.0F});
  model.Input(boxes.reshape({1, 3, 4})).Input(at::tensor({0.5F, 0.5F, 0.9F}).reshape({1, 1, 3}));
  if (!most.empty()) model.Constant(at::tensor(most, at::kLong));
  return model.Run()[0];
}

// The first of boxes with equal scores stays.
TEST(Vision, BoxesThatOverlap) {
  EXPECT_TRUE(Holds(Suppressed({5}), {0, 0, 2, 0, 0, 0}));
  EXPECT_TRUE(Holds(Suppressed({1}), {0, 0, 2}));
  EXPECT_EQ(Suppressed({}).sizes(), (at::IntArrayRef{0, 3}));
}

}  // namespace
}  // namespace addend::onnx

// Traps of resizing that the suite of ONNX leaves out: models before version 11, and what ONNX Runtime does.
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

Tensor Row() { return at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).reshape({1, 1, 4}); }

Tensor Old(const std::string& op, int64_t version, const std::string& mode, float scale) {
  NodeModel model(op, "", version);
  model.Input(Row()).Attribute(TextAttribute("mode", mode));
  if (version < 9) return model.Attribute(FloatsAttribute("scales", {1, 1, scale})).Run()[0];
  return model.Constant(at::tensor({1.0F, 1.0F, scale})).Run()[0];
}

TEST(Resampling, OldModelsReadAtTheLowerEdge) {
  EXPECT_TRUE(Holds(Old("Upsample", 7, "nearest", 2), {1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_TRUE(Holds(Old("Upsample", 9, "linear", 2), {1, 1.5, 2, 2.5, 3, 3.5, 4, 4}));
  EXPECT_TRUE(Holds(Old("Resize", 10, "nearest", 1.5F), {1, 1, 2, 3, 3, 4}));
  EXPECT_TRUE(Holds(Old("Resize", 10, "nearest", 0.6F), {1, 3}));
}

TEST(Resampling, TheFirstUpsample) {
  EXPECT_TRUE(Holds(NodeModel("Upsample", "", 6)
                        .Input(at::tensor({1.0F, 2.0F}).reshape({1, 1, 1, 2}))
                        .Attribute(FloatAttribute("height_scale", 2))
                        .Attribute(FloatAttribute("width_scale", 2))
                        .Attribute(TextAttribute("mode", "nearest"))
                        .Run()[0],
                    {1, 1, 2, 2, 1, 1, 2, 2}));
}

// The last element stands at the last, although the scale says 2.4 elements.
TEST(Resampling, AlignedCornersAreThoseOfTheResult) {
  NodeModel model("Resize", "", 13);
  model.Input(Row()).None().Constant(at::tensor({1.0F, 1.0F, 0.6F}));
  model.Attribute(TextAttribute("mode", "linear"));
  model.Attribute(TextAttribute("coordinate_transformation_mode", "align_corners"));
  EXPECT_TRUE(Holds(model.Run()[0], {1, 4}));
}

TEST(Resampling, SizesAfterScalesWithoutElements) {
  NodeModel model("Resize", "", 11);
  model.Input(Row()).Constant(at::zeros({0})).Constant(at::zeros({0})).Constant(at::tensor({1, 1, 2}, at::kLong));
  model.Attribute(TextAttribute("coordinate_transformation_mode", "tf_half_pixel_for_nn"));
  model.Attribute(TextAttribute("nearest_mode", "floor"));
  EXPECT_TRUE(Holds(model.Run()[0], {2, 4}));
}

// One scale for both dimensions, of 3: the wider one would be 4.5 times as large.
TEST(Resampling, TheRatioIsKeptByTheScale) {
  NodeModel model("Resize", "", 18);
  model.Input(at::tensor({0.0F, 6.0F, 0.0F, 6.0F}).reshape({1, 1, 2, 2})).None().None();
  model.Constant(at::tensor({3, 9}, at::kLong)).Attribute(IntsAttribute("axes", {2, 3}));
  model.Attribute(TextAttribute("mode", "linear"));
  model.Attribute(TextAttribute("keep_aspect_ratio_policy", "not_larger"));
  EXPECT_TRUE(Holds(model.Run()[0], {0, 3, 6, 0, 3, 6, 0, 3, 6}));
}

TEST(Resampling, RefusesToInterpolateIntegers) {
  ExpectError(absl::StatusCode::kUnimplemented, {"node (Resize)", "integers are interpolated"}, [] {
    NodeModel("Resize", "", 13)
        .Input(at::ones({1, 1, 4}, at::kByte))
        .None()
        .Constant(at::tensor({1.0F, 1.0F, 2.0F}))
        .Attribute(TextAttribute("mode", "linear"))
        .Run();
  });
}

}  // namespace
}  // namespace addend::onnx

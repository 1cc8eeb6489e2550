// Traps of shapes that the suite of ONNX does not have.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::ElementsAre;

Tensor Numbers(int64_t count) { return at::arange(static_cast<double>(count), at::kFloat); }

Tensor Sliced(int64_t start, int64_t end, int64_t step) {
  const auto model = ModelOfNodes({NodeMessage("Slice", {"x0", "start", "end", "axis", "step"}, {"y"})}, 1,
                                  {IntegerTensor("start", {1}, {start}), IntegerTensor("end", {1}, {end}),
                                   IntegerTensor("axis", {1}, {-1}), IntegerTensor("step", {1}, {step})});
  return ResultOf(*model, {Numbers(5)});
}

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

// PyTorch's exporter writes the least integer for a start that is not given.
TEST(OnnxShapes, SlicesFromTheLeastInteger) {
  EXPECT_TRUE(at::equal(Sliced(kLeast, -2, 1), at::tensor({0.0F, 1.0F, 2.0F})));
  EXPECT_TRUE(at::equal(Sliced(kLeast, kMost, 2), at::tensor({0.0F, 2.0F, 4.0F})));
  EXPECT_TRUE(at::equal(Sliced(1, kMost, kMost), at::tensor({1.0F})));
  EXPECT_EQ(Sliced(kLeast, kLeast, 1).numel(), 0);
  EXPECT_EQ(Sliced(kMost, kMost, 1).numel(), 0);
}

TEST(OnnxShapes, SlicesBackward) {
  EXPECT_TRUE(at::equal(Sliced(kMost, kLeast, -2), at::tensor({4.0F, 2.0F, 0.0F})));
  EXPECT_TRUE(at::equal(Sliced(3, 0, -2), at::tensor({3.0F, 1.0F})));
  EXPECT_TRUE(at::equal(Sliced(4, -100, kLeast), at::tensor({4.0F})));
  // A start before the first element is the first.
  EXPECT_TRUE(at::equal(Sliced(-9, kLeast, -1), at::tensor({0.0F})));
  EXPECT_EQ(Sliced(1, 3, -1).numel(), 0);
  EXPECT_EQ(Sliced(3, 1, 1).numel(), 0);
}

// Elements that are cut off are not what the margin is made of.
TEST(OnnxShapes, PadsWhatIsLeftAfterCutting) {
  const auto padded = [](const std::string& mode, const std::vector<int64_t>& pads) {
    const auto model = ModelOfNodes({With(NodeMessage("Pad", {"x0", "pads"}, {"y"}), {TextAttribute("mode", mode)})}, 1,
                                    {IntegerTensor("pads", {2}, pads)}, 19);
    return ResultOf(*model, {Numbers(4)});
  };
  EXPECT_TRUE(at::equal(padded("edge", {-1, 2}), at::tensor({1.0F, 2.0F, 3.0F, 3.0F, 3.0F})));
  EXPECT_TRUE(at::equal(padded("wrap", {2, -1}), at::tensor({1.0F, 2.0F, 0.0F, 1.0F, 2.0F})));
  EXPECT_TRUE(at::equal(padded("constant", {-3, -1}), at::zeros({0})));
  EXPECT_TRUE(at::equal(padded("reflect", {0, 5}), at::tensor({0.0F, 1.0F, 2.0F, 3.0F, 2.0F, 1.0F, 0.0F, 1.0F, 2.0F})));
  ExpectError(absl::StatusCode::kInvalidArgument, {"Pad", "cut off"}, [&] { padded("edge", {-3, -2}); });
  ExpectError(absl::StatusCode::kInvalidArgument, {"Pad", "mode"}, [&] { padded("mirror", {1, 1}); });
}

TEST(OnnxShapes, ReadsAxesOfOldVersions) {
  const Tensor x = at::zeros({1, 3, 1, 2});
  const auto squeeze =
      ModelOfNodes({With(NodeMessage("Squeeze", {"x0"}, {"y"}), {IntsAttribute("axes", {2, 0})})}, 1, {}, 9);
  EXPECT_THAT(ResultOf(*squeeze, {x}).sizes().vec(), ElementsAre(3, 2));
  ExpectError(absl::StatusCode::kInvalidArgument, {"Squeeze", "size 3"}, [&] {
    ResultOf(*squeeze, {at::zeros({3, 2, 1})});
  });
  const auto unsqueeze =
      ModelOfNodes({With(NodeMessage("Unsqueeze", {"x0"}, {"y"}), {IntsAttribute("axes", {-1, 0})})}, 1, {}, 11);
  EXPECT_THAT(ResultOf(*unsqueeze, {at::zeros({3})}).sizes().vec(), ElementsAre(1, 3, 1));
}

TEST(OnnxShapes, FlattensEmptyTensors) {
  const auto model = ModelOfNodes({With(NodeMessage("Flatten", {"x0"}, {"y"}), {IntAttribute("axis", 3)})}, 1);
  EXPECT_THAT(ResultOf(*model, {at::zeros({3, 0, 2})}).sizes().vec(), ElementsAre(0, 1));
}

// LibTorch would leave out an empty vector.
TEST(OnnxShapes, RefusesToJoinWhatDoesNotFit) {
  const auto concat = ModelOfNodes({With(NodeMessage("Concat", {"x0", "x1"}, {"y"}), {IntAttribute("axis", 0)})}, 2);
  ExpectError(absl::StatusCode::kInvalidArgument, {"Concat", "numbers of dimensions"}, [&] {
    ResultOf(*concat, {at::zeros({0}), at::zeros({2, 3})});
  });
  const auto split = ModelOfNodes({NodeMessage("Split", {"x0"}, {"y", "z"})}, 1);
  ExpectError(absl::StatusCode::kInvalidArgument, {"Split", "length of 5"}, [&] { ResultOf(*split, {Numbers(5)}); });
}

}  // namespace
}  // namespace addend::onnx

// Traps of pools that the suite of ONNX leaves out.
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

NodeModel Pool(const std::string& op, const Tensor& x, int64_t kernel, const std::vector<int64_t>& pads) {
  NodeModel model(op);
  model.Input(x.reshape({1, -1, 4})).Attribute(IntsAttribute("kernel_shape", {kernel}));
  model.Attribute(IntsAttribute("pads", pads));
  return model;
}

// Zeros of padding would be the largest.
TEST(Pools, MaximaOfUnevenPadding) {
  const Tensor x = at::tensor({-3.0F, -1.0F, -2.0F, -5.0F, -4.0F, -3.0F, -2.0F, -1.0F});
  const std::vector<Tensor> results = Pool("MaxPool", x, 2, {1, 0}).Run(2);
  EXPECT_TRUE(Holds(results[0], {-3, -1, -1, -2, -4, -3, -2, -1}));
  EXPECT_TRUE(Holds(results[1], {0, 1, 1, 2, 4, 5, 6, 7}));
}

TEST(Pools, MaximaOfDilatedWindowsWithUnevenPadding) {
  const Tensor x = at::tensor({-3.0F, -1.0F, -2.0F, -5.0F});
  const std::vector<Tensor> results = Pool("MaxPool", x, 2, {0, 2}).Attribute(IntsAttribute("dilations", {2})).Run(2);
  EXPECT_TRUE(Holds(results[0], {-2, -1, -2, -5}));
  EXPECT_TRUE(Holds(results[1], {2, 1, 2, 3}));
}

TEST(Pools, RefusesMaximaOfPaddingAlone) {
  ExpectError(absl::StatusCode::kUnimplemented, {"node (MaxPool)", "in the padding alone"}, [] {
    Pool("MaxPool", at::ones({4}), 2, {2, 0}).Run();
  });
}

TEST(Pools, AveragesOfMorePaddingThanHalfOfTheKernel) {
  const Tensor x = at::tensor({3.0F, 6.0F, 9.0F, 12.0F});
  EXPECT_TRUE(Holds(Pool("AveragePool", x, 3, {2, 0}).Run()[0], {3, 4.5, 6, 9}));
  EXPECT_TRUE(
      Holds(Pool("AveragePool", x, 3, {2, 0}).Attribute(IntAttribute("count_include_pad", 1)).Run()[0], {1, 3, 6, 9}));
}

// Elements behind the padding do not count, even where padding does.
TEST(Pools, WindowsThatReachBeyondThePadding) {
  const Tensor x = at::tensor({3.0F, 6.0F, 9.0F, 12.0F});
  const auto run = [&](int64_t counts) {
    return Pool("AveragePool", x, 3, {0, 1})
        .Attribute(IntsAttribute("strides", {3}))
        .Attribute(IntAttribute("ceil_mode", 1))
        .Attribute(IntAttribute("count_include_pad", counts))
        .Run()[0];
  };
  EXPECT_TRUE(Holds(run(0), {6, 12}));
  EXPECT_TRUE(Holds(run(1), {6, 6}));
}

TEST(Pools, NormsOfAllOfAChannel) {
  EXPECT_TRUE(Holds(NodeModel("GlobalLpPool").Input(at::tensor({3.0F, -4.0F}).reshape({1, 1, 2})).Run()[0], {5}));
}

}  // namespace
}  // namespace addend::onnx

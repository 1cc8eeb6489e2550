// The loop against the form composed of LibTorch operators, and a case by hand.
#include "core/linearize/label_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace addend {
namespace {

TEST(AddByLabel, LoopEqualsOperators) {
  at::manual_seed(3);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t blocks : {1, 5}) {
      const at::Tensor products = at::randn({3, blocks, 40}, dtype);
      const at::Tensor labels = at::randint(-1, 6, {blocks, 40}, at::kLong);
      const at::Tensor loop = at::ones({3, blocks, 6}, at::kDouble);
      const at::Tensor operators = loop.clone();
      const at::Tensor sizes = AddByLabel(products, labels, loop);
      EXPECT_TRUE(at::allclose(sizes, AddByLabelByOperators(products, labels, operators), 1e-14, 0));
      EXPECT_TRUE(at::equal(loop, operators));
    }
  }
}

TEST(AddByLabel, AddsWhatHasALabel) {
  const at::Tensor sums = at::zeros({1, 2, 2}, at::kDouble);
  const at::Tensor products = at::tensor({1.0, -2.0, 4.0, 8.0, 16.0, 32.0}, at::kDouble).view({1, 2, 3});
  const at::Tensor labels = at::tensor({0, 0, 1, -1, 1, 1}, at::kLong).view({2, 3});
  const at::Tensor sizes = AddByLabel(products, labels, sums);
  EXPECT_TRUE(at::equal(sums, at::tensor({-1.0, 4.0, 0.0, 48.0}, at::kDouble).view({1, 2, 2})));
  EXPECT_TRUE(at::equal(sizes, at::tensor({7.0, 48.0}, at::kDouble).view({1, 2})));
}

// Millions of elements of one label: the sum of i / n is known, and has no rounding to speak of.
TEST(AddByLabel, LongRunsRoundAsShortOnes) {
  constexpr int64_t kLong = int64_t{1} << 22;
  const at::Tensor products = (at::arange(kLong, at::kDouble) / kLong * 3).view({1, 1, kLong});
  const at::Tensor labels = at::ones({1, kLong}, at::kLong);
  labels[0][kLong / 2] = -1;
  const at::Tensor sums = at::zeros({1, 1, 2}, at::kDouble);
  const at::Tensor sizes = AddByLabel(products, labels, sums);
  const double expected = 3.0 * (kLong - 1) / 2 - 1.5;
  EXPECT_NEAR(sums[0][0][1].item<double>(), expected, 1e-15 * expected);
  EXPECT_NEAR(sizes.item<double>(), expected, 1e-12 * expected);
  EXPECT_EQ(sums[0][0][0].item<double>(), 0);
  // Infinite summands give an infinite sum.
  products[0][0][7] = std::numeric_limits<double>::infinity();
  sums.zero_();
  AddByLabel(products, labels, sums);
  EXPECT_EQ(sums[0][0][1].item<double>(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace addend

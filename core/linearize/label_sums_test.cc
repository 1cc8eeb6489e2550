// The loop against the form composed of LibTorch operators, and a case by hand.
#include "core/linearize/label_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace addend

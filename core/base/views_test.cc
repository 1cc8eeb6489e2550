#include "core/base/views.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace addend {
namespace {

using at::Tensor;

// Tensors that lie in memory in several ways: whole, turned, as every other column, as a part, expanded, empty.
std::vector<Tensor> Layouts(at::ScalarType dtype) {
  const Tensor whole = at::arange(24, at::kLong).to(dtype).view({2, 3, 4});
  return {whole,
          whole.transpose(0, 2),
          whole.slice(2, 0, 4, 2),
          whole.narrow(1, 1, 2),
          whole.narrow(0, 1, 1).expand({5, 3, 4}),
          whole.narrow(1, 0, 0)};
}

void ExpectSame(const Tensor& view, const Tensor& known, const Tensor& base) {
  EXPECT_EQ(view.sizes(), known.sizes());
  EXPECT_EQ(view.strides(), known.strides());
  EXPECT_EQ(view.storage_offset(), known.storage_offset());
  EXPECT_EQ(view.scalar_type(), known.scalar_type());
  EXPECT_TRUE(view.storage().is_alias_of(base.storage()));
  EXPECT_TRUE(view.equal(known));
}

class ViewsTest : public testing::TestWithParam<bool> {
 protected:
  ViewsTest() : grad_(GetParam()) {}

 private:
  c10::AutoGradMode grad_;
};

TEST_P(ViewsTest, AreThoseOfLibTorch) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong, at::kComplexFloat}) {
    for (const Tensor& t : Layouts(dtype)) {
      for (int64_t d = 0; d < t.dim(); ++d) {
        for (int64_t i = 0; i < t.size(d); ++i) ExpectSame(Select(t, d, i), t.select(d, i), t);
        for (int64_t first = 0; first <= t.size(d); ++first) {
          for (int64_t count = 0; first + count <= t.size(d); ++count) {
            ExpectSame(Narrow(t, d, first, count), t.narrow(d, first, count), t);
          }
        }
        for (int64_t e = 0; e < t.dim(); ++e) {
          ExpectSame(Transposed(t, d, e), t.transpose(d, e), t);
          ExpectSame(Moved(t, d, e), t.movedim(d, e), t);
        }
      }
      at::DimVector more = {2};
      more.append(t.sizes().begin(), t.sizes().end());
      ExpectSame(Expanded(t, more), t.expand(more), t);
      ExpectSame(Expanded(t, t.sizes()), t, t);
      for (int64_t d = 0; d <= t.dim(); ++d) ExpectSame(Unsqueezed(t, d), t.unsqueeze(d), t);
      EXPECT_TRUE(Reshaped(t, {t.numel()}).equal(t.reshape({t.numel()})));
      EXPECT_TRUE(
          Reshaped(t, {1, t.size(0), t.size(1) * t.size(2)}).equal(t.reshape({1, t.size(0), t.size(1) * t.size(2)})));
      EXPECT_ANY_THROW(Reshaped(t, {t.numel() + 1}));
      EXPECT_TRUE(Strided(t, t.sizes(), t.strides(), t.storage_offset()).equal(t));
    }
  }
  const Tensor one = at::scalar_tensor(3.0);
  ExpectSame(Unsqueezed(one, 0), one.unsqueeze(0), one);
  ExpectSame(Reshaped(one, {1, 1}), one.reshape({1, 1}), one);
}

TEST_P(ViewsTest, Parted) {
  for (const Tensor& t : {at::arange(24).view({6, 4}), at::arange(24).view({4, 6}).t()}) {
    EXPECT_TRUE(Parted(t, 0, 2).equal(t.reshape({3, 2, 4})));
    EXPECT_TRUE(Parted(t, 0, 2).is_alias_of(t));
    EXPECT_TRUE(Parted(t, 1, 4).equal(t.reshape({6, 1, 4})));
  }
}

TEST_P(ViewsTest, BeyondTheTensorIsRefused) {
  const Tensor t = at::zeros({6, 0});
  EXPECT_ANY_THROW(Select(t, 0, 6));
  EXPECT_ANY_THROW(Select(t, 1, 0));
  EXPECT_ANY_THROW(Narrow(t, 0, 4, 3));
}

TEST_P(ViewsTest, BeyondTheStorageIsRefused) {
  const Tensor t = at::zeros({6}).narrow(0, 0, 3);
  EXPECT_ANY_THROW(Strided(t, {3}, {3}, 0));
  EXPECT_ANY_THROW(Strided(t, {3}, {1}, -1));
  EXPECT_EQ(Strided(t, {6}, {1}, 0).numel(), 6);
}

// Lazily conjugated or negated tensors stay so.
TEST_P(ViewsTest, OfConjugatedTensors) {
  const Tensor t = at::complex(at::randn({2, 3}), at::randn({2, 3}));
  for (const Tensor& lazy : {t.conj(), at::imag(t.conj())}) {
    ExpectSame(Select(lazy, 0, 1), lazy.select(0, 1), lazy);
    ExpectSame(Narrow(lazy, 1, 1, 2), lazy.narrow(1, 1, 2), lazy);
    const Tensor resolved = Resolved(lazy);
    EXPECT_FALSE(resolved.is_conj() || resolved.is_neg());
    EXPECT_TRUE(resolved.equal(lazy));
  }
  EXPECT_TRUE(Resolved(t).is_same(t));
  EXPECT_FALSE(Resolved(Tensor()).defined());
}

TEST_P(ViewsTest, ConversionsThatChangeNothing) {
  const Tensor t = at::randn({2});
  EXPECT_TRUE(InDtype(t, at::kFloat).is_same(t));
  EXPECT_EQ(InDtype(t, at::kDouble).scalar_type(), at::kDouble);
}

TEST(ViewsGradTest, AreFollowed) {
  const Tensor t = at::randn({2, 3}).set_requires_grad(true);
  (Select(t, 0, 1).sum() + Narrow(t, 1, 0, 2).sum() + Reshaped(t, {6}).sum() + Transposed(t, 0, 1).sum() +
   Unsqueezed(t, 0).sum() + Strided(t, {2}, {1}, 0).sum())
      .backward();
  EXPECT_TRUE(t.grad().equal(at::tensor({5.0, 5.0, 3.0, 5.0, 5.0, 4.0}).to(at::kFloat).view({2, 3})));
}

INSTANTIATE_TEST_SUITE_P(Grad, ViewsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "grad" : "no_grad"; });

}  // namespace
}  // namespace addend

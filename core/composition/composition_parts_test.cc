// Compositions asked, taken apart, compared, moved and checked; no operator is traced here.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/base/error_testing.h"
#include "core/composition/composition.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Three components of shape [2, 3], the numbers 0..17; reference 100.., leftover 0.5.
Composition Counting() {
  return Composition(at::arange(18, at::kDouble).view({3, 2, 3}), at::arange(100, 106, at::kDouble).view({2, 3}),
                     at::full({2, 3}, 0.5, at::kDouble));
}

Tensor Longs(at::IntArrayRef list) { return at::tensor(list, at::kLong); }
Tensor Bools(at::IntArrayRef list) { return at::tensor(list, at::kLong).to(at::kBool); }

TEST(QuestionsTest, ShapesAndTypes) {
  const Composition x = Counting();
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(x.c_sizes(), at::IntArrayRef({3, 2, 3}));
  EXPECT_EQ(x.c_size(0), 3);
  EXPECT_EQ(x.c_numel(), 18);
  EXPECT_EQ(x.c_numel(true), 24);
  EXPECT_EQ(x.dtype(), at::kDouble);
  EXPECT_TRUE(x.device().is_cpu());
  EXPECT_FALSE(x.is_cuda());
  EXPECT_FALSE(x.requires_grad());
  const Composition zeros = Composition::ZerosLike(x);
  EXPECT_EQ(zeros.c_sizes(), x.c_sizes());
  EXPECT_EQ(zeros.dtype(), at::kDouble);
  EXPECT_FALSE(zeros.any());
}

TEST(QuestionsTest, AnOperatorsValueIsKept) {
  Origin origin;
  origin.value = at::full({2, 3}, 7.0, at::kHalf);
  const Composition x = Composition::FromOperator(at::ones({1, 2, 3}), at::full({2, 3}, 6.0), at::Tensor(), origin);
  EXPECT_EQ(x.dtype(), at::kHalf);
  EXPECT_EQ(x.parts_dtype(), at::kFloat);
  EXPECT_TRUE(x.value().equal(origin.value));
  // Other components: the operator's value is no longer what they sum to.
  EXPECT_TRUE(x.c_masked_fill(Bools({1}), 0).value().equal(at::full({2, 3}, 6.0)));
  origin.value = at::ones({3});
  EXPECT_THAT(MessageOf([&] {
                Composition::FromOperator(at::ones({1, 2}), at::ones({2}), at::Tensor(), origin);
              }),
              HasSubstr("the value has shape [3]"));
}

TEST(ComponentsTest, Iteration) {
  int64_t i = 0;
  const Composition x = Counting();
  for (const Tensor& component : x) EXPECT_TRUE(component.equal(x.component(i++)));
  EXPECT_EQ(i, 3);
}

TEST(ComponentsTest, IndexSelect) {
  const Composition x = Counting();
  const Composition y = x.c_index_select(Longs({2, -3, 2}));
  EXPECT_TRUE(y.components().equal(x.components().index_select(0, Longs({2, 0, 2}))));
  EXPECT_TRUE(y.residual().equal(x.residual()));
  const Composition masked = x.c_index_select(Bools({1, 0, 1}), false);
  EXPECT_TRUE(masked.components().equal(x.components().index_select(0, Longs({0, 2}))));
  EXPECT_EQ(masked.residual().abs().max().item<double>(), 0);
  EXPECT_EQ(x.c_index_select(at::empty({0}, at::kLong)).numc(), 0);
  EXPECT_EQ(MessageOf([&] { x.c_index_select(Longs({0, 3})); }), "component 3 is out of range: there are 3");
  EXPECT_EQ(MessageOf([&] { x.c_index_select(Longs({0, -4})); }), "component -4 is out of range: there are 3");
  EXPECT_EQ(MessageOf([&] { x.c_index_select(Bools({1, 0})); }), "the mask has 2 elements for 3 components");
  EXPECT_THAT(MessageOf([&] { x.c_index_select(at::ones({3})); }), HasSubstr("integers or bools"));
}

TEST(ComponentsTest, Slices) {
  const Composition x = Counting();
  EXPECT_TRUE(x.c_slice(1).components().equal(x.components().slice(0, 1)));
  EXPECT_TRUE(x.c_slice(0, -1).components().equal(x.components().slice(0, 0, 2)));
  EXPECT_TRUE(x.c_slice(0, std::nullopt, 2).components().equal(x.components().slice(0, 0, 3, 2)));
  EXPECT_EQ(x.c_slice(2, 1).numc(), 0);
  EXPECT_EQ(x.c_slice(-2, 100).numc(), 2);
  EXPECT_EQ(x.c_slice(0, 1, 1, false).residual().abs().max().item<double>(), 0);
  EXPECT_THAT(MessageOf([&] { x.c_slice(0, 1, 0); }), HasSubstr("step is 0"));
}

TEST(ComponentsTest, MaskedFill) {
  const Composition x = Counting();
  const Composition y = x.c_masked_fill(Bools({0, 1, 0}), -1);
  EXPECT_TRUE(y.component(1).equal(at::full({2, 3}, -1.0, at::kDouble)));
  EXPECT_TRUE(y.component(2).equal(x.component(2)));
  EXPECT_TRUE(y.residual().equal(x.residual()));
  const Tensor even = x.components().remainder(2).eq(0);
  EXPECT_TRUE(x.c_masked_fill(even, 0).components().equal(x.components().masked_fill(even, 0)));
  Composition z = x;
  EXPECT_EQ(&z.c_masked_fill_(even, 0), &z);
  EXPECT_TRUE(z.components().equal(x.components().masked_fill(even, 0)));
  EXPECT_THAT(MessageOf([&] {
                x.c_masked_fill(Bools({1, 0}), 0);
              }),
              HasSubstr("the mask must be bools of shape [3] or [3, 2, 3]"));
}

TEST(ComponentsTest, Replacing) {
  const Composition x = Counting();
  const Tensor part = at::full({2, 3}, 9.0, at::kDouble);
  const Composition y = x.with_component(1, part);
  EXPECT_TRUE(y.component(1).equal(part));
  EXPECT_TRUE(y.component(0).equal(x.component(0)));
  EXPECT_TRUE(x.component(1).equal(Counting().component(1)));
  const Composition z = x.with_components(Longs({0, -1}), part);
  EXPECT_TRUE(z.component(0).equal(part));
  EXPECT_TRUE(z.component(2).equal(part));
  EXPECT_TRUE(z.component(1).equal(x.component(1)));
  EXPECT_TRUE(x.with_residual(part).residual().equal(part));
  EXPECT_THAT(MessageOf([&] { x.with_component(1, at::ones({3})); }), HasSubstr("the component has shape [3]"));
  EXPECT_THAT(MessageOf([&] { x.with_component(3, part); }), HasSubstr("component 3 is out of range"));
  EXPECT_THAT(MessageOf([&] {
                x.with_components(Longs({0}), at::ones({2, 2, 3}));
              }),
              HasSubstr("do not broadcast to [1, 2, 3]"));
}

TEST(ComponentsTest, ApplyAndMap) {
  const Composition x = Counting();
  const Composition applied = x.c_apply([](const Tensor& rows) { return rows.transpose(1, 2) * 2; });
  EXPECT_TRUE(applied.components().equal(x.components().transpose(1, 2) * 2));
  EXPECT_TRUE(applied.residual().equal(x.residual().t() * 2));
  const Composition mapped = x.c_map([](const Tensor& part) { return part.sum(); });
  EXPECT_TRUE(mapped.components().equal(x.components().sum({1, 2})));
  EXPECT_TRUE(mapped.recovery().equal(x.recovery().sum()));
  EXPECT_EQ(Composition::FromParts({}, at::ones({2})).c_map([](const Tensor& t) { return t.sum(); }).numc(), 0);
  EXPECT_THAT(MessageOf([&] { x.c_apply([](const Tensor& rows) { return rows.sum(); }); }),
              HasSubstr("must give as many rows as it gets"));
}

TEST(ComponentsTest, CatAndStack) {
  const Composition x = Counting();
  const Composition y = x.c_slice(0, 2);
  const Composition both = c_cat({x, y});
  EXPECT_EQ(both.numc(), 5);
  EXPECT_TRUE(both.recovery().allclose(x.recovery() + y.recovery()));
  EXPECT_TRUE(both.leftover().equal(x.leftover() * 2));
  EXPECT_EQ(c_cat({x, y}, false).residual().abs().max().item<double>(), 0);
  const Composition stacked = c_stack({x.component(0), x.component(1)});
  EXPECT_TRUE(stacked.components().equal(x.components().slice(0, 0, 2)));
  EXPECT_THAT(MessageOf([] { c_cat({}); }), HasSubstr("no composition"));
  EXPECT_THAT(MessageOf([&] { c_cat({x, Composition::Zeros({3}, 1)}); }), HasSubstr("composition 1 has not the shape"));
}

TEST(ComparisonTest, ReadsRecoveries) {
  const Composition x(at::tensor({1.0, -3.0}, at::kDouble).view({2, 1}), at::tensor({2.0}, at::kDouble));
  EXPECT_TRUE(x.eq(0).item<bool>());
  EXPECT_FALSE(x.ne(at::zeros({1}, at::kDouble)).item<bool>());
  EXPECT_TRUE(x.lt(0.5).item<bool>());
  EXPECT_TRUE(x.le(x).item<bool>());
  EXPECT_FALSE(x.gt(x).item<bool>());
  EXPECT_TRUE(x.ge(at::zeros({1}, at::kDouble)).item<bool>());
  EXPECT_FALSE(x.any());
  EXPECT_TRUE(Counting().all());
  const Composition odd(at::zeros({1, 3}, at::kDouble), at::tensor({kNan, kInf, 1.0}, at::kDouble));
  EXPECT_TRUE(odd.isnan().equal(Bools({1, 0, 0})));
  EXPECT_TRUE(odd.isinf().equal(Bools({0, 1, 0})));
  EXPECT_TRUE(odd.isfinite().equal(Bools({0, 0, 1})));
}

TEST(MemoryTest, MovesAndCopies) {
  const Composition x = Counting();
  EXPECT_TRUE(x.cpu().components().is_same(x.components()));
  const Composition copy = x.clone();
  EXPECT_FALSE(copy.components().is_alias_of(x.components()));
  EXPECT_TRUE(copy.recovery().equal(x.recovery()));
  const Composition turned(x.components().transpose(1, 2), x.reference().t(), x.leftover().t());
  EXPECT_FALSE(turned.components().is_contiguous());
  EXPECT_TRUE(turned.contiguous().components().is_contiguous());
  EXPECT_TRUE(turned.contiguous().recovery().equal(turned.recovery()));
}

TEST(MemoryTest, StaysInTheGraph) {
  const Tensor parts = at::ones({2, 3}, at::kDouble).requires_grad_(true);
  const Tensor residual = at::ones({3}, at::kDouble).requires_grad_(true);
  EXPECT_FALSE(Composition(parts, residual).requires_grad());
  const Composition x = Composition::InGraph(parts, residual);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
  (x.c_index_select(Longs({1})).recovery() * 3).sum().backward();
  EXPECT_TRUE(parts.grad().select(0, 1).equal(at::full({3}, 3.0, at::kDouble)));
  EXPECT_EQ(parts.grad().select(0, 0).abs().max().item<double>(), 0);
  EXPECT_TRUE(residual.grad().equal(at::full({3}, 3.0, at::kDouble)));
}

TEST(PrintTest, StreamsAsText) {
  std::ostringstream out;
  out << Counting();
  EXPECT_EQ(out.str(), Counting().ToString());
}

TEST(RecoveryTest, Differences) {
  const Composition x = Counting();
  Tensor expected = x.recovery();
  RecoveryDifference difference = CompareRecovery(x, expected);
  EXPECT_EQ(difference.largest, 0);
  EXPECT_EQ(difference.not_finite, 0);
  expected = expected.clone();
  expected.select(0, 0).select(0, 0).add_(0.25);
  expected.select(0, 1).select(0, 2).sub_(0.5);
  difference = CompareRecovery(x, expected);
  EXPECT_DOUBLE_EQ(difference.largest, 0.5);
  EXPECT_DOUBLE_EQ(difference.sum, 0.75);
  EXPECT_DOUBLE_EQ(difference.relative, 0.5 / expected.abs().max().item<double>());
  EXPECT_THAT(MessageOf([&] { CompareRecovery(x, at::ones({2})); }), HasSubstr("the expectation has shape [2]"));
}

TEST(RecoveryTest, NanIsAnErrorUnlessItIsExpected) {
  const Composition x(at::zeros({1, 3}, at::kDouble), at::tensor({kNan, kInf, 1.0}, at::kDouble));
  EXPECT_EQ(CompareRecovery(x, at::tensor({kNan, kInf, 1.0}, at::kDouble)).not_finite, 0);
  EXPECT_EQ(CompareRecovery(x, at::tensor({0.0, -kInf, 1.0}, at::kDouble)).not_finite, 2);
  EXPECT_THAT(MessageOf([&] {
                CheckRecovery(x, at::tensor({0.0, kInf, 1.0}, at::kDouble));
              }),
              HasSubstr("NaN or infinite where the expectation is not, or the other way round, in 1 elements"));
}

TEST(RecoveryTest, Bounds) {
  const Composition x = Counting();
  const Tensor expected = x.recovery() + 0.004;
  EXPECT_THAT(MessageOf([&] { CheckRecovery(x, expected); }), HasSubstr("(sum), bound 0.01"));
  RecoveryBound bound;
  bound.sum = false;
  CheckRecovery(x, expected, bound);
  bound.bound = 0.003;
  EXPECT_THAT(MessageOf([&] { CheckRecovery(x, expected, bound); }), HasSubstr("(largest error), bound 0.003"));
  bound.without_elements = at::ones({2, 3}, at::kBool);
  CheckRecovery(x, expected, bound);
  bound = {};
  bound.without_components = Bools({1, 0, 0});
  CheckRecovery(x, x.recovery() - x.component(0), bound);
  EXPECT_THAT(MessageOf([&] { CheckRecovery(x, x.recovery(), bound); }), HasSubstr("differs from the expectation by"));
}

}  // namespace
}  // namespace addend

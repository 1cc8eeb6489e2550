// The fused loop against the form composed of LibTorch operators, and both against hand-made cases.
#include "core/linearize/settle.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/run/row_sums.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void ExpectSame(const Settled& a, const Settled& b, double relative) {
  const auto near = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y || std::abs(x - y) <= relative * std::max({std::abs(x), std::abs(y), 1.0});
  };
  EXPECT_TRUE(near(a.error, b.error)) << a.error << " " << b.error;
  EXPECT_TRUE(near(a.value, b.value)) << a.value << " " << b.value;
  EXPECT_TRUE(near(a.reference, b.reference)) << a.reference << " " << b.reference;
  EXPECT_TRUE(near(a.leftover, b.leftover)) << a.leftover << " " << b.leftover;
  EXPECT_TRUE(near(a.bracket, b.bracket)) << a.bracket << " " << b.bracket;
  EXPECT_TRUE(near(a.passed, b.passed)) << a.passed << " " << b.passed;
}

class SettleForms : public testing::TestWithParam<std::tuple<int, at::ScalarType, bool, bool>> {};

TEST_P(SettleForms, FusedLoopEqualsOperators) {
  const auto [columns, dtype, keep, odd] = GetParam();
  at::manual_seed(columns);
  const auto options = at::TensorOptions().dtype(dtype);
  at::Tensor rows = at::randn({7, columns}, options);
  at::Tensor value = at::randn({columns}, options) * 3;
  const at::Tensor reference = at::randn({columns}, options);
  if (odd && columns > 2) {
    value[0] = kInfinity;
    reference[0] = kInfinity;
    value[1] = kInfinity;
    value[2] = std::nan("");
    rows[3][2] = std::nan("");
    rows[6][2] = 0;
  }
  at::Tensor other_rows = rows.clone();
  SettleOptions settle;
  settle.keep_bracket = keep;
  at::Tensor sum;
  at::Tensor other_sum;
  const Settled fused = Settle(rows, value, reference, settle, &sum);
  const Settled composed = SettleByOperators(other_rows, value, reference, settle, &other_sum);
  const double relative = dtype == at::kDouble ? 1e-13 : 1e-5;
  ExpectSame(fused, composed, relative);
  EXPECT_TRUE(at::allclose(rows, other_rows, relative, relative, /*equal_nan=*/true));
  EXPECT_TRUE(at::allclose(sum, other_sum, relative * 10, relative * 10, /*equal_nan=*/true));
  // The sum is used as it is the second time.
  SettleOptions judge_only;
  judge_only.find_bracket = false;
  const Settled again = Settle(rows, value, reference, judge_only, &sum);
  EXPECT_TRUE(again.error == fused.error || std::isnan(fused.error));
}

INSTANTIATE_TEST_SUITE_P(All, SettleForms,
                         testing::Combine(testing::Values(1, 5, 1023, 1024, 1025, 40000),
                                          testing::Values(at::kFloat, at::kDouble), testing::Bool(), testing::Bool()));

TEST(Settle, BracketGoesToTheLeftoverAndTheMoveIsRenewed) {
  // value 5, reference 1, components 2 and 1, leftover 0, L(move) = 3: the bracket is 1.
  at::Tensor rows = at::tensor({2.0, 1.0, 0.0, 3.0}, at::kDouble).view({4, 1});
  const at::Tensor value = at::tensor({5.0}, at::kDouble);
  const at::Tensor reference = at::tensor({1.0}, at::kDouble);
  SettleOptions options;
  options.keep_bracket = true;
  const Settled settled = Settle(rows, value, reference, options, nullptr);
  EXPECT_EQ(settled.bracket, 1);
  EXPECT_EQ(settled.error, 0);
  EXPECT_EQ(settled.leftover, 1);
  EXPECT_TRUE(at::equal(rows.view({4}), at::tensor({2.0, 1.0, 1.0, 4.0}, at::kDouble)));
}

TEST(Settle, MissingPartsAreAnError) {
  at::Tensor rows = at::tensor({2.0, 0.0, 4.0}, at::kDouble).view({3, 1});
  const Settled settled = Settle(rows, at::tensor({5.0}, at::kDouble), at::tensor({1.0}, at::kDouble), {}, nullptr);
  EXPECT_EQ(settled.error, 2);
  EXPECT_EQ(settled.bracket, 0);
}

TEST(Settle, InfiniteValuesAreNotJudgedAndNanInFiniteOnesIs) {
  at::Tensor rows = at::zeros({3, 2}, at::kDouble);
  const at::Tensor value = at::tensor({-kInfinity, 1.0}, at::kDouble);
  for (const double reference : {-kInfinity, 5.0}) {
    rows[2][0] = 3;
    const Settled settled = Settle(rows, value, at::tensor({reference, 1.0}, at::kDouble), {}, nullptr);
    EXPECT_EQ(settled.error, 0);
    EXPECT_EQ(settled.bracket, 0);
    EXPECT_EQ(rows[2][0].item<double>(), 0);  // such an element does not move
  }
  rows[0][1] = std::nan("");
  EXPECT_TRUE(std::isnan(Settle(rows, value, value, {}, nullptr).error));
}

TEST(LargestMass, StopsEarlyAndIsExactAtTheEnd) {
  at::manual_seed(1);
  const at::Tensor rows = at::randn({5, 5000}, at::kDouble);
  const at::Tensor reference = at::randn({5000}, at::kDouble);
  const double all = (rows.narrow(0, 0, 4).abs().sum(0) + reference.abs()).max().item<double>();
  EXPECT_NEAR(LargestMass(rows, reference, 1e9), all, 1e-12);
  const at::Tensor strided = at::randn({5000, 5}, at::kDouble).t();  // not flat: composed of operators
  EXPECT_NEAR(LargestMass(strided, reference, 1e9),
              (strided.narrow(0, 0, 4).abs().sum(0) + reference.abs()).max().item<double>(), 1e-12);
  const double early = LargestMass(rows, reference, 0.1);
  EXPECT_GE(early, 0.1);
  EXPECT_LE(early, all);
}

TEST(LargestFinite, LeavesOutWhatIsNot) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t n : {1, 9, 8191, 8193, 100000}) {
      at::manual_seed(n);
      const at::Tensor numbers = at::randn({n}, dtype);
      numbers[n - 1] = -50;
      EXPECT_EQ(LargestFinite(numbers), 50) << n;
      if (n < 9) continue;
      for (int64_t k = 0; k < 3; ++k) numbers[k] = k == 0 ? kInfinity : k == 1 ? -kInfinity : std::nan("");
      EXPECT_EQ(LargestFinite(numbers), 50) << n;
    }
  }
  EXPECT_EQ(LargestFinite(at::empty({0})), 0);
  EXPECT_EQ(LargestFinite(at::full({3}, kInfinity)), 0);
  // Not dense: composed of operators.
  EXPECT_EQ(LargestFinite(at::tensor({1.0, 9.0, -3.0, 9.0}, at::kDouble).as_strided({2}, {2})), 3);
}

// ---- moves

at::Tensor WithOddOnes(at::Tensor tensor, const std::vector<double>& odd) {
  for (size_t k = 0; k < odd.size() && static_cast<int64_t>(k) < tensor.numel(); ++k) tensor[k] = odd[k];
  return tensor;
}

class MoveForms : public testing::TestWithParam<std::tuple<int, at::ScalarType>> {};

TEST_P(MoveForms, FusedLoopsEqualOperators) {
  const auto [n, dtype] = GetParam();
  at::manual_seed(n);
  const auto options = at::TensorOptions().dtype(dtype);
  const double nan = std::nan("");
  const at::Tensor value = WithOddOnes(at::randn({n}, options), {kInfinity, kInfinity, -kInfinity, nan, nan, 1, 2});
  const at::Tensor reference = WithOddOnes(at::randn({n}, options), {kInfinity, 1, kInfinity, nan, 1, 1, 5});
  const at::Tensor g = at::randn({3, n}, options);
  EXPECT_TRUE(at::equal(FiniteMove(value, reference), FiniteMoveByOperators(value, reference)));
  EXPECT_TRUE(at::isfinite(FiniteMove(value, reference)).all().item<bool>());
  EXPECT_TRUE(at::allclose(MissingOf(g, value, reference), MissingOfByOperators(g, value, reference), 1e-12,
                           dtype == at::kDouble ? 1e-14 : 1e-6));
  EXPECT_TRUE(at::allclose(ProductsWithMove(g, value, reference), ProductsWithMoveByOperators(g, value, reference),
                           1e-12, dtype == at::kDouble ? 1e-11 : 1e-4));
}

INSTANTIATE_TEST_SUITE_P(All, MoveForms,
                         testing::Combine(testing::Values(1, 7, 4095, 4096, 4097, 50000),
                                          testing::Values(at::kFloat, at::kDouble)));

TEST(Moves, OfNumbersByHand) {
  const at::Tensor value = at::tensor({5.0, 1.0, kInfinity, 2.0}, at::kDouble);
  const at::Tensor reference = at::tensor({2.0, 1.0, 3.0, -1.0}, at::kDouble);
  EXPECT_TRUE(at::equal(FiniteMove(value, reference), at::tensor({3.0, 0.0, 0.0, 3.0}, at::kDouble)));
  const at::Tensor g = at::tensor({1.0, 9.0, 9.0, 2.0, 0.0, 0.0, 0.0, -1.0}, at::kDouble).view({2, 4});
  EXPECT_TRUE(at::equal(ProductsWithMove(g, value, reference), at::tensor({9.0, -3.0}, at::kDouble)));
}

TEST(Moves, WhatRowsLack) {
  const at::Tensor value = at::tensor({5.0, 1.0, kInfinity, 2.0}, at::kDouble);
  const at::Tensor reference = at::tensor({2.0, 1.0, 3.0, -1.0}, at::kDouble);
  const at::Tensor rows = at::tensor({1.0, 0.5, 9.0, 2.0, 1.5, 0.0, 9.0, 1.0}, at::kDouble).view({2, 4});
  EXPECT_TRUE(at::equal(MissingOf(rows, value, reference), at::tensor({0.5, -0.5, 0.0, 0.0}, at::kDouble)));
}

TEST(Moves, InAnotherOrderOfDimensions) {
  const at::Tensor value = at::randn({3, 4, 5}).permute({2, 0, 1});
  const at::Tensor reference = at::randn({3, 4, 5}).permute({2, 0, 1});
  value.select(0, 1).fill_(kInfinity);
  EXPECT_TRUE(at::equal(FiniteMove(value, reference), FiniteMoveByOperators(value, reference)));
  EXPECT_TRUE(
      at::equal(FiniteMove(value, reference.contiguous()), FiniteMoveByOperators(value, reference.contiguous())));
}

TEST(Sums, FusedLoopsEqualOperators) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t n : {1, 7, 4097, 50000}) {
      at::manual_seed(n);
      const at::Tensor rows = at::randn({3, n}, dtype);
      const at::Tensor other = at::randn({n}, dtype);
      const double tolerance = dtype == at::kDouble ? 1e-11 : 1e-3;
      EXPECT_TRUE(at::allclose(ProductsOfEach(rows, other), SumOfEach(rows * other), 1e-12, tolerance));
      EXPECT_TRUE(at::allclose(MagnitudeOfEach(rows), SumOfEach(rows.abs()), 1e-6, 0));
      const at::Tensor strided = at::randn({n, 3}, dtype).t();
      EXPECT_TRUE(at::allclose(ProductsOfEach(strided, other), SumOfEach(strided * other), 1e-12, tolerance));
      EXPECT_TRUE(at::allclose(MagnitudeOfEach(strided), SumOfEach(strided.abs()), 1e-6, 0));
    }
  }
  const at::Tensor by_hand = at::tensor({1.0, -2.0, 3.0, 4.0}, at::kDouble).view({2, 2});
  EXPECT_TRUE(
      at::equal(ProductsOfEach(by_hand, at::tensor({1.0, 10.0}, at::kDouble)), at::tensor({-19.0, 43.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(MagnitudeOfEach(by_hand), at::tensor({3.0, 7.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(MagnitudeOfEach(at::empty({2, 0})), at::zeros({2}, at::kDouble)));
}

TEST(Moves, OfStridedAndComplexTensors) {
  const at::Tensor value = at::randn({4, 5}, at::kDouble).t();
  const at::Tensor reference = at::randn({5, 4}, at::kDouble);
  const at::Tensor g = at::randn({2, 5, 4}, at::kDouble);
  EXPECT_TRUE(at::allclose(ProductsWithMove(g, value, reference), (g * (value - reference)).sum({1, 2}), 0, 1e-13));
  const at::Tensor z = at::complex(value.contiguous(), reference);
  const at::Tensor h = at::complex(g, g.flip({1}));
  const at::Tensor expected = at::real(h.conj() * z).sum({1, 2});
  EXPECT_TRUE(at::allclose(ProductsWithMove(h, z, at::zeros_like(z)), expected, 0, 1e-13));
}

}  // namespace
}  // namespace addend

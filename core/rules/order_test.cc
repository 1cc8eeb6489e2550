#include "core/rules/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace addend {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix Shares(const std::vector<double>& value, const std::vector<double>& reference) {
  const int64_t n = static_cast<int64_t>(value.size());
  std::vector<RankShare> shares;
  AddRankShares<double>(value.data(), reference.data(), n, 0, n, &shares);
  Matrix matrix(n, std::vector<double>(n, 0));
  for (const RankShare& share : shares) matrix[share.rank][share.candidate] += share.share;
  return matrix;
}

// Approximates the shares by sorting at many points of the line.
Matrix Sampled(const std::vector<double>& value, const std::vector<double>& reference, int points) {
  const size_t n = value.size();
  Matrix matrix(n, std::vector<double>(n, 0));
  for (int p = 0; p < points; ++p) {
    const double t = (p + 0.5) / points;
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
      return reference[i] + t * (value[i] - reference[i]) < reference[j] + t * (value[j] - reference[j]);
    });
    for (size_t rank = 0; rank < n; ++rank) matrix[rank][order[rank]] += 1.0 / points;
  }
  return matrix;
}

TEST(OrderTest, AgreesWithSortingAtManyPoints) {
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  for (const size_t n : {1, 2, 3, 7, 20}) {
    std::vector<double> value(n);
    std::vector<double> reference(n);
    for (size_t i = 0; i < n; ++i) {
      value[i] = normal(engine);
      reference[i] = normal(engine);
    }
    const Matrix shares = Shares(value, reference);
    const int points = 20000;
    const Matrix sampled = Sampled(value, reference, points);
    for (size_t rank = 0; rank < n; ++rank) {
      double moved = 0;
      for (size_t i = 0; i < n; ++i) {
        // Each visit of a rank is off by a point at both ends.
        EXPECT_NEAR(shares[rank][i], sampled[rank][i], 2.0 * static_cast<double>(n) / points);
        moved += shares[rank][i] * (value[i] - reference[i]);
      }
      std::vector<double> end = value;
      std::vector<double> start = reference;
      std::sort(end.begin(), end.end());
      std::sort(start.begin(), start.end());
      EXPECT_NEAR(moved, end[rank] - start[rank], 1e-13);
    }
  }
}

TEST(OrderTest, EveryRankAndEveryCandidateIsShared) {
  std::mt19937_64 engine(5);
  // Small integers: many ties, parallel lines, lines that are the same, and crossings of several at once.
  std::uniform_int_distribution<int> small(-2, 2);
  for (int round = 0; round < 200; ++round) {
    const size_t n = 6;
    std::vector<double> value(n);
    std::vector<double> reference(n);
    for (size_t i = 0; i < n; ++i) {
      value[i] = small(engine);
      reference[i] = small(engine);
    }
    const Matrix shares = Shares(value, reference);
    std::vector<double> end = value;
    std::vector<double> start = reference;
    std::sort(end.begin(), end.end());
    std::sort(start.begin(), start.end());
    std::vector<double> of_candidate(n, 0);
    for (size_t rank = 0; rank < n; ++rank) {
      double of_rank = 0;
      double moved = 0;
      for (size_t i = 0; i < n; ++i) {
        EXPECT_GE(shares[rank][i], 0);
        of_rank += shares[rank][i];
        of_candidate[i] += shares[rank][i];
        moved += shares[rank][i] * (value[i] - reference[i]);
      }
      EXPECT_NEAR(of_rank, 1, 1e-13);
      EXPECT_NEAR(moved, end[rank] - start[rank], 1e-13);
    }
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(of_candidate[i], 1, 1e-13);
  }
}

TEST(OrderTest, SameLinesShareEvenly) {
  const Matrix shares = Shares({1, 5, 1, 7}, {0, 2, 0, 1});
  EXPECT_EQ(shares[0], (std::vector<double>{0.5, 0, 0.5, 0}));
  EXPECT_EQ(shares[1], (std::vector<double>{0.5, 0, 0.5, 0}));
  // 2 + 3 t and 1 + 6 t meet at a third.
  EXPECT_NEAR(shares[3][1], 1.0 / 3, 1e-15);
  EXPECT_NEAR(shares[3][3], 2.0 / 3, 1e-15);
}

TEST(OrderTest, NanIsTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Matrix shares = Shares({nan, 3, -infinity, 1}, {nan, 0, -infinity, 2});
  EXPECT_EQ(shares[3], (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(shares[0], (std::vector<double>{0, 0, 1, 0}));
  EXPECT_EQ(shares[1], (std::vector<double>{0, 0.5, 0, 0.5}));
}

TEST(OrderTest, GivesOnlyTheRanksAskedFor) {
  const std::vector<float> value = {4, 1, 3, 2};
  const std::vector<float> reference = {1, 2, 3, 4};
  std::vector<RankShare> shares;
  AddRankShares<float>(value.data(), reference.data(), 4, 1, 3, &shares);
  double sum = 0;
  for (const RankShare& share : shares) {
    EXPECT_TRUE(share.rank == 1 || share.rank == 2);
    sum += share.share;
  }
  EXPECT_NEAR(sum, 2, 1e-12);
}

}  // namespace
}  // namespace addend

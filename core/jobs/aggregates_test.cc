// Laws of aggregates: quantiles against sorted numbers, and parts that are put together against the whole.
#include "core/jobs/aggregates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error_testing.h"

namespace addend {
namespace {

std::vector<double> Draw(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 3);
  std::vector<double> numbers;
  for (int k = 0; k < count; ++k) numbers.push_back(k % 17 == 0 ? 0 : std::ldexp(normal(random), k % 40 - 20));
  return numbers;
}

QuantileSketch SketchOf(const std::vector<double>& numbers) {
  QuantileSketch sketch;
  for (const double number : numbers) sketch.Add(number);
  return sketch;
}

TEST(QuantileSketchTest, EveryQuantileIsNearThatOfSortedNumbers) {
  for (const uint32_t seed : {1U, 2U, 3U}) {
    std::vector<double> numbers = Draw(2000, seed);
    const QuantileSketch sketch = SketchOf(numbers);
    std::sort(numbers.begin(), numbers.end());
    for (int step = 0; step <= 100; ++step) {
      const double share = step / 100.0;
      const double exact = numbers[static_cast<size_t>(std::llround(share * 1999))];
      EXPECT_LE(std::abs(sketch.Quantile(share) - exact), std::abs(exact) / 128) << share;
    }
    EXPECT_EQ(sketch.Quantile(0), numbers.front());
    EXPECT_EQ(sketch.Quantile(1), numbers.back());
  }
}

TEST(QuantileSketchTest, PartsTogetherAreTheWholeInAnyOrder) {
  const std::vector<double> numbers = Draw(1000, 4);
  const QuantileSketch whole = SketchOf(numbers);
  std::vector<QuantileSketch> parts;
  for (int k = 0; k < 7; ++k) {
    std::vector<double> own;
    for (size_t i = static_cast<size_t>(k); i < numbers.size(); i += 7) own.push_back(numbers[i]);
    parts.push_back(SketchOf(own));
  }
  std::mt19937 random(5);
  for (int order = 0; order < 5; ++order) {
    std::shuffle(parts.begin(), parts.end(), random);
    QuantileSketch together;
    for (const QuantileSketch& part : parts) together.Merge(part);
    EXPECT_TRUE(together == whole);
    EXPECT_TRUE(QuantileSketch::OfJson(together.ToJson()) == whole);
  }
}

TEST(QuantileSketchTest, TakesEveryNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const QuantileSketch sketch =
      SketchOf({0, -0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(),
                -std::numeric_limits<double>::max(), kInfinity, -kInfinity, std::nan("")});
  EXPECT_EQ(sketch.count(), 5);
  EXPECT_EQ(sketch.not_finite(), 3);
  EXPECT_EQ(sketch.Quantile(0), -std::numeric_limits<double>::max());
  EXPECT_EQ(sketch.Quantile(1), std::numeric_limits<double>::max());
  EXPECT_EQ(sketch.Quantile(0.5), 0);
  EXPECT_EQ(sketch.ShareUpTo(-1), 0.2);
  EXPECT_EQ(sketch.ShareUpTo(0), 0.6);
  EXPECT_EQ(QuantileSketch().Quantile(0.5), 0);
}

class AggregatesTest : public testing::Test {
 protected:
  static constexpr int64_t kComponents = 3;

  // Rows [begin, end) of a table whose numbers follow from their places.
  static Aggregates Of(int64_t begin, int64_t end, double sampled = 0.25) {
    Aggregates own(kComponents, sampled, 1);
    for (int64_t row = begin; row < end; ++row) {
      // Eighths, so that no sum rounds and every order gives the same.
      const double at = static_cast<double>(row % 101) - 50;
      const std::vector<double> contributions = {at / 8, -at / 4, row % 2 == 0 ? 1.0 : 0.0};
      RowNumbers numbers;
      numbers.row = row;
      numbers.value = at;
      numbers.leftover = row == 77 ? 5 : at / 64;
      own.AddRecoveryError(row == 33 ? 0.5 : 0);
      numbers.contributions = contributions.data();
      numbers.elements = contributions.data();
      numbers.groups = {row % 3 == 0 ? "three" : "other"};
      own.Add(numbers);
    }
    own.AddRefused();
    return own;
  }
};

TEST_F(AggregatesTest, PartsTogetherAreTheWhole) {
  const Aggregates whole = Of(0, 500);
  Aggregates together = Of(0, 200);
  together.Merge(Of(200, 201));
  together.Merge(Aggregates::OfJson(Of(201, 500).ToJson()));
  Json json = together.ToJson();
  EXPECT_EQ(json["refused"], 3);
  json["refused"] = 1;
  EXPECT_EQ(json, whole.ToJson());
}

TEST_F(AggregatesTest, TellsWhatAPassOverTheRowsTells) {
  const Aggregates own = Of(0, 500);
  double sum = 0;
  double magnitudes = 0;
  int64_t positive = 0;
  for (int64_t row = 0; row < 500; ++row) {
    const double at = (static_cast<double>(row % 101) - 50) / 8;
    sum += at;
    magnitudes += std::abs(at);
    positive += at > 0 ? 1 : 0;
  }
  EXPECT_EQ(own.rows(), 500);
  EXPECT_EQ(own.components()[0].sum, sum);
  EXPECT_EQ(own.components()[0].sum_of_magnitudes, magnitudes);
  EXPECT_EQ(own.components()[0].positive, positive);
  EXPECT_EQ(own.components()[2].positive, 250);
  EXPECT_EQ(own.components()[2].negative, 0);
  ASSERT_EQ(own.worst_leftover().rows().size(), WorstRows::kMost);
  EXPECT_EQ(own.worst_leftover().rows().front().row, 77);
  EXPECT_EQ(own.worst_recovery_error(), 0.5);
  EXPECT_EQ(own.groups()[0].groups.at("three").rows, 167);
  EXPECT_EQ(own.groups()[0].groups.at("other").rows, 333);
}

TEST_F(AggregatesTest, SamplesTheShareThatWasAskedFor) {
  EXPECT_EQ(Of(0, 500, 0).sample().size(), 0);
  EXPECT_EQ(Of(0, 500, 1).sample().size(), 500);
  // 5000 draws at 0.25: 1250 of standard deviation 31.
  const auto drawn = static_cast<double>(Of(0, 5000, 0.25).sample().size());
  EXPECT_NEAR(drawn, 1250, 150);
}

TEST_F(AggregatesTest, RefusesWhatDoesNotFit) {
  Aggregates own = Of(0, 10);
  ExpectError(absl::StatusCode::kInvalidArgument, {"other components"}, [&] { own.Merge(Aggregates(2, 0.25, 1)); });
}

// Rows [begin, end) of 2600 texts, whose order is not that of the rows.
Aggregates ManyGroups(int64_t begin, int64_t end) {
  Aggregates own(1, 0, 1);
  for (int64_t row = begin; row < end; ++row) {
    const double contribution = 1;
    RowNumbers numbers;
    numbers.row = row;
    numbers.value = static_cast<double>(row);
    numbers.contributions = &contribution;
    numbers.groups = {absl::StrCat(10000 + row * 1013 % 2600)};
    own.Add(numbers);
  }
  return own;
}

TEST_F(AggregatesTest, GroupsBeyondTheMostAreOneHoweverRowsAreCut) {
  const Aggregates whole = ManyGroups(0, 5200);
  const ColumnGroups& column = whole.groups().at(0);
  ASSERT_EQ(column.groups.size(), ColumnGroups::kMost);
  EXPECT_EQ(column.groups.begin()->first, "10000");
  EXPECT_EQ(column.groups.rbegin()->first, "10999");
  for (const auto& [text, own] : column.groups) EXPECT_EQ(own.rows, 2) << text;
  EXPECT_EQ(column.others.rows, 3200);
  EXPECT_EQ(column.others.sums, (std::vector<double>{3200}));
  Aggregates together = ManyGroups(0, 900);  // each of the parts has other texts, and only some too many
  for (const int64_t at : {900, 2500, 2600, 4000}) {
    const Aggregates next = ManyGroups(at, at == 900 ? 2500 : at == 2500 ? 2600 : at == 2600 ? 4000 : 5200);
    together.Merge(Aggregates::OfJson(next.ToJson()));
  }
  EXPECT_EQ(together.ToJson(), whole.ToJson());
}

TEST_F(AggregatesTest, RowsWithoutFiniteNumbersAreCounted) {
  Aggregates own(1, 0, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, contribution] :
       std::vector<std::pair<double, double>>{{1, 1}, {nan, 1}, {1, infinity}, {nan, nan}, {0, 0}}) {
    RowNumbers numbers;
    numbers.value = value;
    numbers.contributions = &contribution;
    own.Add(numbers);
  }
  EXPECT_EQ(own.not_finite(), 3);
  own.Merge(Aggregates::OfJson(own.ToJson()));
  EXPECT_EQ(own.not_finite(), 6);
}

TEST_F(AggregatesTest, RefusesWhatNoAggregatesWrote) {
  const Json good = Of(0, 100).ToJson();
  Aggregates::OfJson(good);
  const auto refuses = [&](const std::string& part, const std::function<void(Json&)>& change) {
    Json json = good;
    change(json);
    ExpectError(absl::StatusCode::kInvalidArgument, {"none that Addend wrote", part},
                [&] { Aggregates::OfJson(json); });
  };
  refuses("lack something", [](Json& json) { json.erase("sample"); });
  refuses("lack something", [](Json& json) { json = Json::array(); });
  refuses("\"rows\" is no count", [](Json& json) { json["rows"] = -1; });
  refuses("\"rows\" is no count", [](Json& json) { json["rows"] = 1e300; });
  refuses("another number of rows", [](Json& json) { json["rows"] = 101; });
  const auto sketch = [](Json& json) -> Json& { return json["components"][1]["sketch"]; };
  refuses("as many counts", [&](Json& json) { sketch(json)["counts"].erase(0); });
  refuses("does not hold -3 numbers", [&](Json& json) { sketch(json)["counts"][0] = -3; });
  refuses("no bucket", [&](Json& json) { sketch(json)["buckets"].back() = int64_t{1} << 40; });
  refuses("no bucket", [&](Json& json) { sketch(json)["buckets"][1] = sketch(json)["buckets"][0]; });
  refuses("2 numbers for 3 components", [](Json& json) { json["sample"][0]["contributions"].erase(0); });
  refuses("2 numbers for 3 components", [](Json& json) { json["groups"][0][0]["sums"].erase(0); });
}

}  // namespace
}  // namespace addend

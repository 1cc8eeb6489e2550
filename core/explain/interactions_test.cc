// Interactions of groups, against products by hand.
#include "core/explain/interactions.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>

#include "core/base/error_testing.h"
#include "core/explain/decompose_testing.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> EachForItself(int64_t count) {
  std::vector<int64_t> groups(static_cast<size_t>(count));
  std::iota(groups.begin(), groups.end(), 0);
  return groups;
}

AttributeOptions Asked(const std::string& target = "0") {
  AttributeOptions options;
  options.targets = {ParseTarget(target)};
  return options;
}

// Interactions in one row with these elements, under a function of columns.
Interactions Of(const std::function<Tensor(const Tensor&)>& function, const std::vector<double>& row,
                double baseline = 0) {
  const Tensor x = at::tensor(row, at::kDouble).view({1, -1});
  return AttributeInteractions(ModelOf(function), {SplitInput(x, {1}, Baseline::Of(baseline))},
                               EachForItself(x.size(1)), Asked());
}

Tensor Column(const Tensor& x, int64_t c) { return x.narrow(1, c, 1); }

TEST(Interactions, OfASumThereAreNone) {
  const Interactions found = Of([](const Tensor& x) { return Column(x, 0) + Column(x, 1); }, {3, 5});
  EXPECT_THAT(found.matrix, ElementsAre(ElementsAre(3, 0), ElementsAre(0, 5)));
  EXPECT_THAT(found.values, ElementsAre(5, 3));
  EXPECT_EQ(found.asymmetry, 0);
}

TEST(Interactions, OfAProductAreAllThereIs) {
  // Each is paid a half, and nothing without the other.
  const Interactions found = Of([](const Tensor& x) { return Column(x, 0) * Column(x, 1); }, {3, 5});
  EXPECT_THAT(found.matrix, ElementsAre(ElementsAre(0, 7.5), ElementsAre(7.5, 0)));
  EXPECT_THAT(found.contributions, ElementsAre(7.5, 7.5));
  EXPECT_THAT(found.values, ElementsAre(0, 0));
  EXPECT_EQ(found.asymmetry, 0);
  // From 1: (x - 1)(y + 1)/2 and (y - 1)(x + 1)/2. At its baseline the other one is 1: x - 1 and y - 1.
  const Interactions other = Of([](const Tensor& x) { return Column(x, 0) * Column(x, 1); }, {3, 5}, 1);
  EXPECT_THAT(other.contributions, ElementsAre(6, 8));
  EXPECT_THAT(other.matrix, ElementsAre(ElementsAre(2, 4), ElementsAre(4, 4)));
}

// In a batch, the sum would be that of all rows.
TEST(Interactions, OfAModelThatBranchesOnWhatItReadsAreFoundOneByOne) {
  const auto model = [](const Tensor& x) { return x.sum(1, true) * (x.sum().item<double>() > 0 ? 1.5 : 3.0); };
  const std::vector<double> row = {3, -1, 0.5, 0.25, -0.5};
  const Interactions found = Of(model, row, -1);
  for (size_t group = 0; group < row.size(); ++group) {
    std::vector<double> without = row;
    without[group] = -1;
    const Tensor x = at::tensor(without, at::kDouble).view({1, -1});
    EXPECT_DOUBLE_EQ(found.values[group], model(x).item<double>()) << group;
  }
  EXPECT_THAT(found.attribution.report.notes, testing::Contains(HasSubstr("attributed one by one")));
}

TEST(Interactions, OfThreeFactorsDependOnThePath) {
  const Interactions found = Of([](const Tensor& x) { return Column(x, 0) * Column(x, 1) * Column(x, 2); }, {2, 3, 4});
  EXPECT_THAT(found.contributions, ElementsAre(6, 6, 12));  // of 24
  EXPECT_THAT(found.matrix, ElementsAre(ElementsAre(-6, 6, 6), ElementsAre(6, -6, 6), ElementsAre(12, 12, -12)));
  // |6 - 6| + |6 - 12| + |6 - 12| over 12 + 18 + 18.
  EXPECT_EQ(found.asymmetry, 0.25);
}

TEST(Interactions, RowsAddUpAndEntriesAreDifferencesOfSingleAttributions) {
  const Tensor first = Random({6, 8}, 1);
  const Tensor second = Random({8, 3}, 2);
  const TracedModel model =
      ModelOf([&](const Tensor& x) { return at::matmul(at::gelu(at::matmul(x, first)), second).sigmoid(); });
  const Tensor x = Random({1, 6}, 3);
  const Tensor baseline = Random({1, 6}, 4);
  const std::vector<int64_t> groups = {0, 1, 1, 2, 0, 2};
  for (const std::string target : {"top1", "1-2", "log_probability:0"}) {
    SCOPED_TRACE(target);
    const Contributions whole = Attribute(model, {SplitInput(x, {1}, baseline)}, Asked(target)).targets[0];
    AttributeOptions pinned = Asked();
    pinned.targets = {whole.target};
    for (const int64_t at_once : {0, 1, 3}) {
      const Interactions found =
          AttributeInteractions(model, {SplitInput(x, {1}, baseline)}, groups, Asked(target), at_once);
      EXPECT_EQ(TargetText(found.numbers.target), TargetText(whole.target));
      double sum = found.numbers.reference + found.numbers.leftover;
      for (size_t i = 0; i < 3; ++i) {
        const double row = std::accumulate(found.matrix[i].begin(), found.matrix[i].end(), 0.0);
        EXPECT_NEAR(row, found.contributions[i], 1e-15);
        sum += row;
      }
      EXPECT_NEAR(sum, whole.value, 1e-12);
      for (int64_t j = 0; j < 3; ++j) {
        Tensor without = x.clone();
        for (int64_t c = 0; c < 6; ++c) {
          if (groups[c] == j) without[0][c] = baseline[0][c];
        }
        const Contributions one = Attribute(model, {SplitInput(without, {1}, baseline)}, pinned).targets[0];
        EXPECT_NEAR(found.values[j], one.value, 1e-12);
        for (int64_t i = 0; i < 3; ++i) {
          double own = 0;
          for (int64_t c = 0; c < 6; ++c) own += groups[c] == i ? whole.contributions[c] - one.contributions[c] : 0;
          if (i != j) {
            EXPECT_NEAR(found.matrix[i][j], own, 1e-12);
          }
        }
      }
    }
  }
}

TEST(Interactions, SayWhatDoesNotFit) {
  const TracedModel model = ModelOf([](const Tensor& x) { return x * 2; });
  const Input input = SplitInput(Random({1, 3}, 3), {1});
  const auto refused = [&](const std::vector<int64_t>& groups, const AttributeOptions& options) {
    return MessageOf([&] { AttributeInteractions(model, {input}, groups, options); });
  };
  EXPECT_THAT(refused({0, 1}, Asked()), HasSubstr("2 numbers of groups for 3 components"));
  EXPECT_THAT(refused({0, 1, -1}, Asked()), HasSubstr("groups count from 0"));
  AttributeOptions options = Asked();
  options.each_example = true;
  EXPECT_THAT(refused({0, 1, 2}, options), HasSubstr("one target of one example"));
  options = Asked();
  options.targets.push_back(ParseTarget("1"));
  EXPECT_THAT(refused({0, 1, 2}, options), HasSubstr("one target of one example"));
}

}  // namespace
}  // namespace addend

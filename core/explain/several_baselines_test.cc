// Means over baselines: against single attributions done one by one, and against sums by hand.
#include "core/explain/several_baselines.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "core/base/error_testing.h"
#include "core/explain/decompose_testing.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor Weights(int64_t rows, int64_t columns, int seed) { return Random({rows, columns}, seed); }

// Two layers with a GELU between them, [n, 6] -> [n, 3].
TracedModel Network() {
  return ModelOf([first = Weights(6, 8, 1), second = Weights(8, 3, 2)](const Tensor& x) {
    return at::matmul(at::gelu(at::matmul(x, first)), second);
  });
}

AttributeOptions Asked(const std::string& target, bool each_example = false) {
  AttributeOptions options;
  options.targets = {ParseTarget(target)};
  options.each_example = each_example;
  return options;
}

std::vector<SeveralBaselines> Against(const Tensor& rows) {
  SeveralBaselines several;
  several.rows = rows;
  return {several};
}

// Every example against every baseline by itself: [examples][baselines].
std::vector<std::vector<Contributions>> OneByOne(const TracedModel& model, const Tensor& x, const Tensor& baselines,
                                                 const std::string& target) {
  std::vector<std::vector<Contributions>> found;
  for (int64_t r = 0; r < x.size(0); ++r) {
    found.emplace_back();
    for (int64_t k = 0; k < baselines.size(0); ++k) {
      const Input input = SplitInput(x.narrow(0, r, 1), {1}, baselines.select(0, k));
      found.back().push_back(Attribute(model, {input}, Asked(target)).targets[0]);
    }
  }
  return found;
}

void ExpectMeans(const std::vector<Contributions>& singles, const Contributions& mean, const BaselineSpread& spread) {
  const auto count = static_cast<double>(singles.size());
  EXPECT_EQ(spread.count, static_cast<int64_t>(singles.size()));
  double reference = 0;
  double leftover = 0;
  for (const Contributions& one : singles) {
    reference += one.reference / count;
    leftover += one.leftover / count;
  }
  EXPECT_NEAR(mean.value, singles[0].value, 1e-12);
  EXPECT_NEAR(mean.reference, reference, 1e-12);
  EXPECT_NEAR(mean.leftover, leftover, 1e-12);
  EXPECT_NEAR(mean.recovery, mean.value, 1e-12);
  for (size_t c = 0; c < mean.contributions.size(); ++c) {
    double sum = 0;
    for (const Contributions& one : singles) sum += one.contributions[c];
    EXPECT_NEAR(mean.contributions[c], sum / count, 1e-12);
    double squares = 0;
    double same = 0;
    for (const Contributions& one : singles) {
      squares += std::pow(one.contributions[c] - sum / count, 2);
      same += one.contributions[c] * sum > 0 ? 1 : 0;
    }
    EXPECT_NEAR(spread.standard_errors[c], std::sqrt(squares / (count - 1) / count), 1e-12);
    EXPECT_EQ(spread.same_sign[c], same / count);
  }
}

TEST(AttributeBaselines, AreTheMeanOfSingleAttributions) {
  const TracedModel model = Network();
  const Tensor x = Random({3, 6}, 5);
  const Tensor baselines = Random({7, 6}, 6);
  for (const std::string target : {"1", "top1", "2-0", "log_probability:1", "entropy"}) {
    SCOPED_TRACE(target);
    const auto singles = OneByOne(model, x, baselines, target);
    const Input one = SplitInput(x.narrow(0, 1, 1), {1});
    const BaselinesAttribution alone = AttributeBaselines(model, {one}, Against(baselines), Asked(target));
    ASSERT_EQ(alone.mean.targets.size(), 1u);
    ExpectMeans(singles[1], alone.mean.targets[0], alone.spread[0]);
    ASSERT_EQ(alone.mean.inputs[0].sizes(), at::IntArrayRef({1, 1, 6}));
    // In batches of every size, also such as end in the middle of a row.
    for (const int64_t at_once : {0, 1, 2, 5, 7, 21}) {
      const BaselinesAttribution all =
          AttributeBaselines(model, {SplitInput(x, {1})}, Against(baselines), Asked(target, true), at_once);
      ASSERT_EQ(all.mean.targets.size(), 3u);
      ASSERT_EQ(all.mean.inputs[0].sizes(), x.sizes());
      for (int64_t r = 0; r < 3; ++r) {
        ExpectMeans(singles[r], all.mean.targets[r], all.spread[r]);
        for (int64_t c = 0; c < 6; ++c) {
          EXPECT_NEAR(all.mean.inputs[0][r][c].item<double>(), all.mean.targets[r].contributions[c], 1e-12);
        }
      }
    }
  }
}

TEST(AttributeBaselines, OfSeveralTargetsOfEachExample) {
  const TracedModel model = Network();
  const Tensor x = Random({3, 6}, 5);
  const Tensor baselines = Random({4, 6}, 6);
  AttributeOptions options = Asked("0", true);
  options.targets = {ParseTarget("2"), ParseTarget("log_probability:1")};
  options.every_target = true;
  const BaselinesAttribution all = AttributeBaselines(model, {SplitInput(x, {1})}, Against(baselines), options, 5);
  ASSERT_EQ(all.mean.targets.size(), 6u);
  ASSERT_EQ(all.mean.inputs[0].sizes(), at::IntArrayRef({2, 3, 6}));
  for (int64_t t = 0; t < 2; ++t) {
    const auto singles = OneByOne(model, x, baselines, t == 0 ? "2" : "log_probability:1");
    for (int64_t r = 0; r < 3; ++r) {
      SCOPED_TRACE(std::to_string(t) + " " + std::to_string(r));
      const Contributions& mean = all.mean.targets[3 * t + r];
      ExpectMeans(singles[r], mean, all.spread[3 * t + r]);
      for (int64_t c = 0; c < 6; ++c) {
        EXPECT_NEAR(all.mean.inputs[0][t][r][c].item<double>(), mean.contributions[c], 1e-12);
      }
    }
  }
}

TEST(AttributeBaselines, ReferenceIsTheMeanOfTheModel) {
  const TracedModel model = Network();
  const Tensor baselines = Random({5, 6}, 8);
  const Tensor x = Random({1, 6}, 9);
  const Contributions mean =
      AttributeBaselines(model, {SplitInput(x, {1})}, Against(baselines), Asked("2")).mean.targets[0];
  const Tensor outputs = model.Run({baselines}).toTensor();
  EXPECT_NEAR(mean.reference, outputs.select(1, 2).mean().item<double>(), 1e-12);
  EXPECT_NEAR(mean.value, model.Run({x}).toTensor()[0][2].item<double>(), 1e-12);
  double sum = mean.reference + mean.leftover;
  for (const double c : mean.contributions) sum += c;
  EXPECT_NEAR(sum, mean.value, 1e-12);
}

TEST(AttributeBaselines, OfEqualOnesAreThatOne) {
  const TracedModel model = Network();
  const Tensor x = Random({1, 6}, 9);
  const Tensor baseline = Random({1, 6}, 4);
  const BaselinesAttribution five =
      AttributeBaselines(model, {SplitInput(x, {1})}, Against(baseline.expand({5, 6})), Asked("0"));
  const Contributions one = Attribute(model, {SplitInput(x, {1}, baseline)}, Asked("0")).targets[0];
  for (size_t c = 0; c < 6; ++c) {
    EXPECT_NEAR(five.mean.targets[0].contributions[c], one.contributions[c], 1e-13);
    EXPECT_NEAR(five.spread[0].standard_errors[c], 0, 1e-13);
    EXPECT_EQ(five.spread[0].same_sign[c], 1);
  }
  const BaselinesAttribution single = AttributeBaselines(model, {SplitInput(x, {1})}, Against(baseline), Asked("0"));
  EXPECT_EQ(single.mean.targets[0].contributions, one.contributions);
  EXPECT_TRUE(std::isnan(single.spread[0].standard_errors[0]));
}

// Every run draws what the first one drew, and whoever draws next draws what follows one run.
TEST(AttributeBaselines, DrawTheSameNumbersInAllRuns) {
  const TracedModel model = ModelOf([](const Tensor& x) { return x * 2 + at::randn({6}, at::kDouble); });
  const Input input = SplitInput(Random({1, 6}, 5), {1});
  for (const int64_t at_once : {1, 3}) {
    at::manual_seed(7);
    const BaselinesAttribution found =
        AttributeBaselines(model, {input}, Against(Random({5, 6}, 6)), Asked("2"), at_once);
    const Tensor next = at::randn({3});
    EXPECT_NEAR(found.mean.targets[0].recovery, found.mean.targets[0].value, 1e-12);
    at::manual_seed(7);
    Attribute(model, {input}, Asked("2"));
    EXPECT_TRUE(at::equal(next, at::randn({3})));
  }
}

TEST(AttributeBaselines, DoNotDependOnTheirOrder) {
  const TracedModel model = Network();
  const Input input = SplitInput(Random({1, 6}, 9), {1});
  const Tensor baselines = Random({9, 6}, 4);
  const auto forward = AttributeBaselines(model, {input}, Against(baselines), Asked("0"));
  const auto backward = AttributeBaselines(model, {input}, Against(baselines.flip({0})), Asked("0"));
  for (size_t c = 0; c < 6; ++c) {
    EXPECT_NEAR(forward.mean.targets[0].contributions[c], backward.mean.targets[0].contributions[c], 1e-13);
    EXPECT_NEAR(forward.spread[0].standard_errors[c], backward.spread[0].standard_errors[c], 1e-13);
    EXPECT_EQ(forward.spread[0].same_sign[c], backward.spread[0].same_sign[c]);
  }
}

// f = 2 x0 - x1: by hand.
TEST(AttributeBaselines, OfALinearModelAreByHand) {
  const TracedModel model = ModelOf([](const Tensor& x) {
    return at::matmul(x, at::tensor({2.0, -1.0}, at::kDouble).view({2, 1}));
  });
  const Input input = SplitInput(at::tensor({3.0, 1.0}, at::kDouble).view({1, 2}), {1});
  const Tensor baselines = at::tensor({0.0, 0.0, 2.0, 2.0, 4.0, 4.0, 2.0, 2.0}, at::kDouble).view({4, 2});
  const BaselinesAttribution found = AttributeBaselines(model, {input}, Against(baselines), Asked("0"));
  // 2 (3 - b): 6, 2, -2, 2; -(1 - b): -1, 1, 3, 1.
  EXPECT_THAT(found.mean.targets[0].contributions, ElementsAre(2, 1));
  EXPECT_EQ(found.mean.targets[0].reference, 2);
  EXPECT_EQ(found.mean.targets[0].value, 5);
  EXPECT_THAT(found.spread[0].same_sign, ElementsAre(0.75, 0.75));
  EXPECT_DOUBLE_EQ(found.spread[0].standard_errors[0], std::sqrt(32.0 / 3 / 4));
  EXPECT_DOUBLE_EQ(found.spread[0].standard_errors[1], std::sqrt(8.0 / 3 / 4));
}

TEST(AttributeBaselines, RunOneByOneWhereAModelTakesNoBatch) {
  const Tensor weights = Weights(6, 3, 3);
  const TracedModel fixed = ModelOf([weights](const Tensor& x) {
    return at::matmul(x.reshape({1, 6}), weights).relu();
  });
  const Tensor x = Random({1, 6}, 9);
  const Tensor baselines = Random({4, 6}, 4);
  const BaselinesAttribution found = AttributeBaselines(fixed, {SplitInput(x, {1})}, Against(baselines), Asked("1"));
  EXPECT_THAT(found.mean.report.notes, testing::Contains(HasSubstr("they were attributed one by one")));
  ExpectMeans(OneByOne(fixed, x, baselines, "1")[0], found.mean.targets[0], found.spread[0]);
  // A vector counts no examples.
  const TracedModel vectors = ModelOf([weights](const Tensor& row) { return at::matmul(row, weights).tanh(); });
  const auto vector = AttributeBaselines(vectors, {SplitInput(x[0], {0})}, Against(baselines), Asked("1"));
  EXPECT_NEAR(vector.mean.targets[0].recovery, vector.mean.targets[0].value, 1e-12);
  EXPECT_EQ(vector.spread[0].count, 4);
}

TEST(AttributeBaselines, RefuseExamplesThatInfluenceEachOther) {
  const TracedModel normalized = ModelOf([](const Tensor& x) {
    const Tensor channels = x.view({x.size(0), 2, 3});
    return at::batch_norm(channels, {}, {}, {}, {}, /*training=*/true, 0.1, 1e-5, false).reshape({x.size(0), 6});
  });
  const Tensor x = Random({3, 6}, 9);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"influence each other", "evaluation mode"}, [&] {
    AttributeBaselines(normalized, {SplitInput(x, {1})}, Against(Random({4, 6}, 4)), Asked("1", true));
  });
  // The last one alone is influenced.
  const TracedModel running = ModelOf([](const Tensor& row) { return at::cumsum(row, 0); });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"influence each other"}, [&] {
    AttributeBaselines(running, {SplitInput(x, {1})}, Against(Random({4, 6}, 4)), Asked("1", true));
  });
}

class BaselineFiles : public testing::Test {
 protected:
  std::string Save(const Tensor& rows) {
    const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/rows.safetensors";
    TensorFile file;
    file.tensors.emplace_back("input", rows.contiguous());
    WriteTensorFile(path, file);
    return path;
  }
};

TEST_F(BaselineFiles, AreRowsOrTheNearestOfThem) {
  // The second column varies ten times as much, the third not at all.
  const Tensor rows =
      at::tensor({0.0, 0.0, 7.0, 1.0, 10.0, 7.0, 2.0, 20.0, 7.0, 3.0, 30.0, 7.0}, at::kDouble).view({4, 3});
  const std::string path = Save(rows);
  const Tensor x = at::tensor({1.2, 24.0, 0.0}, at::kDouble);
  EXPECT_TRUE(at::equal(RowsOfWord("rows:" + path, x), rows));
  // In units of the deviation (1.29, 12.9) squares are proportional to 1.2^2 + 2.4^2, 0.2^2 + 1.4^2, 0.8^2 + 0.4^2,
  // 1.8^2 + 0.6^2: 7.2, 2, 0.8, 3.6.
  EXPECT_TRUE(at::equal(RowsOfWord("nearest:3:" + path, x), rows.index_select(0, at::tensor({2, 1, 3}, at::kLong))));
  // Equal distances come in the order of the file.
  const Tensor middle = at::tensor({1.5, 15.0, 0.0}, at::kDouble);
  EXPECT_TRUE(at::equal(RowsOfWord("nearest:2:" + path, middle), rows.narrow(0, 1, 2)));
  const auto refused = [&](const std::string& word, const Tensor& example) {
    return MessageOf([&] { RowsOfWord(word, example); });
  };
  EXPECT_THAT(refused("nearest:5:" + path, x), HasSubstr("holds 4 rows, which is fewer"));
  EXPECT_THAT(refused("nearest:x:" + path, x), HasSubstr("a whole number from 1 on"));
  EXPECT_THAT(refused("nearest:2:" + path, x.narrow(0, 0, 2)), HasSubstr("do not fit an input of shape"));
  EXPECT_THAT(refused("nearest:2:" + path, x * std::nan("")), HasSubstr("not finite"));
  EXPECT_THAT(refused("near:2", x), HasSubstr("rows:FILE or nearest:COUNT:FILE"));
  EXPECT_EQ(FileOfSeveralBaselinesWord("nearest:2:a.npy"), "a.npy");
}

TEST_F(BaselineFiles, AreThoseOfEachRow) {
  const TracedModel model = Network();
  const Tensor rows = Random({20, 6}, 12);
  SeveralBaselines nearest;
  nearest.word = "nearest:3:" + Save(rows);
  const Tensor x = Random({4, 6}, 13);
  const BaselinesAttribution all = AttributeBaselines(model, {SplitInput(x, {1})}, {nearest}, Asked("1", true));
  for (int64_t r = 0; r < 4; ++r) {
    const Tensor own = x.narrow(0, r, 1);
    const auto singles = OneByOne(model, own, RowsOfWord(nearest.word, own), "1");
    ExpectMeans(singles[0], all.mean.targets[r], all.spread[r]);
  }
}

TEST(AttributeBaselines, SayWhatDoesNotFit) {
  const TracedModel model = Network();
  const Input input = SplitInput(Random({1, 6}, 9), {1});
  const auto refused = [&](const Tensor& rows) {
    return MessageOf([&] { AttributeBaselines(model, {input}, Against(rows), Asked("1")); });
  };
  EXPECT_THAT(refused(Random({4, 5}, 4)), HasSubstr("do not fit an example of shape [1, 6]"));
  EXPECT_THAT(refused(at::zeros({0, 6}, at::kDouble)), HasSubstr("there is no baseline"));
  EXPECT_THAT(MessageOf([&] { AttributeBaselines(model, {input}, {}, Asked("1")); }),
              HasSubstr("no input has several baselines"));
  // Ids are whole numbers of their own dtype, and no others are made of what is given.
  const TracedModel reader =
      ModelOf([table = Weights(5, 3, 1)](const Tensor& ids) { return at::embedding(table, ids.to(at::kLong)).sum(1); });
  const auto of_ids = [&](const Tensor& rows) {
    const Input ids = SplitInput(at::tensor({1, 4}, at::kByte).view({1, 2}), {1});
    return MessageOf([&] { AttributeBaselines(reader, {ids}, Against(rows), Asked("1")); });
  };
  EXPECT_EQ(of_ids(at::tensor({0, 2}, at::kLong).view({2, 1})), "(no error)");
  EXPECT_THAT(of_ids(at::tensor({0.0, 2.0}, at::kDouble).view({2, 1})), HasSubstr("a baseline of dtype f64"));
  EXPECT_THAT(of_ids(at::tensor({0, 258}, at::kLong).view({2, 1})), HasSubstr("holds a number that u8"));
  AttributeOptions operators = Asked("1");
  operators.operators = true;
  EXPECT_THAT(MessageOf([&] {
                AttributeBaselines(model, {input}, Against(Random({2, 6}, 4)), operators);
              }),
              HasSubstr("operators"));
}

}  // namespace
}  // namespace addend

// How often the host waits for a device: the numbers that it reads in a run, however many operators that has.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/host_read.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/plan.h"
#include "core/model/model.h"
#include "tests/budgets/networks.h"
#include "tests/far/device.h"

namespace addend {
namespace {

using at::Tensor;

class ReadsTest : public testing::Test {
 protected:
  void SetUp() override { far::SetModes("count"); }

  template <typename Network = Encoder>
  static TracedModel ModelOf(int layers) {
    const Network network(layers, far::TheDevice());
    return TracedModel(FromFunction([network](const std::vector<Tensor>& in) { return network(in[0]); }));
  }
  static Input Tokens() {
    at::manual_seed(8);
    Input input;
    input.value = at::randn({1, kTokens, kWidth}).to(far::TheDevice());
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(0.0);
    return input;
  }
  template <typename Work>
  static int64_t ReadsOf(const Work& work) {
    const int64_t before = addend_far_host_reads();
    work();
    return addend_far_host_reads() - before;
  }
};

constexpr int64_t kMost = 10;

// Each kind of target, on networks of one layer and of six.
TEST_F(ReadsTest, AnAttributionReadsAFewNumbers) {
  Target of_index;
  of_index.index = {0, 1};
  of_index.top1 = false;
  Target of_row = of_index;
  of_row.quantity = Target::Quantity::kLogProbability;
  for (const Target& target : {Target(), of_index, of_row}) {
    AttributeOptions options;
    options.targets = {target};
    for (const int layers : {1, 6}) {
      const TracedModel model = ModelOf(layers);
      EXPECT_LE(ReadsOf([&] { Attribute(model, {Tokens()}, options); }), kMost) << layers << " layers";
    }
  }
}

TEST_F(ReadsTest, SoDoOtherNetworks) {
  for (const int layers : {1, 6}) {
    for (const TracedModel& model : {ModelOf<Convolutions>(layers), ModelOf<Gates>(layers)}) {
      EXPECT_LE(ReadsOf([&] { Attribute(model, {Tokens()}, {}); }), kMost) << layers << " layers";
      EXPECT_LE(ReadsOf([&] { model.Decompose({Tokens()}); }), kMost) << layers << " layers";
    }
  }
}

// Rows that begin in an embedding.
TEST_F(ReadsTest, SoDoModelsOfIds) {
  Input ids;
  ids.value = at::arange(1, kTokens + 1, at::kLong).view({1, kTokens}).to(far::TheDevice());
  ids.split = Split::AlongDims({1});
  ids.baseline = Baseline::Token(0);
  const Tensor table = Weight(2 * kTokens, kWidth).to(far::TheDevice());
  for (const int layers : {1, 6}) {
    const Encoder network(layers, far::TheDevice());
    const TracedModel model(
        FromFunction([network, table](const std::vector<Tensor>& in) { return network(at::embedding(table, in[0])); }));
    EXPECT_LE(ReadsOf([&] { Attribute(model, {ids}, {}); }), kMost) << layers << " layers";
    EXPECT_LE(ReadsOf([&] { model.Decompose({ids}); }), kMost) << layers << " layers";
  }
}

TEST_F(ReadsTest, TheRelevanceOfOperatorsIsReadAtOnce) {
  AttributeOptions options;
  options.operators = true;
  EXPECT_LE(ReadsOf([&] { Attribute(ModelOf(6), {Tokens()}, options); }), kMost);
}

TEST_F(ReadsTest, ADecompositionReadsAFewNumbers) {
  for (const int layers : {1, 6}) {
    const TracedModel model = ModelOf(layers);
    EXPECT_LE(ReadsOf([&] { model.Decompose({Tokens()}); }), kMost) << layers << " layers";
  }
}

TEST_F(ReadsTest, APlanReadsAFewNumbers) {
  const auto plan = AttributionPlan::Make(ModelOf(6).model(), {Tokens()}, {});
  plan->Attribute({Tokens().value});
  EXPECT_LE(ReadsOf([&] { plan->Attribute({Tokens().value}); }), kMost);
}

// Numbers that are read together are those that are read one after the other.
TEST_F(ReadsTest, ItemsGetTheirOwnNumbers) {
  const Tensor all = at::arange(12, at::kFloat).to(far::TheDevice());
  std::vector<double> sums(6, 0);
  const auto item = [&](size_t k) {
    double sum = 0;
    // Each item reads as many numbers as its index says, the second depending on the first.
    for (size_t n = 0; n < k; ++n) sum += ReadNumber(all.narrow(0, static_cast<int64_t>(k + n), 1) + sum);
    const Tensor both = ReadNumbers(all.narrow(0, static_cast<int64_t>(k), 2));
    sums[k] = sum + both[1].item<double>();
  };
  const int64_t together = ReadsOf([&] { ReadTogether(sums.size(), item); });
  const std::vector<double> found = sums;
  const int64_t apart = ReadsOf([&] {
    for (size_t k = 0; k < sums.size(); ++k) item(k);
  });
  EXPECT_EQ(found, sums);
  EXPECT_EQ(together, 4 + 1 + 2);  // four for all, then the last two for themselves
  EXPECT_EQ(apart, 15 + 6);
}

TEST_F(ReadsTest, AnErrorOfAnItemEndsAll) {
  const Tensor number = at::ones({1}).to(far::TheDevice());
  int ended = 0;
  EXPECT_THROW(ReadTogether(3,
                            [&](size_t k) {
                              if (k == 1 && ReadFlag(number)) throw std::runtime_error("1");
                              ++ended;
                            }),
               std::runtime_error);
  EXPECT_EQ(ended, 2);
  // Reading together has ended: numbers are read at once again.
  EXPECT_EQ(ReadNumber(number), 1);
}

}  // namespace
}  // namespace addend

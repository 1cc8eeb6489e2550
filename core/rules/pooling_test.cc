#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/rules/gather_kernel.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

struct Pooled {
  std::string name;
  std::string op;
  std::vector<GivenArgument> arguments;
};

// Windows that overlap, reach beyond the input, have gaps, differ in size, differ from plane to plane; `moving` draws
// their input.
template <typename Moving>
std::vector<Pooled> Poolings(Draw& draw, const Moving& moving) {
  return {{"overlapping", "aten::max_pool2d_with_indices", {moving({2, 3, 9, 8}), Sizes{3}, Sizes{2}, Sizes{1}}},
          {"with gaps", "aten::max_pool2d_with_indices", {moving({3, 9, 8}), Sizes{2}, Sizes{1}, Sizes{0}, Sizes{2}}},
          {"line", "aten::max_pool1d", {moving({2, 3, 17}), Sizes{4}, Sizes{3}, Sizes{2}}},
          {"adaptive", "aten::adaptive_max_pool2d", {moving({2, 2, 7, 5}), Sizes{3, 4}}},
          {"fractional",
           "aten::fractional_max_pool2d",
           {moving({2, 3, 7, 8}), Sizes{2, 3}, Sizes{3, 2}, draw.Uniform({2, 3, 2}, 0, 1)}}};
}

void ExpectLoopsAreTheAtenForm(const Pooled& pooled, const Policy& policy, Draw& draw) {
  SCOPED_TRACE(pooled.name + " " + PresetName(policy.preset) + " " + c10::toString(draw.dtype()));
  RuleCall call = OperatorCall(pooled.op, pooled.arguments).Describe(policy);
  const RuleResult loops = BuildRule(call);
  // Require gradients, so that the rule is composed of operators, which autograd can see.
  call.operands[0].value = call.operands[0].value.detach().clone().set_requires_grad(true);
  const RuleResult aten = BuildRule(call);
  const double allowed = draw.dtype() == at::kDouble ? 1e-13 : 1e-5;
  const at::Tensor rows = RandomRows(draw, call, loops, 3)[0];
  EXPECT_LE(Difference(loops.map->Forward({rows})[0], aten.map->Forward({rows})[0].detach(), 1), allowed);
  const Rows g = RandomCotangents(draw, call);
  EXPECT_LE(Difference(loops.map->Transpose(g)[0], aten.map->Transpose(g)[0].detach(), 1), allowed);
  EXPECT_EQ(loops.exact, aten.exact);
}

TEST(MaxPoolTest, TheLoopsAreTheAtenForm) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 3);
    for (const Policy* policy : {&Faithful(), &Fast()}) {
      for (const Pooled& pooled : Poolings(draw, [&](const Sizes& sizes) { return draw.Moving(sizes); })) {
        ExpectLoopsAreTheAtenForm(pooled, *policy, draw);
      }
    }
  }
}

// Inputs as behind a rectifier: windows of nothing but zeros, baselines that are the same everywhere.
TEST(MaxPoolTest, TheLoopsShareTiesAsTheAtenFormDoes) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 4);
    const auto moving = [&](const Sizes& sizes) {
      return GivenArgument(draw.Integers(sizes, 3).to(dtype), draw.Integers(sizes, 2).to(dtype));
    };
    const auto flat = [&](const Sizes& sizes) {
      return GivenArgument(draw.Normal(sizes).clamp_min(0), at::zeros(sizes, dtype));
    };
    for (const Policy* policy : {&Faithful(), &Fast()}) {
      for (const Pooled& pooled : Poolings(draw, moving)) ExpectLoopsAreTheAtenForm(pooled, *policy, draw);
      for (const Pooled& pooled : Poolings(draw, flat)) ExpectLoopsAreTheAtenForm(pooled, *policy, draw);
    }
  }
}

TEST(MaxPoolTest, OfInfinitiesAndNanTheLoopsTakeWhatTheAtenFormTakes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Draw draw(at::kDouble, 5);
  const auto moving = [&](const Sizes& sizes) {
    const at::Tensor low = draw.Booleans(sizes);
    return GivenArgument(draw.Normal(sizes).masked_fill(low, -kInfinity),
                         draw.Normal(sizes).masked_fill(low, -kInfinity));
  };
  for (const Pooled& pooled : Poolings(draw, moving)) ExpectLoopsAreTheAtenForm(pooled, Fast(), draw);
  const auto nan = [&](const Sizes& sizes) {
    at::Tensor value = draw.Normal(sizes);
    value.view({-1}).index_fill_(0, at::tensor({3, 11, 30}, at::kLong), std::numeric_limits<double>::quiet_NaN());
    return GivenArgument(value, draw.Normal(sizes));
  };
  for (const Pooled& pooled : Poolings(draw, nan)) ExpectLoopsAreTheAtenForm(pooled, Fast(), draw);
}

// A window with NaN has no parts, and no numbers that look like some.
TEST(MaxPoolTest, RowsThroughAWindowWithNanAreNan) {
  const at::Tensor value = at::tensor({1.0, 2.0, std::numeric_limits<double>::quiet_NaN(), 4.0}, at::kDouble);
  for (const bool in_graph : {false, true}) {
    RuleCall call =
        OperatorCall("aten::max_pool1d", {{value.view({1, 1, 4}), at::zeros({1, 1, 4}, at::kDouble)}, Sizes{2}})
            .Describe(Faithful());
    if (in_graph) call.operands[0].value = call.operands[0].value.detach().clone().set_requires_grad(true);
    const at::Tensor passed = BuildRule(call).map->Forward({at::ones({1, 1, 1, 4}, at::kDouble)})[0].flatten();
    EXPECT_EQ(passed[0].item<double>(), 1);
    EXPECT_TRUE(passed[1].isnan().item<bool>());
  }
}

TEST(GatherKernelTest, ComputesItsFormula) {
  // Elements 0 and 2 twice, 3 never; the second output reads one element only.
  const std::vector<int64_t> source = {0, 2, 1, -1, 2, 0};
  const std::vector<double> weight = {1, 10, 100, 5, 1000, 10000};
  const std::vector<double> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const GatherView<double> view = {source.data(), weight.data(), 3, 2, 4};
  std::vector<double> output(6, -1);
  GatherRows(view, rows.data(), 2, output.data());
  EXPECT_EQ(output, (std::vector<double>{31, 200, 13000, 75, 600, 57000}));
  const std::vector<double> cotangent = {1, 2, 3};
  std::vector<double> back(4, -1);
  ScatterCotangent(view, cotangent.data(), back.data());
  EXPECT_EQ(back, (std::vector<double>{30001, 200, 3010, 0}));
  const GatherView<double> plain = {source.data(), nullptr, 3, 2, 4};
  GatherRows(plain, rows.data(), 2, output.data());
  EXPECT_EQ(output, (std::vector<double>{4, 2, 4, 12, 6, 12}));
  ScatterCotangent(plain, cotangent.data(), back.data());
  EXPECT_EQ(back, (std::vector<double>{4, 2, 4, 0}));
}

// More outputs than one thread takes at a time.
TEST(GatherKernelTest, TakesAllOfManyOutputs) {
  constexpr int64_t kOutputs = 20001;
  std::vector<int64_t> source(kOutputs);
  std::vector<float> rows(2 * kOutputs);
  for (int64_t o = 0; o < kOutputs; ++o) source[o] = kOutputs - 1 - o;
  for (int64_t i = 0; i < 2 * kOutputs; ++i) rows[i] = static_cast<float>(i);
  std::vector<float> output(2 * kOutputs, -1);
  GatherRows<float>({source.data(), nullptr, kOutputs, 1, kOutputs}, rows.data(), 2, output.data());
  for (int64_t o = 0; o < kOutputs; ++o) {
    ASSERT_EQ(output[o], static_cast<float>(kOutputs - 1 - o));
    ASSERT_EQ(output[kOutputs + o], static_cast<float>(2 * kOutputs - 1 - o));
  }
}

}  // namespace
}  // namespace addend

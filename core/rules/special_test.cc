// Tests of special functions and selections beyond the laws: steps on the line, elements that are no numbers, and
// dimensions too long for exact shares.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor Vector(std::vector<double> values) { return at::tensor(values, at::kDouble); }

// The matrix of a rule with one input and one output.
at::Tensor MatrixOf(const RuleResult& rule, int64_t inputs) {
  return rule.map->Forward({at::eye(inputs, at::kDouble)})[0].reshape({inputs, -1}).t();
}

RuleResult BuildFor(const std::string& op, const std::vector<GivenArgument>& arguments, RuleCall* call,
                    const Policy& policy = Faithful()) {
  *call = OperatorCall(op, arguments).Describe(policy);
  return BuildRule(*call);
}

TEST(StepsTest, WhatLiesBeyondAStepIsLeftOver) {
  struct Step {
    const char* op;
    std::vector<GivenArgument> arguments;
  };
  const GivenArgument x(Vector({7.5, -7.5}), Vector({2.5, 2.5}));
  for (const Step& step : std::vector<Step>{{"aten::fmod.Scalar", {x, 2.0}},
                                            {"aten::remainder.Scalar", {x, 2.0}},
                                            {"aten::frac", {x}},
                                            {"aten::frexp.Tensor", {x}}}) {
    RuleCall call;
    const RuleResult rule = BuildFor(step.op, step.arguments, &call);
    EXPECT_FALSE(rule.exact) << step.op;
    EXPECT_GT(RelativeBracket(call, rule), 0) << step.op;
    // The slope between two steps, at the value.
    const at::Tensor here = call.run(call.arguments, {x.value.toTensor()})[0];
    const at::Tensor there = call.run(call.arguments, {x.value.toTensor() + 1e-3})[0];
    const at::Tensor row = at::ones({1, 2}, at::kDouble) * 1e-3;
    EXPECT_LE(Difference(rule.map->Forward({row})[0][0], there - here, 1e-3), 1e-9) << step.op;
  }
}

TEST(StepsTest, ASignThatChangesPassesNothingItself) {
  RuleCall call;
  const RuleResult rule =
      BuildFor("aten::copysign.Tensor",
               {GivenArgument(Vector({3, 3}), Vector({1, 1})), GivenArgument(Vector({2, 2}), Vector({1, -1}))}, &call);
  EXPECT_FALSE(rule.exact);
  const at::Tensor ones = at::ones({1, 2}, at::kDouble);
  // The slope is one if both signs are plus; if they differ, the product takes their middle.
  ASSERT_EQ(rule.inputs, std::vector<int>{0});
  EXPECT_TRUE(rule.map->Forward({ones})[0].equal(at::tensor({1.0, 0.0}, at::kDouble).view({1, 2})));
}

TEST(NanToNumTest, OnlyNumbersPass) {
  RuleCall call;
  const at::Tensor value = Vector({1, kNan, kInfinity, -2});
  const RuleResult rule =
      BuildFor("aten::nan_to_num", {GivenArgument(value, Vector({0.5, kNan, kInfinity, 3})), 7.0, 8.0, 9.0}, &call);
  EXPECT_TRUE(rule.exact);
  const at::Tensor rows = at::ones({1, 4}, at::kDouble);
  EXPECT_TRUE(rule.map->Forward({rows})[0].equal(at::tensor({1.0, 0.0, 0.0, 1.0}, at::kDouble).view({1, 4})));
  RuleCall other;
  EXPECT_FALSE(
      BuildFor("aten::nan_to_num", {GivenArgument(value, Vector({0.5, 1, 2, 3})), 7.0, 8.0, 9.0}, &other).exact);
}

// The lower median of the numbers only: {1, 3} of the first line, of which 1 stays below 3 for half of the line.
TEST(MedianTest, LeavesOutWhatIsNoNumber) {
  RuleCall call;
  const GivenArgument x(at::stack({Vector({1, kNan, 3}), Vector({5, 6, 7})}),
                        at::stack({Vector({3, kNan, 1}), Vector({0, 0, 0})}));
  const RuleResult rule = BuildFor("aten::nanmedian.dim", {x, int64_t{1}}, &call);
  EXPECT_TRUE(rule.exact);
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  const at::Tensor rows = at::arange(6, at::kDouble).view({1, 2, 3});
  // Element 0 is smaller than element 2 for half of the line, then the other way round.
  EXPECT_LE(Difference(rule.map->Forward({rows})[0], at::tensor({1.0, 4.0}, at::kDouble).view({1, 2})), 1e-15);
  RuleCall with_nan;
  const RuleResult median = BuildFor("aten::median.dim", {x, int64_t{1}}, &with_nan);
  EXPECT_EQ(median.map->Forward({rows})[0][0][0].item<double>(), 0) << "NaN has no parts";
  EXPECT_EQ(median.map->Forward({rows})[0][0][1].item<double>(), 4);
}

TEST(ModeTest, ElementsThatMoveTogetherShare) {
  RuleCall call;
  const RuleResult rule =
      BuildFor("aten::mode", {GivenArgument(Vector({4, 1, 4, 2, 9}), Vector({1, 1.5, 1, 7, 8}))}, &call);
  EXPECT_TRUE(rule.exact);
  EXPECT_TRUE(MatrixOf(rule, 5).equal(at::tensor({0.5, 0.0, 0.5, 0.0, 0.0}, at::kDouble).view({1, 5})));
  // Equal at the value by chance: the mode jumps there.
  RuleCall chance;
  EXPECT_FALSE(BuildFor("aten::mode", {GivenArgument(Vector({4, 4, 1}), Vector({1, 2, 3}))}, &chance).exact);
}

TEST(SelectionTest, LongDimensionsAreSampledAndSaySo) {
  Draw draw(at::kDouble, 3);
  RuleCall call;
  const int64_t n = 20000;
  const RuleResult rule = BuildFor("aten::sort", {draw.Moving({1, n})}, &call);
  EXPECT_EQ(rule.kind, Kind::kPath);
  EXPECT_FALSE(rule.exact);
  EXPECT_GT(rule.quadrature, 0);
  EXPECT_LT(rule.quadrature, 0.2);
  EXPECT_LE(RelativeBracket(call, rule), rule.quadrature * 1.01);
  // Every rank is held by someone all the time.
  const at::Tensor ones = at::ones({1, 1, n}, at::kDouble);
  EXPECT_LE(Difference(rule.map->Forward({ones})[0], ones), 1e-12);
}

TEST(SelectionTest, FastTakesTheOrderAtTheValue) {
  for (const char* op :
       {"aten::sort", "aten::topk", "aten::kthvalue", "aten::median.dim", "aten::cummax", "aten::mode"}) {
    Draw draw(at::kDouble, 4);
    std::vector<GivenArgument> arguments = {draw.Moving({2, 6})};
    if (std::string(op) == "aten::topk" || std::string(op) == "aten::kthvalue") arguments.emplace_back(int64_t{3});
    if (std::string(op) != "aten::sort") arguments.emplace_back(int64_t{1});
    RuleCall call;
    const RuleResult rule = BuildFor(op, arguments, &call, Fast());
    EXPECT_FALSE(rule.exact) << op;
    const at::Tensor value = call.operands[0].value.unsqueeze(0);
    EXPECT_TRUE(rule.map->Forward({value})[0][0].equal(call.outputs[0].value)) << op;
  }
}

// Between (0, 0) and (x, y) both follow y log y: the mean logarithm is log y - 1, and x / y is the same everywhere.
TEST(XLogYTest, StartsAtZero) {
  RuleCall call;
  const RuleResult rule =
      BuildFor("aten::xlogy.Tensor",
               {GivenArgument(Vector({2, 0}), Vector({0, 0})), GivenArgument(Vector({3, 0.5}), Vector({0, 0}))}, &call);
  EXPECT_TRUE(rule.stand_ins.empty());
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  const at::Tensor ones = at::ones({1, 2}, at::kDouble);
  const at::Tensor zeros = at::zeros({1, 2}, at::kDouble);
  const at::Tensor by_x = at::tensor({std::log(3.0) - 1, std::log(0.5) - 1}, at::kDouble).view({1, 2});
  EXPECT_LE(Difference(rule.map->Forward({ones, zeros})[0], by_x), 1e-15);
  const at::Tensor by_y = at::tensor({2.0 / 3, 0.0}, at::kDouble).view({1, 2});
  EXPECT_LE(Difference(rule.map->Forward({zeros, ones})[0], by_y), 1e-15);
}

// log(0) times a number is infinite at the reference: linearized at the value.
TEST(XLogYTest, StandsInWhereTheReferenceIsInfinite) {
  RuleCall call;
  const RuleResult rule = BuildFor(
      "aten::xlogy.Tensor", {GivenArgument(Vector({2}), Vector({1})), GivenArgument(Vector({3}), Vector({0}))}, &call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  EXPECT_NEAR(rule.stand_ins[0].item<double>(), 2 * std::log(3.0) - std::log(3.0) - 2, 1e-14);
}

// The rules of Bessel functions hold their derivatives, because most LibTorchs do not. A rule gives the derivative
// where nothing moves; differences of the function judge it.
TEST(BesselTest, TheDerivativeIsThatOfTheFunction) {
  struct Function {
    const char* op;
    std::vector<double> points;
  };
  const std::vector<double> anywhere = {-7.5, -0.4, 0, 1e-3, 0.4, 2.5, 11};
  const std::vector<double> positive = {0.1, 0.4, 1, 2.5, 7.5, 11};
  for (const Function& function : std::vector<Function>{{"aten::special_bessel_j0", anywhere},
                                                        {"aten::special_bessel_j1", anywhere},
                                                        {"aten::special_bessel_y0", positive},
                                                        {"aten::special_bessel_y1", positive},
                                                        {"aten::special_modified_bessel_i0", anywhere},
                                                        {"aten::special_modified_bessel_i1", anywhere},
                                                        {"aten::special_modified_bessel_k0", positive},
                                                        {"aten::special_modified_bessel_k1", positive},
                                                        {"aten::special_scaled_modified_bessel_k0", positive},
                                                        {"aten::special_scaled_modified_bessel_k1", positive}}) {
    const at::Tensor x = Vector(function.points);
    RuleCall call;
    const RuleResult rule = BuildFor(function.op, {GivenArgument(x, x.clone())}, &call);
    const double step = 1e-5;
    const at::Tensor above = call.run(call.arguments, {x + step})[0];
    const at::Tensor below = call.run(call.arguments, {x - step})[0];
    const at::Tensor slope = (above - below) / (2 * step);
    const at::Tensor missed = (MatrixOf(rule, x.numel()).diagonal() - slope) / (slope.abs() + 1e-2);
    EXPECT_LE(missed.abs().max().item<double>(), 1e-7) << function.op;
  }
}

TEST(BesselTest, StartsAtAPole) {
  RuleCall call;
  const RuleResult rule = BuildFor("aten::special_bessel_y0", {GivenArgument(Vector({2, 0}), Vector({0, 0}))}, &call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  EXPECT_TRUE(std::isfinite(rule.stand_ins[0][0].item<double>()));
  EXPECT_TRUE(MatrixOf(rule, 2).isfinite().all().item<bool>());
}

// Also where a sample is too short for its target, and for lines that need many nodes.
TEST(CtcTest, NothingOfTheLossIsLeftOver) {
  for (const double scale : {0.1, 2.0, 20.0}) {
    Draw draw(at::kDouble, 8);
    RuleCall call;
    const RuleResult rule =
        BuildFor("aten::_ctc_loss",
                 {draw.Moving({6, 2, 4}, scale), at::tensor({1, 2, 2, 3, 3, 2}, at::kLong).view({2, 3}), Sizes{6, 2},
                  Sizes{3, 3}, int64_t{0}, true},
                 &call);
    const at::Tensor passed = rule.map->Forward({call.Move(0).unsqueeze(0)})[0][0];
    const RuleOutput& loss = call.outputs[0];
    EXPECT_LE(Difference(passed[0], loss.value[0] - loss.reference[0]), 1e-11) << scale;
    EXPECT_EQ(passed[1].item<double>(), 0) << "nothing passes where there is no alignment";
  }
}

// Compares with differences: LibTorch's own derivative holds for results of log_softmax only.
TEST(CtcTest, TheSlopeIsThatOfTheLoss) {
  Draw draw(at::kDouble, 6);
  const at::Tensor log_probs = draw.Normal({6, 2, 4});
  const std::vector<GivenArgument> others = {at::tensor({1, 2, 2, 3, 1, 2}, at::kLong).view({2, 3}), Sizes{6, 5},
                                             Sizes{3, 2}};
  std::vector<GivenArgument> arguments = {GivenArgument(log_probs, log_probs.clone())};
  arguments.insert(arguments.end(), others.begin(), others.end());
  RuleCall call;
  const RuleResult rule = BuildFor("aten::_ctc_loss", arguments, &call);
  const at::Tensor way = draw.Normal({6, 2, 4});
  const auto loss = [&](double h) {
    return call.run(call.arguments, {log_probs + way * h, others[0].value.toTensor()})[0];
  };
  const at::Tensor expected = (loss(1e-5) - loss(-1e-5)) / 2e-5;
  EXPECT_LE(Difference(rule.map->Forward({way.unsqueeze(0)})[0][0], expected), 1e-8);
}

}  // namespace
}  // namespace addend

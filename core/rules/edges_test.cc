// Tests at the edges of functions: infinities, poles, numbers without dimensions, tensors without elements, mixed
// dtypes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor Numbers(const std::vector<double>& numbers, at::ScalarType dtype = at::kDouble) {
  return at::tensor(numbers, at::kDouble).to(dtype);
}

bool Finite(const at::Tensor& t) { return t.isfinite().all().item<bool>(); }

at::Tensor SlopeOf(const RuleCall& call, const RuleResult& rule) {
  return rule.map->Forward({at::ones_like(call.operands[rule.inputs[0]].value).unsqueeze(0)})[0].select(0, 0);
}

// ---------------------------------------------------------------------------------------------------------- stand-ins

// Complex numbers have no signs: the line meets the pole only between opposite directions.
TEST(StandInTest, LinesOfComplexNumbersThroughZero) {
  const at::Tensor value = at::complex(Numbers({1, 1, 0}), Numbers({2, 2, 1}));
  const at::Tensor reference = at::complex(Numbers({-2, -2, 1}), Numbers({-4, 4, 0}));
  const at::Tensor one = at::complex(Numbers({1, 1, 1}), Numbers({0, 0, 0}));
  for (const auto& op : {OperatorCall("aten::reciprocal", {{value, reference}}),
                         OperatorCall("aten::div.Tensor", {one, {value, reference}})}) {
    const RuleCall call = op.Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    ASSERT_EQ(rule.stand_ins.size(), 1u);
    EXPECT_TRUE(rule.stand_ins[0].ne(call.outputs[0].reference).equal(Numbers({1, 0, 0}).to(at::kBool)));
    EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  }
}

// Note [Stand-ins] in core/linearize/references.h: f(reference) is not finite, f(value) is.
TEST(StandInTest, AReferenceOutsideTheDomain) {
  struct Case {
    const char* op;
    double value, reference, slope;
    std::vector<GivenArgument> more;
  };
  const std::vector<Case> cases = {
      {"aten::log", 2, 0, 0.5, {}},
      {"aten::log", 2, -1, 0.5, {}},
      {"aten::log2", 1, 0, 1.4426950408889634, {}},
      {"aten::log10", 1, 0, 0.43429448190325182, {}},
      {"aten::log1p", 1, -1, 0.5, {}},
      {"aten::rsqrt", 4, 0, -1.0 / 16, {}},
      {"aten::reciprocal", 2, 0, -0.25, {}},
      {"aten::sqrt", 4, -1, 0.25, {}},
      {"aten::pow.Tensor_Scalar", 2, 0, -0.25, {-1}},
      {"aten::pow.Tensor_Scalar", 4, -4, 0.25, {0.5}},
      // A pole lies between two finite ends.
      {"aten::reciprocal", 2, -1, -0.25, {}},
      {"aten::reciprocal", -2, 1, -0.25, {}},
      {"aten::pow.Tensor_Scalar", 2, -1, -0.25, {-1}},
      {"aten::pow.Tensor_Scalar", 2, -1, -0.25, {-2.0}},
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(testing::Message() << c.op << " at " << c.value << " with reference " << c.reference);
      // A regular element beside it keeps its secant and its reference.
      std::vector<GivenArgument> arguments = {{Numbers({c.value, 3}, dtype), Numbers({c.reference, 1.5}, dtype)}};
      arguments.insert(arguments.end(), c.more.begin(), c.more.end());
      const RuleCall call = OperatorCall(c.op, arguments).Describe(Faithful());
      const RuleResult rule = BuildRule(call);
      ASSERT_EQ(rule.stand_ins.size(), 1u);
      EXPECT_EQ(rule.stand_ins[0].sizes(), call.outputs[0].value.sizes());
      EXPECT_EQ(rule.stand_ins[0].scalar_type(), dtype);
      EXPECT_TRUE(Finite(rule.stand_ins[0]));
      EXPECT_EQ(rule.stand_ins[0][1].item<double>(), call.outputs[0].reference[1].item<double>());
      EXPECT_NEAR(SlopeOf(call, rule)[0].item<double>(), c.slope, 1e-6);
      EXPECT_LE(RelativeBracket(call, rule), dtype == at::kDouble ? 1e-15 : 1e-6);
    }
  }
}

TEST(StandInTest, NoneWhereEverythingIsFinite) {
  Draw draw(at::kDouble, 1);
  const RuleCall call = OperatorCall("aten::log", {draw.MovingWithin({9}, 0.1, 2)}).Describe(Faithful());
  EXPECT_TRUE(BuildRule(call).stand_ins.empty());
}

// 0 is no pole of every function that bends on the scale of its argument.
TEST(StandInTest, NoneAcrossZeroWhereTheFunctionIsFinite) {
  for (const double exponent : {2.0, 3.0}) {
    const RuleCall call =
        OperatorCall("aten::pow.Tensor_Scalar", {{Numbers({2, 3}), Numbers({-1, 1.5})}, exponent}).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_TRUE(rule.stand_ins.empty());
    EXPECT_NEAR(SlopeOf(call, rule)[0].item<double>(), (std::pow(2, exponent) - std::pow(-1, exponent)) / 3, 1e-15);
  }
}

// 1 / d with references of the other sign: the secant would go through infinity. Content first has no 1 / reference in
// it.
TEST(StandInTest, ADivisorThatChangesItsSign) {
  const std::vector<std::vector<GivenArgument>> calls = {
      {{Numbers({1, 3}), Numbers({-2, 1})}, {Numbers({2, 4}), Numbers({-1, 2})}},
      {Numbers({1, 3}), {Numbers({2, 4}), Numbers({-1, 2})}},
  };
  for (const auto& arguments : calls) {
    const RuleCall call = OperatorCall("aten::div.Tensor", arguments).Describe(ByHalf());
    const RuleResult rule = BuildRule(call);
    ASSERT_EQ(rule.stand_ins.size(), 1u);
    EXPECT_EQ(rule.stand_ins[0][1].item<double>(), call.outputs[0].reference[1].item<double>());
    const at::Tensor rows = at::ones({1, 2}, at::kDouble);
    const bool both = rule.inputs.size() == 2;
    // The derivative at the value: (da - a / d * dd) / d with a = 1 and d = 2.
    const at::Tensor moved = both ? rule.map->Forward({rows, rows})[0] : rule.map->Forward({rows})[0];
    EXPECT_NEAR(moved[0][0].item<double>(), both ? 0.5 - 0.25 : -0.25, 1e-15);
    EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  }
}

TEST(StandInTest, AnInfiniteReferenceOperand) {
  const RuleCall call = OperatorCall("aten::exp", {{Numbers({1, 0}), Numbers({kInfinity, -1})}}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  EXPECT_TRUE(Finite(rule.stand_ins[0]));
  EXPECT_TRUE(Finite(SlopeOf(call, rule)));
}

// x / x.sum() with a baseline of zeros: 0 / 0 at the reference.
TEST(StandInTest, ADivisorThatIsZeroAtTheReference) {
  const at::Tensor divisor = Numbers({2.0, 4.0});
  const at::Tensor numerator = Numbers({1.0, -3.0});
  for (const double above : {0.0, 1.0}) {
    const RuleCall call =
        OperatorCall("aten::div.Tensor", {{numerator, Numbers({above, 1})}, {divisor, Numbers({0, 2})}})
            .Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    ASSERT_EQ(rule.stand_ins.size(), 1u);
    EXPECT_TRUE(Finite(rule.stand_ins[0]));
    EXPECT_EQ(rule.stand_ins[0][1].item<double>(), 0.5);
    const at::Tensor rows = at::ones({1, 2}, at::kDouble);
    EXPECT_TRUE(Finite(rule.map->Forward({rows, rows})[0]));
    // Linearized at the value: (1 - a / d) / d.
    EXPECT_NEAR(rule.map->Forward({rows, rows})[0][0][0].item<double>(), 0.5 - 0.25, 1e-15);
    EXPECT_LE(RelativeBracket(call, rule), 1e-15);
  }
}

TEST(StandInTest, ADivisorThatIsZeroAtTheReferenceOfAPlainNumerator) {
  const RuleCall call = OperatorCall("aten::div.Tensor", {Numbers({3.0, 1.0}), {Numbers({2.0, 4.0}), Numbers({0, 2})}})
                            .Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  EXPECT_TRUE(Finite(rule.stand_ins[0]));
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
}

// --------------------------------------------------------------------------------------------------------- zero moves

// A derivative that is infinite where nothing moves would turn rows that are zero there into NaN.
TEST(ZeroMoveTest, InfiniteDerivativesPassNothing) {
  for (const char* op : {"aten::sqrt", "aten::pow.Tensor_Scalar"}) {
    std::vector<GivenArgument> arguments = {{Numbers({0.0, 4.0}), Numbers({0.0, 1.0})}};
    if (std::string(op) == "aten::pow.Tensor_Scalar") arguments.emplace_back(0.5);
    const RuleCall call = OperatorCall(op, arguments).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_TRUE(Finite(SlopeOf(call, rule))) << op;
    const at::Tensor still = rule.map->Forward({at::zeros({1, 2}, at::kDouble)})[0];
    EXPECT_EQ(still.abs().max().item<double>(), 0) << op;
    EXPECT_EQ(RelativeBracket(call, rule), 0) << op;
  }
}

TEST(ZeroMoveTest, AnInfiniteValueWithTheSameReferencePassesZeroRowsAsZero) {
  // log(0) on both sides: the value is -inf, and rows that are zero stay zero.
  const RuleCall call = OperatorCall("aten::log", {{Numbers({0.0, 2.0}), Numbers({0.0, 1.0})}}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_TRUE(rule.stand_ins.empty());
  const at::Tensor still = rule.map->Forward({at::zeros({1, 2}, at::kDouble)})[0];
  EXPECT_TRUE(Finite(still));
}

// --------------------------------------------------------------------------------------------------------- infinities

// Masks of -inf on both sides do not move, in any kind that meets them.
TEST(InfinityTest, TheSameInfinityOnBothSidesDoesNotMove) {
  const at::Tensor value = Numbers({1.0, -kInfinity, 2.0, -kInfinity});
  const at::Tensor reference = Numbers({0.0, -kInfinity, -1.0, -kInfinity});
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::exp", {{value, reference}}},
      {"aten::relu", {{value, reference}}},
      {"aten::sigmoid", {{value, reference}}},
      {"aten::tanh", {{value, reference}}},
      {"aten::softplus", {{value, reference}}},
      {"aten::add.Tensor", {{value, reference}, {value, reference}}},
      {"aten::clone", {{value, reference}}},
      {"aten::flip", {{value, reference}, Sizes{0}}},
      {"aten::cat", {ListOf({{value, reference}, {value, reference}})}},
      {"aten::max.dim", {{value, reference}, int64_t{0}}},
      {"aten::amax", {{value, reference}}},
      {"aten::softmax.int", {{value, reference}, int64_t{0}}},
  };
  for (const auto& c : calls) {
    SCOPED_TRACE(c.first);
    const RuleCall call = OperatorCall(c.first, c.second).Describe(Faithful());
    for (size_t k = 0; k < call.operands.size(); ++k) EXPECT_TRUE(Finite(call.Move(static_cast<int>(k))));
    const RuleResult rule = BuildRule(call);
    EXPECT_TRUE(Finite(rule.map->Forward(MoveRows(call, rule))[0]));
    EXPECT_LE(RelativeBracket(call, rule), 4e-12);
  }
}

TEST(InfinityTest, MasksThatAreAddedOrFilled) {
  Draw draw(at::kDouble, 2);
  const at::Tensor mask = at::zeros({3, 3}, at::kDouble);
  mask[0][2].fill_(-kInfinity);
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::add.Tensor", {draw.Moving({3, 3}), mask}},
      {"aten::masked_fill.Scalar", {draw.Moving({3, 3}), mask.ne(0), -kInfinity}},
      {"aten::baddbmm", {mask, draw.Moving({2, 3, 4}), draw.Moving({2, 4, 3})}},
      {"aten::where.ScalarOther", {mask.eq(0), draw.Moving({3, 3}), -kInfinity}},
      {"aten::constant_pad_nd", {draw.Moving({3, 3}), Sizes{1, 1}, -kInfinity}},
  };
  for (const auto& c : calls) {
    SCOPED_TRACE(c.first);
    const RuleCall call = OperatorCall(c.first, c.second).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    Draw other(at::kDouble, 3);
    EXPECT_TRUE(Finite(rule.map->Forward(RandomRows(other, call, rule, 3))[0]));
    EXPECT_LE(RelativeBracket(call, rule), 1e-12);
  }
}

// where(x > 0, log(x), 0): the branch that is not taken may be anything.
TEST(InfinityTest, TheBranchNotTakenDoesNotLeak) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor condition = Numbers({1, 0}).to(at::kBool);
  const at::Tensor rows = Numbers({2.0, nan}).unsqueeze(0);
  const at::Tensor other = Numbers({kInfinity, 5.0}).unsqueeze(0);
  const auto where = OperatorCall("aten::where.self", {condition,
                                                       {Numbers({1.0, -kInfinity}), Numbers({0.5, -kInfinity})},
                                                       {Numbers({3, 4}), Numbers({1, 2})}})
                         .Describe(Faithful());
  EXPECT_TRUE(BuildRule(where).map->Forward({rows, other})[0].equal(Numbers({2.0, 5.0}).unsqueeze(0)));
  const auto fill =
      OperatorCall("aten::masked_fill.Scalar", {{Numbers({1, nan}), Numbers({2, nan})}, condition.logical_not(), 0.0})
          .Describe(Faithful());
  EXPECT_TRUE(BuildRule(fill).map->Forward({rows})[0].equal(Numbers({2.0, 0.0}).unsqueeze(0)));
}

// ------------------------------------------------------------------------------------------------- nothing to work on

// Batches without elements, with the dimensions that a model has. What counts is that shapes come out right.
TEST(EmptyTest, BatchesOfNothing) {
  Draw draw(at::kDouble, 4);
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::gelu", {draw.Moving({0, 4})}},
      {"aten::mul.Tensor", {draw.Moving({0, 4}), draw.Moving({4})}},
      {"aten::linear", {draw.Moving({0, 4}), draw.Normal({3, 4}), draw.Normal({3})}},
      {"aten::linear", {draw.Moving({2, 0, 4}), draw.Normal({3, 4}), draw.Normal({3})}},
      {"aten::mm", {draw.Moving({0, 4}), draw.Moving({4, 3})}},
      {"aten::mm", {draw.Moving({2, 0}), draw.Moving({0, 3})}},
      {"aten::bmm", {draw.Moving({0, 2, 4}), draw.Moving({0, 4, 3})}},
      {"aten::bmm", {draw.Moving({2, 0, 4}), draw.Moving({2, 4, 3})}},
      {"aten::layer_norm", {draw.Moving({0, 4}), Sizes{4}, draw.Normal({4})}},
      {"aten::group_norm", {draw.Moving({0, 4, 3}), int64_t{2}}},
      {"aten::batch_norm",
       {draw.Moving({0, 3}), kNone, kNone, draw.Normal({3}), draw.Uniform({3}, 1, 2), false, 0.1, 1e-5, false}},
      {"aten::softmax.int", {draw.Moving({0, 4}), int64_t{-1}}},
      {"aten::log_softmax.int", {draw.Moving({0, 4}), int64_t{-1}}},
      {"aten::sum.dim_IntList", {draw.Moving({0, 4}), Sizes{0}}},
      {"aten::max.dim", {draw.Moving({0, 4}), int64_t{1}}},
      {"aten::cat", {ListOf({draw.Moving({0, 4}), draw.Moving({2, 4})})}},
      {"aten::cat", {ListOf({draw.Moving({0}), draw.Moving({2, 4})})}},
      {"aten::cumsum", {draw.Moving({0, 4}), int64_t{0}}},
      {"aten::flip", {draw.Moving({0, 4}), Sizes{1}}},
      {"aten::constant_pad_nd", {draw.Moving({0, 4}), Sizes{1, 1}}},
      {"aten::index_select", {draw.Moving({0, 4}), int64_t{1}, draw.Integers({3}, 4)}},
      {"aten::avg_pool2d", {draw.Moving({0, 3, 4, 4}), Sizes{2, 2}}},
      {"aten::max_pool2d_with_indices", {draw.Moving({0, 3, 4, 4}), Sizes{2, 2}}},
  };
  for (const auto& c : calls) {
    const OperatorCall op(c.first, c.second);
    SCOPED_TRACE(testing::Message() << c.first << " " << op.Describe(Faithful()).operands[0].value.sizes());
    try {
      const RuleCall call = op.Describe(Faithful());
      const RuleResult rule = BuildRule(call);
      for (const int64_t count : {1, 6}) {
        const Rows out = Pass(call, rule, RandomRows(draw, call, rule, count), count);
        Sizes sizes(call.outputs[0].value.sizes().begin(), call.outputs[0].value.sizes().end());
        sizes.insert(sizes.begin(), count);
        EXPECT_EQ(out[0].sizes(), at::IntArrayRef(sizes));
      }
      const Rows back = rule.map->Transpose(RandomCotangents(draw, call));
      for (size_t k = 0; k < back.size(); ++k) {
        EXPECT_EQ(back[k].sizes(), call.operands[rule.inputs[k]].value.sizes());
      }
      EXPECT_LE(RelativeBracket(call, rule), 1e-12);
    } catch (const std::exception& e) {
      ADD_FAILURE() << std::string(e.what()).substr(0, 200);
    }
  }
}

// ------------------------------------------------------------------------------------------------------- mixed dtypes

TEST(DtypeTest, IntegersBesideDoublesCostNoDigits) {
  Draw draw(at::kDouble, 5);
  const at::Tensor thirds = at::full({4}, 3, at::kLong);
  for (const char* op : {"aten::div.Tensor", "aten::mul.Tensor", "aten::add.Tensor", "aten::sub.Tensor"}) {
    const RuleCall call = OperatorCall(op, {draw.Moving({4}), thirds}).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_LE(RelativeBracket(call, rule), 1e-15) << op;
    EXPECT_EQ(rule.map->Forward({draw.Normal({2, 4})})[0].scalar_type(), at::kDouble) << op;
  }
}

// A gradient wider than the saved tensor: autograd never passes one but a model may. LibTorch computes in the wider
// dtype.
TEST(DtypeTest, AGradientMayBeWiderThanWhatWasSaved) {
  Draw draw(at::kFloat, 15);
  for (const char* op : {"aten::tanh_backward", "aten::sigmoid_backward"}) {
    const GivenArgument saved = draw.MovingWithin({5}, 0.1, 0.9);
    const OperatorCall own(op, {{draw.Normal({5}).to(at::kDouble), draw.Normal({5}).to(at::kDouble)}, saved});
    for (const uint32_t decomposed : {1u, 2u, 3u}) {
      const RuleCall call = own.Describe(Faithful(), decomposed);
      const RuleResult rule = BuildRule(call);
      EXPECT_LE(RelativeBracket(call, rule), 1e-6) << op << " " << decomposed;
      Draw rows(at::kDouble, 17);
      Rows cotangent = {rows.Normal({5})};
      EXPECT_EQ(rule.map->Transpose(cotangent).size(), rule.inputs.size()) << op << " " << decomposed;
    }
  }
}

TEST(DtypeTest, HalfTypesHaveFloatRows) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    Draw draw(dtype, 6);
    const RuleCall call = OperatorCall("aten::add.Tensor", {draw.Moving({4}), draw.Moving({4})}).Describe(Faithful());
    EXPECT_EQ(call.operands[0].value.scalar_type(), at::kFloat);
    const RuleResult rule = BuildRule(call);
    EXPECT_EQ(rule.map->Forward(MoveRows(call, rule))[0].scalar_type(), at::kFloat);
    EXPECT_EQ(Difference(rule.map->Forward(MoveRows(call, rule))[0], MoveRows(call, rule)[0] + MoveRows(call, rule)[1]),
              0);
  }
}

// Every kind, with the bracket that rounding to 8 bits leaves and no more.
TEST(DtypeTest, EveryKindHasFloatRowsForHalfTypes) {
  Draw draw(at::kBFloat16, 16);
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::sum.dim_IntList", {draw.Moving({3, 4}), Sizes{1}}},
      {"aten::linear", {draw.Moving({3, 4}), draw.Normal({5, 4}), draw.Normal({5})}},
      {"aten::gelu", {draw.Moving({3, 4})}},
      {"aten::relu", {draw.Moving({3, 4})}},
      {"aten::mm", {draw.Moving({3, 4}), draw.Moving({4, 2})}},
      {"aten::mul.Tensor", {draw.Moving({3, 4}), draw.Moving({4})}},
      {"aten::max.dim", {draw.Moving({3, 4}), int64_t{1}}},
      {"aten::softmax.int", {draw.Moving({3, 4}), int64_t{1}}},
      {"aten::layer_norm", {draw.Moving({3, 4}), Sizes{4}}},
      {"aten::round", {draw.Moving({3, 4}, 3)}},
      {"aten::remainder.Scalar", {draw.Moving({3, 4}), 0.75}},
  };
  for (const auto& c : calls) {
    SCOPED_TRACE(c.first);
    const RuleCall call = OperatorCall(c.first, c.second).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    const at::Tensor passed = Pass(call, rule, MoveRows(call, rule), 1)[0];
    EXPECT_EQ(passed.scalar_type(), at::kFloat);
    if (rule.exact) {
      EXPECT_LE(RelativeBracket(call, rule), 4 * 0x1p-8);
    }
  }
}

// The coefficients of a clamp with bounds that are larger than what they bound.
TEST(BroadcastTest, PointwiseWithALargerPlainOperand) {
  const at::Tensor value = Numbers({0.3, 2.0});
  const at::Tensor reference = Numbers({0.3, -1.0});  // the first does not move
  const at::Tensor low = Numbers({0.0, 0.0, 0.5, 0.5}).view({2, 2});
  const RuleCall call = OperatorCall("aten::clamp.Tensor", {{value, reference}, low, kNone}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  const at::Tensor slope = rule.map->Forward({at::ones({1, 2}, at::kDouble)})[0].select(0, 0);
  EXPECT_LE(Difference(slope, Numbers({1, 2.0 / 3, 0, 1.5 / 3}).view({2, 2})), 1e-15) << slope;
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
}

// ----------------------------------------------------------------------------------------------------- inference mode

// A model may run, and be decomposed, under inference mode; a transpose must not silently become zero there.
TEST(InferenceModeTest, TransposesAreRightOrRefused) {
  c10::InferenceMode inference;
  Draw draw(at::kDouble, 7);
  const RuleCall call = OperatorCall("aten::cumsum", {draw.Moving({3, 4}), int64_t{1}}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  const at::Tensor g = draw.Normal({3, 4});
  const at::Tensor expected = g.flip({1}).cumsum(1).flip({1});
  EXPECT_LE(Difference(rule.map->Transpose({g})[0], expected), 1e-14);
}

TEST(InferenceModeTest, SlopesAreRight) {
  c10::InferenceMode inference;
  Draw draw(at::kDouble, 8);
  const at::Tensor value = draw.Normal({3, 4});
  const RuleCall call = OperatorCall("aten::tanh", {{value, value.clone()}}).Describe(Faithful());
  EXPECT_LE(Difference(SlopeOf(call, BuildRule(call)), 1 - value.tanh().square()), 1e-14);
}

}  // namespace
}  // namespace addend

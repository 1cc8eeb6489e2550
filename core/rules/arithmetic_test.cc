// Products and quotients against explicit formulas, and what freezing makes of them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/rules/kinds.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

struct Factor {
  at::Tensor value, reference, rows;
  at::Tensor Middle() const { return (value + reference) / 2; }
  operator GivenArgument() const { return {value, reference}; }  // NOLINT(google-explicit-constructor)
};

Factor RandomFactor(Draw& draw, const Sizes& sizes, int64_t count = 4) {
  Sizes with_rows = sizes;
  with_rows.insert(with_rows.begin(), count);
  const at::Tensor value = draw.Normal(sizes);
  const at::Tensor reference = draw.Normal(sizes);
  return {value, reference, draw.Normal(with_rows)};
}

at::Tensor ForwardOf(const RuleCall& call, const Rows& rows) { return BuildRule(call).map->Forward(rows)[0]; }

// ----------------------------------------------------------------------------------------------------------- products

TEST(MatmulTest, BothFactorsMoveAtTheMiddleOfTheOther) {
  struct Shapes {
    const char* op;
    Sizes a, b;
  };
  const std::vector<Shapes> all = {
      {"aten::mm", {3, 4}, {4, 2}},
      {"aten::bmm", {2, 3, 4}, {2, 4, 5}},
      {"aten::matmul", {2, 3, 4}, {4, 5}},
      {"aten::matmul", {3, 4}, {2, 4, 5}},
      {"aten::matmul", {4}, {4}},
      {"aten::matmul", {2, 3, 4}, {4}},
      {"aten::matmul", {4}, {2, 4, 5}},
      {"aten::mv", {3, 4}, {4}},
      {"aten::dot", {4}, {4}},
      {"aten::matmul", {2, 1, 3, 4}, {5, 4, 2}},
  };
  for (const Shapes& s : all) {
    SCOPED_TRACE(testing::Message() << s.op << " " << s.a << " " << s.b);
    Draw draw(at::kDouble, 1);
    const Factor a = RandomFactor(draw, s.a);
    const Factor b = RandomFactor(draw, s.b);
    const OperatorCall op(s.op, {a, b});
    const at::Tensor both = ForwardOf(op.Describe(Faithful()), {a.rows, b.rows});
    const at::Tensor first = ForwardOf(op.Describe(Faithful(), 1), {a.rows});
    const at::Tensor second = ForwardOf(op.Describe(Faithful(), 2), {b.rows});
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_LE(Difference(both[i], at::matmul(a.rows[i], b.Middle()) + at::matmul(a.Middle(), b.rows[i])), 1e-13);
      EXPECT_LE(Difference(first[i], at::matmul(a.rows[i], b.value)), 1e-13);
      EXPECT_LE(Difference(second[i], at::matmul(a.value, b.rows[i])), 1e-13);
    }
  }
}

// Zero rows are left out of the product; what is left in must not move, and NaN must not be taken for zero.
TEST(MatmulTest, RowsThatAreMostlyZeroGiveTheSame) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 3);
    const Factor x = RandomFactor(draw, {6, 4}, 5);
    const at::Tensor weight = draw.Normal({3, 4});
    const OperatorCall op("aten::linear", {x, weight, kNone});
    at::Tensor rows = x.rows * 0;
    EXPECT_EQ(Difference(ForwardOf(op.Describe(Faithful()), {rows}), at::matmul(rows, weight.t())), 0);
    rows[1][2].copy_(x.rows[1][2]);
    rows[4][5][3] = 1e-30;
    EXPECT_EQ(Difference(ForwardOf(op.Describe(Faithful()), {rows}), at::matmul(rows, weight.t())), 0);
    rows[0][0][0] = std::nan("");
    EXPECT_TRUE(std::isnan(ForwardOf(op.Describe(Faithful()), {rows})[0][0][1].item<double>()));
  }
}

TEST(MatmulTest, LinearTransposesItsWeightAndAddsItsBias) {
  Draw draw(at::kDouble, 2);
  const Factor x = RandomFactor(draw, {2, 3, 4});
  const Factor w = RandomFactor(draw, {5, 4});
  const Factor bias = RandomFactor(draw, {5});
  const at::Tensor out =
      ForwardOf(OperatorCall("aten::linear", {x, w, bias}).Describe(Faithful()), {x.rows, w.rows, bias.rows});
  for (int64_t i = 0; i < 4; ++i) {
    const at::Tensor expected =
        at::matmul(x.rows[i], w.Middle().t()) + at::matmul(x.Middle(), w.rows[i].t()) + bias.rows[i];
    EXPECT_LE(Difference(out[i], expected), 1e-13);
  }
}

TEST(MatmulTest, AddmmScalesProductAndAddend) {
  Draw draw(at::kDouble, 3);
  const Factor c = RandomFactor(draw, {5});
  const Factor a = RandomFactor(draw, {3, 4});
  const Factor b = RandomFactor(draw, {4, 5});
  const double beta = 0.5;
  const double alpha = -3;
  // The map reads the factors first and the addend last.
  const RuleCall call = OperatorCall("aten::addmm", {c, a, b, beta, alpha}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_EQ(rule.inputs, std::vector<int>({1, 2, 0}));
  const at::Tensor out = rule.map->Forward({a.rows, b.rows, c.rows})[0];
  for (int64_t i = 0; i < 4; ++i) {
    const at::Tensor product = at::matmul(a.rows[i], b.Middle()) + at::matmul(a.Middle(), b.rows[i]);
    EXPECT_LE(Difference(out[i], alpha * product + beta * c.rows[i]), 1e-13);
  }
}

TEST(MulTest, BothFactorsMoveAtTheMiddleOfTheOther) {
  Draw draw(at::kDouble, 4);
  const Factor a = RandomFactor(draw, {2, 1, 3});
  const Factor b = RandomFactor(draw, {4, 1});
  const OperatorCall op("aten::mul.Tensor", {a, b});
  const at::Tensor both = ForwardOf(op.Describe(Faithful()), {a.rows, b.rows});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_LE(Difference(both[i], a.rows[i] * b.Middle() + a.Middle() * b.rows[i]), 1e-14);
  }
}

// A square is a product of a tensor with itself.
TEST(MulTest, WithItselfItIsTheSquare) {
  Draw draw(at::kDouble, 5);
  const Tracked x = {draw.Normal({6}), draw.Normal({6}), draw.Normal({3, 6})};
  EXPECT_LE(Difference(Through("aten::mul.Tensor", {x, x}).rows, Through("aten::square", {x}).rows), 1e-13);
}

// ---------------------------------------------------------------------------------------------------------- quotients

TEST(DivTest, IsTheProductWithTheReciprocal) {
  Draw draw(at::kDouble, 6);
  for (const Sizes& sizes : {Sizes{2, 3}, Sizes{3}, Sizes{2, 1}, Sizes{}}) {
    const Tracked a = {draw.Normal({2, 3}), draw.Normal({2, 3}), draw.Normal({5, 2, 3})};
    Sizes with_rows = sizes;
    with_rows.insert(with_rows.begin(), 5);
    const Tracked d = {draw.Uniform(sizes, 0.5, 2), draw.Uniform(sizes, 0.3, 4), draw.Normal(with_rows)};
    const Tracked plain_a = {a.value, a.value, at::Tensor()};
    const Tracked plain_d = {d.value, d.value, at::Tensor()};
    for (const Policy* policy : {&Faithful(), &ByHalf()}) {
      for (const Tracked& numerator : {a, plain_a}) {
        for (const Tracked& divisor : {d, plain_d}) {
          if (!numerator.rows.defined() && !divisor.rows.defined()) continue;
          const Tracked quotient = Through("aten::div.Tensor", {numerator, divisor}, *policy);
          const Tracked inverse = Through("aten::reciprocal", {divisor}, *policy);
          const Tracked product = Through("aten::mul.Tensor", {numerator, inverse}, *policy);
          EXPECT_LE(Difference(quotient.rows, product.rows), 1e-12);
        }
      }
    }
  }
}

// The divisor moves while the numerator is the reference's, then the numerator moves: (da - y' dd) / d. The line of the
// divisor may pass through zero, since nothing but y' is divided by its reference.
TEST(DivTest, ContentFirstIsItsFormula) {
  Draw draw(at::kDouble, 16);
  const Factor a = RandomFactor(draw, {2, 3});
  const Factor d = RandomFactor(draw, {3});
  const at::Tensor rest = d.reference.clone();
  rest[0] = -d.value[0];        // the other sign
  rest[1] = d.value[1] * 1e-9;  // almost nothing
  const RuleCall call = OperatorCall("aten::div.Tensor", {a, {d.value, rest}}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_TRUE(rule.stand_ins.empty());
  EXPECT_LE(RelativeBracket(call, rule), 1e-13);
  const at::Tensor expected = (a.rows - a.reference / rest * d.rows.unsqueeze(1)) / d.value;
  EXPECT_LE(Difference(rule.map->Forward({a.rows, d.rows})[0], expected), 1e-13);
}

// A quotient whose reference is 0 / 0 or infinite is linearized at the value.
TEST(DivTest, ContentFirstStandsInOnlyWhereTheReferenceIsNotFinite) {
  Draw draw(at::kDouble, 17);
  const Factor a = RandomFactor(draw, {3});
  const Factor d = RandomFactor(draw, {3});
  const at::Tensor start = a.reference.clone();
  const at::Tensor rest = d.reference.clone();
  start[0] = 0.0;
  rest[0] = 0.0;
  rest[1] = 0.0;
  const RuleCall call = OperatorCall("aten::div.Tensor", {{a.value, start}, {d.value, rest}}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  const at::Tensor rows = rule.map->Forward({a.rows, d.rows})[0];
  const at::Tensor at_value = a.rows / d.value - a.value / d.value.square() * d.rows;
  const at::Tensor first = (a.rows - start / rest * d.rows) / d.value;
  EXPECT_LE(Difference(rows.narrow(1, 0, 2), at_value.narrow(1, 0, 2)), 1e-13);
  EXPECT_LE(Difference(rows.narrow(1, 2, 1), first.narrow(1, 2, 1)), 1e-13);
  EXPECT_EQ(rule.stand_ins[0][2].item<double>(), (start / rest)[2].item<double>());
}

// The parts of the quotient, each times the step over the quotient's move.
TEST(DivTest, RoundedQuotientsShareTheirSteps) {
  const at::Tensor value = at::tensor({7.0, -3.0, 2.5}, at::kDouble);
  const at::Tensor reference = at::tensor({1.0, -3.0, 2.0}, at::kDouble);
  const at::Tensor divisor = at::tensor({2.0, 2.0, 2.0}, at::kDouble);
  const OperatorCall op("aten::div.Tensor_mode", {{value, reference}, divisor, std::string("floor")});
  const RuleResult rule = BuildRule(op.Describe(Faithful()));
  EXPECT_TRUE(rule.exact);
  // From 0 to 3 in a move of 3; at rest, the mean slope of 1; no step is crossed.
  EXPECT_TRUE(rule.map->Forward({at::ones({1, 3}, at::kDouble)})[0].equal(
      at::tensor({0.5, 0.5, 0.0}, at::kDouble).unsqueeze(0)));

  Policy gradient = Faithful();
  gradient.nonlinearity = Nonlinearity::kGradient;
  const RuleResult none = BuildRule(op.Describe(gradient));
  EXPECT_EQ(none.kind, Kind::kOpaque);
  EXPECT_EQ(none.map, nullptr);
}

// ----------------------------------------------------------------------------------------------------------- freezing

class FreezeTest : public testing::Test {
 protected:
  static Policy Freezing(uint32_t kinds) {
    Policy policy = Faithful();
    policy.freeze = kinds;
    return policy;
  }
};

// mark of the first factor, mark of the second -> which of both still move while attention and gates are frozen.
TEST_F(FreezeTest, AFrozenFactorIsAPlainCoefficient) {
  const Policy policy = Freezing(kFreezeAttention | kFreezeGate);
  struct Row {
    uint32_t a, b;
    bool a_moves, b_moves;
  };
  const std::vector<Row> table = {
      {0, 0, true, true},
      {kFreezeAttention, 0, false, true},
      {0, kFreezeGate, true, false},
      {kFreezeAttention, kFreezeGate, true, true},  // both frozen: both move after all
      {kFreezeNormalizer, 0, true, true},           // a mark that this policy does not freeze
      {kFreezeNormalizer | kFreezeGate, kFreezeNormalizer, false, true},
  };
  struct Product {
    const char* op;
    Sizes a, b;
  };
  for (const Product& p : {Product{"aten::mul.Tensor", {3, 3}, {3, 3}}, Product{"aten::matmul", {3, 3}, {3, 3}},
                           Product{"aten::bmm", {2, 3, 4}, {2, 4, 5}}}) {
    for (const Row& row : table) {
      SCOPED_TRACE(testing::Message() << p.op << " marks " << row.a << " " << row.b);
      Draw draw(at::kDouble, 8);
      const Factor a = RandomFactor(draw, p.a);
      const Factor b = RandomFactor(draw, p.b);
      RuleCall call = OperatorCall(p.op, {a, b}).Describe(policy);
      call.operands[0].marks = row.a;
      call.operands[1].marks = row.b;
      const RuleResult rule = BuildRule(call);
      std::vector<int> moving;
      if (row.a_moves) moving.push_back(0);
      if (row.b_moves) moving.push_back(1);
      EXPECT_EQ(rule.inputs, moving);
      const auto times = [&](const at::Tensor& x, const at::Tensor& y) {
        return std::string(p.op) == "aten::mul.Tensor" ? x * y : at::matmul(x, y);
      };
      const bool both = row.a_moves && row.b_moves;
      at::Tensor expected;
      Rows rows;
      if (row.a_moves) {
        rows.push_back(a.rows);
        expected = times(a.rows[0], both ? b.Middle() : b.value);
      }
      if (row.b_moves) {
        rows.push_back(b.rows);
        const at::Tensor own = times(both ? a.Middle() : a.value, b.rows[0]);
        expected = expected.defined() ? expected + own : own;
      }
      EXPECT_LE(Difference(rule.map->Forward(rows)[0][0], expected), 1e-13);
      // Frozen factors are missing from the inputs, which is how a linearizer knows that a bracket is due.
      EXPECT_TRUE(rule.exact);
    }
  }
}

TEST_F(FreezeTest, AMarkedFactorAloneMoves) {
  const Policy policy = Freezing(kFreezeAttention);
  Draw draw(at::kDouble, 9);
  const Factor a = RandomFactor(draw, {3, 3});
  for (const char* op : {"aten::mul.Tensor", "aten::matmul"}) {
    RuleCall call = OperatorCall(op, {a, draw.Normal({3, 3})}).Describe(policy);
    call.operands[0].marks = kFreezeAttention;
    EXPECT_EQ(BuildRule(call).inputs, std::vector<int>({0})) << op;
  }
}

TEST_F(FreezeTest, Denominators) {
  Draw draw(at::kDouble, 10);
  const Factor a = RandomFactor(draw, {3});
  const GivenArgument d = draw.MovingWithin({3}, 0.5, 2);
  const OperatorCall op("aten::div.Tensor", {a, d});
  struct Row {
    uint32_t freeze, mark;
    bool frozen;
  };
  const std::vector<Row> table = {{kFreezeDenominator, 0, true},
                                  {kFreezeNormalizer, kFreezeNormalizer, true},
                                  {kFreezeNormalizer, 0, false},
                                  {kFreezeAttention, kFreezeNormalizer, false},
                                  {kFreezeNothing, kFreezeNormalizer, false}};
  for (const Row& row : table) {
    const Policy policy = Freezing(row.freeze);
    RuleCall call = op.Describe(policy);
    call.operands[1].marks = row.mark;
    const RuleResult rule = BuildRule(call);
    EXPECT_EQ(rule.inputs.size(), row.frozen ? 1u : 2u);
    if (row.frozen) {
      EXPECT_LE(Difference(rule.map->Forward({a.rows})[0], a.rows / d.value.toTensor()), 1e-14);
    }
  }
  // A divisor that alone moves moves, frozen or not: nothing else could.
  const Policy policy = Freezing(kFreezeDenominator);
  EXPECT_EQ(BuildRule(op.Describe(policy, 2)).inputs, std::vector<int>({1}));
}

TEST_F(FreezeTest, FastFreezesAttentionNormalizersAndDenominators) {
  EXPECT_TRUE(Fast().Freezes(kFreezeAttention));
  EXPECT_TRUE(Fast().Freezes(kFreezeNormalizer));
  EXPECT_TRUE(Fast().Freezes(kFreezeDenominator));
  EXPECT_FALSE(Fast().Freezes(kFreezeGate));
  EXPECT_EQ(Faithful().FrozenKinds(), kFreezeNothing);
}

// ------------------------------------------------------------------------------------------------------ content first

// Marks of the first factor and of the second one -> which of them moves before the other.
TEST(ContentFirstTest, TheCoefficientMovesWhileTheContentIsTheReference) {
  Policy policy = Faithful();
  policy.freeze = kFreezeGate;
  struct Row {
    uint32_t a, b;  // content_first
    bool a_leads, b_leads;
    uint32_t a_frozen;
  };
  const std::vector<Row> table = {{0, 0, false, false, 0},
                                  {kFreezeAttention, 0, true, false, 0},
                                  {0, kFreezeNormalizer, false, true, 0},
                                  {kFreezeAttention, kFreezeDenominator, false, false, 0},  // two coefficients: by half
                                  {0, kFreezeNormalizer, false, false, kFreezeGate}};  // frozen: as if it did not move
  struct Product {
    const char* op;
    Sizes a, b;
    std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> times;
  };
  const auto mul = [](const at::Tensor& x, const at::Tensor& y) { return x * y; };
  const auto matmul = [](const at::Tensor& x, const at::Tensor& y) { return at::matmul(x, y); };
  const auto outer = [](const at::Tensor& x, const at::Tensor& y) { return x.unsqueeze(-1) * y.unsqueeze(-2); };
  const auto linear = [](const at::Tensor& x, const at::Tensor& y) { return at::matmul(x, y.transpose(-2, -1)); };
  const auto cross = [](const at::Tensor& x, const at::Tensor& y) { return at::linalg_cross(x, y); };
  const auto convolution = [](const at::Tensor& x, const at::Tensor& y) { return at::conv1d(x, y); };
  // In front of both factors: a plain addend.
  const std::string added = "aten::addr";
  const std::vector<Product> products = {
      {"aten::mul.Tensor", {3, 4}, {3, 4}, mul},
      {"aten::matmul", {3, 4}, {4, 2}, matmul},
      {"aten::bmm", {2, 3, 4}, {2, 4, 5}, matmul},
      {"aten::linear", {3, 4}, {2, 4}, linear},
      {"aten::linalg_cross", {2, 3}, {2, 3}, cross},
      {"aten::addr", {3}, {4}, outer},
      {"aten::convolution", {2, 3, 6}, {4, 3, 2}, convolution},
  };
  for (const Product& p : products) {
    for (const Row& row : table) {
      SCOPED_TRACE(testing::Message() << p.op << " marks " << row.a << " " << row.b);
      Draw draw(at::kDouble, 18);
      const Factor a = RandomFactor(draw, p.a);
      const Factor b = RandomFactor(draw, p.b);
      const bool has_addend = p.op == added;
      std::vector<GivenArgument> arguments;
      if (has_addend) arguments.emplace_back(draw.Normal({3, 4}));
      arguments.emplace_back(a.value, a.reference);
      arguments.emplace_back(b.value, b.reference);
      if (std::string(p.op) == "aten::convolution") {
        arguments.insert(arguments.end(), {kNone, Sizes{1}, Sizes{0}, Sizes{1}, false, Sizes{0}, int64_t{1}});
      }
      RuleCall call = OperatorCall(p.op, arguments).Describe(policy);
      const int first = has_addend ? 1 : 0;
      call.operands[first].content_first = row.a;
      call.operands[first].marks = row.a_frozen;
      call.operands[first + 1].content_first = row.b;
      const RuleResult rule = BuildRule(call);
      Rows rows;
      at::Tensor expected;
      for (const int input : rule.inputs) rows.push_back(input == first ? a.rows : b.rows);
      for (int64_t i = 0; i < 4; ++i) {
        at::Tensor sum = p.times(a.value, b.rows[i]);
        if (row.a_frozen == 0) {
          const at::Tensor a_met = row.a_leads ? a.value : row.b_leads ? a.reference : a.Middle();
          const at::Tensor b_met = row.b_leads ? b.value : row.a_leads ? b.reference : b.Middle();
          sum = p.times(a.rows[i], b_met) + p.times(a_met, b.rows[i]);
        }
        expected = i == 0 ? sum.unsqueeze(0) : at::cat({expected, sum.unsqueeze(0)});
      }
      EXPECT_LE(Difference(rule.map->Forward(rows)[0], expected), 1e-13);
      if (row.a_frozen == 0) {
        EXPECT_LE(RelativeBracket(call, rule), 1e-13);
      }
      // The transpose of the same map.
      const at::Tensor g = draw.Normal(Sizes(call.outputs[0].value.sizes().vec()));
      Rows one;
      for (const at::Tensor& r : rows) one.push_back(r.narrow(0, 0, 1));
      Rows back = rule.map->Transpose({g});
      for (at::Tensor& t : back) t = t.unsqueeze(0);
      EXPECT_NEAR(Inner({g}, {expected[0]}).first, Inner(back, one).first, 1e-12 * Inner(back, one).second + 1e-12);
    }
  }
}

// ------------------------------------------------------------------------------------------------------ by magnitude

// s = w |v| / (w |v| + |v'|), `wide` numbers of the coefficient and the sizes of what each multiplies.
at::Tensor ShareByHand(const at::Tensor& a, const at::Tensor& a0, const at::Tensor& v, const at::Tensor& v0,
                       double opens, double closes) {
  const at::Tensor w = at::where(a.abs() > a0.abs(), at::full_like(a, opens), at::full_like(a, closes));
  return w * v / (w * v + v0);
}

// Every product is a sum of products of numbers, which is how it is written here: the coefficient [*, K] or [*, K, 1]
// times the content along the dimensions `summed`.
TEST(ByMagnitudeTest, IsItsFormula) {
  struct Product {
    const char* op;
    Sizes a, v;
    bool coefficient_is_second;
    std::function<at::Tensor(const at::Tensor&)> spread_a, spread_v;  // to where both broadcast
    std::vector<int64_t> lengths;                                     // dimensions of one size of content, from behind
    std::vector<int64_t> summed;                                      // from behind
    std::vector<int64_t> dropped;                                     // from behind, of size one
  };
  const auto same = [](const at::Tensor& t) { return t; };
  const auto at_end = [](const at::Tensor& t) { return t.unsqueeze(-1); };
  const auto before_last_two = [](const at::Tensor& t) { return t.unsqueeze(-3); };
  const auto turned = [](const at::Tensor& t) { return t.transpose(-2, -1); };
  const std::vector<Product> products = {
      {"aten::mul.Tensor", {3, 4}, {3, 4}, false, same, same, {}, {}, {}},
      {"aten::mul.Tensor", {3, 4}, {3, 4}, true, same, same, {}, {}, {}},
      {"aten::mul.Tensor", {4}, {3, 4}, false, same, same, {}, {}, {}},
      // One weight for all channels, and for all of a vector: |v| is their norm. Not over the first dimension.
      {"aten::mul.Tensor", {3, 1, 5}, {3, 4, 5}, false, same, same, {-2}, {}, {}},
      {"aten::mul.Tensor", {2, 3, 1}, {1, 3, 4}, false, same, same, {-1}, {}, {}},
      {"aten::mul.Tensor", {1, 4}, {3, 4}, false, same, same, {}, {}, {}},
      {"aten::matmul", {3, 4}, {4, 2}, false, at_end, before_last_two, {-1}, {-2}, {}},
      {"aten::bmm", {2, 3, 4}, {2, 4, 5}, false, at_end, before_last_two, {-1}, {-2}, {}},
      {"aten::matmul", {2, 3, 4}, {4, 5}, false, at_end, before_last_two, {-1}, {-2}, {}},
      {"aten::matmul", {3, 4}, {2, 4, 5}, false, at_end, before_last_two, {-1}, {-2}, {}},
      {"aten::mv", {3, 4}, {4}, false, same, same, {}, {-1}, {}},
      {"aten::dot", {4}, {4}, false, same, same, {}, {-1}, {}},
      // Content [M, K] x coefficient [K, N], turned: a row of what comes out is content of all K.
      {"aten::matmul",
       {4, 3},
       {2, 4},
       true,
       [=](const at::Tensor& t) { return at_end(turned(t)); },
       [=](const at::Tensor& t) { return turned(t).unsqueeze(-3); },
       {-1},
       {-2},
       {-2}},
  };
  struct Kind {
    uint32_t bits;
    double opens, closes;
  };
  for (const Product& p : products) {
    for (const Kind& kind : {Kind{kFreezeAttention, 1.5, 1.5}, Kind{kFreezeGate, 1.5, 5}}) {
      SCOPED_TRACE(testing::Message() << p.op << " " << at::IntArrayRef(p.a) << " " << at::IntArrayRef(p.v)
                                      << " second " << p.coefficient_is_second << " kind " << kind.bits);
      Draw draw(at::kDouble, 28);
      const Factor a = RandomFactor(draw, p.a);
      const Factor v = RandomFactor(draw, p.v);
      std::vector<GivenArgument> arguments = {a, v};
      if (p.coefficient_is_second) arguments = {v, a};
      RuleCall call = OperatorCall(p.op, arguments).Describe(Faithful());
      RuleOperand& coefficient = call.operands[p.coefficient_is_second ? 1 : 0];
      coefficient.content_first = coefficient.by_magnitude = kind.bits;
      const auto size = [&](const at::Tensor& t) {
        at::Tensor squares = p.spread_v(t).square();
        if (!p.lengths.empty()) squares = squares.sum(p.lengths, /*keepdim=*/true);
        return squares.sqrt();
      };
      const at::Tensor x = p.spread_a(a.value);
      const at::Tensor b = p.spread_a(a.reference);
      const at::Tensor s = ShareByHand(x, b, size(v.value), size(v.reference), kind.opens, kind.closes);
      at::Tensor expected;
      for (int64_t i = 0; i < a.rows.size(0); ++i) {
        at::Tensor own =
            p.spread_a(a.rows[i]) * (p.spread_v(v.reference) + (1 - s) * p.spread_v(v.value - v.reference)) +
            (b + s * (x - b)) * p.spread_v(v.rows[i]);
        if (!p.summed.empty()) own = own.sum(p.summed);
        if (!p.dropped.empty()) own = own.transpose(-2, -1);
        expected = i == 0 ? own.unsqueeze(0) : at::cat({expected, own.unsqueeze(0)});
      }
      const RuleResult rule = BuildRule(call);
      const Rows rows = p.coefficient_is_second ? Rows{v.rows, a.rows} : Rows{a.rows, v.rows};
      EXPECT_LE(Difference(rule.map->Forward(rows)[0], expected), 1e-13);
      EXPECT_LE(RelativeBracket(call, rule), 1e-13);
      const at::Tensor g = draw.Normal(Sizes(call.outputs[0].value.sizes().vec()));
      Rows back = rule.map->Transpose({g});
      for (at::Tensor& t : back) t = t.unsqueeze(0);
      Rows one;
      for (const at::Tensor& r : rows) one.push_back(r.narrow(0, 0, 1));
      EXPECT_NEAR(Inner({g}, {expected[0]}).first, Inner(back, one).first, 1e-12 * Inner(back, one).second + 1e-12);
    }
  }
}

// Content that appears takes all of the interaction, content that vanishes nothing; nothing on both sides has none.
TEST(ByMagnitudeTest, AtTheEnds) {
  Draw draw(at::kDouble, 29);
  const Factor a = RandomFactor(draw, {4});
  Factor v = RandomFactor(draw, {4});
  v.value[0] = 0;
  v.reference[1] = 0;
  v.value[2] = v.reference[2] = 0;
  RuleCall call = OperatorCall("aten::mul.Tensor", {a, v}).Describe(Faithful());
  call.operands[0].content_first = call.operands[0].by_magnitude = kFreezeAttention;
  const at::Tensor passed = ForwardOf(call, {a.rows, v.rows});
  const auto at = [&](int64_t i) { return passed.select(1, i); };
  const at::Tensor vanishes = a.reference[0] * v.rows.select(1, 0);  // the weight meets content of nothing
  const at::Tensor appears = a.value[1] * v.rows.select(1, 1);
  EXPECT_LE(Difference(at(0), vanishes), 1e-14);
  EXPECT_LE(Difference(at(1), appears), 1e-14);
  EXPECT_TRUE(at(2).isfinite().all().item<bool>());
  EXPECT_LE(RelativeBracket(call, BuildRule(call)), 1e-14);
}

// Products of other kinds that are asked to share by magnitude give all to the content.
TEST(ByMagnitudeTest, OtherProductsAreContentFirst) {
  Draw draw(at::kDouble, 31);
  const Factor a = RandomFactor(draw, {2, 3});
  const Factor v = RandomFactor(draw, {2, 3});
  RuleCall call = OperatorCall("aten::linalg_cross", {a, v}).Describe(Faithful());
  call.operands[0].content_first = call.operands[0].by_magnitude = kFreezeAttention;
  const at::Tensor expected =
      at::linalg_cross(a.rows, v.reference.expand_as(a.rows)) + at::linalg_cross(a.value.expand_as(v.rows), v.rows);
  EXPECT_LE(Difference(ForwardOf(call, {a.rows, v.rows}), expected), 1e-13);
}

// start + weight (end - start): a weight that is a coefficient of the difference.
TEST(ContentFirstTest, Interpolation) {
  Draw draw(at::kDouble, 19);
  const Factor start = RandomFactor(draw, {5});
  const Factor end = RandomFactor(draw, {5});
  const Factor weight = RandomFactor(draw, {5});
  RuleCall call = OperatorCall("aten::lerp.Tensor", {start, end, weight}).Describe(Faithful());
  call.operands[2].content_first = kFreezeAttention;
  const at::Tensor expected =
      start.rows + weight.value * (end.rows - start.rows) + weight.rows * (end.reference - start.reference);
  EXPECT_LE(Difference(ForwardOf(call, {start.rows, end.rows, weight.rows}), expected), 1e-13);
  EXPECT_LE(RelativeBracket(call, BuildRule(call)), 1e-13);
}

// A bag's vectors by weights that are a coefficient.
TEST(ContentFirstTest, WeightedBags) {
  Draw draw(at::kDouble, 20);
  const Factor table = RandomFactor(draw, {6, 3});
  const Factor weights = RandomFactor(draw, {4});
  const at::Tensor ids = at::tensor({1, 5, 0, 1}, at::kLong);
  const at::Tensor offsets = at::tensor({0, 2}, at::kLong);
  RuleCall call = OperatorCall("aten::_embedding_bag", {table, ids, offsets, false, int64_t{0}, false, weights})
                      .Describe(Faithful());
  const int samples = call.OperandAt("per_sample_weights");
  call.operands[samples].content_first = kFreezeAttention;
  const auto vectors = [&](const at::Tensor& t) { return t.index_select(-2, ids); };
  const at::Tensor moved =
      weights.rows.unsqueeze(-1) * vectors(table.reference) + weights.value.unsqueeze(-1) * vectors(table.rows);
  const at::Tensor expected = moved.view({4, 2, 2, 3}).sum(2);
  EXPECT_LE(Difference(ForwardOf(call, {table.rows, weights.rows}), expected), 1e-13);
}

// -------------------------------------------------------------------------------------------------- dropout,
// parameters

TEST(DropoutTest, TheMaskOfTheValueHoldsForEveryRow) {
  Draw draw(at::kDouble, 11);
  const RuleCall call = OperatorCall("aten::native_dropout", {draw.Moving({50}), 0.3, true}).Describe(Faithful());
  const at::Tensor mask = call.outputs[1].value;
  EXPECT_TRUE(mask.any().item<bool>());
  EXPECT_FALSE(mask.all().item<bool>());
  const at::Tensor rows = draw.Normal({4, 50});
  EXPECT_LE(Difference(ForwardOf(call, {rows}), rows * mask / 0.7), 1e-14);
  // Another reference run with another mask must not change the map: it is the value's mask that counts.
  RuleCall other = call;
  other.outputs[1].reference = mask.logical_not();
  EXPECT_EQ(Difference(ForwardOf(other, {rows}), ForwardOf(call, {rows})), 0);
}

// A rule of one argument, given a function of two.
TEST(PointwiseTest, ASecondMovingArgumentIsRefused) {
  Draw draw(at::kDouble, 14);
  const OperatorCall op("aten::maximum", {draw.Moving({3}), draw.Moving({3})});
  EXPECT_THROW(Pointwise(op.Describe(Faithful()), Curve::kPiecewiseLinear), Error);
  EXPECT_THROW(Pointwise(op.Describe(Faithful(), 2), Curve::kPiecewiseLinear), Error);
  EXPECT_NO_THROW(Pointwise(op.Describe(Faithful(), 1), Curve::kPiecewiseLinear));
}

}  // namespace
}  // namespace addend

// The two generic path rules against oracles of their own: closed forms, the operator itself, a fine quadrature.
#include "core/rules/path.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
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

using Build = RuleResult (*)(const RuleCall&);

RuleResult BuildWith(Build build, const RuleCall& call) {
  c10::AutoGradMode no_grad(false);  // as the linearizer does
  return build(call);
}

// The matrix of a rule for one input and one output.
at::Tensor MatrixOf(const RuleCall& call, const RuleResult& rule, size_t input = 0, size_t output = 0) {
  const int64_t n = call.operands[rule.inputs[input]].value.numel();
  Rows rows;
  for (size_t j = 0; j < rule.inputs.size(); ++j) {
    const at::Tensor& value = call.operands[rule.inputs[j]].value;
    std::vector<int64_t> sizes(value.sizes().begin(), value.sizes().end());
    sizes.insert(sizes.begin(), n);
    rows.push_back(at::zeros(sizes, value.options()));
    if (j == input) rows.back().view({n, n}).fill_diagonal_(1);
  }
  return rule.map->Forward(rows)[output].reshape({n, -1}).t();
}

void ExpectLaws(const RuleCall& call, const RuleResult& rule, double tolerance) {
  Draw draw(at::kDouble, 77);
  const Rows rows = RandomRows(draw, call, rule, 5);
  const Rows out = Pass(call, rule, rows, 5);
  for (size_t k = 0; k < out.size(); ++k) {
    if (!out[k].defined()) continue;
    EXPECT_EQ(out[k].sizes().slice(1), call.outputs[k].value.sizes());
    EXPECT_EQ(out[k].scalar_type(), call.outputs[k].value.scalar_type());
  }
  // <g, Forward(r)> = <Transpose(g), r> for each row.
  const Rows cotangents = RandomCotangents(draw, call);
  const Rows back = rule.map->Transpose(cotangents);
  for (int64_t r = 0; r < 5; ++r) {
    Rows forward, own;
    for (const at::Tensor& t : out) forward.push_back(t.defined() ? t.select(0, r) : t);
    for (const at::Tensor& t : rows) own.push_back(t.select(0, r));
    const auto left = Inner(cotangents, forward);
    const auto right = Inner(back, own);
    EXPECT_NEAR(left.first, right.first, 1e-13 * (left.second + right.second));
  }
  EXPECT_LE(RelativeBracket(call, rule), tolerance);
  EXPECT_LE(RelativeBracket(call, rule), 4 * rule.quadrature + 1e-14);
}

// ------------------------------------------------------------------------------------------------- any operator at all

// Operators whose mean derivative a fine quadrature through autograd finds independently.
TEST(PathThroughAutogradTest, IsTheMeanJacobian) {
  Draw draw(at::kDouble, 1);
  const at::Tensor spd = at::eye(3, at::kDouble) * 4;
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::softmax.int", {draw.Moving({2, 4}, 2), int64_t{1}}},
      {"aten::logsumexp", {draw.Moving({2, 4}, 2), Sizes{0}}},
      {"aten::tanh", {draw.Moving({3}, 2)}},
      {"aten::mul.Tensor", {draw.Moving({2, 3}), draw.Moving({3})}},
      {"aten::mm", {draw.Moving({2, 3}), draw.Moving({3, 2})}},
      {"aten::linalg_inv_ex", {{spd + draw.Normal({3, 3}), spd + draw.Normal({3, 3})}}},
      {"aten::var_mean.correction", {draw.Moving({2, 4}), Sizes{1}, int64_t{1}, false}},
      {"aten::prod", {draw.Moving({5})}},
      {"aten::cdist", {draw.Moving({3, 2}), draw.Moving({2, 2})}},
      {"aten::tanh_", {draw.Moving({3})}},
  };
  for (const auto& c : calls) {
    for (const uint32_t decomposed : {~0u, 1u}) {
      SCOPED_TRACE(testing::Message() << c.first << " decomposed " << decomposed);
      const RuleCall call = OperatorCall(c.first, c.second).Describe(Faithful(), decomposed);
      const RuleResult rule = BuildWith(PathThroughAutograd, call);
      ASSERT_TRUE(rule.map != nullptr);
      EXPECT_EQ(rule.kind, Kind::kPath);
      EXPECT_FALSE(rule.exact);
      EXPECT_TRUE(rule.stand_ins.empty());
      EXPECT_LE(rule.quadrature, 2e-12);
      ExpectLaws(call, rule, 1e-11);
      const Rows cotangents = RandomCotangents(draw, call);
      const Rows mean = MeanGradient(call, rule.inputs, cotangents, 200, /*smooth=*/true);
      EXPECT_LE(Difference(rule.map->Transpose(cotangents), mean, 1), 1e-9);
    }
  }
}

TEST(PathThroughAutogradTest, OfALinearOperatorIsTheOperator) {
  Draw draw(at::kDouble, 2);
  const at::Tensor weight = draw.Normal({3, 4});
  const RuleCall call =
      OperatorCall("aten::linear", {draw.Moving({2, 4}), weight, draw.Normal({3})}).Describe(Faithful());
  const RuleResult rule = BuildWith(PathThroughAutograd, call);
  const at::Tensor rows = draw.Normal({6, 2, 4});
  EXPECT_LE(Difference(rule.map->Forward({rows})[0], at::matmul(rows, weight.t())), 1e-14);
  EXPECT_LE(rule.quadrature, 1e-12);
}

// relu has a kink on the line of each element: halving finds it to the depth that the tolerance asks for.
TEST(PathThroughAutogradTest, KinksAreFound) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const RuleCall call = OperatorCall("aten::relu", {{Numbers({1.7, -0.3, 2}, dtype), Numbers({-0.4, 1.1, 1}, dtype)}})
                              .Describe(Faithful());
    const RuleResult rule = BuildWith(PathThroughAutograd, call);
    const at::Tensor expected = Numbers({1.7 / 2.1, 1.1 / 1.4, 1}, dtype);
    EXPECT_LE(Difference(MatrixOf(call, rule).diagonal(), expected), dtype == at::kDouble ? 2e-12 : 4e-6);
    EXPECT_LE(rule.quadrature, dtype == at::kDouble ? 2e-12 : 4e-6);
  }
}

// A function that jumps leaves the jump over, says so, and stays within what it says.
TEST(PathThroughAutogradTest, JumpsAreLeftOverAndReported) {
  // remainder(x, 1): slope 1, and it falls by 1 at every whole number: twice between 0.5 and 2.25.
  const RuleCall call =
      OperatorCall("aten::remainder.Scalar", {{Numbers({2.25}), Numbers({0.5})}, 1.0}).Describe(Faithful());
  const RuleResult rule = BuildWith(PathThroughAutograd, call);
  EXPECT_NEAR(MatrixOf(call, rule)[0][0].item<double>(), 1, 1e-12);
  const double scale = 1.75;  // L(move)
  EXPECT_NEAR(rule.quadrature, 2 / scale, 1e-9);
}

TEST(PathThroughAutogradTest, APoleIsLinearizedAtTheValue) {
  // 1/x from -1 to 2, beside an element without a pole.
  const RuleCall call = OperatorCall("aten::reciprocal", {{Numbers({2, 2}), Numbers({-1, 1})}}).Describe(Faithful());
  for (const Build build : {Build(PathThroughAutograd), Build(PathElementwise)}) {
    const RuleResult rule = BuildWith(build, call);
    ASSERT_EQ(rule.stand_ins.size(), 1u);
    EXPECT_NEAR(MatrixOf(call, rule)[0][0].item<double>(), -0.25, 1e-12);
    EXPECT_NEAR(MatrixOf(call, rule)[1][1].item<double>(), -0.5, 1e-11);
    EXPECT_NEAR(rule.stand_ins[0][0].item<double>(), 0.5 + 0.25 * 3, 1e-12);
    EXPECT_EQ(rule.stand_ins[0][1].item<double>(), 1);
    EXPECT_LE(RelativeBracket(call, rule), 1e-11);
  }
}

TEST(PathThroughAutogradTest, AReferenceOutsideTheDomain) {
  const RuleCall call = OperatorCall("aten::log", {{Numbers({2, 3}), Numbers({-1, 1})}}).Describe(Faithful());
  for (const Build build : {Build(PathThroughAutograd), Build(PathElementwise)}) {
    const RuleResult rule = BuildWith(build, call);
    ASSERT_EQ(rule.stand_ins.size(), 1u);
    EXPECT_NEAR(MatrixOf(call, rule)[0][0].item<double>(), 0.5, 1e-12);
    EXPECT_NEAR(MatrixOf(call, rule)[1][1].item<double>(), std::log(3) / 2, 1e-11);
    EXPECT_LE(RelativeBracket(call, rule), 1e-11);
  }
}

// The matrices on the line between two that have a Cholesky factor have one too; here one end has none.
TEST(PathThroughAutogradTest, AnOperatorThatThrowsOnTheLine) {
  const at::Tensor value = Numbers({2, 0, 0, 2}).view({2, 2});
  RuleCall call = OperatorCall("aten::linalg_cholesky", {{value, value.clone()}}).Describe(Faithful());
  call.operands[0].reference = Numbers({1, 0, 0, -1}).view({2, 2});
  call.outputs[0].reference = at::full({2, 2}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  const RuleResult rule = BuildWith(PathThroughAutograd, call);
  ASSERT_EQ(rule.stand_ins.size(), 1u);
  EXPECT_TRUE(rule.stand_ins[0].isfinite().all().item<bool>());
  EXPECT_LE(RelativeBracket(call, rule), 1e-12);
}

TEST(PathThroughAutogradTest, MasksOfMinusInfinityDoNotMove) {
  const RuleCall call =
      OperatorCall("aten::logsumexp", {{Numbers({1, -kInfinity, 2}), Numbers({0, -kInfinity, -1})}, Sizes{0}})
          .Describe(Faithful());
  const RuleResult rule = BuildWith(PathThroughAutograd, call);
  EXPECT_TRUE(rule.stand_ins.empty());
  const at::Tensor matrix = MatrixOf(call, rule);
  EXPECT_TRUE(matrix.isfinite().all().item<bool>()) << matrix;
  EXPECT_EQ(matrix[0][1].item<double>(), 0);
  EXPECT_LE(RelativeBracket(call, rule), 1e-11);
}

TEST(PathThroughAutogradTest, WhatHasNoDerivativeIsOpaque) {
  Draw draw(at::kDouble, 3);
  const RuleCall call = OperatorCall("aten::ge.Scalar", {draw.Moving({3}), 0}).Describe(Faithful());
  EXPECT_EQ(BuildWith(PathThroughAutograd, call).kind, Kind::kOpaque);
}

TEST(PathThroughAutogradTest, RefusesWhatItCannotDo) {
  Draw draw(at::kDouble, 4);
  const auto message = [](const RuleCall& call) -> std::string {
    try {
      BuildWith(PathThroughAutograd, call);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const RuleCall large = OperatorCall("aten::tanh", {draw.Moving({5000})}).Describe(Faithful());
  EXPECT_NE(message(large).find("aten::tanh: its derivative has 25000000 numbers"), std::string::npos)
      << message(large);
  // A result that is not what the operator gives now.
  RuleCall random = OperatorCall("aten::tanh", {draw.Moving({5})}).Describe(Faithful());
  random.outputs[0].value = random.outputs[0].value + 1;
  EXPECT_NE(message(random).find("called again, it gives something else"), std::string::npos) << message(random);
}

TEST(PathThroughAutogradTest, ComplexNumbersCountAsPairs) {
  Draw draw(at::kDouble, 5);
  // |z|^2 of a complex operand: not holomorphic, real result.
  const auto complex = [&] { return at::view_as_complex(draw.Normal({4, 2})); };
  const RuleCall call = OperatorCall("aten::abs", {{complex(), complex()}}).Describe(Faithful());
  RuleCall own = call;
  own.operands[0].decomposed = true;
  own.operands[0].reference = complex();
  own.outputs[0].reference = own.operands[0].reference.abs();
  const RuleResult rule = BuildWith(PathThroughAutograd, own);
  const at::Tensor moved = rule.map->Forward({own.Move(0).unsqueeze(0)})[0][0];
  EXPECT_LE(Difference(moved, own.outputs[0].value - own.outputs[0].reference), 1e-11);
}

// ------------------------------------------------------------------------------------------------- element by element

TEST(PathElementwiseTest, IsTheMeanDerivative) {
  Draw draw(at::kDouble, 6);
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> calls = {
      {"aten::atan2", {draw.MovingWithin({2, 3}, 0.2, 2), draw.MovingWithin({3}, 0.2, 2)}},
      {"aten::hypot", {draw.MovingWithin({2, 1}, 0.2, 2), draw.MovingWithin({3}, 0.2, 2)}},
      {"aten::pow.Tensor_Tensor", {draw.MovingWithin({2, 3}, 0.2, 2), draw.Moving({3})}},
      {"aten::lerp.Tensor", {draw.Moving({2, 3}), draw.Moving({3}), draw.Moving({})}},
      {"aten::xlogy.Tensor", {draw.Moving({2, 3}), draw.MovingWithin({3}, 0.3, 2)}},
      {"aten::addcdiv", {draw.Moving({3}), draw.Moving({2, 3}), draw.MovingWithin({2, 1}, 0.5, 2), 0.7}},
      {"aten::binary_cross_entropy",
       {draw.MovingWithin({2, 3}, 0.1, 0.9), draw.MovingWithin({2, 3}, 0.1, 0.9), draw.Uniform({3}, 0.5, 1),
        int64_t{0}}},
      {"aten::logaddexp", {draw.Moving({2, 3}, 5), draw.Moving({3}, 5)}},
      {"aten::hypot_", {draw.MovingWithin({2, 3}, 0.2, 2), draw.MovingWithin({3}, 0.2, 2)}},
      {"aten::digamma", {draw.MovingWithin({4}, 0.1, 5)}},
  };
  for (const auto& c : calls) {
    for (const uint32_t decomposed : {~0u, 1u, 2u}) {
      const OperatorCall op(c.first, c.second);
      if ((decomposed & ((1u << op.movable()) - 1)) == 0) continue;
      SCOPED_TRACE(testing::Message() << c.first << " decomposed " << decomposed);
      const RuleCall call = op.Describe(Faithful(), decomposed);
      const RuleResult rule = BuildWith(PathElementwise, call);
      ASSERT_TRUE(rule.map != nullptr);
      EXPECT_EQ(rule.kind, Kind::kPath);
      EXPECT_FALSE(rule.exact);
      EXPECT_TRUE(rule.stand_ins.empty());
      // LibTorch's derivative of digamma is no more exact than that.
      const double exact = std::string(c.first) == "aten::digamma" ? 1e-9 : 1e-12;
      EXPECT_LE(rule.quadrature, 2 * exact);
      ExpectLaws(call, rule, 10 * exact);
      const Rows cotangents = RandomCotangents(draw, call);
      const Rows mean = MeanGradient(call, rule.inputs, cotangents, 400, /*smooth=*/true);
      EXPECT_LE(Difference(rule.map->Transpose(cotangents), mean, 1), 1e-8);
    }
  }
}

TEST(PathElementwiseTest, KinksJumpsAndSmallElements) {
  // max(x, y) of two that cross: shares of the line on which each is the larger. The last element is tiny.
  const RuleCall call =
      OperatorCall("aten::maximum", {{Numbers({3, 1e-9}), Numbers({0, 0})}, {Numbers({1, 0}), Numbers({1, 5e-10})}})
          .Describe(Faithful());
  const RuleResult rule = BuildWith(PathElementwise, call);
  const Rows one = {at::ones({1, 2}, at::kDouble), at::zeros({1, 2}, at::kDouble)};
  EXPECT_LE(Difference(rule.map->Forward(one)[0][0], Numbers({2.0 / 3, 2.0 / 3})), 1e-11);
  EXPECT_LE(rule.quadrature, 2e-12);
  const RuleCall jumps =
      OperatorCall("aten::remainder.Tensor", {{Numbers({2.25}), Numbers({0.5})}, Numbers({1.0})}).Describe(Faithful());
  EXPECT_NEAR(BuildWith(PathElementwise, jumps).quadrature, 2 / 1.75, 1e-9);
}

TEST(PathElementwiseTest, FloatRowsAndEmptyTensors) {
  Draw draw(at::kFloat, 7);
  const RuleCall call = OperatorCall("aten::atan2", {draw.MovingWithin({5}, 0.2, 2), draw.MovingWithin({5}, 0.2, 2)})
                            .Describe(Faithful());
  const RuleResult rule = BuildWith(PathElementwise, call);
  EXPECT_EQ(rule.map->Forward(MoveRows(call, rule))[0].scalar_type(), at::kFloat);
  EXPECT_LE(RelativeBracket(call, rule), 2e-6);
  const RuleCall empty =
      OperatorCall("aten::atan2", {draw.MovingWithin({0, 5}, 0.2, 2), draw.MovingWithin({5}, 0.2, 2)})
          .Describe(Faithful());
  const RuleResult none = BuildWith(PathElementwise, empty);
  EXPECT_EQ(Pass(empty, none, RandomRows(draw, empty, none, 3), 3)[0].sizes(), at::IntArrayRef({3, 0, 5}));
}

}  // namespace
}  // namespace addend

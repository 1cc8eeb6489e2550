// Linear algebra beyond the laws: results behind the first, references at which an operator has no result, steps.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_matrix_exp.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/rules/rule_testing.h"

namespace addend {
namespace {

using Arguments = std::vector<GivenArgument>;

Draw NewDraw() { return Draw(at::kDouble, 4711); }

at::Tensor Symmetric(const at::Tensor& t) { return (t + t.transpose(-2, -1)) / 2; }

at::Tensor Regular(Draw& d, const Sizes& sizes) {
  const at::Tensor noise = d.Uniform(sizes, -0.5, 0.5);
  return noise + 3 * at::eye(sizes[sizes.size() - 2], sizes.back(), noise.options());
}

// Symmetric with eigenvalues 1, 2, 3 ...
at::Tensor Spread(Draw& d, int64_t n) {
  const at::Tensor q = std::get<0>(at::linalg_qr(d.Normal({n, n})));
  return Symmetric(q.matmul(at::diag(at::arange(1, n + 1, q.options()))).matmul(q.t()));
}

// Difference of output k from its reference plus what the rule gives it for the move.
double Missed(const RuleCall& call, const RuleResult& rule, size_t k) {
  const at::Tensor moved = Pass(call, rule, MoveRows(call, rule), 1)[k].select(0, 0);
  at::Tensor reference = call.outputs[k].reference;
  if (k < rule.stand_ins.size() && rule.stand_ins[k].defined()) reference = rule.stand_ins[k];
  return Difference(reference + moved, call.outputs[k].value, 1);
}

// ------------------------------------------------------------------------------------------------------- derivatives

struct Factored {
  const char* op;
  std::function<Arguments(Draw&)> arguments;
};

class ResultsTest : public testing::TestWithParam<Factored> {};

// The rule of every output is autograd's derivative if nothing moves.
TEST_P(ResultsTest, EachResultHasItsDerivative) {
  if (!IsHere(GetParam().op)) GTEST_SKIP() << "this LibTorch has no " << GetParam().op;
  Draw draw = NewDraw();
  const OperatorCall op = OperatorCall(GetParam().op, GetParam().arguments(draw)).AtRest();
  const RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_NE(rule.map, nullptr);
  const Rows all = RandomCotangents(draw, call);
  int judged = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    if (!all[k].defined() || all[k].numel() == 0) continue;
    Rows one(all.size());
    one[k] = all[k];
    const Rows own = rule.map->Transpose(one);
    const Rows expected = MeanGradient(call, rule.inputs, one, 1, false);
    judged += expected[0].abs().max().item<double>() > 1e-3;
    EXPECT_LE(Difference(own, expected, 1), 1e-9) << "output " << k;
  }
  EXPECT_GT(judged, 0);
}

// Not at rest either does anything stay behind.
TEST_P(ResultsTest, EachResultIsMet) {
  if (!IsHere(GetParam().op)) GTEST_SKIP() << "this LibTorch has no " << GetParam().op;
  Draw draw = NewDraw();
  const OperatorCall op(GetParam().op, GetParam().arguments(draw));
  RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  if (call.name == "aten::_linalg_eigh" || call.name == "aten::symeig") {
    // The sign of an eigenvector is LAPACK's choice, and what that makes of the reference is left over.
    RuleOutput& vectors = call.outputs[1];
    const at::Tensor sign = (vectors.value * vectors.reference).sum(0).sign();
    if (sign.lt(0).any().item<bool>()) {
      EXPECT_GT(rule.quadrature, 0.1);
      vectors.reference = vectors.reference * sign;
    }
  } else {
    EXPECT_LE(rule.quadrature, 1e-10);
  }
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!call.outputs[k].value.is_floating_point()) continue;
    EXPECT_LE(Missed(call, rule, k), 1e-10) << "output " << k;
  }
}

GivenArgument Near(Draw& d, const at::Tensor& value, double scale = 0.05) {
  const at::Tensor noise = d.Uniform(Sizes(value.sizes().begin(), value.sizes().end()), -scale, scale);
  return {value, value + noise};
}

GivenArgument NearSymmetric(Draw& d, const at::Tensor& value) {
  const int64_t n = value.size(-1);
  return {value, value + Symmetric(d.Uniform({n, n}, -0.01, 0.01))};
}

INSTANTIATE_TEST_SUITE_P(
    Linalg, ResultsTest,
    testing::Values(
        Factored{"aten::linalg_lu",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {4, 4}).flip(0))};
                 }},
        Factored{"aten::linalg_lu",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {5, 3}))};
                 }},
        Factored{"aten::linalg_lu",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {3, 5}))};
                 }},
        Factored{"aten::linalg_qr",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {4, 4}))};
                 }},
        Factored{"aten::linalg_qr",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {5, 3}))};
                 }},
        Factored{"aten::linalg_qr",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {3, 5}))};
                 }},
        Factored{"aten::linalg_slogdet",
                 [](Draw& d) -> Arguments {
                   return {Near(d, Regular(d, {3, 3}), 1)};
                 }},
        Factored{"aten::_linalg_eigh", [](Draw& d) -> Arguments { return {NearSymmetric(d, Spread(d, 4))}; }},
        Factored{"aten::symeig",
                 [](Draw& d) -> Arguments {
                   return {NearSymmetric(d, Spread(d, 4)), true};
                 }},
        Factored{"aten::_linalg_svd", [](Draw& d) -> Arguments { return {Near(d, Spread(d, 4))}; }},
        Factored{"aten::_linalg_svd", [](Draw& d) -> Arguments { return {Near(d, Spread(d, 4).narrow(0, 0, 3))}; }},
        Factored{"aten::_linalg_svd", [](Draw& d) -> Arguments { return {Near(d, Spread(d, 4).narrow(1, 0, 3))}; }}));

// Autograd knows no derivative of values whose vectors are not asked for.
TEST(ValuesAloneTest, AreThoseBesideVectors) {
  Draw draw = NewDraw();
  for (const char* op : {"aten::_linalg_eigh", "aten::_linalg_svd"}) {
    const bool symmetric = std::string(op) == "aten::_linalg_eigh";
    const size_t values = symmetric ? 0 : 1;
    const GivenArgument matrix = NearSymmetric(draw, Spread(draw, 4));
    const Arguments with = symmetric ? Arguments{matrix, "L", true} : Arguments{matrix, false, true};
    const Arguments without = symmetric ? Arguments{matrix, "L", false} : Arguments{matrix, false, false};
    const RuleCall call = OperatorCall(op, without).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_LE(rule.quadrature, 1e-10) << op;
    EXPECT_LE(Missed(call, rule, values), 1e-10) << op;
    const Rows rows = {draw.Normal({3, 4, 4})};
    const RuleResult beside = BuildRule(OperatorCall(op, with).Describe(Faithful()));
    EXPECT_LE(Difference(rule.map->Forward(rows)[values], beside.map->Forward(rows)[values], 1), 1e-9) << op;
    Rows cotangents(call.outputs.size());
    cotangents[values] = draw.Normal({4});
    EXPECT_LE(Difference(rule.map->Transpose(cotangents), beside.map->Transpose(cotangents), 1), 1e-9) << op;
  }
}

// Cholesky factors are read by one triangle, so that the other has no part in the derivative. Autograd's gradient is
// right where it is read.
TEST(CholeskyFactorTest, OnlyItsTriangleCounts) {
  Draw draw = NewDraw();
  const at::Tensor factor = Regular(draw, {4, 4}).tril();
  for (const bool upper : {false, true}) {
    const at::Tensor own = upper ? factor.t().contiguous() : factor;
    const std::vector<std::pair<const char*, Arguments>> calls = {
        {"aten::cholesky_inverse", {GivenArgument(own, own.clone()), upper}},
        {"aten::cholesky_solve", {draw.Normal({4, 2}), GivenArgument(own, own.clone()), upper}}};
    for (const auto& [op, arguments] : calls) {
      const RuleCall call = OperatorCall(op, arguments).Describe(Faithful());
      const RuleResult rule = BuildRule(call);
      const Rows cotangents = RandomCotangents(draw, call);
      const at::Tensor gradient = MeanGradient(call, rule.inputs, cotangents, 1, false)[0];
      const at::Tensor expected = upper ? gradient.triu() : gradient.tril();
      EXPECT_LE(Difference(rule.map->Transpose(cotangents)[0], expected, 1), 1e-10) << op;
    }
  }
}

// Autograd's own gradient of the trace of a high matrix is wrong in LibTorch 1.13.
TEST(TraceTest, OfAHighMatrix) {
  Draw draw = NewDraw();
  const RuleCall call = OperatorCall("aten::trace", {draw.Moving({5, 2})}).Describe(Faithful());
  const at::Tensor back = BuildRule(call).map->Transpose({at::ones({}, at::kDouble)})[0];
  EXPECT_TRUE(back.equal(at::eye(5, 2, at::kDouble)));
}

// ------------------------------------------------------------------------------------------------------- no reference

class SingularReferenceTest : public testing::TestWithParam<Factored> {};

// A reference at which the operator has no result: the derivative at the value, and a stand-in from which the move
// leads to the value.
TEST_P(SingularReferenceTest, IsLinearizedAtTheValue) {
  Draw draw = NewDraw();
  const OperatorCall op(GetParam().op, GetParam().arguments(draw));
  const RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_NE(rule.map, nullptr);
  EXPECT_TRUE(
      std::any_of(rule.stand_ins.begin(), rule.stand_ins.end(), [](const at::Tensor& t) { return t.defined(); }));
  Rows cotangents = RandomCotangents(draw, call);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    // The sign of a determinant is zero there: what is finite needs no stand-in.
    if (!call.outputs[k].value.is_floating_point() || call.outputs[k].reference.isfinite().all().item<bool>()) continue;
    EXPECT_LE(Missed(call, rule, k), 1e-9) << "output " << k;
  }
  const RuleCall rest = op.AtRest().Describe(Faithful());
  EXPECT_LE(Difference(rule.map->Transpose(cotangents), MeanGradient(rest, rule.inputs, cotangents, 1, false), 1),
            1e-9);
}

INSTANTIATE_TEST_SUITE_P(
    Linalg, SingularReferenceTest,
    testing::Values(Factored{"aten::linalg_inv_ex",
                             [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), at::zeros({3, 3}, at::kDouble)}};
                             }},
                    Factored{"aten::linalg_solve_ex",
                             [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), at::zeros({3, 3}, at::kDouble)}, d.Moving({2, 3, 2})};
                             }},
                    Factored{"aten::linalg_solve_triangular",
                             [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), at::zeros({3, 3}, at::kDouble)}, d.Moving({3, 2}), true};
                             }},
                    Factored{"aten::logdet",
                             [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), at::zeros({3, 3}, at::kDouble)}};
                             }},
                    Factored{"aten::logdet",
                             [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), -Regular(d, {3, 3})}};
                             }},
                    Factored{"aten::linalg_slogdet", [](Draw& d) -> Arguments {
                               return {{Regular(d, {3, 3}), at::zeros({3, 3}, at::kDouble)}};
                             }}));

// One singular matrix of a batch leaves the others their secants.
TEST(LinalgEdgesTest, OneSingularMatrixOfABatch) {
  Draw draw = NewDraw();
  const at::Tensor value = Regular(draw, {2, 3, 3});
  at::Tensor reference = Regular(draw, {2, 3, 3});
  reference.select(0, 1).zero_();
  const RuleCall call = OperatorCall("aten::linalg_inv_ex", {GivenArgument(value, reference)}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  ASSERT_FALSE(rule.stand_ins.empty());
  EXPECT_TRUE(rule.exact);
  EXPECT_EQ(Difference(rule.stand_ins[0].select(0, 0), call.outputs[0].reference.select(0, 0)), 0);
  EXPECT_LE(Missed(call, rule, 0), 1e-12);
}

TEST(LinalgEdgesTest, ZeroIsTheLimitOfDefiniteMatrices) {
  Draw draw = NewDraw();
  const at::Tensor half = draw.Normal({4, 4});
  const at::Tensor value = half.matmul(half.t()) + at::eye(4, half.options());
  const RuleCall call =
      OperatorCall("aten::linalg_cholesky_ex", {GivenArgument(value, at::zeros_like(value))}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_TRUE(rule.exact);
  EXPECT_LE(Missed(call, rule, 0), 1e-12);
}

TEST(LinalgEdgesTest, IndefiniteReferencesLeaveSomethingOver) {
  Draw draw = NewDraw();
  const at::Tensor value = Spread(draw, 3);
  const RuleCall call = OperatorCall("aten::linalg_cholesky_ex", {GivenArgument(value, -value)}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  EXPECT_GT(rule.quadrature, 1e-3);
}

// The pseudoinverse of zero is zero: no pole, and nothing left over though the rank changes.
TEST(LinalgEdgesTest, PseudoInversesPassChangesOfRank) {
  Draw draw = NewDraw();
  for (const at::Tensor& reference :
       {at::zeros({4, 3}, at::kDouble), draw.Normal({4, 1}).matmul(draw.Normal({1, 3}))}) {
    const GivenArgument matrix(draw.Normal({4, 3}), reference);
    const RuleCall call =
        OperatorCall("aten::linalg_pinv.atol_rtol_float", {matrix, kNone, kNone}).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_TRUE(rule.exact);
    EXPECT_TRUE(rule.stand_ins.empty());
    EXPECT_LE(Missed(call, rule, 0), 1e-10);
  }
}

// ------------------------------------------------------------------------------------------------------------- steps

TEST(LinalgStepsTest, OtherRowExchanges) {
  Draw draw = NewDraw();
  const at::Tensor value = Regular(draw, {3, 3});
  const OperatorCall op("aten::linalg_lu_factor_ex", {GivenArgument(value, Regular(draw, {3, 3}).flip(0))});
  const RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  EXPECT_LE(Missed(call, rule, 0), 4 * rule.quadrature * call.outputs[0].value.abs().max().item<double>());
  const Rows cotangents = RandomCotangents(draw, call);
  const RuleCall rest = op.AtRest().Describe(Faithful());
  EXPECT_LE(Difference(rule.map->Transpose(cotangents), MeanGradient(rest, rule.inputs, cotangents, 1, false), 1),
            1e-9);
}

TEST(LinalgStepsTest, SignsOfQ) {
  Draw draw = NewDraw();
  // LAPACK turns the first column to the side on which its first element does not lie.
  at::Tensor value = Regular(draw, {3, 3}).flip(0);
  at::Tensor reference = value.clone();
  value.select(0, 0).select(0, 0).fill_(0.1);
  reference.select(0, 0).select(0, 0).fill_(-0.1);
  const RuleCall call = OperatorCall("aten::linalg_qr", {GivenArgument(value, reference)}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  EXPECT_GT(rule.quadrature, 0.1);
}

// The determinant changes its sign: the sign jumps, its logarithm is met all the same.
TEST(LinalgStepsTest, SignOfTheDeterminant) {
  Draw draw = NewDraw();
  const GivenArgument matrix(Regular(draw, {3, 3}), Regular(draw, {3, 3}).flip(0));
  const RuleCall call = OperatorCall("aten::linalg_slogdet", {matrix}).Describe(Faithful());
  ASSERT_EQ(call.outputs[0].value.item<double>(), -call.outputs[0].reference.item<double>());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  EXPECT_LE(Missed(call, rule, 1), 1e-12);
  EXPECT_NEAR(Missed(call, rule, 0), 2, 1e-12);
}

// From zero the singular vectors have no mean derivative; the singular values have.
TEST(LinalgStepsTest, SingularValuesFromZero) {
  Draw draw = NewDraw();
  const at::Tensor value = draw.Normal({4, 3});
  const OperatorCall op("aten::_linalg_svd", {GivenArgument(value, at::zeros_like(value))});
  const RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_FALSE(rule.exact);
  EXPECT_LE(Missed(call, rule, 1), 1e-12);
  const Rows cotangents = RandomCotangents(draw, call);
  const RuleCall rest = op.AtRest().Describe(Faithful());
  EXPECT_LE(Difference(rule.map->Transpose(cotangents), MeanGradient(rest, rule.inputs, cotangents, 1, false), 1),
            1e-9);
}

// Operators on symmetric matrices read one triangle: of references that are not symmetric too.
TEST(LinalgStepsTest, AsymmetricReferences) {
  Draw draw = NewDraw();
  const at::Tensor value = Spread(draw, 4);
  const at::Tensor reference = value + draw.Uniform({4, 4}, -0.1, 0.1).triu(1) + 0.01 * value;
  for (const char* half : {"L", "U"}) {
    const RuleCall call =
        OperatorCall("aten::_linalg_eigh", {GivenArgument(value, reference), std::string(half)}).Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_LE(Missed(call, rule, 0), 1e-10);
  }
}

// The integral that the exponential's secant is, by quadrature: exp(A) - exp(B) = int exp(sA) X exp((1 - s)B) ds.
TEST(ExponentialTest, IsVanLoansIntegral) {
  Draw draw = NewDraw();
  const at::Tensor a = draw.Normal({3, 3});
  const at::Tensor b = draw.Normal({3, 3});
  const RuleCall call = OperatorCall("aten::linalg_matrix_exp", {GivenArgument(a, b)}).Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  const at::Tensor row = draw.Normal({1, 3, 3}, 100);
  at::Tensor expected = at::zeros({3, 3}, at::kDouble);
  constexpr int kPieces = 2000;
  for (int piece = 0; piece < kPieces; ++piece) {
    const double s = (piece + 0.5) / kPieces;
    const auto product = [&](const at::Tensor& first, const at::Tensor& second) {
      return at::linalg_matrix_exp(first * s).matmul(row[0]).matmul(at::linalg_matrix_exp(second * (1 - s)));
    };
    expected += (product(a, b) + product(b, a)) / (2 * kPieces);
  }
  EXPECT_LE(Difference(rule.map->Forward({row})[0][0], expected), 1e-6);
}

}  // namespace
}  // namespace addend

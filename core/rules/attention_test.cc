// Softmax and log_softmax: the path rule, its quadrature and what masks do to it.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class SoftmaxTest : public testing::TestWithParam<const char*> {
 protected:
  RuleCall Call(const at::Tensor& value, const at::Tensor& reference, int64_t dim = -1) const {
    return OperatorCall(GetParam(), {{value, reference}, dim}).Describe(Faithful());
  }
  bool Log() const { return std::string(GetParam()).find("log") != std::string::npos; }
};

INSTANTIATE_TEST_SUITE_P(Both, SoftmaxTest, testing::Values("aten::softmax.int", "aten::log_softmax.int"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param).find("log") == std::string::npos ? "softmax" : "log_softmax";
                         });

// Numbers of which the largest and the smallest of each row are `half_range` from the middle.
at::Tensor MoveOf(Draw& draw, const Sizes& sizes, double half_range) {
  const at::Tensor move = draw.Uniform(sizes, -half_range, half_range);
  move.select(-1, 0).fill_(half_range);
  move.select(-1, 1).fill_(-half_range);
  return move;
}

// Against autograd's Jacobians, for moves up to a half range of 100 (the table of nodes ends at 64 in float64). Half
// the range, and not the length, counts: a common shift of 30 is added.
TEST_P(SoftmaxTest, IsTheMeanOfAutogradsJacobians) {
  for (const double half_range : {0.0, 0.05, 0.1, 0.7, 2.0, 8.0, 15.0, 40.0, 64.0, 100.0}) {
    SCOPED_TRACE(half_range);
    Draw draw(at::kDouble, 3);
    const at::Tensor reference = draw.Normal({6, 5}, half_range / 2);
    const at::Tensor value = reference + MoveOf(draw, {6, 5}, half_range) + 30;
    const RuleCall call = Call(value, reference);
    const RuleResult rule = BuildRule(call);
    const Rows cotangents = RandomCotangents(draw, call);
    // 3 Gauss points on each of 1000 pieces; on a piece nothing moves by more than 0.2.
    const Rows expected = MeanGradient(call, rule.inputs, cotangents, 1000, /*smooth=*/true);
    // The promise concerns the bracket, which is the error of the map times the length of the move.
    EXPECT_LE(Difference(rule.map->Transpose(cotangents), expected, 1),
              4 * rule.quadrature / std::min(1.0, half_range + 0.05));
    EXPECT_LE(RelativeBracket(call, rule), 4 * rule.quadrature);
  }
}

// The bracket is the error that the quadrature leaves: never more than the table promises, whatever the move.
TEST_P(SoftmaxTest, KeepsThePromisedError) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 4);
    for (double half_range = 1e-3; half_range < 1000; half_range *= 1.6) {
      for (const int64_t width : {2, 8, 33}) {
        const at::Tensor reference = draw.Normal({20, width}, half_range / 2);
        const at::Tensor value = reference + MoveOf(draw, {20, width}, half_range);
        const RuleCall call = Call(value, reference);
        const RuleResult rule = BuildRule(call);
        EXPECT_EQ(rule.quadrature, dtype == at::kDouble ? 1e-12 : 1e-6);
        // Rounding: some of 3000 nodes and scores of up to 500, of which exp sees the absolute error.
        const double eps = dtype == at::kDouble ? 2.3e-16 : 1.2e-7;
        EXPECT_LE(RelativeBracket(call, rule), 4 * rule.quadrature + 16 * eps * (1 + half_range))
            << dtype << ", half range " << half_range << ", width " << width;
      }
    }
  }
}

// Rows with moves of all lengths in one call: each gets its own nodes, and comes back to its own place.
TEST_P(SoftmaxTest, EveryRowHasItsOwnNodes) {
  Draw draw(at::kDouble, 5);
  const at::Tensor scale = at::tensor({30.0, 0.01, 1.0, 150.0, 0.0, 5.0, 0.2, 70.0}, at::kDouble).unsqueeze(1);
  const at::Tensor value = draw.Uniform({8, 4}, -1, 1) * scale;
  const at::Tensor reference = draw.Uniform({8, 4}, -1, 1) * scale;
  const RuleResult together = BuildRule(Call(value, reference));
  for (const int64_t count : {2, 7}) {  // node by node, and by matrices
    const at::Tensor rows = draw.Normal({count, 8, 4});
    const at::Tensor out = together.map->Forward({rows})[0];
    for (int64_t i = 0; i < 8; ++i) {
      const RuleResult alone = BuildRule(Call(value[i], reference[i]));
      EXPECT_LE(Difference(out.select(1, i), alone.map->Forward({rows.select(1, i)})[0], 1), 1e-12) << "row " << i;
    }
  }
}

// Calls that autograd must see are composed of operators, node by node: the loops give the same, masks included.
TEST_P(SoftmaxTest, FusedLoopsAreTheAtenForm) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t width : {1, 2, 7, 16, 33, 250}) {
      SCOPED_TRACE(width);
      Draw draw(dtype, 15);
      const at::Tensor scale = at::tensor({30.0, 0.01, 1.0, 150.0, 0.0, 5.0}, dtype).unsqueeze(1);
      at::Tensor value = draw.Uniform({6, width}, -1, 1) * scale;
      at::Tensor reference = draw.Uniform({6, width}, -1, 1) * scale;
      const at::Tensor mask = draw.Booleans({6, width});
      mask.select(1, 0).fill_(false);
      value = value.masked_fill(mask, -kInfinity);
      reference = reference.masked_fill(mask, -kInfinity);
      const RuleResult fused = BuildRule(Call(value, reference));
      RuleCall call = Call(value, reference);
      call.operands[0].value = value.clone().set_requires_grad(true);
      const RuleResult aten = BuildRule(call);
      // Scores of up to 150, of which exp sees the absolute error.
      const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-4;
      for (const int64_t count : {1, 3, 4, 9}) {
        const at::Tensor rows = draw.Normal({count, 6, width});
        EXPECT_LE(Difference(fused.map->Forward({rows})[0], aten.map->Forward({rows})[0].detach(), 1), tolerance);
      }
    }
  }
}

TEST_P(SoftmaxTest, OtherDimensionsAreMovedThereAndBack) {
  Draw draw(at::kDouble, 6);
  const at::Tensor value = draw.Normal({3, 4, 5});
  const at::Tensor reference = draw.Normal({3, 4, 5});
  const at::Tensor rows = draw.Normal({2, 3, 4, 5});
  for (const int64_t dim : {0, 1, 2, -1, -3}) {
    const RuleResult rule = BuildRule(Call(value, reference, dim));
    const RuleResult last = BuildRule(Call(value.movedim(dim, -1), reference.movedim(dim, -1)));
    const int64_t row_dim = dim < 0 ? dim : dim + 1;
    const at::Tensor expected = last.map->Forward({rows.movedim(row_dim, -1)})[0].movedim(-1, row_dim);
    EXPECT_LE(Difference(rule.map->Forward({rows})[0], expected), 1e-13) << dim;
  }
}

// Entries that are -inf in value and reference play no part: the others behave as if they were alone.
TEST_P(SoftmaxTest, MaskedEntriesPlayNoPart) {
  Draw draw(at::kDouble, 7);
  const at::Tensor value = draw.Normal({6, 5}, 3);
  const at::Tensor reference = draw.Normal({6, 5}, 3);
  const at::Tensor mask = at::zeros({6, 5}, at::kBool);
  mask.select(1, 1).fill_(true);
  mask.select(1, 4).fill_(true);
  const RuleResult rule = BuildRule(Call(value.masked_fill(mask, -kInfinity), reference.masked_fill(mask, -kInfinity)));
  const at::Tensor kept = at::tensor({0, 2, 3}, at::kLong);
  const RuleResult others = BuildRule(Call(value.index_select(1, kept), reference.index_select(1, kept)));
  for (const int64_t count : {2, 7}) {
    const at::Tensor rows = draw.Normal({count, 6, 5});
    const at::Tensor out = rule.map->Forward({rows})[0];
    const at::Tensor expected = others.map->Forward({rows.index_select(2, kept)})[0];
    EXPECT_LE(Difference(out.index_select(2, kept), expected), 1e-11);
    if (!Log()) {
      EXPECT_EQ(out.select(2, 1).abs().max().item<double>(), 0);
    }
  }
  const RuleCall call = Call(value.masked_fill(mask, -kInfinity), reference.masked_fill(mask, -kInfinity));
  EXPECT_LE(RelativeBracket(call, BuildRule(call)), 4e-12);
}

// Outputs that stay at -inf have no parts: rows there would only become leftover that nobody can explain.
TEST_P(SoftmaxTest, NothingPassesWhereTheOutputStaysInfinite) {
  const at::Tensor value = at::tensor({1.0, -kInfinity, 2.0}, at::kDouble);
  const at::Tensor reference = at::tensor({-1.0, -kInfinity, 0.5}, at::kDouble);
  const RuleCall call = Call(value, reference);
  const RuleResult rule = BuildRule(call);
  const at::Tensor passed = rule.map->Forward(MoveRows(call, rule))[0];
  EXPECT_TRUE(passed.isfinite().all().item<bool>());
  EXPECT_EQ(passed[0][1].item<double>(), 0);
}

TEST_P(SoftmaxTest, VeryNegativeFiniteMasksAreMasksToo) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const double never : {-1e4, -1e9, static_cast<double>(std::numeric_limits<float>::lowest())}) {
      Draw draw(dtype, 8);
      const at::Tensor mask = at::zeros({4, 6}, dtype);
      mask.narrow(1, 3, 2).fill_(never);
      const RuleCall call = Call(draw.Normal({4, 6}) + mask, draw.Normal({4, 6}) + mask);
      const RuleResult rule = BuildRule(call);
      // Adding -1e9 rounds the score: what is masked may move by an ulp of that, which is 64 in float32.
      const double eps = dtype == at::kDouble ? 2.3e-16 : 1.2e-7;
      EXPECT_LE(RelativeBracket(call, rule), 4 * rule.quadrature + 16 * eps) << dtype << " " << never;
    }
  }
}

// Rounding leaves no digits of a row that is masked in the reference only; the row beside it has its own.
TEST_P(SoftmaxTest, ARowBesideAFarOneIsJudgedByItsOwnError) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Draw draw(dtype, 16);
    const at::Tensor value = draw.Normal({3, 6});
    const at::Tensor reference = draw.Normal({3, 6});
    reference.select(0, 1).narrow(0, 2, 3).sub_(1e9);
    const RuleCall call = Call(value, reference);
    const RuleResult rule = BuildRule(call);
    const double alone = dtype == at::kDouble ? 1e-12 : 1e-6;
    EXPECT_GT(rule.quadrature, alone);
    EXPECT_LE(RelativeBracket(call, rule), 4 * rule.quadrature);
    for (const int64_t row : {0, 2}) {
      RuleCall wrong = call;
      wrong.outputs[0].value = call.outputs[0].value.clone();
      wrong.outputs[0].value[row][0] += 0.01;
      EXPECT_EQ(BuildRule(wrong).quadrature, alone) << row;
    }
  }
}

TEST_P(SoftmaxTest, RowsOfEqualNumbers) {
  const at::Tensor value = at::full({2, 4}, 3.0, at::kDouble);
  const at::Tensor reference = at::full({2, 4}, -1.0, at::kDouble);
  const RuleCall call = Call(value, reference);
  const RuleResult rule = BuildRule(call);
  Draw draw(at::kDouble, 9);
  const at::Tensor rows = draw.Normal({5, 2, 4});
  const at::Tensor centred = rows - rows.mean(-1, true);
  EXPECT_LE(Difference(rule.map->Forward({rows})[0], Log() ? centred : centred / 4), 1e-14);
  EXPECT_LE(RelativeBracket(call, rule), 1e-15);
}

// A shift of all scores together changes nothing, whatever the size of the move.
TEST_P(SoftmaxTest, IgnoresCommonShifts) {
  Draw draw(at::kDouble, 10);
  const at::Tensor value = draw.Normal({3, 6}, 4);
  const at::Tensor reference = draw.Normal({3, 6}, 4);
  const RuleResult rule = BuildRule(Call(value, reference));
  const RuleResult shifted = BuildRule(Call(value + 500, reference - 300));
  const at::Tensor rows = draw.Normal({5, 3, 6});
  EXPECT_LE(Difference(rule.map->Forward({rows})[0], shifted.map->Forward({rows})[0]), 1e-11);
  EXPECT_LE(rule.map->Forward({at::ones({2, 3, 6}, at::kDouble)})[0].abs().max().item<double>(), 1e-14);
}

TEST_P(SoftmaxTest, AFullyMaskedRowLeavesTheOthersAlone) {
  Draw draw(at::kDouble, 11);
  const at::Tensor value = draw.Normal({3, 4});
  const at::Tensor reference = draw.Normal({3, 4});
  value.select(0, 1).fill_(-kInfinity);
  reference.select(0, 1).fill_(-kInfinity);
  const RuleCall call = Call(value, reference);
  EXPECT_TRUE(call.outputs[0].value.select(0, 1).isnan().all().item<bool>());  // as LibTorch has it
  const RuleResult rule = BuildRule(call);
  for (const int64_t count : {2, 7}) {
    const at::Tensor out = rule.map->Forward({draw.Normal({count, 3, 4})})[0];
    EXPECT_TRUE(out.select(1, 0).isfinite().all().item<bool>());
    EXPECT_TRUE(out.select(1, 2).isfinite().all().item<bool>());
  }
}

TEST_P(SoftmaxTest, RefusesAnEntryThatIsInfiniteOnOneSideOnly) {
  const at::Tensor finite = at::tensor({1.0, 2.0, 0.0}, at::kDouble);
  const at::Tensor masked = at::tensor({1.0, -kInfinity, 0.0}, at::kDouble);
  EXPECT_THROW(BuildRule(Call(finite, masked)), Error);
  EXPECT_THROW(BuildRule(Call(masked, finite)), Error);
}

TEST(LogSoftmaxTest, IsTheLogarithmOfSoftmaxOnTheTrueLine) {
  // The path rule of log_softmax and the one of softmax share the line of scores: their brackets vanish both, and where
  // nothing moves the first is the second divided by the probabilities.
  Draw draw(at::kDouble, 12);
  const at::Tensor scores = draw.Normal({3, 5});
  const RuleResult log =
      BuildRule(OperatorCall("aten::log_softmax.int", {{scores, scores.clone()}, int64_t{-1}}).Describe(Faithful()));
  const RuleResult plain =
      BuildRule(OperatorCall("aten::softmax.int", {{scores, scores.clone()}, int64_t{-1}}).Describe(Faithful()));
  const at::Tensor rows = draw.Normal({6, 3, 5});
  EXPECT_LE(Difference(log.map->Forward({rows})[0] * scores.softmax(-1), plain.map->Forward({rows})[0]), 1e-13);
}

TEST(LongSoftmaxTest, ThousandsOfSmallProbabilitiesCount) {
  // A vocabulary in single precision: one candidate leads at each end, and 6,000 others have about 1e-6 each.
  Draw draw(at::kFloat, 13);
  const at::Tensor value = draw.Normal({1, 6625}) - 5;
  const at::Tensor reference = draw.Normal({1, 6625}) - 4;
  value[0][17] = 8.5;
  reference[0][17] = 9.5;
  reference[0][3] = 10;
  const RuleResult rule =
      BuildRule(OperatorCall("aten::softmax.int", {{value, reference}, int64_t{-1}}).Describe(Faithful()));
  const auto exact = [](const at::Tensor& scores) { return scores.to(at::kDouble).softmax(-1)[0][17].item<double>(); };
  const double difference = exact(value) - exact(reference);
  const at::Tensor target = at::zeros({1, 6625});
  target[0][17] = 1;
  const at::Tensor move = (value - reference).to(at::kDouble);
  EXPECT_NEAR((rule.map->Transpose({target})[0].to(at::kDouble) * move).sum().item<double>(), difference, 3e-6);
  EXPECT_NEAR(rule.map->Forward({(value - reference).unsqueeze(0)})[0][0][0][17].item<double>(), difference, 3e-6);
}

TEST(AttentionTest, MarksAndKinds) {
  EXPECT_EQ(Registry::Default().Find("aten::softmax", "aten::softmax.int")->mark, kFreezeAttention);
  EXPECT_EQ(Registry::Default().Find("aten::log_softmax", "aten::log_softmax.int")->mark, 0u);
}

}  // namespace
}  // namespace addend

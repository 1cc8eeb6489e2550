// embedding_renorm_ by LibTorch's formula, which autograd can differentiate although the operator itself cannot be;
// draws of normal by the noise that they contain.
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/rules/rule_testing.h"

namespace addend {
namespace {

constexpr double kMost = 1.5;

at::Tensor Renormalized(const at::Tensor& table, const at::Tensor& ids, double p) {
  const at::Tensor read = table.index_select(0, ids);
  const at::Tensor norm = read.abs().pow(p).sum(1, true).pow(1 / p);
  const at::Tensor scale = at::where(norm.gt(kMost), kMost / (norm + 1e-7), at::ones_like(norm));
  return at::index_copy(table, 0, ids, read * scale);
}

TEST(EmbeddingRenormTest, WithoutAMoveItIsTheDerivativeOfItsFormula) {
  for (const double p : {1.0, 2.0, 3.5}) {
    SCOPED_TRACE(p);
    Draw draw(at::kDouble, 5);
    const at::Tensor ids = at::tensor({0, 2, 3}, at::kLong);
    const GivenArgument table = draw.Moving({5, 4});
    const OperatorCall op("aten::embedding_renorm_", {table, ids, kMost, p});
    const RuleCall call = op.AtRest().Describe(Faithful());
    const at::Tensor value = call.operands[0].value;
    EXPECT_LE(Difference(Renormalized(value, ids, p), call.outputs[0].value), 1e-14);
    // Some of the vectors are long, some are short.
    const at::Tensor long_ones = value.norm(p, {1}).gt(kMost).index_select(0, ids);
    ASSERT_TRUE(long_ones.any().item<bool>());
    const RuleResult rule = BuildRule(call);
    const Rows cotangents = RandomCotangents(draw, call);
    at::Tensor expected;
    {
      c10::AutoGradMode grad(true);
      const at::Tensor leaf = value.detach().clone().set_requires_grad(true);
      expected = torch::autograd::grad({Renormalized(leaf, ids, p)}, {leaf}, {cotangents[0]})[0];
    }
    EXPECT_LE(Difference(rule.map->Transpose(cotangents)[0], expected), 1e-10);
  }
}

TEST(NormalTest, RowsMeetTheNoiseOfTheValue) {
  Draw draw(at::kDouble, 5);
  const at::Tensor zero = draw.Normal({4}) * 0;
  const at::Tensor one = zero + 1;
  const GivenArgument mean = draw.Moving({4});
  const GivenArgument scale = draw.MovingWithin({4}, 0.5, 2);
  const RuleCall call = OperatorCall("aten::normal.Tensor_Tensor", {mean, scale}).Describe(Faithful());
  const at::Tensor noise = call.run(call.arguments, {zero, one})[0];
  const RuleResult rule = BuildRule(call);
  ASSERT_EQ(rule.inputs, std::vector<int>({0, 1}));
  const Rows rows = RandomRows(draw, call, rule, 3);
  EXPECT_LE(Difference(rule.map->Forward(rows)[0], rows[0] + rows[1] * noise), 1e-12);
}

}  // namespace
}  // namespace addend

// Products of Householder reflectors, the form in which LAPACK keeps an orthogonal matrix: Q = H_1 ... H_k with
// H_i = 1 - tau_i v_i v_i^T, where v_i is column i below its diagonal, and one on it. Step by step each is a chain of
// products of two factors, so that nothing is left over.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "core/rules/ends.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// M -> H M = M - v (tau (v^T M)), with what its secant needs at the middles of its factors.
struct Reflection {
  int64_t index;
  at::Tensor below;   // [M]: which elements of the column are read
  at::Tensor vector;  // [*batch, M, 1]
  at::Tensor scale;   // [*batch, 1, 1]
  at::Tensor matrix;  // [*batch, M, N]
  at::Tensor along;   // v^T M
  at::Tensor scaled;  // tau (v^T M)

  // `vectors`, `scales` and `moved`: rows of the columns, of tau and of M; the first two undefined where plain.
  at::Tensor Forward(const at::Tensor& vectors, const at::Tensor& scales, const at::Tensor& moved) const {
    at::Tensor of_along = (moved * vector).sum(-2, /*keepdim=*/true);
    at::Tensor column;
    if (vectors.defined()) {
      column = (vectors.select(-1, index) * below).unsqueeze(-1);
      of_along = of_along + (column * matrix).sum(-2, true);
    }
    at::Tensor of_scaled = of_along * scale;
    if (scales.defined()) of_scaled = of_scaled + scales.select(-1, index).unsqueeze(-1).unsqueeze(-1) * along;
    at::Tensor sum = moved - vector * of_scaled;
    return column.defined() ? sum - column * scaled : sum;
  }
};

// Applies the reflectors of `columns` and `scales` to `start`, the last one first where `descending`.
std::vector<Reflection> Reflections(const Ends& columns, const Ends& scales, Ends start, bool descending) {
  std::vector<Reflection> steps;
  const int64_t count = scales.value.size(-1);
  const at::Tensor place = at::arange(columns.value.size(-2), columns.value.options());
  for (int64_t step = 0; step < count; ++step) {
    Reflection own;
    own.index = descending ? count - 1 - step : step;
    own.below = place.gt(own.index).to(columns.value.scalar_type());
    const at::Tensor diagonal = place.eq(own.index).to(columns.value.scalar_type());
    const auto vector_of = [&](const at::Tensor& t) {
      return (t.select(-1, own.index) * own.below + diagonal).unsqueeze(-1);
    };
    const auto scale_of = [&](const at::Tensor& t) { return t.select(-1, own.index).unsqueeze(-1).unsqueeze(-1); };
    const Ends vector = Both(columns, vector_of);
    const Ends scale = Both(scales, scale_of);
    const Ends along = {(vector.value * start.value).sum(-2, true), (vector.reference * start.reference).sum(-2, true)};
    const Ends scaled = {scale.value * along.value, scale.reference * along.reference};
    own.vector = vector.Middle();
    own.scale = scale.Middle();
    own.matrix = start.Middle();
    own.along = along.Middle();
    own.scaled = scaled.Middle();
    start = {start.value - vector.value * scaled.value, start.reference - vector.reference * scaled.reference};
    steps.push_back(own);
  }
  return steps;
}

// `columns`, `scales` and `start` are operands, -1 for a start that is the identity.
RuleResult Reflect(const RuleCall& call, int columns, int scales, int start, bool left, bool descending) {
  const RuleOperand& c = call.operands[columns];
  const RuleOperand& s = call.operands[scales];
  const bool start_moves = start >= 0 && call.operands[start].decomposed;
  Ends begin;
  if (start >= 0) {
    begin = left ? EndsOf(call.operands[start]) : TransposeMatrix(EndsOf(call.operands[start]));
  } else {
    begin.value = at::eye(c.value.size(-2), c.value.size(-1), c.value.options()).expand(c.value.sizes());
    begin.reference = begin.value;
  }
  const std::vector<Reflection> steps = Reflections(EndsOf(c), EndsOf(s), begin, descending);
  RuleResult result;
  result.kind = Kind::kRewrite;
  if (c.decomposed) result.inputs.push_back(columns);
  if (s.decomposed) result.inputs.push_back(scales);
  if (start_moves) result.inputs.push_back(start);
  result.map =
      MakeMap(call, result.inputs, [=, c_moves = c.decomposed, s_moves = s.decomposed](const Rows& rows) -> Rows {
        size_t next = 0;
        const at::Tensor of_columns = c_moves ? rows[next++] : at::Tensor();
        const at::Tensor of_scales = s_moves ? rows[next++] : at::Tensor();
        at::Tensor moved;
        if (start_moves) {
          moved = left ? rows[next] : TransposeMatrix(rows[next]);
        } else {
          at::DimVector sizes = {rows[0].size(0)};
          sizes.append(begin.value.sizes().begin(), begin.value.sizes().end());
          moved = at::zeros(sizes, rows[0].options());
        }
        for (const Reflection& step : steps) moved = step.Forward(of_columns, of_scales, moved);
        return {left ? moved : TransposeMatrix(moved)};
      });
  return result;
}

// linalg_householder_product(A, tau)
RuleResult HouseholderProduct(const RuleCall& call) {
  RequireReal(call);
  return Reflect(call, call.OperandAt("input"), call.OperandAt("tau"), -1, /*left=*/true, /*descending=*/true);
}

// ormqr(A, tau, other, left, transpose): Q C, Q^T C, or the transposes of Q^T C^T and Q C^T.
RuleResult Ormqr(const RuleCall& call) {
  RequireReal(call);
  const bool left = call.Bool("left", true);
  const bool transpose = call.Bool("transpose", false);
  return Reflect(call, call.OperandAt("self"), call.OperandAt("input2"), call.OperandAt("input3"), left,
                 left != transpose);
}

}  // namespace

void RegisterReflectors(Registry& registry) {
  registry.Register({"aten::linalg_householder_product", Kind::kRewrite, HouseholderProduct});
  registry.Register({"aten::ormqr", Kind::kRewrite, Ormqr});
}

}  // namespace addend

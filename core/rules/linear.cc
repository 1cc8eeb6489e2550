// Matrix products: with a plain matrix the rows go through one GEMM, with two decomposed factors through two.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kernels.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

at::Tensor Transposed(const at::Tensor& matrix) { return matrix.transpose(-2, -1); }

int64_t Numel(at::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
}

at::DimVector Concat(at::IntArrayRef a, at::IntArrayRef b) {
  at::DimVector all(a);
  all.append(b.begin(), b.end());
  return all;
}

// Moves the row axis behind the batch dimensions: [R, *batch, M, N] -> [*batch, R, M, N].
at::Tensor RowsBehindBatch(const at::Tensor& rows) { return rows.movedim(0, -3); }

// [M, K] x [K, N]. Where rows begin, most are zero (each token has one component of its own): those are left out.
at::Tensor MultiplyNonzero(const at::Tensor& matrix, const at::Tensor& plain) {
  // Autograd, which some transposes come from, must see the product whatever the numbers.
  const bool readable = matrix.device().is_cpu() && matrix.is_contiguous() && !matrix.requires_grad();
  std::vector<int64_t> rows;
  if (readable && matrix.scalar_type() == at::kFloat) {
    rows = NonzeroRows(matrix.data_ptr<float>(), matrix.size(0), matrix.size(1));
  } else if (readable && matrix.scalar_type() == at::kDouble) {
    rows = NonzeroRows(matrix.data_ptr<double>(), matrix.size(0), matrix.size(1));
  } else {
    return at::mm(matrix, plain);
  }
  if (static_cast<int64_t>(rows.size()) * 2 > matrix.size(0)) return at::mm(matrix, plain);
  at::Tensor product = at::zeros({matrix.size(0), plain.size(1)}, matrix.options());
  if (rows.empty()) return product;
  const at::Tensor index = at::tensor(rows, at::kLong);
  return product.index_copy_(0, index, at::mm(matrix.index_select(0, index), plain));
}

// Note [Rows times matrix]
// The rows join the dimension that the product does not sum over, so that the batch of the product stays the model's
// own (heads, say) and every GEMM is as large as can be:
//   rows [R, *batch, M, K] x plain [*batch, K, N]  is one product [batch, R * M, K] x [batch, K, N];
//   plain [*batch, M, K] x rows [R, *batch, K, N]  is one product [batch, M, K] x [batch, K, R * N].
at::Tensor RowsTimesPlain(const at::Tensor& rows, const at::Tensor& plain) {
  const int64_t r = rows.size(0);
  const int64_t m = rows.size(-2);
  const int64_t k = rows.size(-1);
  const int64_t n = plain.size(-1);
  if (plain.dim() == 2) {
    return MultiplyNonzero(rows.flatten(0, -2), plain).view(Concat(rows.sizes().slice(0, rows.dim() - 1), {n}));
  }
  const at::IntArrayRef own = rows.sizes().slice(1, rows.dim() - 3);
  const auto batch = at::infer_size_dimvector(own, plain.sizes().slice(0, plain.dim() - 2));
  const int64_t rank = static_cast<int64_t>(batch.size()) + 2;
  const at::Tensor left = RowsBehindBatch(RightAlign(rows, rank).expand(Concat(Concat({r}, batch), {m, k})));
  const at::Tensor right = plain.expand(Concat(batch, {k, n}));
  const int64_t batches = Numel(batch);  // never -1: with no elements that could be any number
  const at::Tensor product = at::bmm(left.reshape({batches, r * m, k}), right.reshape({batches, k, n}));
  return product.view(Concat(batch, {r, m, n})).movedim(-3, 0);
}

at::Tensor PlainTimesRows(const at::Tensor& plain, const at::Tensor& rows) {
  const int64_t r = rows.size(0);
  const int64_t k = rows.size(-2);
  const int64_t n = rows.size(-1);
  const int64_t m = plain.size(-2);
  const at::IntArrayRef own = rows.sizes().slice(1, rows.dim() - 3);
  const auto batch = at::infer_size_dimvector(plain.sizes().slice(0, plain.dim() - 2), own);
  const int64_t rank = static_cast<int64_t>(batch.size()) + 2;
  const at::Tensor left = plain.expand(Concat(batch, {m, k}));
  const at::Tensor right = RightAlign(rows, rank).expand(Concat(Concat({r}, batch), {k, n})).movedim(0, -2);
  const int64_t batches = Numel(batch);
  const at::Tensor product = at::bmm(left.reshape({batches, m, k}), right.reshape({batches, k, r * n}));
  return product.view(Concat(batch, {m, r, n})).movedim(-2, 0);
}

// One factor of a product: its rows where it moves, and the plain matrix that the other factor's rows meet.
struct Factor {
  int operand = -1;
  bool moves = false;
  bool vector = false;      // one-dimensional: a row on the left, a column on the right
  bool transposed = false;  // linear's weight
  at::Tensor meets;         // [*batch, M, K] or [*batch, K, N]
};

at::Tensor AsMatrix(const at::Tensor& t, bool is_left, const Factor& factor) {
  if (factor.vector) return t.unsqueeze(is_left ? -2 : -1);
  return factor.transposed ? Transposed(t) : t;
}

at::Tensor DropVectorDims(at::Tensor product, const Factor& left, const Factor& right) {
  if (right.vector) product = product.squeeze(-1);
  if (left.vector) product = product.squeeze(right.vector ? -1 : -2);
  return product;
}

// alpha * left x right + beta * addend.
RuleResult Product(const RuleCall& call, int left_argument, int right_argument, bool right_transposed,
                   int addend_argument = -1, double alpha = 1, double beta = 1) {
  const uint32_t frozen_kinds = call.policy->FrozenKinds();
  Factor left;
  Factor right;
  left.operand = call.OperandAt(left_argument);
  right.operand = call.OperandAt(right_argument);
  const RuleOperand& a = call.operands[left.operand];
  const RuleOperand& b = call.operands[right.operand];
  left.vector = a.value.dim() == 1;
  right.vector = b.value.dim() == 1;
  right.transposed = right_transposed;
  const bool a_frozen = a.decomposed && (a.marks & frozen_kinds) != 0;
  const bool b_frozen = b.decomposed && (b.marks & frozen_kinds) != 0;
  left.moves = a.decomposed && !(a_frozen && b.decomposed && !b_frozen);
  right.moves = b.decomposed && !(b_frozen && a.decomposed && !a_frozen);
  const bool both = left.moves && right.moves;
  left.meets = AsMatrix(both ? Middle(a) : a.value, true, left);
  right.meets = AsMatrix(both ? Middle(b) : b.value, false, right);
  if (alpha != 1) {
    left.meets = left.meets * alpha;
    right.meets = right.meets * alpha;
  }

  RuleResult result;
  result.kind = a.decomposed && b.decomposed ? Kind::kBilinear : Kind::kLinear;
  if (left.moves) result.inputs.push_back(left.operand);
  if (right.moves) result.inputs.push_back(right.operand);
  const int addend = addend_argument < 0 ? -1 : call.OperandAt(addend_argument);
  const bool addend_moves = addend >= 0 && call.operands[addend].decomposed && beta != 0;
  if (addend_argument >= 0 && result.kind == Kind::kLinear) result.kind = Kind::kAffine;
  if (addend_moves) result.inputs.push_back(addend);
  if (addend >= 0 && !addend_moves && beta != 0) {
    result.constant = beta == 1 ? call.operands[addend].value : call.operands[addend].value * beta;
  }
  if (result.inputs.empty()) return result;

  const int64_t rank = call.outputs[0].value.dim();
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  const auto forward = [=](const Rows& rows) -> Rows {
    at::Tensor sum;
    size_t next = 0;
    if (left.moves) {
      sum = DropVectorDims(RowsTimesPlain(AsMatrix(rows[next++], true, left), right.meets), left, right);
    }
    if (right.moves) {
      const at::Tensor rows_matrix = AsMatrix(rows[next++], false, right);
      const at::Tensor product = DropVectorDims(PlainTimesRows(left.meets, rows_matrix), left, right);
      sum = sum.defined() ? sum.add_(product) : product;
    }
    if (addend_moves) {
      const at::Tensor moved = RightAlign(rows[next], rank) * beta;
      sum = sum.defined() ? sum + moved : moved.expand(Concat({moved.size(0)}, output_sizes));
    }
    return {sum};
  };
  const at::DimVector a_sizes(a.value.sizes());
  const at::DimVector b_sizes(b.value.sizes());
  const at::DimVector addend_sizes(addend_moves ? call.operands[addend].value.sizes() : at::IntArrayRef());
  RowsFunction transpose;
  if (!left.vector && !right.vector) {
    transpose = [=](const Rows& cotangents) -> Rows {
      const at::Tensor& g = cotangents[0];
      Rows out;
      if (left.moves) out.push_back(at::sum_to(at::matmul(g, Transposed(right.meets)), a_sizes));
      if (right.moves) {
        at::Tensor product = at::matmul(Transposed(left.meets), g);
        while (right.transposed && product.dim() > 2) product = product.sum(0);
        out.push_back(at::sum_to(right.transposed ? Transposed(product) : product, b_sizes));
      }
      if (addend_moves) out.push_back(at::sum_to(g * beta, addend_sizes));
      return out;
    };
  }
  result.map = MakeMap(call, result.inputs, forward, transpose);
  return result;
}

}  // namespace

void RegisterLinear(Registry& registry) {
  registry.Register({"aten::linear", Kind::kAffine, [](const RuleCall& c) { return Product(c, 0, 1, true, 2); }});
  for (const char* name : {"aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot"}) {
    registry.Register({name, Kind::kBilinear, [](const RuleCall& c) { return Product(c, 0, 1, false); }});
  }
  for (const char* name : {"aten::addmm", "aten::baddbmm", "aten::addmv"}) {
    registry.Register({name, Kind::kAffine,
                       [](const RuleCall& c) { return Product(c, 1, 2, false, 0, c.Double(4, 1), c.Double(3, 1)); }});
  }
}

}  // namespace addend

#include "core/rules/row_product.h"

#include <ATen/DimVector.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <numeric>
#include <vector>

#include "core/base/views.h"
#include "core/rules/kernels.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

int64_t Numel(at::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
}

at::DimVector Concat(at::IntArrayRef a, at::IntArrayRef b) {
  at::DimVector all(a);
  all.append(b.begin(), b.end());
  return all;
}

// Moves the row axis behind the batch dimensions: [R, *batch, M, N] -> [*batch, R, M, N].
at::Tensor RowsBehindBatch(const at::Tensor& rows) { return Moved(rows, 0, rows.dim() - 3); }

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
  if (static_cast<int64_t>(rows.size()) * 4 > matrix.size(0) * 3) return at::mm(matrix, plain);
  at::Tensor product = at::zeros({matrix.size(0), plain.size(1)}, matrix.options());
  if (rows.empty()) return product;
  const at::Tensor index = at::tensor(rows, at::kLong);
  return product.index_copy_(0, index, at::mm(matrix.index_select(0, index), plain));
}

}  // namespace

at::Tensor RowsTimesPlain(const at::Tensor& rows, const at::Tensor& plain) {
  const int64_t r = rows.size(0);
  const int64_t m = rows.size(-2);
  const int64_t k = rows.size(-1);
  const int64_t n = plain.size(-1);
  if (plain.dim() == 2) {
    const at::DimVector sizes = Concat(rows.sizes().slice(0, rows.dim() - 1), {n});
    return Reshaped(MultiplyNonzero(Reshaped(rows, {Numel(rows.sizes().slice(0, rows.dim() - 1)), k}), plain), sizes);
  }
  const at::IntArrayRef own = rows.sizes().slice(1, rows.dim() - 3);
  const auto batch = at::infer_size_dimvector(own, plain.sizes().slice(0, plain.dim() - 2));
  const int64_t rank = static_cast<int64_t>(batch.size()) + 2;
  const at::Tensor left = RowsBehindBatch(Expanded(RightAlign(rows, rank), Concat(Concat({r}, batch), {m, k})));
  const at::Tensor right = Expanded(plain, Concat(batch, {k, n}));
  const int64_t batches = Numel(batch);  // never -1: with no elements that could be any number
  const at::Tensor product = at::bmm(Reshaped(left, {batches, r * m, k}), Reshaped(right, {batches, k, n}));
  return Moved(Reshaped(product, Concat(batch, {r, m, n})), rank - 2, 0);
}

at::Tensor PlainTimesRows(const at::Tensor& plain, const at::Tensor& rows) {
  const int64_t r = rows.size(0);
  const int64_t k = rows.size(-2);
  const int64_t n = rows.size(-1);
  const int64_t m = plain.size(-2);
  const at::IntArrayRef own = rows.sizes().slice(1, rows.dim() - 3);
  const auto batch = at::infer_size_dimvector(plain.sizes().slice(0, plain.dim() - 2), own);
  const int64_t rank = static_cast<int64_t>(batch.size()) + 2;
  const at::Tensor left = Expanded(plain, Concat(batch, {m, k}));
  const at::Tensor right = Moved(Expanded(RightAlign(rows, rank), Concat(Concat({r}, batch), {k, n})), 0, rank - 1);
  const int64_t batches = Numel(batch);
  const at::Tensor product = at::bmm(Reshaped(left, {batches, m, k}), Reshaped(right, {batches, k, r * n}));
  return Moved(Reshaped(product, Concat(batch, {m, r, n})), rank - 1, 0);
}

}  // namespace addend

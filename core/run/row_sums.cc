#include "core/run/row_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/real.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/host_read.h"
#include "core/base/in_parallel.h"
#include "core/rules/kernels.h"

namespace addend {
namespace {

// Columns of a move that one thread takes at a time.
constexpr int64_t kMoveBlock = 4096;

template <typename T>
ADDEND_ALWAYS_INLINE T MoveAt(const T* value, const T* reference, int64_t j) {
  // An infinite value is no move, and neither is NaN: the comparison is false for both.
  const bool moves = std::abs(value[j]) <= std::numeric_limits<T>::max() && value[j] != reference[j];
  return moves ? value[j] - reference[j] : T(0);
}

template <typename T>
ADDEND_ALWAYS_INLINE void MoveBlock(const T* value, const T* reference, T* move, int64_t first, int64_t last) {
#pragma omp simd
  for (int64_t j = first; j < last; ++j) move[j] = MoveAt(value, reference, j);
}

template <typename T>
ADDEND_ALWAYS_INLINE double ProductBlock(const T* g, const T* value, const T* reference, int64_t first, int64_t last) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = first; j < last; ++j) sum += static_cast<double>(g[j] * MoveAt(value, reference, j));
  return sum;
}

template <typename T>
ADDEND_ALWAYS_INLINE double DotBlock(const T* a, const T* b, int64_t first, int64_t last) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = first; j < last; ++j) sum += static_cast<double>(a[j] * b[j]);
  return sum;
}

template <typename T>
ADDEND_ALWAYS_INLINE double SizeBlock(const T* a, int64_t first, int64_t last) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = first; j < last; ++j) sum += static_cast<double>(std::abs(a[j]));
  return sum;
}

// Two plain functions each and no templates: target_clones does not go on those.
ADDEND_WIDEST_VECTORS double DotOneBlock(const float* a, const float* b, int64_t first, int64_t last) {
  return DotBlock(a, b, first, last);
}
ADDEND_WIDEST_VECTORS double DotOneBlock(const double* a, const double* b, int64_t first, int64_t last) {
  return DotBlock(a, b, first, last);
}
ADDEND_WIDEST_VECTORS double SizeOneBlock(const float* a, int64_t first, int64_t last) {
  return SizeBlock(a, first, last);
}
ADDEND_WIDEST_VECTORS double SizeOneBlock(const double* a, int64_t first, int64_t last) {
  return SizeBlock(a, first, last);
}
ADDEND_WIDEST_VECTORS void MoveOneBlock(const float* v, const float* r, float* move, int64_t first, int64_t last) {
  MoveBlock(v, r, move, first, last);
}
ADDEND_WIDEST_VECTORS void MoveOneBlock(const double* v, const double* r, double* move, int64_t first, int64_t last) {
  MoveBlock(v, r, move, first, last);
}
ADDEND_WIDEST_VECTORS double ProductOneBlock(const float* g, const float* v, const float* r, int64_t first,
                                             int64_t last) {
  return ProductBlock(g, v, r, first, last);
}
ADDEND_WIDEST_VECTORS double ProductOneBlock(const double* g, const double* v, const double* r, int64_t first,
                                             int64_t last) {
  return ProductBlock(g, v, r, first, last);
}

template <typename T>
at::Tensor MoveOnCpu(const at::Tensor& value, const at::Tensor& reference) {
  at::Tensor move = at::empty_strided(value.sizes(), value.strides(), value.options());
  const T* v = value.data_ptr<T>();
  const T* r = reference.data_ptr<T>();
  T* m = move.data_ptr<T>();
  const int64_t n = value.numel();
  const int64_t blocks = (n + kMoveBlock - 1) / kMoveBlock;
  InParallelIf(blocks > 8, blocks, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) MoveOneBlock(v, r, m, b * kMoveBlock, std::min(n, (b + 1) * kMoveBlock));
  });
  return move;
}

template <typename T>
at::Tensor MissingOnCpu(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference) {
  at::Tensor missing = at::empty(value.sizes(), rows.options());
  const T* c = rows.data_ptr<T>();
  const T* v = value.data_ptr<T>();
  const T* r = reference.data_ptr<T>();
  T* m = missing.data_ptr<T>();
  const int64_t n = value.numel();
  const int64_t blocks = (n + kMoveBlock - 1) / kMoveBlock;
  const int64_t num_rows = rows.size(0);
  InParallelIf(blocks > 8, blocks, [&](int64_t from, int64_t to) {
    for (int64_t i = from * kMoveBlock; i < std::min(n, to * kMoveBlock); ++i) {
      double left = static_cast<double>(v[i]) - static_cast<double>(r[i]);
      for (int64_t row = 0; row < num_rows; ++row) left -= static_cast<double>(c[row * n + i]);
      m[i] = std::isfinite(left) ? static_cast<T>(left) : 0;
    }
  });
  return missing;
}

// `of_block(row, first, last)` for every block of `rows` rows of n columns. The blocks' sums are added in their order,
// so that the number of threads changes nothing.
template <typename OfBlock>
at::Tensor SumBlocks(int64_t rows, int64_t n, const OfBlock& of_block) {
  at::Tensor sums = at::empty({rows}, at::kDouble);
  const int64_t blocks = (n + kMoveBlock - 1) / kMoveBlock;
  std::vector<double> parts(rows * blocks);
  InParallelIf(rows * blocks > 8, rows * blocks, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; ++k) {
      const int64_t first = k % blocks * kMoveBlock;
      parts[k] = of_block(k / blocks, first, std::min(n, first + kMoveBlock));
    }
  });
  double* out = sums.data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row) {
    out[row] = 0;
    for (int64_t b = 0; b < blocks; ++b) out[row] += parts[row * blocks + b];
  }
  return sums;
}

template <typename T>
at::Tensor ProductsOnCpu(const at::Tensor& cotangents, const at::Tensor& value, const at::Tensor& reference) {
  const T* g = cotangents.data_ptr<T>();
  const T* v = value.data_ptr<T>();
  const T* r = reference.data_ptr<T>();
  const int64_t n = value.numel();
  return SumBlocks(cotangents.size(0), n, [=](int64_t row, int64_t first, int64_t last) {
    return ProductOneBlock(g + row * n, v, r, first, last);
  });
}

template <typename T>
at::Tensor DotsOnCpu(const at::Tensor& rows, const at::Tensor& other) {
  const T* a = rows.data_ptr<T>();
  const T* b = other.data_ptr<T>();
  const int64_t n = other.numel();
  return SumBlocks(rows.size(0), n,
                   [=](int64_t row, int64_t first, int64_t last) { return DotOneBlock(a + row * n, b, first, last); });
}

template <typename T>
at::Tensor SizesOnCpu(const at::Tensor& rows) {
  const T* a = rows.data_ptr<T>();
  const int64_t n = rows.numel() / std::max<int64_t>(rows.size(0), 1);
  return SumBlocks(rows.size(0), n,
                   [=](int64_t row, int64_t first, int64_t last) { return SizeOneBlock(a + row * n, first, last); });
}

// Whether the loops can walk over the memory as it is.
bool LiesFlat(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.device().is_cpu() && tensor.scalar_type() == dtype && tensor.is_contiguous() && !tensor.is_neg() &&
         (dtype == at::kFloat || dtype == at::kDouble);
}

}  // namespace

std::vector<double> Doubles(const at::Tensor& tensor) {
  const bool as_it_is = tensor.device().is_cpu() && tensor.scalar_type() == at::kDouble && tensor.is_contiguous() &&
                        tensor.layout() == at::kStrided && !tensor.is_neg();
  const at::Tensor own = as_it_is ? tensor : ReadNumbers(tensor);
  return {own.data_ptr<double>(), own.data_ptr<double>() + own.numel()};
}

at::Tensor OfDoubles(const std::vector<double>& numbers, const at::TensorOptions& options) {
  const at::Tensor made = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), made.data_ptr<double>());
  return options.device().is_cpu() ? made : made.to(options.device());
}

at::Tensor MaxAbs(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor, std::numeric_limits<double>::infinity());
}

at::Tensor MaxFinite(const at::Tensor& sizes) { return sizes.nan_to_num(0.0, 0.0, 0.0).amax(); }

double LargestFinite(const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  if (tensor.numel() == 0) return 0;
  // The order of dimensions does not matter.
  if (tensor.device().is_cpu() && tensor.is_non_overlapping_and_dense() &&
      (dtype == at::kFloat || dtype == at::kDouble)) {
    return dtype == at::kFloat ? LargestFinite(tensor.data_ptr<float>(), tensor.numel())
                               : LargestFinite(tensor.data_ptr<double>(), tensor.numel());
  }
  return ReadNumber(MaxFinite(tensor.abs()));
}

double EpsilonOf(at::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

at::Tensor RealProduct(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_complex() && !b.is_complex()) return a * b;
  return at::real(a.conj() * b);
}

at::Tensor SumOfEach(const at::Tensor& rows) {
  return rows.reshape({rows.size(0), -1}).sum({1}, /*keepdim=*/false, at::kDouble);
}

at::Tensor FiniteMoveByOperators(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor rests = value.eq(reference).logical_or_(at::isfinite(value).logical_not_());
  return (value - reference).masked_fill_(rests, 0);
}

at::Tensor ProductsWithMoveByOperators(const at::Tensor& cotangents, const at::Tensor& value,
                                       const at::Tensor& reference) {
  return SumOfEach(RealProduct(cotangents, FiniteMoveByOperators(value, reference)));
}

at::Tensor ProductsOfEach(const at::Tensor& rows, const at::Tensor& other) {
  const at::ScalarType dtype = rows.scalar_type();
  if (!LiesFlat(rows, dtype) || !LiesFlat(other, dtype)) {
    return SumOfEach(RealProduct(rows, other));
  }
  return dtype == at::kFloat ? DotsOnCpu<float>(rows, other) : DotsOnCpu<double>(rows, other);
}

at::Tensor MagnitudeOfEach(const at::Tensor& rows) {
  const at::ScalarType dtype = rows.scalar_type();
  if (!LiesFlat(rows, dtype)) return SumOfEach(rows.abs());
  return dtype == at::kFloat ? SizesOnCpu<float>(rows) : SizesOnCpu<double>(rows);
}

at::Tensor FiniteMove(const at::Tensor& value, const at::Tensor& reference) {
  const at::ScalarType dtype = value.scalar_type();
  // Both may lie in the same other order.
  const auto walkable = [&](const at::Tensor& t) {
    return t.device().is_cpu() && t.scalar_type() == dtype && t.is_non_overlapping_and_dense() && !t.is_neg() &&
           (dtype == at::kFloat || dtype == at::kDouble);
  };
  if (!walkable(value) || !walkable(reference) || value.strides() != reference.strides()) {
    return FiniteMoveByOperators(value, reference);
  }
  return dtype == at::kFloat ? MoveOnCpu<float>(value, reference) : MoveOnCpu<double>(value, reference);
}

at::Tensor MissingOfByOperators(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference) {
  const at::ScalarType exact = rows.is_complex() ? at::kComplexDouble : at::kDouble;
  const at::Tensor missing = value.to(exact) - reference.to(exact) - rows.to(exact).sum(0);
  return missing.masked_fill(at::isfinite(missing).logical_not_(), 0).to(rows.scalar_type());
}

at::Tensor MissingOf(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference) {
  const at::ScalarType dtype = rows.scalar_type();
  if (!LiesFlat(rows, dtype) || !LiesFlat(value, dtype) || !LiesFlat(reference, dtype)) {
    return MissingOfByOperators(rows, value, reference);
  }
  return dtype == at::kFloat ? MissingOnCpu<float>(rows, value, reference)
                             : MissingOnCpu<double>(rows, value, reference);
}

at::Tensor ProductsWithMove(const at::Tensor& cotangents, const at::Tensor& value, const at::Tensor& reference) {
  const at::ScalarType dtype = value.scalar_type();
  if (!LiesFlat(value, dtype) || !LiesFlat(reference, dtype) || !LiesFlat(cotangents, dtype)) {
    return ProductsWithMoveByOperators(cotangents, value, reference);
  }
  return dtype == at::kFloat ? ProductsOnCpu<float>(cotangents, value, reference)
                             : ProductsOnCpu<double>(cotangents, value, reference);
}

}  // namespace addend

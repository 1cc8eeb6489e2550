#include "core/linearize/label_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/rules/for_loops.h"

namespace addend {
namespace {

constexpr int64_t kPiece = 512;

// A long run of one label is added up in pieces, and what rounding takes of their sum is kept and added at the end
// (Neumaier 1974). One after the other, millions of elements would miss more than the tolerance grants.
template <typename T>
double AddBlock(const T* products, const int64_t* labels, int64_t n, double* sums) {
  double size = 0;
  for (int64_t j = 0; j < n;) {
    const int64_t label = labels[j];
    if (label < 0) {
      ++j;
      continue;
    }
    double sum = 0;
    double lost = 0;
    double piece = sums[label];
    while (j < n && labels[j] == label) {
      const int64_t stop = std::min(n, j + kPiece);
      double piece_size = 0;
      for (; j < stop && labels[j] == label; ++j) {
        const auto product = static_cast<double>(products[j]);
        piece += product;
        piece_size += std::abs(product);
      }
      size += piece_size;
      const double together = sum + piece;
      lost += std::abs(sum) >= std::abs(piece) ? (sum - together) + piece : (piece - together) + sum;
      sum = together;
      piece = 0;
    }
    sums[label] = std::isfinite(lost) ? sum + lost : sum;
  }
  return size;
}

}  // namespace

at::Tensor AddByLabelByOperators(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& sums) {
  const at::Tensor own = labels.unsqueeze(0).to(products.device());
  const at::Tensor taken = products.to(at::kDouble).masked_fill(own.lt(0), 0);
  sums.scatter_add_(2, own.clamp_min(0).expand(taken.sizes()), taken);
  return taken.abs().sum(2);
}

at::Tensor AddByLabel(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& sums) {
  if (!ForFlatLoops(products) || !labels.is_contiguous() || !labels.device().is_cpu() || !ForFlatLoops(sums)) {
    return AddByLabelByOperators(products, labels, sums);
  }
  const int64_t blocks = labels.size(0);
  const int64_t n = labels.size(1);
  const int64_t numc = sums.size(2);
  const at::Tensor sizes = at::empty({products.size(0), blocks}, sums.options());
  auto* size = sizes.data_ptr<double>();
  auto* sum = sums.data_ptr<double>();
  const auto* label = labels.data_ptr<int64_t>();
  DispatchReal(products.scalar_type(), [&](auto zero) {
    const auto* product = products.data_ptr<decltype(zero)>();
    for (int64_t r = 0; r < products.size(0); ++r) {
      for (int64_t b = 0; b < blocks; ++b, product += n, sum += numc) {
        *size++ = AddBlock(product, label + b * n, n, sum);
      }
    }
  });
  return sizes;
}

}  // namespace addend

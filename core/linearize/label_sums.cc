#include "core/linearize/label_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdint>

#include "core/rules/for_loops.h"

namespace addend {
namespace {

template <typename T>
double AddBlock(const T* products, const int64_t* labels, int64_t n, double* sums) {
  double size = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (labels[j] < 0) continue;
    const auto product = static_cast<double>(products[j]);
    sums[labels[j]] += product;
    size += std::abs(product);
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

#include "core/rules/joint.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace addend {
namespace {

at::Tensor Magnitudes(const at::Tensor& components) {
  return QuotientOrZero(components.abs(), components.abs().sum(0, /*keepdim=*/true));
}

at::Tensor Parts(const at::Tensor& components) {
  return QuotientOrZero(components, components.sum(0, /*keepdim=*/true));
}

at::Tensor Norms(const at::Tensor& components, double order) {
  // A number has no last dimension: its norm is its magnitude.
  if (components.dim() == 1) return Magnitudes(components);
  const at::Tensor norm = at::linalg_vector_norm(components, order, {-1}, /*keepdim=*/true);
  return QuotientOrZero(norm, norm.sum(0, /*keepdim=*/true)).expand_as(components);
}

}  // namespace

at::Tensor QuotientOrZero(const at::Tensor& numerator, const at::Tensor& denominator) {
  const at::Tensor zero = denominator.eq(0);
  return (numerator / denominator.masked_fill(zero, 1)).masked_fill(zero, 0);
}

at::Tensor PassesZero(const at::Tensor& from, const at::Tensor& to) {
  if (!from.is_complex()) return (from * to).lt(0);
  const at::Tensor product = from * to.conj();
  return at::real(product).lt(0).logical_and_(at::imag(product).eq(0));
}

at::Tensor SpreadByMagnitude(const at::Tensor& rows, const at::Tensor& slope, const std::optional<double>& threshold) {
  const int64_t count = rows.size(0) - 1;
  const at::Tensor parts = rows.narrow(0, 0, count);
  const at::Tensor move = rows.narrow(0, count, 1);
  const at::Tensor change = move * slope;
  const at::Tensor sizes = parts.abs();
  const at::Tensor total = sizes.sum(0, /*keepdim=*/true);
  at::Tensor spread = sizes * QuotientOrZero(change, total);
  if (threshold) spread = at::where(move.abs().lt(total * *threshold), spread, parts * slope);
  return at::cat({spread, change}, 0);
}

at::Tensor ConstantShares(const at::Tensor& components, const at::Tensor& constant, Bias bias, double parameter) {
  const auto sum = [&] { return components.sum(0, /*keepdim=*/true).abs(); };
  const auto small_share = [&] { return sum().lt(components.abs().sum(0, /*keepdim=*/true) * parameter); };
  const auto large = [&] { return sum().gt(parameter); };
  switch (bias) {
    case Bias::kResidual:
      return at::zeros_like(components);
    case Bias::kAbs:
      return Magnitudes(components) * constant;
    case Bias::kHybrid:
      return at::where(small_share(), Magnitudes(components), Parts(components)) * constant;
    case Bias::kHybridThreshold:
      return at::where(large(), Parts(components), Magnitudes(components)) * constant;
    case Bias::kSign:
      return Parts(components).masked_fill(small_share(), 0) * constant;
    case Bias::kSignThreshold:
      return Parts(components).masked_fill(large().logical_not(), 0) * constant;
    case Bias::kNorm:
      return Norms(components, parameter) * constant;
  }
  return at::zeros_like(components);
}

}  // namespace addend

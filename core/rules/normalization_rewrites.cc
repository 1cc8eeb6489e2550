// Normalizations that need no fused kernel, written out: centre, square, mean, rsqrt and products, each in closed form.
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>

#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

double Epsilon(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return std::numeric_limits<at::Half>::epsilon();
    case at::kBFloat16:
      return std::numeric_limits<at::BFloat16>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// rms_norm(input, normalized_shape, weight, eps); _fused_rms_norm gives 1 / root mean square as well. Half types are
// computed in float32.
Tensors RmsNorm(const RewriteCall& call) {
  const at::Tensor input = call.Tensor("input");
  const at::ScalarType dtype = input.scalar_type();
  const bool half = dtype == at::kHalf || dtype == at::kBFloat16;
  const at::Tensor wide = half ? input.to(at::kFloat) : input;
  std::vector<int64_t> dims;
  for (size_t k = 0; k < call.Ints("normalized_shape").size(); ++k) dims.push_back(-1 - static_cast<int64_t>(k));
  const at::Tensor inverse =
      at::rsqrt(at::square(wide).mean(dims, /*keepdim=*/true) + call.Double("eps", Epsilon(dtype)));
  const at::Tensor weight = call.Tensor("weight");
  const at::Tensor normalized = weight.defined() ? wide * inverse * weight : wide * inverse;
  return {half ? normalized.to(dtype) : normalized, inverse};
}

Tensors RmsNormAlone(const RewriteCall& call) { return {RmsNorm(call)[0]}; }

// The norm of everything but one dimension; -1: of everything.
at::Tensor NormExcept(const at::Tensor& tensor, int64_t dim) {
  if (dim == -1) return at::sqrt(at::square(tensor).sum());
  std::vector<int64_t> others;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const at::Tensor square = at::square(tensor);
  return at::sqrt(others.empty() ? square : square.sum(others, /*keepdim=*/true));
}

// _weight_norm_interface(v, g, dim) -> (g v / |v|, |v|)
Tensors WeightNorm(const RewriteCall& call) {
  const at::Tensor norm = NormExcept(call.Tensor("v"), call.Int("dim", 0));
  return {call.Tensor("v") * (call.Tensor("g") / norm), norm};
}

Tensors WeightNormAlone(const RewriteCall& call) { return {WeightNorm(call)[0]}; }

// cosine_similarity(x1, x2, dim, eps)
Tensors CosineSimilarity(const RewriteCall& call) {
  const Tensors both = at::broadcast_tensors({call.Tensor("x1"), call.Tensor("x2")});
  const int64_t dim = call.Int("dim", 1);
  const auto unit = [&](const at::Tensor& x) {
    return x / at::sqrt(at::square(x).sum(dim, /*keepdim=*/true)).clamp_min(call.Double("eps", 1e-8));
  };
  return {(unit(both[0]) * unit(both[1])).sum(dim)};
}

}  // namespace

void RegisterNormalizationRewrites(Registry& registry) {
  registry.Register(Rewrite{"aten::rms_norm", RmsNormAlone});
  registry.Register(Rewrite{"aten::_fused_rms_norm", RmsNorm});
  registry.Register(Rewrite{"aten::_weight_norm", WeightNormAlone});
  registry.Register(Rewrite{"aten::_weight_norm_interface", WeightNorm});
  registry.Register(Rewrite{"aten::cosine_similarity", CosineSimilarity});
}

}  // namespace addend

#include "core/rules/shares.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "core/base/host_read.h"
#include "core/rules/envelope_kernel.h"
#include "core/rules/for_loops.h"
#include "core/rules/rule.h"

namespace addend {

at::Tensor EnvelopeShares(const at::Tensor& value, const at::Tensor& reference) {
  const int64_t k = value.size(-1);
  if (value.numel() == 0) return at::zeros_like(value);
  const bool in_graph = c10::GradMode::is_enabled() && (value.requires_grad() || reference.requires_grad());
  // Among more, pairs would take too much memory.
  constexpr int64_t kMostPairs = 64;
  const at::ScalarType dtype = value.scalar_type();
  const bool loops = value.device().is_cpu() && (dtype == at::kFloat || dtype == at::kDouble) &&
                     reference.scalar_type() == dtype && (!in_graph || k > kMostPairs);
  if (!loops) return EnvelopeSharesOfPairs(value, reference);
  const at::Tensor x = value.detach().resolve_neg().contiguous();
  const at::Tensor b = reference.detach().resolve_neg().contiguous();
  at::Tensor shares = at::empty_like(x);
  DispatchReal(dtype, [&](auto zero) {
    using T = decltype(zero);
    UpperEnvelopes(x.data_ptr<T>(), b.data_ptr<T>(), shares.data_ptr<T>(), x.numel() / k, k);
  });
  return shares;
}

at::Tensor EnvelopeSharesOfPairs(const at::Tensor& value, const at::Tensor& reference) {
  const int64_t k = value.size(-1);
  if (value.numel() == 0) return at::zeros_like(value);
  const at::Tensor x = value.reshape({-1, k});
  const at::Tensor b = reference.reshape({-1, k});
  at::Tensor shares = at::zeros_like(x);
  const at::Tensor move = MoveOf(x, b);
  // In pieces, so that memory stays bounded.
  const int64_t piece = std::max<int64_t>(1, (int64_t{1} << 22) / (k * k));
  for (int64_t start = 0; start < x.size(0); start += piece) {
    const int64_t length = std::min(piece, x.size(0) - start);
    const at::Tensor bj = b.narrow(0, start, length).unsqueeze(2);
    const at::Tensor bi = b.narrow(0, start, length).unsqueeze(1);
    const at::Tensor mj = move.narrow(0, start, length).unsqueeze(2);
    const at::Tensor mi = move.narrow(0, start, length).unsqueeze(1);
    const at::Tensor rise = mi - mj;          // how much faster i grows than j
    const at::Tensor ahead = MoveOf(bj, bi);  // by how much j leads at t = 0
    const at::Tensor crossing = ahead / rise;
    const at::Tensor parallel = rise.eq(0);
    const at::Tensor last = at::where(rise.gt(0), crossing, at::ones_like(crossing)).amin(2).clamp_max_(1);
    const at::Tensor first = at::where(rise.lt(0), crossing, at::zeros_like(crossing)).amax(2).clamp_min_(0);
    const at::Tensor beaten = parallel.logical_and(ahead.lt(0)).any(2);
    const at::Tensor ties = parallel.logical_and(ahead.eq(0)).sum(2).to(x.scalar_type());
    const at::Tensor share = ((last - first).clamp_min_(0) / ties).masked_fill_(beaten, 0);
    shares.narrow(0, start, length).copy_(share);
  }
  const at::Tensor nan = at::isnan(x).logical_or(at::isnan(b)).any(-1, /*keepdim=*/true);
  if (MayHaveAny(nan)) shares = shares.masked_fill(nan, std::numeric_limits<double>::quiet_NaN());
  return shares.view(value.sizes());
}

at::Tensor WinnerShares(const at::Tensor& value) {
  return at::zeros_like(value).scatter_(-1, at::argmax(value, -1, /*keepdim=*/true), 1.0);
}

}  // namespace addend

#include "core/run/fingerprint.h"

#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/program/geometry.h"

namespace addend {
namespace {

constexpr int64_t kElements = 2048;

// One step of FNV-1a, with eight bytes at once.
uint64_t Mixed(uint64_t hash, uint64_t bits) { return (hash ^ bits) * 0x100000001b3u; }

uint64_t Mixed(uint64_t hash, const at::Tensor& flat) {
  if (!flat.defined() || flat.numel() == 0 || !Continuous(flat.scalar_type())) return hash;
  const int64_t step = (flat.numel() + kElements - 1) / kElements;
  at::Tensor some = flat.detach().slice(0, 0, flat.numel(), step);
  if (some.is_complex()) some = at::view_as_real(some.resolve_conj());
  // Every number of fewer digits is a float64.
  some = some.to(at::kCPU, at::kDouble).contiguous();
  const double* numbers = some.data_ptr<double>();
  for (int64_t k = 0; k < some.numel(); ++k) {
    uint64_t bits = 0;
    if (!std::isnan(numbers[k])) std::memcpy(&bits, numbers + k, sizeof(bits));
    hash = Mixed(hash, bits + 1);
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

uint64_t FingerprintOf(const at::Tensor& value, const at::Tensor& reference) {
  return Mixed(Mixed(0xcbf29ce484222325u, value), reference);
}

}  // namespace addend

#include "core/linearize/sum_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "core/base/host_read.h"
#include "core/linearize/rounding.h"
#include "core/linearize/settle.h"
#include "core/run/row_sums.h"

namespace addend {

SumCheck::SumCheck(const Linearization& linearization, const SweepResult& first) : linearization_(linearization) {
  for (const ProbeRows& rows : first.probes) {
    const int64_t last = rows.components.size(0) - 1;
    rest_.push_back(rows.components.select(0, last).clone());
    sums_.push_back(at::zeros_like(rest_.back()));
    const at::Tensor own = rows.components.abs().sum(0) + rows.leftover.abs();
    sizes_.push_back(own + rows.reference.to(rows.components.scalar_type()).abs());
    const at::Tensor recovery = rows.components.sum(0) + rows.leftover + rows.reference;
    errors_.push_back((recovery - rows.value).abs());
  }
}

void SumCheck::Add(size_t probe, const at::Tensor& components, const at::Tensor& terms) {
  sums_[probe] += components.sum(0);
  const at::Tensor own = components.abs().sum(0);
  sizes_[probe] += terms.defined() ? own.maximum(terms) : own;
}

SumCheck::Gap SumCheck::GapOf(size_t probe, const ProbeRows& rows) const {
  Gap gap;
  if (!rows.decomposed || rows.value.numel() == 0) return gap;
  const at::Tensor infinite = at::isfinite(rows.value).logical_not();
  const Policy& policy = linearization_.policy;
  const double relative = ToleranceFor(policy, rows.single, linearization_.trace->numc, rows.depth);
  const auto largest = [&](const at::Tensor& t) { return ReadNumber(t.masked_fill(infinite, 0).max()); };
  gap.missing = (rest_[probe] - sums_[probe]).masked_fill(infinite, 0);
  // Errors of the first sweep show the rounding inside of operators.
  gap.allowed = relative * largest(sizes_[probe]) + 16 * largest(errors_[probe]);
  // Limit the error by the scale of the probe's own value and reference.
  const double own =
      OwnAllowance(rows.single, largest(rows.value.abs()), LargestFinite(rows.reference), policy.tolerance);
  gap.allowed = std::min(gap.allowed, own);
  gap.error = ReadNumber(gap.missing.abs().max());
  return gap;
}

}  // namespace addend

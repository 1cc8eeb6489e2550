#include "core/linearize/many_targets.h"

#include <ATen/ops/cat.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/program/view.h"

namespace addend {
namespace {

constexpr int64_t kBytesAtATime = int64_t{1} << 22;

int64_t TargetsOf(const std::vector<at::Tensor>& cotangents) {
  for (const at::Tensor& cotangent : cotangents) {
    if (cotangent.defined()) return cotangent.size(0);
  }
  return 0;
}

// Bytes of the rows of one target, in the largest tensor on its way.
int64_t LargestBytes(const Linearization& linearization) {
  int64_t largest = 1;
  const auto meet = [&](const Operand& operand) {
    if (!CarriesRows(operand)) return;
    const int64_t numel = c10::multiply_integers(operand.geometry.sizes);
    largest = std::max(largest, numel * static_cast<int64_t>(c10::elementSize(RowDtype(operand.dtype))));
  };
  for (const Node& node : linearization.nodes) {
    const Call& call = linearization.trace->calls[node.call];
    for (const Operand& operand : call.operands) meet(operand);
    for (const Operand& operand : call.outputs) meet(operand);
  }
  return largest;
}

// One part of all results, one behind the other.
template <typename PartOf>
at::Tensor Joined(const std::vector<AdjointResult>& results, const PartOf& part_of) {
  std::vector<at::Tensor> parts;
  for (const AdjointResult& result : results) parts.push_back(part_of(result));
  return at::cat(parts, 0);
}

// Joins results for consecutive targets, in their order.
AdjointResult Join(std::vector<AdjointResult> results) {
  AdjointResult all = results[0];
  for (at::Tensor AdjointResult::*part :
       {&AdjointResult::components, &AdjointResult::given, &AdjointResult::terms, &AdjointResult::value,
        &AdjointResult::reference, &AdjointResult::leftover, &AdjointResult::mass}) {
    all.*part = Joined(results, [&](const AdjointResult& result) { return result.*part; });
  }
  // Whether a start is reached depends on the probes alone.
  for (size_t s = 0; s < all.starts.size(); ++s) {
    if (!all.starts[s].defined()) continue;
    all.starts[s] = Joined(results, [&](const AdjointResult& result) { return result.starts[s]; });
  }
  for (size_t k = 1; k < results.size(); ++k) {
    AdjointResult& more = results[k];
    if (IsWorse(more.recovery_error, all.recovery_error)) {
      all.recovery_error = more.recovery_error;
      all.tolerance = more.tolerance;
    }
    std::move(more.failures.begin(), more.failures.end(), std::back_inserter(all.failures));
  }
  return all;
}

int64_t TargetsAtATime(const Linearization& linearization, int64_t targets, const AdjointOptions& options) {
  if (targets <= 1 || linearization.stretches != nullptr || options.nodes || options.growth) return targets;
  return std::clamp<int64_t>(kBytesAtATime / LargestBytes(linearization), 1, targets);
}

}  // namespace

AdjointResult SweepTargets(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                           const AdjointOptions& options) {
  const int64_t targets = TargetsOf(cotangents);
  const int64_t at_a_time = TargetsAtATime(linearization, targets, options);
  if (at_a_time >= targets) return SweepBackward(linearization, cotangents, options);
  const int64_t sweeps = (targets + at_a_time - 1) / at_a_time;
  std::vector<AdjointResult> results;
  for (int64_t k = 0; k < sweeps; ++k) {
    const int64_t first = k * at_a_time;
    std::vector<at::Tensor> some = cotangents;
    for (at::Tensor& cotangent : some) {
      if (cotangent.defined()) cotangent = cotangent.narrow(0, first, std::min(at_a_time, targets - first));
    }
    AdjointOptions own = options;
    if (options.progress) {
      own.progress = [&options, k, sweeps](int64_t done, int64_t total) {
        options.progress(k * total + done, sweeps * total);
      };
    }
    results.push_back(SweepBackward(linearization, some, own));
  }
  return Join(std::move(results));
}

}  // namespace addend

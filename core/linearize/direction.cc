#include "core/linearize/direction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/adjoint.h"
#include "core/linearize/part.h"
#include "core/linearize/payments.h"
#include "core/linearize/sum_check.h"
#include "core/program/view.h"

namespace addend {
namespace {

// A target is an element of a probe; complex ones have a target for each part.
int64_t TargetsOf(const Probe& probe) {
  if (!CarriesRows(probe.operand)) return 0;
  int64_t numel = at::isComplexType(probe.operand.dtype) ? 2 : 1;
  for (const int64_t size : probe.operand.geometry.sizes) numel *= size;
  return numel;
}

int64_t TargetsOf(const Linearization& linearization) {
  int64_t targets = 0;
  for (const Probe& probe : linearization.probes) targets += TargetsOf(probe);
  return targets;
}

// Numbers that one row has on its way, all nodes added up.
int64_t NumbersPerRow(const Linearization& linearization) {
  int64_t numbers = 0;
  for (const Node& node : linearization.nodes) {
    for (const Operand& output : linearization.trace->calls[node.call].outputs) {
      if (CarriesRows(output)) numbers += TargetsOf(Probe{0, output});
    }
  }
  return numbers;
}

bool PaysOff(const Linearization& linearization, const ChunkOptions& chunks) {
  if (chunks.components > 0) return false;
  if (std::any_of(linearization.nodes.begin(), linearization.nodes.end(), LooksAtAll)) return false;
  const int64_t targets = TargetsOf(linearization);
  // The sum, leftover and move go forward before; what comes back costs more than what goes there.
  const int64_t saved_rows = linearization.trace->numc - 2 * (targets + 2);
  if (targets == 0 || saved_rows <= 0) return false;
  // A second way through all nodes costs as much as some numbers do, for each of them.
  constexpr int64_t kNumbersPerNode = 20000;
  const int64_t nodes = static_cast<int64_t>(linearization.nodes.size());
  return saved_rows * NumbersPerRow(linearization) > nodes * kNumbersPerNode;
}

void RequireBackward(const Linearization& linearization, const ChunkOptions& chunks) {
  if (chunks.components > 0) {
    throw InvalidArgument("components move in chunks only forward; leave the direction or the chunk open");
  }
  RequireLinear(linearization, "be found backward", "leave the direction open, or choose another policy");
}

// One for each probe: rows of it are the targets first .. first + count of all.
std::vector<at::Tensor> CotangentsOf(const Linearization& linearization, int64_t first, int64_t count) {
  std::vector<at::Tensor> cotangents;
  int64_t before = 0;
  for (const Probe& probe : linearization.probes) {
    const int64_t targets = TargetsOf(probe);
    const int64_t begin = std::max(first, before);
    const int64_t end = std::min(first + count, before + targets);
    cotangents.emplace_back();
    if (begin < end) {
      const at::TensorOptions options = linearization.trace->At(probe.operand).value.options();
      at::DimVector sizes = {count};
      sizes.append(probe.operand.geometry.sizes.begin(), probe.operand.geometry.sizes.end());
      const at::Tensor own = at::zeros(sizes, options.dtype(RowDtype(probe.operand.dtype)));
      // Complex numbers are viewed as pairs of real ones, so that the imaginary part is a target with the cotangent i.
      at::Tensor numbers = own.is_complex() ? at::view_as_real(own) : own;
      numbers = numbers.view({count, targets});
      numbers.narrow(0, begin - first, end - begin).narrow(1, begin - before, end - begin).diagonal().fill_(1);
      cotangents.back() = own;
    }
    before += targets;
  }
  return cotangents;
}

// [targets, n] -> [n, *S] of the rows' dtype.
at::Tensor RowsOf(const at::Tensor& by_target, const Operand& operand) {
  const at::ScalarType dtype = RowDtype(operand.dtype);
  at::DimVector sizes = {by_target.size(1)};
  sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
  at::Tensor rows = by_target.t();
  if (at::isComplexType(dtype)) {
    const at::Tensor pairs = rows.reshape({rows.size(0), rows.size(1) / 2, 2});
    rows = at::complex(pairs.select(2, 0), pairs.select(2, 1));
  }
  return rows.to(dtype).reshape(sizes).contiguous();
}

struct ByTarget {
  at::Tensor components;  // [targets, numc], float64
  at::Tensor terms;       // [targets]
};

ByTarget SweepTargets(const Linearization& linearization, int64_t targets, int64_t at_once, const Progress& progress) {
  std::vector<at::Tensor> components;
  std::vector<at::Tensor> terms;
  AdjointOptions options;
  options.components_only = true;
  options.progress = progress;
  for (int64_t first = 0; first < targets; first += at_once) {
    const int64_t count = std::min(at_once, targets - first);
    const AdjointResult result = SweepBackward(linearization, CotangentsOf(linearization, first, count), options);
    components.push_back(result.components);
    terms.push_back(result.terms);
  }
  const at::Tensor all = at::cat(components, 0);
  return {all, at::cat(terms, 0).to(all.device())};
}

// Targets that come back at once. Throws InvalidArgument where the sum, leftover and move do not fit.
int64_t AtOnce(const Linearization& linearization, int64_t targets, int64_t memory_bytes) {
  // Without a memory limit, at most as many targets at once as there are components (at least 64): a target's cotangent
  // costs as much as a component's row.
  constexpr int64_t kAtLeast = 64;
  const int64_t all = std::clamp<int64_t>(targets, 1, std::max(linearization.trace->numc, kAtLeast));
  if (memory_bytes <= 0) return all;
  const int64_t per_row = std::max<int64_t>(PeakBytesPerRow(linearization), 1);
  if (3 * per_row > memory_bytes) {
    throw InvalidArgument(absl::StrCat("the sum of all components does not fit into ", memory_bytes,
                                       " bytes: that takes ", 3 * per_row, "; allow more memory"));
  }
  return std::min(memory_bytes / per_row, all);
}

// Result of a forward sweep of the sum and a backward sweep of the targets. Components of the probes are undefined if
// the sum's sweep failed a check, and not to be used if the two sweeps disagree.
struct ThereAndBack {
  SweepResult result;
  bool failed = false;
  bool apart = false;
};

// `may_turn`: a map that has no transpose is a failure, and no error.
ThereAndBack SweepThereAndBack(const Linearization& linearization, const ChunkOptions& chunks, bool may_turn,
                               const Progress& progress) {
  const int64_t targets = TargetsOf(linearization);
  const int64_t at_once = AtOnce(linearization, targets, chunks.memory_bytes);
  const int64_t nodes = static_cast<int64_t>(linearization.nodes.size());
  const int64_t ways = 1 + (targets + at_once - 1) / at_once;
  int64_t done_before = 0;
  const auto part_progress = [&](int64_t done, int64_t) {
    if (progress) progress(done_before + done, ways * nodes);
    if (done == nodes) done_before += nodes;
  };
  Linearization sum = linearization;
  sum.trace = PartOf(*linearization.trace, 0, 0, /*rest=*/true);
  // Ignore failures here: the caller then goes forward and judges there.
  sum.policy.on_failure = OnFailure::kIgnore;
  ThereAndBack all;
  SweepResult& result = all.result;
  result = SweepPart(sum, linearization.trace->numc, part_progress);
  all.failed = !result.failures.empty();
  if (all.failed) return all;
  SumCheck sum_check(linearization, result);
  ByTarget found;
  try {
    if (targets > 0) found = SweepTargets(linearization, targets, at_once, part_progress);
  } catch (const Error& error) {
    if (!may_turn || error.code() != absl::StatusCode::kUnimplemented) throw;
    all.failed = true;
    return all;
  }
  int64_t first = 0;
  for (size_t p = 0; p < result.probes.size(); ++p) {
    const Operand& operand = linearization.probes[p].operand;
    const int64_t own = TargetsOf(linearization.probes[p]);
    ProbeRows& rows = result.probes[p];
    if (own == 0) {  // plain, or empty
      at::DimVector sizes(rows.components.sizes());
      sizes[0] = linearization.trace->numc;
      rows.components = at::zeros(sizes, rows.components.options());
      continue;
    }
    rows.components = RowsOf(found.components.narrow(0, first, own), operand);
    const at::Tensor terms = RowsOf(found.terms.narrow(0, first, own).unsqueeze(1), operand).select(0, 0).abs();
    first += own;
    sum_check.Add(p, rows.components, terms);
    all.apart = all.apart || (linearization.policy.check != Check::kOff && !sum_check.GapOf(p, rows).closed());
  }
  result.backward = true;
  return all;
}

}  // namespace

Direction ParseDirection(const std::string& text) {
  if (text == "auto") return Direction::kAuto;
  if (text == "forward") return Direction::kForward;
  if (text == "backward") return Direction::kBackward;
  throw InvalidArgument(absl::StrCat("a direction is auto, forward or backward, not ", text));
}

const char* DirectionText(Direction direction) {
  if (direction == Direction::kAuto) return "auto";
  return direction == Direction::kForward ? "forward" : "backward";
}

SweepResult SweepEitherWay(const Linearization& linearization, const SweepOptions& options, const Progress& progress) {
  if (options.direction == Direction::kBackward) RequireBackward(linearization, options.chunks);
  const bool backward = options.direction == Direction::kBackward ||
                        (options.direction == Direction::kAuto && PaysOff(linearization, options.chunks));
  // Autograd follows rows on their way forward.
  if (!backward || linearization.trace->numc == 0 || linearization.trace->differentiable) {
    return SweepInChunks(linearization, options.chunks, progress);
  }
  const bool may_turn = options.direction == Direction::kAuto;
  ThereAndBack all = SweepThereAndBack(linearization, options.chunks, may_turn, progress);
  if (!all.failed && !all.apart) return std::move(all.result);
  SweepResult forward = SweepInChunks(linearization, options.chunks, progress);
  forward.turned = all.apart;
  return forward;
}

}  // namespace addend

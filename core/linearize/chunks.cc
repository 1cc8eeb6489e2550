#include "core/linearize/chunks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/linearize/judge.h"
#include "core/linearize/part.h"
#include "core/linearize/payments.h"
#include "core/linearize/sum_check.h"
#include "core/program/view.h"

namespace addend {
namespace {

int64_t BytesOf(const TracedRun& trace, int storage) {
  const StorageInfo& info = trace.storages[storage];
  return info.numel * static_cast<int64_t>(c10::elementSize(RowDtype(info.dtype)));
}

int64_t BytesOf(const Operand& operand) {
  int64_t numel = 1;
  for (const int64_t size : operand.geometry.sizes) numel *= size;
  return numel * static_cast<int64_t>(c10::elementSize(RowDtype(operand.dtype)));
}

// Bytes of the copies that a node's map makes while it works; 0 for elementwise maps, which work in place or make no
// copies.
int64_t BytesOfCopies(const TracedRun& trace, const Node& node) {
  if (node.map && (node.map->Scale() != nullptr || node.map->Identity() || node.map->Accumulates())) return 0;
  const Call& call = trace.calls[node.call];
  int64_t bytes = 0;
  for (const int input : node.inputs) bytes += BytesOf(call.operands[input]);
  for (const Operand& output : call.outputs) {
    if (CarriesRows(output)) bytes += BytesOf(output);
  }
  return bytes;
}

// The parts of all probes, for one component.
int64_t ProbeBytes(const Linearization& linearization) {
  int64_t bytes = 0;
  for (const Probe& probe : linearization.probes) bytes += BytesOf(probe.operand);
  return bytes;
}

// All components of one probe, as the chunks give them.
class Collected {
 public:
  Collected(const at::Tensor& like, int64_t numc, bool in_graph) : in_graph_(in_graph) {
    at::DimVector sizes(like.sizes());
    sizes[0] = numc;
    if (!in_graph) all_ = at::empty(sizes, like.options());
  }
  void Add(const at::Tensor& components) {
    if (in_graph_) {
      parts_.push_back(components);
      return;
    }
    all_.narrow(0, next_, components.size(0)).copy_(components);
    next_ += components.size(0);
  }
  at::Tensor Take() const { return in_graph_ ? at::cat(parts_, 0) : all_; }

 private:
  bool in_graph_;
  int64_t next_ = 0;
  at::Tensor all_;
  std::vector<at::Tensor> parts_;
};

// Components that move at once.
int64_t ChunkOf(const Linearization& linearization, const ChunkOptions& options) {
  const int64_t numc = linearization.trace->numc;
  if (options.components > 0) return std::min(options.components, numc);
  if (options.memory_bytes <= 0 || numc == 0) return numc;
  const int64_t per_row = PeakBytesPerRow(linearization);
  const int64_t per_probe = ProbeBytes(linearization);
  // A single sweep has leftover and move besides.
  if ((numc + 2) * per_row <= options.memory_bytes) return numc;
  // All parts, and what a chunk needs, of which the first has three rows more.
  const int64_t rest = options.memory_bytes - (numc + 2) * per_probe;
  const int64_t fits = rest / std::max<int64_t>(per_row, 1) - 3;
  if (fits < 1) {
    throw InvalidArgument(absl::StrCat("the rows of ", numc, " components do not fit into ", options.memory_bytes,
                                       " bytes, even one by one: that takes ", (numc + 2) * per_probe + 4 * per_row,
                                       "; allow more memory"));
  }
  return std::min(fits, numc);
}

}  // namespace

int64_t PeakBytesPerRow(const Linearization& linearization) {
  const TracedRun& trace = *linearization.trace;
  const int64_t nodes = static_cast<int64_t>(linearization.nodes.size());
  std::vector<int64_t> change(nodes + 3, 0);  // at node n - 1
  for (size_t s = 0; s < linearization.lives.size(); ++s) {
    const Life& life = linearization.lives[s];
    if (life.last < -1) continue;
    const int64_t bytes = BytesOf(trace, static_cast<int>(s));
    change[life.first + 1] += bytes;
    if (life.last < nodes) change[life.last + 2] -= bytes;
  }
  int64_t live = change[0];
  int64_t peak = live;
  for (int64_t n = 0; n < nodes; ++n) {
    live += change[n + 1];
    peak = std::max(peak, live + BytesOfCopies(trace, linearization.nodes[n]));
  }
  live += change[nodes + 1];
  return std::max(peak, live + ProbeBytes(linearization));
}

SweepResult SweepInChunks(const Linearization& linearization, const ChunkOptions& options, const Progress& progress) {
  const TracedRun& trace = *linearization.trace;
  const int64_t chunk = ChunkOf(linearization, options);
  if (chunk >= trace.numc) return SweepForward(linearization, progress);
  RequireLinear(linearization, "move in chunks", "allow more memory, or choose another policy");
  const c10::AutoGradMode grad(trace.differentiable);
  const int64_t nodes = static_cast<int64_t>(linearization.nodes.size());
  const int64_t chunks = (trace.numc + chunk - 1) / chunk;
  int64_t k = 0;
  const auto part_progress = [&](int64_t done, int64_t) {
    if (progress) progress(k * nodes + done, chunks * nodes);
  };

  Linearization part = linearization;
  part.trace = PartOf(trace, 0, chunk, /*rest=*/true);
  SweepResult result = SweepPart(part, trace.numc, part_progress);
  SumCheck sum_check(linearization, result);
  std::vector<Collected> collected;
  for (ProbeRows& rows : result.probes) {
    collected.emplace_back(rows.components, trace.numc, trace.differentiable);
    collected.back().Add(rows.components.narrow(0, 0, chunk));
    rows.components = at::Tensor();
  }
  const std::vector<at::Tensor> sums = SumsBeforePayments(linearization);
  for (k = 1; k < chunks; ++k) {
    const int64_t first = k * chunk;
    part.trace = PartOf(trace, first, std::min(chunk, trace.numc - first), /*rest=*/false);
    const SweepResult own = SweepComponents(part, sums, part_progress);
    for (size_t p = 0; p < collected.size(); ++p) {
      sum_check.Add(p, own.probes[p].components);
      collected[p].Add(own.probes[p].components);
    }
  }
  for (size_t p = 0; p < collected.size(); ++p) result.probes[p].components = collected[p].Take();
  JudgeChunks(linearization, sum_check, result);
  return result;
}

}  // namespace addend

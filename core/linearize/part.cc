#include "core/linearize/part.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <vector>

namespace addend {

std::shared_ptr<TracedRun> PartOf(const TracedRun& trace, int64_t first, int64_t count, bool rest) {
  auto part = std::make_shared<TracedRun>(trace);
  part->numc = count + (rest ? 1 : 0);
  const auto renumbered = [&](const at::Tensor& labels) {
    if (!labels.defined()) return labels;
    const at::Tensor own = labels.ge(first).logical_and_(labels.lt(first + count));
    const at::Tensor others =
        rest ? at::where(labels.lt(0), labels, at::full_like(labels, count)) : at::full_like(labels, -1);
    return at::where(own, labels - first, others);
  };
  for (Start& start : part->starts) {
    start.labels = renumbered(start.labels);
    if (!start.parts.defined()) continue;
    const at::Tensor own = start.parts.narrow(0, first, count);
    if (!rest) {
      start.parts = own;
      continue;
    }
    const at::Tensor before = start.parts.narrow(0, 0, first).sum(0, /*keepdim=*/true);
    const int64_t next = first + count;
    const at::Tensor behind = start.parts.narrow(0, next, trace.numc - next).sum(0, /*keepdim=*/true);
    start.parts = at::cat({own, before + behind}, 0);
  }
  for (std::vector<Version>& storage : part->versions) {
    for (Version& kept : storage) kept.labels = renumbered(kept.labels);
  }
  return part;
}

}  // namespace addend

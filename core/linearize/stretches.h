// Nodes of a run whose memory is limited: made stretch by stretch, the last one first; see Note [Stretches] in
// checkpoints.h.
//
// Note [One stretch]
// A stretch is gone through twice. Forward: calls run again whose results were dropped and are needed, each call's node
// is made at once, and values and references that nobody in the stretch reads any more are dropped again, except those
// that the sweep asks for, where a node keeps its bracket. Needed is what a node is made of (see ValuesRead), and what
// is read to make it again: the product before a residual sum, for one, is not computed again where the sum was kept.
// Backward: nodes are visited and dropped. In the end nothing of the stretch is left but checkpoints. Nodes have the
// same coefficients as those that are made all at once, and are visited in the same order, so that a sweep gives the
// same bits. What was dropped left a fingerprint, which it has to have when it is made again: this finds operators that
// do not compute the same twice.
#ifndef ADDEND_CORE_LINEARIZE_STRETCHES_H_
#define ADDEND_CORE_LINEARIZE_STRETCHES_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/policy.h"
#include "core/linearize/linearization.h"
#include "core/linearize/make_node.h"
#include "core/run/freed_memory.h"
#include "core/run/traced_run.h"

namespace addend {

class Stretches {
 public:
  // Thrown where a reference needs a stand-in, from which later references follow: then the run has to be linearized as
  // a whole.
  struct NeedsWholeRun {};

  // `choices` are of the trace, `live`: by call, whether a probe may depend on it.
  Stretches(std::shared_ptr<TracedRun> trace, std::unique_ptr<const Policy> policy, Choices choices,
            std::vector<bool> live, std::vector<Probe> probes);

  // Visits all nodes, the last first. A node is gone when its visit ends. `hold`: values and references of a node's
  // operands and outputs are there while it is visited; otherwise only those that a sweep needs. Throws what
  // Linearize() throws, FailedPrecondition where an operator does not compute the same again, and NeedsWholeRun.
  void ForEachNodeBackward(bool hold, const std::function<void(const Node&)>& visit);
  // The nodes of the last visit without their maps, in the order of their calls.
  const std::vector<Node>& nodes() const { return nodes_; }
  int64_t calls() const { return static_cast<int64_t>(live_.size()); }

 private:
  // The node of a call, or why there is none.
  struct Made {
    std::optional<Node> node;
    std::exception_ptr error;
  };
  struct Range {
    int64_t first = 0;
    int64_t last = 0;  // the first call behind it
  };

  // Schedule of the way forward through a stretch.
  struct Schedule {
    std::vector<bool> runs;                               // by call: it runs again
    absl::flat_hash_map<VersionId, int64_t> last_reader;  // a call that runs again, or whose node is made of it
  };

  Range RangeOf(size_t stretch) const;
  std::vector<Made> GoForward(const Range& range, bool hold);
  void GoBack(const Range& range, std::vector<Made> made, NeededRows& needed,
              const std::function<void(const Node&)>& visit);
  Made Make(int64_t c) const;
  // Makes the node of a call and restores all values that it turns out to need.
  Made MakeWithValues(int64_t c);
  bool MayDrop(const Operand& operand) const;
  Schedule MakeSchedule(const Range& range, bool hold) const;
  // Drops a version, unless a sweep may ask for it: where it is not finite.
  void Drop(const Operand& operand, bool at_any_rate);
  void DropAll(const Range& range);

  std::shared_ptr<TracedRun> trace_;
  std::unique_ptr<const Policy> policy_;
  Choices choices_;
  std::vector<bool> live_;
  std::vector<Probe> probes_;
  absl::flat_hash_set<VersionId> wanted_;  // what a probe is, or a call reads that a probe may depend on
  std::vector<Node> nodes_;
  FreedMemory freed_;
};

// A linearization of a run with stretches: it has no nodes before a sweep back has made them.
Linearization LinearizeInStretches(std::shared_ptr<TracedRun> trace, const Registry& registry, const Policy& policy,
                                   std::vector<Probe> probes);

// Makes an operand again where it was dropped, and keeps it from then on.
void Restore(TracedRun& trace, const Operand& operand);
// Makes everything again that was dropped. The run has no stretches then.
void RestoreAll(TracedRun& trace);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_STRETCHES_H_

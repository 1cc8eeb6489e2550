// Options of decompositions and attributions alike: how the model is run, and how operators are linearized.
#ifndef ADDEND_CORE_EXPLAIN_RUN_OPTIONS_H_
#define ADDEND_CORE_EXPLAIN_RUN_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/base/progress.h"
#include "core/rules/registry.h"

namespace addend {

class ReferenceCache;

struct RunOptions {
  Policy policy;
  // Keeps what the model gives on the baseline from one run to the next, so that a baseline which stays the same costs
  // no run of its own; null: nothing is kept. One for each model; see Note [Kept references] in
  // core/run/reference_cache.h for what is noticed when it changes.
  std::shared_ptr<ReferenceCache> references;
  // Runs the plain model once more, on the baseline, and compares what it gives with the reference; see
  // Report::reference_error. Not where a split starts inside the model.
  bool verify_reference = false;
  // The memory limit in bytes, beside the model; 0: none. Of a decomposition: for the parts of outputs and probes and
  // all rows on their way there, beside the recorded run. Of an attribution: for the recorded run and its coefficients,
  // about; what does not fit is computed again, with the same bits, and references are not kept for the next run. See
  // Note [Stretches] in core/run/checkpoints.h. It has to be possible: policies that need the whole run are
  // refused.
  int64_t memory_bytes = 0;
  // The results of the model that count, such as "output.1": those that are decomposed, or the first of which is
  // attributed to. Others are left out. Empty: all.
  std::vector<std::string> outputs;
  // Rules other than Addend's own; null: Registry::Default(). Must outlive the call.
  const Registry* registry = nullptr;
  // Called with the stage ("trace", "linearize", "sweep") and how many of its steps are done.
  StageProgress progress;

  const Registry& Rules() const { return registry != nullptr ? *registry : Registry::Default(); }
};

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_RUN_OPTIONS_H_

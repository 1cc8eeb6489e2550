// Options of decompositions and attributions alike: how the model is run, and how operators are linearized.
#ifndef ADDEND_CORE_EXPLAIN_RUN_OPTIONS_H_
#define ADDEND_CORE_EXPLAIN_RUN_OPTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/base/progress.h"
#include "core/explain/request_options.h"
#include "core/rules/registry.h"

namespace addend {

class ReferenceCache;

// Beside those of requests, of which decompositions look at some and attributions at others. The caller keeps
// `references` for keep_references, and ends a run by its timeout. A memory limit has to be possible: policies that
// need the whole run are refused, and references are not kept then; see Note [Stretches] in core/run/checkpoints.h. The
// reference is not verified where a split starts inside the model; see Report::reference_error.
struct RunOptions : RequestOptions {
  Policy policy;
  // Keeps what the model gives on the baseline from one run to the next, so that a baseline which stays the same costs
  // no run of its own; null: nothing is kept. One for each model; see Note [Kept references] in
  // core/run/reference_cache.h for what is noticed when it changes.
  std::shared_ptr<ReferenceCache> references;
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

// Splits that start inside a model: the model runs once to find the tensors that are split, and their shapes; see
// Input::inside.
#ifndef ADDEND_CORE_EXPLAIN_INSIDE_H_
#define ADDEND_CORE_EXPLAIN_INSIDE_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/recorded_model.h"
#include "core/explain/run_options.h"
#include "core/linearize/linearization.h"
#include "core/model/model.h"
#include "core/run/trace.h"

namespace addend {

// Whether a split starts inside the model.
bool HasInside(const std::vector<Input>& inputs);

// Records a run of a model on inputs that it prepares. If some are inside the model, the model runs once more to find
// them, from the same state and with the same random numbers. Throws what Prepare() and RecordModel() throw,
// InvalidArgument if the options ask to verify the reference of a split inside, and FailedPrecondition if the two runs
// differ; see Note [Two runs] in same_run.h.
RecordedRun RecordFor(Model& model, const std::vector<Input>& inputs, const RunOptions& options, RunFor purpose);

// Prepares the arguments among inputs of which some are inside the model, for the run that finds those. Throws
// InvalidArgument if an argument is split as well.
PreparedInputs ArgumentsOf(const std::vector<Input>& inputs);

// Prepares all inputs, those inside the model as the run of the arguments showed them; `outputs`: its results; `held`:
// what the model holds.
PreparedInputs PlaceInside(const std::vector<Input>& inputs, const TracedRun& trace,
                           const std::vector<RecordedOutput>& outputs,
                           const std::vector<std::pair<std::string, at::Tensor>>& held);

// The values of the tensors that are split inside the model, in the order of those inputs.
std::vector<at::Tensor> InsideValues(const TracedRun& trace);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_INSIDE_H_

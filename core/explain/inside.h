// Splits that start inside a model: the model runs once to find the tensors that are split, and their shapes; see
// Input::inside.
#ifndef ADDEND_CORE_EXPLAIN_INSIDE_H_
#define ADDEND_CORE_EXPLAIN_INSIDE_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/run_options.h"
#include "core/linearize/linearization.h"
#include "core/linearize/trace.h"
#include "core/model/model.h"

namespace addend {

// Whether a split starts inside the model.
bool HasInside(const std::vector<Input>& inputs);

// Prepares inputs. If some are inside the model, the model runs once to find them. Throws what Prepare() and
// RecordModel() throw, and InvalidArgument if the options ask to verify the reference of a split inside.
PreparedInputs PrepareFor(Model& model, const std::vector<Input>& inputs, const RunOptions& options);

// Prepares the arguments among inputs of which some are inside the model, for the run that finds those. Throws
// InvalidArgument if an argument is split as well.
PreparedInputs ArgumentsOf(const std::vector<Input>& inputs);

// Prepares all inputs, those inside the model as the run of the arguments showed them; `output`: its first result;
// `held`: what the model holds.
PreparedInputs PlaceInside(const std::vector<Input>& inputs, const TracedRun& trace, const Probe& output,
                           const std::vector<std::pair<std::string, at::Tensor>>& held);

// What the model computed where a split starts inside it, in the order of those inputs.
std::vector<at::Tensor> InsideValues(const TracedRun& trace);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_INSIDE_H_

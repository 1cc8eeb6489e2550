// Runs the plan of an ONNX model node by node, by operators that LibTorch's dispatcher sees.
#ifndef ADDEND_CORE_ONNX_RUN_H_
#define ADDEND_CORE_ONNX_RUN_H_

#include <cstdint>
#include <vector>

#include "core/onnx/datum.h"
#include "core/onnx/placement.h"
#include "core/onnx/plan.h"

namespace addend::onnx {

// The most nodes that one run may go through. Loops count their turns by it: a body of known values calls no operator
// that could end a run that is cancelled.
inline constexpr int64_t kMostNodesRun = 10000000;

// The values of a plan's constants, by their numbers, with the tensors that nodes make once. `copy`: none shares memory
// with the file. What making a tensor throws is as from RunPlan().
std::vector<Datum> ConstantsOf(const Plan& plan, const Placement& placement, bool copy);

// Returns the outputs for the inputs of the model's graph. `constants`: the plan's, as the model has them. A value is
// freed behind its last use. Operators count as called at their nodes' places. What LibTorch throws becomes
// InvalidArgument with the node, or Unimplemented where it has no such kernel; errors of Addend's own pass through.
std::vector<Datum> RunPlan(const Plan& plan, const std::vector<Datum>& constants, const Placement& placement,
                           std::vector<Datum> inputs, int64_t most_nodes = kMostNodesRun);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_RUN_H_

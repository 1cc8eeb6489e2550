// Runs the plan of an exported graph: each step by a call through LibTorch's dispatcher, where tracing sees it.
#ifndef ADDEND_CORE_EXPORTED_RUN_PLAN_H_
#define ADDEND_CORE_EXPORTED_RUN_PLAN_H_

#include <ATen/core/ivalue.h>

#include <vector>

#include "core/exported/plan.h"

namespace addend::exported {

// Returns the outputs for the plan's inputs. A value is freed behind its last use. Operators count as called at their
// nodes' places. What they throw becomes InvalidArgument with the place; errors of Addend's own pass through.
std::vector<c10::IValue> RunPlan(const Plan& plan, std::vector<c10::IValue> inputs);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_RUN_PLAN_H_

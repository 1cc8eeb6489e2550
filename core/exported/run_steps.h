// Runs the steps of an exported graph: each step by a call through LibTorch's dispatcher, where tracing sees it.
#ifndef ADDEND_CORE_EXPORTED_RUN_STEPS_H_
#define ADDEND_CORE_EXPORTED_RUN_STEPS_H_

#include <ATen/core/ivalue.h>

#include <vector>

#include "core/exported/steps.h"

namespace addend::exported {

// Returns the outputs for the inputs of the steps. A value is freed behind its last use. Operators count as called at
// their nodes' places. What they throw becomes InvalidArgument with the place; errors of Addend's own pass through.
std::vector<c10::IValue> RunSteps(const Steps& steps, std::vector<c10::IValue> inputs);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_RUN_STEPS_H_

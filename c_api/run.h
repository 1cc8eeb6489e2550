// What runs of models have in common: how a request and a context become options of the core, and how what the core
// gives becomes results.
#ifndef ADDEND_C_API_RUN_H_
#define ADDEND_C_API_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "c_api/bodies.h"
#include "core/explain/decompose.h"

namespace addend::c_api {

// Refers to the context's rules, which have to outlive it.
DecomposeOptions OptionsOf(const ContextBody& context, const RequestBody& request);
// Throws FailedPrecondition while this thread records a trace.
void RequireNoTrace();
// Throws the error of a run that was cancelled.
void RequireGoingOn(const RequestBody& request);

std::vector<Input> InputsOf(const std::vector<RequestInput>& inputs);
// `inputs` as they were handed in; the results know their components by name.
ResultsBody ResultsOf(Decomposition decomposition, const std::vector<RequestInput>& inputs, Preset asked,
                      const std::string& model_path);

}  // namespace addend::c_api

#endif  // ADDEND_C_API_RUN_H_

// Decomposes or attributes what was loaded, with progress on the terminal and hints for what users get wrong.
#ifndef ADDEND_TOOLS_ADDEND_RUN_H_
#define ADDEND_TOOLS_ADDEND_RUN_H_

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/interactions.h"
#include "core/explain/several_baselines.h"
#include "tools/addend/inputs.h"

namespace addend::cli {

// The options of one kind of run, as they were typed.
template <typename Options>
Options OptionsOf(const LoadedRun& run) {
  Options options;
  static_cast<RequestOptions&>(options) = run.request;
  options.policy = run.policy;
  return options;
}

// Runs the model once to find the tensors inside it that are split, and their shapes; nothing where none is.
void FindInside(LoadedRun& run);
// Throws InvalidArgument where an input has several baselines, which only attributions take.
void RequireOneBaseline(const LoadedRun& run);
// Also throws where integers were split that the model uses as numbers, since nothing would be left to explain.
Decomposition Decompose(const LoadedRun& run, DecomposeOptions options);
// Attributes chosen numbers; throws like Decompose(). With several baselines contributions are means, and
// `spread` is as of AttributeBaselines().
BaselinesAttribution Attribute(const LoadedRun& run, AttributeOptions options);
// Interactions of the contributions of groups; `groups` as of AttributeInteractions().
Interactions FindInteractions(const LoadedRun& run, const std::vector<int64_t>& groups, AttributeOptions options);
// The plain model.
c10::IValue RunPlain(const LoadedRun& run);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_RUN_H_

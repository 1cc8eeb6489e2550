// Targets: what a user calls them on the command line.
#ifndef ADDEND_TOOLS_ADDEND_TARGETS_H_
#define ADDEND_TOOLS_ADDEND_TARGETS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/explain/target.h"
#include "tools/addend/inputs.h"

namespace addend::cli {

// A target as text: what the core reads, with names of classes in the place of indices: "German", "German-Dutch" for
// the first minus the second, "log_probability:German".
Target FindTarget(const std::string& text, const std::vector<std::string>& classes);

// Whether the target is the largest output, or a sum with it.
bool NeedsOneSample(const Target& target);

// Throws where the input holds several samples, each with a largest output, so that top1 means none of them. Costs a
// plain run only where that may be.
void CheckOneSample(const LoadedRun& run);

// Throws where the explained tensor, "" being the output, has not one element for each class of the option --classes;
// empty: it was not given.
void CheckClasses(const std::string& option, const at::Tensor& value, const std::string& at,
                  const std::vector<std::string>& classes);

// Notes on an explained tensor that is made of probabilities although nobody asked for them.
std::vector<std::string> NotesOn(const at::Tensor& value, const std::string& at, const Contributions& target);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_TARGETS_H_

// Values of some steps that may share memory, and what follows where one of them is written.
#ifndef ADDEND_CORE_EXPORTED_ALIASES_H_
#define ADDEND_CORE_EXPORTED_ALIASES_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/exported/steps.h"

namespace addend::exported {

// Clears Step::may_copy where a copy in place of a view would be noticed: somebody writes to what shares memory with it
// later. Returns the tensors among the constants of the steps that may be written.
std::vector<at::Tensor> JudgeAliases(Steps* steps);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_ALIASES_H_

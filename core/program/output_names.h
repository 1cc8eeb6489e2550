// The names of the tensors of a model's result.
#ifndef ADDEND_CORE_PROGRAM_OUTPUT_NAMES_H_
#define ADDEND_CORE_PROGRAM_OUTPUT_NAMES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/program/structure.h"

namespace addend {

// The name by the number among all tensors of the result: "output", "output.1", ...
std::string OutputName(size_t number);

// A name for each tensor of a result, in order; undefined ones have none. Where a dictionary is in the result, each is
// named by its place: "output.logits", "output.past.0". Otherwise, and where two would be called the same, they are
// numbered.
std::vector<std::string> OutputNames(const Structure& result);
std::vector<std::string> OutputNames(const c10::IValue& result);

// The result of a live model whose tensors were named one by one: one tensor, or a tuple of several. Where they are
// named by their place and a part of it is not a number, a dictionary by these names without "output.".
c10::IValue NamedResult(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_OUTPUT_NAMES_H_

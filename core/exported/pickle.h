// Tensors from archives of torch.save, without Python's pickle machine: a pickle can name any function to be called;
// this reader knows those that torch.save writes for tensors, and refuses every other by its name.
#ifndef ADDEND_CORE_EXPORTED_PICKLE_H_
#define ADDEND_CORE_EXPORTED_PICKLE_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/exported/archive.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

// Reads a dict of tensors by name. Throws InvalidArgument for what is malformed, and Unimplemented for what is no
// tensor, by the name of its class.
std::vector<std::pair<std::string, at::Tensor>> ReadPickledTensors(const Archive& saved, MemoryBudget* budget);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_PICKLE_H_

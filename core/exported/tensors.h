// Parameters, buffers and constants of an exported program.
#ifndef ADDEND_CORE_EXPORTED_TENSORS_H_
#define ADDEND_CORE_EXPORTED_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/exported/archive.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

using State = std::map<std::string, at::Tensor>;

// Reads tensors that `config`, a JSON entry, describes: each lies in an entry of `folder`, which holds the bytes of one
// storage. Two that name the same entry share it. Adds them to `state`; throws InvalidArgument if that has one of them.
void ReadPayload(const Archive& archive, const std::string& config, const std::string& folder, MemoryBudget* budget,
                 State& state);

// Reads tensors that torch.save wrote into an entry, a dict by name. An entry without content holds none.
void ReadSaved(const Archive& archive, const std::string& entry, MemoryBudget* budget, State& state);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_TENSORS_H_

// Inputs that share memory, of which a run has copies that do not.
#ifndef ADDEND_CORE_EXPLAIN_SHARED_MEMORY_H_
#define ADDEND_CORE_EXPLAIN_SHARED_MEMORY_H_

#include <string>
#include <vector>

#include "core/explain/input.h"
#include "core/explain/recorded_model.h"

namespace addend {

// Notes where the run wrote an input that shares memory with another one: the model itself would have seen the write in
// both. `run`: what RecordModel gave for the inputs.
std::vector<std::string> NotesOnSharedMemory(const std::vector<Input>& inputs, const RecordedRun& run);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_SHARED_MEMORY_H_

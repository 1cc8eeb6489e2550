// The JSON document of an exported program: schema major 8 of torch/_export/serde/schema.py.
//
// Fails closed: a field or an alternative that is not known is refused unless it says nothing.
#ifndef ADDEND_CORE_EXPORTED_SCHEMA_H_
#define ADDEND_CORE_EXPORTED_SCHEMA_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/exported/program.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

// Reads all of a program but its tensors: Program::state and notes stay empty. `where` begins every message.
Program ReadSchema(absl::string_view text, const std::string& where, weights::MemoryBudget* budget);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_SCHEMA_H_

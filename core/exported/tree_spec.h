// Structures of arguments and results, as torch.utils._pytree writes them into an exported program.
#ifndef ADDEND_CORE_EXPORTED_TREE_SPEC_H_
#define ADDEND_CORE_EXPORTED_TREE_SPEC_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/exported/program.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

// Names of the fields of named tuples, by class.
using NamedTupleFields = std::map<std::string, std::vector<std::string>>;

// Reads text such as [1, {"type": "builtins.tuple", "context": "null", "children_spec": [...]}]. `where` begins every
// message. A class that is no built-in container becomes a named structure, with the names of its fields where its
// context lists as many names as it has children.
TreeSpec ReadTreeSpec(const std::string& text, const NamedTupleFields& fields, const std::string& where,
                      weights::MemoryBudget* budget);

// How many values a structure holds.
size_t CountLeaves(const TreeSpec& spec);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_TREE_SPEC_H_

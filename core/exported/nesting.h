// How the arguments and results of an exported program are nested, and what its tensors are in them.
#ifndef ADDEND_CORE_EXPORTED_NESTING_H_
#define ADDEND_CORE_EXPORTED_NESTING_H_

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/exported/program.h"

namespace addend::exported {

// One argument of a program: a leaf, or containers of leaves.
struct ProgramArgument {
  std::string name;  // "tokens"; "input_0" where the file does not say it
  TreeSpec spec;
};

// A leaf of an argument.
struct ProgramLeaf {
  std::string name;  // for messages: "tokens", "inputs[0]['a']"
  std::string path;  // as guards have it: "L['tokens']", "L['inputs'][0]['a']"
};

// The arguments that a program takes, those by name last; `num_leaves`: how many leaves they have, each of which is an
// argument where the file does not tell more.
std::vector<ProgramArgument> ArgumentsOf(const Program& program, size_t num_leaves);
std::vector<ProgramLeaf> LeavesOf(const std::vector<ProgramArgument>& arguments);

// Takes a value apart as the specification says; lists count as tuples, and named structures as dictionaries or tuples.
// Returns "", or what is wrong: "inputs[0] has no 'a'".
std::string TakeLeaves(const c10::IValue& value, const TreeSpec& spec, const std::string& name,
                       std::vector<c10::IValue>* leaves);

// Nests leaves as the specification says. A class becomes a dictionary by the names of its fields, where the file has
// them, else a tuple. Throws InvalidArgument where the specification has another number of leaves.
c10::IValue Nested(const TreeSpec& spec, const std::vector<c10::IValue>& leaves);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_NESTING_H_

// Which module an operator belongs to, from what the interpreter and the names of parameters tell.
#ifndef ADDEND_CORE_PROGRAM_MODULE_PATHS_H_
#define ADDEND_CORE_PROGRAM_MODULE_PATHS_H_

#include <string>
#include <vector>

namespace addend {

// `script_path`: as the interpreter tells it, with containers left out ("0.fc"); empty where it tells none.
// `parameter`: the first parameter that the operator reads ("layers.0.fc.weight"), or empty. `known`: all paths of the
// model, sorted, so that a place that is one of them is found at once. Returns the path in full where one of them
// settles it, else what the interpreter says.
std::string ResolveModulePath(const std::string& script_path, const std::string& parameter,
                              const std::vector<std::string>& known);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_MODULE_PATHS_H_

// The path of the module that runs, from what TorchScript's interpreter knows.
#ifndef ADDEND_CORE_INTERCEPT_MODULE_PATH_H_
#define ADDEND_CORE_INTERCEPT_MODULE_PATH_H_

#include <string>
#include <vector>

namespace addend {

// Returns the module path of a hierarchy of calls: {"TOP(Net)::forward", "layers(ModuleList)::forward"} gives "layers".
// The path holds instance names; the root, functions, and calls without an instance are left out.
std::string ModulePathOf(const std::vector<std::string>& hierarchy);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_MODULE_PATH_H_

// What TorchScript's interpreter tells about the module that runs.
#ifndef ADDEND_CORE_INTERCEPT_MODULE_PATH_H_
#define ADDEND_CORE_INTERCEPT_MODULE_PATH_H_

#include <string>
#include <vector>

namespace addend {

// {"TOP(Net)::forward", "layers(ModuleList)::forward"} -> "layers": instance names, without the root, functions and
// calls that have no instance.
std::string ModulePathOf(const std::vector<std::string>& hierarchy);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_MODULE_PATH_H_

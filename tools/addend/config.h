// Configuration of the program and its machine, for reports of issues.
#ifndef ADDEND_TOOLS_ADDEND_CONFIG_H_
#define ADDEND_TOOLS_ADDEND_CONFIG_H_

#include <string>

namespace addend::cli {

// "addend 0.1.0 (LibTorch 1.13.1)", and lines of the program's sources and file, the system, and LibTorch.
std::string ConfigText();

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_CONFIG_H_

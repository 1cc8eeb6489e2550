// LibTorch as this process has it, for people who read about a problem.
#ifndef ADDEND_CORE_AUDIT_LIBTORCH_CONFIG_H_
#define ADDEND_CORE_AUDIT_LIBTORCH_CONFIG_H_

#include <string>

namespace addend {

// "LibTorch 2.15.0" and indented lines: its file, the C++ ABI, threads, instructions of the processor, matrix products,
// devices, and how it was built. CUDA, where it is there, is asked for its devices, as at::show_config() itself does.
std::string LibTorchConfigText(const std::string& version);

// Returns what is worth reading of LibTorch's description of its build, at::show_config(): one line of its bullets, and
// one of its settings without the compiler's flags.
std::string BuildLines(const std::string& description);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_LIBTORCH_CONFIG_H_

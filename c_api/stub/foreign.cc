// A LibTorch that no build of Addend serves, as far as tests need one: its name and its version.
#include <string>

namespace at {
std::string show_config() { return "PyTorch built with: TORCH_VERSION=0.99.0, "; }
}  // namespace at

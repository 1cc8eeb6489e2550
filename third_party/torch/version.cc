#include "third_party/torch/version.h"

#include <map>

// LibTorch's own, declared here because not every package of it has the header. at::show_config() tells the same, and asks
// CUDA for devices on the way: children that a program forks afterwards could not use them.
namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions();
}  // namespace caffe2

namespace addend {
namespace {

// "1.13" of "1.13.1".
std::string MajorMinor(const std::string& version) {
  const size_t dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find('.', dot + 1));
}

}  // namespace

const char* LibTorchVersion() { return ADDEND_LIBTORCH_VERSION; }

const std::string& RunningLibTorchVersion() {
  static const std::string& version = *new std::string([] {
    const std::map<std::string, std::string>& options = caffe2::GetBuildOptions();
    const auto found = options.find("TORCH_VERSION");
    return found == options.end() ? std::string() : found->second;
  }());
  return version;
}

bool IsSameMinorVersion(const std::string& one, const std::string& other) {
  return MajorMinor(one) == MajorMinor(other);
}

}  // namespace addend

#include "third_party/torch/version.h"

#include <ATen/Version.h>

namespace addend {
namespace {

// "1.13" of "1.13.1".
std::string MajorMinor(const std::string& version) {
  const size_t dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find('.', dot + 1));
}

}  // namespace

const char* LibTorchVersion() { return ADDEND_LIBTORCH_VERSION; }

std::string VersionIn(const std::string& configuration) {
  constexpr char kKey[] = "TORCH_VERSION=";
  const size_t found = configuration.find(kKey);
  if (found == std::string::npos) return "";
  const size_t begin = found + sizeof(kKey) - 1;
  return configuration.substr(begin, configuration.find_first_of(", \n", begin) - begin);
}

const std::string& RunningLibTorchVersion() {
  static const std::string& version = *new std::string(VersionIn(at::show_config()));
  return version;
}

bool IsSameMinorVersion(const std::string& one, const std::string& other) {
  return MajorMinor(one) == MajorMinor(other);
}

}  // namespace addend

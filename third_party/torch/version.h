// Which LibTorch this library is built for, and which one runs.
#ifndef ADDEND_THIRD_PARTY_TORCH_VERSION_H_
#define ADDEND_THIRD_PARTY_TORCH_VERSION_H_

#include <string>

namespace addend {

// "1.13.1": the version of the LibTorch that was chosen for the build.
const char* LibTorchVersion();

// The version of the LibTorch of this process, as it describes its own build; empty where it does not tell.
const std::string& RunningLibTorchVersion();

// Whether two versions are of the same minor version, within which the layout of LibTorch's classes stays: "1.13.1" and
// "1.13.0" are.
bool IsSameMinorVersion(const std::string& one, const std::string& other);

}  // namespace addend

#endif  // ADDEND_THIRD_PARTY_TORCH_VERSION_H_

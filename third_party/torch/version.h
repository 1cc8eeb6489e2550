// Which LibTorch this library is built for.
#ifndef ADDEND_THIRD_PARTY_TORCH_VERSION_H_
#define ADDEND_THIRD_PARTY_TORCH_VERSION_H_

namespace addend {

// "1.13.1": the version of the LibTorch that was chosen for the build.
const char* LibTorchVersion();

}  // namespace addend

#endif  // ADDEND_THIRD_PARTY_TORCH_VERSION_H_

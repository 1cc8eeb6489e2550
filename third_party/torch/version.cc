#include "third_party/torch/version.h"

namespace addend {

const char* LibTorchVersion() { return ADDEND_LIBTORCH_VERSION; }

}  // namespace addend

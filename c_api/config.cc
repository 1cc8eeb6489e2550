// LibTorch as this process has it, in lines for those who report a problem. The stub writes what comes before.
#include "c_api/addend.h"
#include "c_api/stub/kept.h"
#include "core/audit/libtorch_config.h"
#include "third_party/torch/version.h"

namespace addend::c_api {

extern "C" {

ADDEND_API const char* addend_show_config(void) noexcept {
  static addend_kept_texts texts = {};
  try {
    const std::string& version = RunningLibTorchVersion();
    return addend_keep(&texts,
                       LibTorchConfigText(version.empty() ? "of a version that it does not tell" : version).c_str());
  } catch (...) {
    return nullptr;
  }
}

}  // extern "C"

}  // namespace addend::c_api

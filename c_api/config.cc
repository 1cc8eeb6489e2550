// LibTorch as this process has it, in lines for those who report a problem. The stub writes what comes before.
#include <ATen/Version.h>

#include "c_api/addend.h"
#include "c_api/stub/kept.h"
#include "c_api/version.h"
#include "core/audit/libtorch_config.h"

namespace addend::c_api {

extern "C" {

ADDEND_API const char* addend_show_config(void) noexcept {
  static addend_kept_texts texts = {};
  try {
    const std::string version = VersionIn(at::show_config());
    return addend_keep(&texts,
                       LibTorchConfigText(version.empty() ? "of a version that it does not tell" : version).c_str());
  } catch (...) {
    return nullptr;
  }
}

}  // extern "C"

}  // namespace addend::c_api

#include "tools/addend/config.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/audit/libtorch_config.h"
#include "core/base/provenance.h"
#include "core/base/release.h"
#include "core/base/system_text.h"
#include "core/base/text.h"
#include "third_party/torch/version.h"

namespace addend::cli {

std::string ConfigText() {
  char system[256];
  addend_system_text(system, sizeof(system));
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return absl::StrCat("addend ", kRelease, " (LibTorch ", LibTorchVersion(), ")\n  built from: ", addend_provenance(),
                      "\n  system: ", system, "\n  program: ", error ? "not known" : OneLine(program), "\n",
                      LibTorchConfigText(RunningLibTorchVersion()));
}

}  // namespace addend::cli

#include "tools/addend/config.h"

#include <ATen/Version.h>

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
namespace {

// The version that the loaded LibTorch tells: another one than the program was built for may have taken its place.
std::string LoadedVersion() {
  const std::string key = "TORCH_VERSION=";
  const std::string description = at::show_config();
  const size_t found = description.find(key);
  if (found == std::string::npos) return "of a version that it does not tell";
  const size_t begin = found + key.size();
  return description.substr(begin, description.find_first_of(", \n", begin) - begin);
}

}  // namespace

std::string ConfigText() {
  char system[256];
  addend_system_text(system, sizeof(system));
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return absl::StrCat("addend ", kRelease, " (LibTorch ", LibTorchVersion(), ")\n  built from: ", addend_provenance(),
                      "\n  system: ", system, "\n  program: ", error ? "not known" : OneLine(program), "\n",
                      LibTorchConfigText(LoadedVersion()));
}

}  // namespace addend::cli

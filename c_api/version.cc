// Versions, and whether the LibTorch of this process is the one that the library was built for.
#include "c_api/version.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <link.h>

#include <cstdlib>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/guard.h"

namespace addend::c_api {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The files that are loaded under LibTorch's name, links resolved.
std::set<std::string> LoadedFiles() {
  std::set<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (!absl::StartsWith(BaseName(info->dlpi_name), "libtorch_cpu.")) return 0;
        char* real = ::realpath(info->dlpi_name, nullptr);
        static_cast<std::set<std::string>*>(found)->insert(real == nullptr ? info->dlpi_name : real);
        std::free(real);
        return 0;
      },
      &files);
  return files;
}

// "1.13" of "1.13.1".
std::string MajorMinor(const std::string& version) {
  const size_t dot = version.find('.');
  return version.substr(0, dot == std::string::npos ? dot : version.find('.', dot + 1));
}

}  // namespace

std::string VersionIn(const std::string& configuration) {
  constexpr char kKey[] = "TORCH_VERSION=";
  const size_t at = configuration.find(kKey);
  if (at == std::string::npos) return "";
  const size_t begin = at + sizeof(kKey) - 1;
  return configuration.substr(begin, configuration.find_first_of(", \n", begin) - begin);
}

std::string LibTorchProblem(const std::string& built, const std::string& loaded, const std::set<std::string>& files) {
  if (files.size() > 1) {
    return absl::StrCat("this process has loaded LibTorch more than once (", absl::StrJoin(files, ", "),
                        "); operators of the other copy cannot be seen, so load Addend with the one that it uses");
  }
  if (loaded.empty() || MajorMinor(built) == MajorMinor(loaded)) return "";
  return absl::StrCat("this copy of Addend was built for LibTorch ", built, ", but the process has loaded ", loaded,
                      files.empty() ? "" : absl::StrCat(" (", *files.begin(), ")"),
                      "; install the one for it, or build Addend with LIBTORCH_HOME set");
}

void RequireLibTorch() {
  static const std::string& problem =
      *new std::string(LibTorchProblem(ADDEND_LIBTORCH_VERSION, VersionIn(at::show_config()), LoadedFiles()));
  if (!problem.empty()) throw FailedPrecondition(problem);
}

extern "C" {

ADDEND_API int32_t addend_abi_version(void) noexcept { return ADDEND_ABI_VERSION; }
ADDEND_API int32_t addend_abi_min_version(void) noexcept { return 1; }
ADDEND_API const char* addend_version(void) noexcept { return ADDEND_VERSION; }
ADDEND_API const char* addend_libtorch_version(void) noexcept { return ADDEND_LIBTORCH_VERSION; }
ADDEND_API addend_status* addend_check_libtorch(void) noexcept {
  return Guard([] { RequireLibTorch(); });
}

ADDEND_API addend_status* addend_set_num_threads(int32_t num_threads) noexcept {
  return Guard([&] {
    if (num_threads < 1) {
      throw InvalidArgument(absl::StrCat("num_threads is ", num_threads, "; at least one thread computes"));
    }
    at::set_num_threads(num_threads);
  });
}

}  // extern "C"

}  // namespace addend::c_api

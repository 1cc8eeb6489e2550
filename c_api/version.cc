// Versions, and whether the LibTorch of this process is the one that the library was built for.
#include "c_api/version.h"

#include <ATen/Parallel.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/guard.h"
#include "c_api/stub/libtorch.h"
#include "third_party/torch/version.h"

namespace addend::c_api {
namespace {

// The files that are loaded under LibTorch's name, links resolved.
std::set<std::string> LoadedFiles() {
  addend_loaded loaded;
  addend_find_loaded("libtorch_cpu", &loaded);
  return {loaded.paths, loaded.paths + loaded.count};
}

}  // namespace

std::string LibTorchProblem(const std::string& built, const std::string& loaded, const std::set<std::string>& files,
                            bool other_is_allowed) {
  if (files.size() > 1) {
    return absl::StrCat("this process has loaded LibTorch more than once (", absl::StrJoin(files, ", "),
                        "); " ADDEND_LOAD_ONE_LIBTORCH);
  }
  if (loaded.empty() || other_is_allowed || IsSameMinorVersion(built, loaded)) return "";
  return absl::StrCat("this copy of Addend was built for LibTorch ", built, ", but the process has loaded ", loaded,
                      files.empty() ? "" : absl::StrCat(" (", *files.begin(), ")"),
                      "; install the one for it, or build Addend with LIBTORCH_HOME set");
}

void RequireLibTorch() {
  static const std::string& problem = *new std::string(LibTorchProblem(
      LibTorchVersion(), RunningLibTorchVersion(), LoadedFiles(), addend_other_libtorch_is_allowed() != 0));
  if (!problem.empty()) throw FailedPrecondition(problem);
}

extern "C" {

ADDEND_API const char* addend_libtorch_version(void) noexcept { return LibTorchVersion(); }
ADDEND_API addend_status* addend_check_libtorch(void) noexcept {
  return Guard([] { RequireLibTorch(); });
}
// A program that is linked to all of this has its LibTorch.
ADDEND_API addend_status* addend_load_libtorch(const char*) noexcept { return addend_check_libtorch(); }
ADDEND_API int32_t addend_libtorch_is_loaded(void) noexcept { return 1; }

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

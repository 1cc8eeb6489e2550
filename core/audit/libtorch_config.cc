#include "core/audit/libtorch_config.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/audit/environment.h"
#include "core/base/text.h"

namespace addend {
namespace {

constexpr char kSettings[] = "Build settings:";

// The file that LibTorch was loaded from, links resolved.
std::string File() {
  Dl_info found = {};
  if (::dladdr(reinterpret_cast<const void*>(&at::show_config), &found) == 0 || found.dli_fname == nullptr) return "";
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(found.dli_fname, nullptr), &std::free);
  return OneLine(real != nullptr ? real.get() : found.dli_fname);
}

// The pieces of LibTorch's settings: "USE_CUDA=ON". Flags of compilers hold commas too, but none with a space behind.
std::vector<std::string> Settings(absl::string_view line) {
  return absl::StrSplit(absl::StripSuffix(absl::StripAsciiWhitespace(line), ","), ", ", absl::SkipWhitespace());
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return absl::StrCat(name, value == nullptr ? " is not set" : absl::StrCat("=", Quoted(value)));
}

std::string Threads() {
  std::vector<std::string> parts = {
      absl::StrCat(at::get_num_threads(), " for operators and for Addend's loops"),
      absl::StrCat(at::get_num_interop_threads(), " for tasks beside each other"),
      absl::StrCat(std::thread::hardware_concurrency(), " processors"),
      Variable("OMP_NUM_THREADS"),
      Variable("MKL_NUM_THREADS"),
  };
  for (const absl::string_view line : absl::StrSplit(at::get_parallel_info(), '\n')) {
    if (absl::StartsWith(line, "ATen parallel backend:")) parts.emplace_back(line);
  }
  return absl::StrJoin(parts, "; ");
}

// "12.6" of 12060, as CUDA numbers its versions.
std::string CudaVersion(int64_t number) { return absl::StrCat(number / 1000, ".", number % 1000 / 10); }

std::string Devices() {
  if (!at::globalContext().hasCUDART()) return "CPU; no part for CUDA is loaded";
  const std::string version = CudaVersion(at::detail::getCUDAHooks().versionCUDART());
  return absl::StrCat("CPU; CUDA ", version, " with ", at::hasCUDA() ? at::getNumGPUs() : 0, " devices; ",
                      Variable("CUDA_VISIBLE_DEVICES"));
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "not told" : text; }

}  // namespace

std::string BuildLines(const std::string& description) {
  std::vector<std::string> bullets;
  std::vector<std::string> settings;
  for (absl::string_view line : absl::StrSplit(description, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "- ")) continue;
    if (!absl::ConsumePrefix(&line, kSettings)) {
      // Told in a line of its own.
      if (!absl::StartsWith(line, "CPU capability usage:")) bullets.emplace_back(line);
      continue;
    }
    for (const std::string& setting : Settings(line)) {
      const std::string name(absl::StripAsciiWhitespace(setting.substr(0, setting.find('='))));
      if (setting.find('=') == std::string::npos || absl::EndsWith(name, "_FLAGS")) continue;
      settings.emplace_back(absl::StripAsciiWhitespace(setting));
    }
  }
  return absl::StrCat("  built with: ", OrUnknown(absl::StrJoin(bullets, "; ")),
                      "\n  settings: ", OrUnknown(absl::StrJoin(settings, ", ")));
}

std::string LibTorchConfigText(const std::string& version) {
  std::string text = absl::StrCat("LibTorch ", version, "\n  library: ", OrUnknown(File()), "\n");
#ifdef _GLIBCXX_USE_CXX11_ABI
  absl::StrAppend(&text, "  C++ ABI: _GLIBCXX_USE_CXX11_ABI=", _GLIBCXX_USE_CXX11_ABI, "\n");
#endif
  absl::StrAppend(&text, "  threads: ", Threads(), "\n");
  absl::StrAppend(&text, "  processor: ", OrUnknown(CpuText()), "\n");
  absl::StrAppend(&text, "  BLAS: ", OrUnknown(BlasText()), "\n");
  absl::StrAppend(&text, "  devices: ", Devices(), "\n");
  return text + BuildLines(at::show_config());
}

}  // namespace addend

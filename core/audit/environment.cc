#include "core/audit/environment.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace addend {
namespace {

// "libopenblasp-r0.3.21.so" of whatever path or link leads to it.
std::string FileNameOf(const char* path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path, nullptr), &std::free);
  const std::string whole = real != nullptr ? real.get() : path;
  return whole.substr(whole.rfind('/') + 1);
}

// The file that holds a function; empty where none does.
std::string FileOf(const void* function) {
  Dl_info found = {};
  return ::dladdr(function, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

// Looks up symbols in LibTorch's own library, wherever it was loaded from.
class LibTorchSymbols {
 public:
  LibTorchSymbols() {
    const std::string own = FileOf(reinterpret_cast<const void*>(&at::show_config));
    if (!own.empty()) library_ = ::dlopen(own.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }
  ~LibTorchSymbols() {
    if (library_ != nullptr) ::dlclose(library_);
  }
  LibTorchSymbols(const LibTorchSymbols&) = delete;
  LibTorchSymbols& operator=(const LibTorchSymbols&) = delete;

  void* Find(const char* name) const { return library_ == nullptr ? nullptr : ::dlsym(library_, name); }

 private:
  void* library_ = nullptr;
};

// "AVX2", as at::get_cpu_capability() gives it, which LibTorch 1.13 does not offer; empty there. Its description
// at::show_config() holds the same, and asks CUDA for devices on the way, which children of a fork could then not use.
std::string CpuCapability(const LibTorchSymbols& symbols) {
#if _GLIBCXX_USE_CXX11_ABI
  constexpr char kName[] = "_ZN2at18get_cpu_capabilityB5cxx11Ev";
#else
  constexpr char kName[] = "_ZN2at18get_cpu_capabilityEv";
#endif
  void* const found = symbols.Find(kName);
  return found == nullptr ? "" : reinterpret_cast<std::string (*)()>(found)();
}

// The rest of the line of LibTorch's description that begins so; empty where there is none.
std::string LineOf(const std::string& description, const std::string& beginning) {
  const size_t found = description.find(beginning);
  if (found == std::string::npos) return "";
  const size_t begin = found + beginning.size();
  return std::string(absl::StripAsciiWhitespace(description.substr(begin, description.find('\n', begin) - begin)));
}

std::string FindBlas() {
  std::vector<std::string> parts;
  const LibTorchSymbols symbols;
  if (const void* product = symbols.Find("sgemm_")) parts.push_back(FileNameOf(FileOf(product).c_str()));
  if (void* describe = symbols.Find("openblas_get_config")) {
    const char* text = reinterpret_cast<char* (*)()>(describe)();
    if (text != nullptr) parts.emplace_back(absl::StripAsciiWhitespace(text));
  }
  const std::string mkl = at::get_mkl_version();
  if (!absl::StrContains(mkl, "not found")) parts.emplace_back(absl::StripAsciiWhitespace(mkl));
  return absl::StrJoin(parts, "; ");
}

// Null where there is none.
Json MemberOf(const Json& record, const char* part, const char* key) {
  const auto found = record.find(part);
  if (found == record.end() || !found->is_object()) return nullptr;
  const auto member = found->find(key);
  return member == found->end() ? Json(nullptr) : *member;
}

std::string Shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

std::string BlasText() {
  static const std::string& text = *new std::string(FindBlas());
  return text;
}

std::string CpuText() {
  static const std::string& text = *new std::string([] {
    const std::string told = CpuCapability(LibTorchSymbols());
    return told.empty() ? LineOf(at::show_config(), "CPU capability usage:") : told;
  }());
  return text;
}

Json LibTorchJson(const Writer& writer, const std::string& device) {
  return {{"blas", BlasText()},
          {"cpu", CpuText()},
          {"device", device},
          {"threads", at::get_num_threads()},
          {"version", writer.libtorch}};
}

std::vector<std::string> Differences(const Json& then, const Json& now) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* part, const char* key, const char* said) {
    const Json before = MemberOf(then, part, key);
    const Json after = MemberOf(now, part, key);
    if (before != after) lines.push_back(absl::StrCat(said, ": ", Shown(before), " then, ", Shown(after), " now"));
  };
  compare("addend", "version", "Addend");
  compare("libtorch", "version", "LibTorch");
  compare("libtorch", "blas", "BLAS");
  compare("libtorch", "cpu", "instructions of the CPU");
  compare("libtorch", "threads", "threads");
  compare("libtorch", "device", "device");
  return lines;
}

}  // namespace addend

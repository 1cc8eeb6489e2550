#include "tools/addend/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/program/tensor_io.h"

namespace addend::cli {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A path behind links that lead nowhere yet: what is written to it is made there.
std::filesystem::path BehindLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int k = 0; k < kMostLinks && std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)); ++k) {
    const std::filesystem::path to = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

// Identifies a file: where it is, if it is there, else its folder and its name.
using FilePlace = std::tuple<dev_t, ino_t, std::string>;

FilePlace PlaceOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) return {status.st_dev, status.st_ino, ""};
  std::filesystem::path behind = BehindLinks(path);
  if (!behind.has_filename()) behind = behind.parent_path();
  const std::string folder = behind.has_parent_path() ? behind.parent_path().string() : ".";
  if (::stat(folder.c_str(), &status) == 0) return {status.st_dev, status.st_ino, behind.filename().string()};
  std::error_code error;
  return {0, 0, std::filesystem::weakly_canonical(behind, error).string()};
}

void CheckWritable(const std::string& path, const std::vector<std::string>& sources) {
  const auto fail = [&](const std::string& why) {
    return InvalidArgument(absl::StrCat("cannot write ", path, ": ", why));
  };
  if (path.empty()) throw InvalidArgument("the path of an output file is empty");
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw fail("it is a folder");
    if (::access(path.c_str(), W_OK) != 0) throw fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) return;
    for (const std::string& source : sources) {
      if (IsSamePlace(path, source)) throw fail(absl::StrCat("it is read as well, as ", source));
    }
    if (IsDevicePath(path)) return;
  } else if (path.back() == '/') {
    throw fail("it is a folder");
  }
  const std::string folder = FolderOf(path);
  if (::stat(folder.c_str(), &status) != 0) throw fail(absl::StrCat("there is no folder ", folder));
  if (!S_ISDIR(status.st_mode)) throw fail(absl::StrCat(folder, " is not a folder"));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw fail(absl::StrCat("the folder ", folder, ": ", std::strerror(errno)));
  }
}

// Throws where what is printed would go into a file that is read or written.
void CheckStandardStreams(const std::vector<Output>& outputs, const std::vector<std::string>& sources) {
  const std::pair<int, const char*> streams[] = {{STDOUT_FILENO, "standard output"}, {STDERR_FILENO, "standard error"}};
  for (const auto& [fd, name] : streams) {
    struct stat status = {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const FilePlace place = {status.st_dev, status.st_ino, ""};
    for (const Output& output : outputs) {
      if (output.path.empty() || IsDevicePath(output.path) || PlaceOf(output.path) != place) continue;
      throw InvalidArgument(
          absl::StrCat("cannot write ", output.path, ": ", name, " goes to it too; send that elsewhere"));
    }
    for (const std::string& source : sources) {
      if (IsDevicePath(source) || PlaceOf(source) != place) continue;
      throw InvalidArgument(absl::StrCat("cannot read ", source, ": ", name, " goes to it; send that elsewhere"));
    }
  }
}

}  // namespace

bool FileExists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

bool FolderExists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsDevicePath(const std::string& path) {
  return absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/");
}

bool IsSamePlace(const std::string& first, const std::string& second) { return PlaceOf(first) == PlaceOf(second); }

void CheckOutputs(const std::vector<Output>& outputs, const std::vector<std::string>& sources) {
  for (const Output& output : outputs) {
    if (!output.path.empty() && !output.beside) CheckWritable(output.path, sources);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    for (size_t other = 0; other < k; ++other) {
      const Output& first = outputs[other];
      const Output& second = outputs[k];
      if (first.path.empty() || second.path.empty() || first.option == second.option) continue;
      struct stat status = {};
      const bool device =
          ::stat(second.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
      if (device || !IsSamePlace(first.path, second.path)) continue;
      throw InvalidArgument(absl::StrCat(first.option, " and ", second.option, " name the same file, ", second.path,
                                         ", of which only one would be left; name another"));
    }
  }
  CheckStandardStreams(outputs, sources);
}

std::vector<std::string> ParseJsonList(const std::string& json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> list;
  if (!parsed.is_array()) return list;
  for (const auto& entry : parsed) {
    if (!entry.is_string()) return {};
    list.push_back(entry.get<std::string>());
  }
  return list;
}

std::vector<std::string> ReadList(const std::string& option, const std::string& text) {
  if (!FileExists(text)) {
    if (absl::StrContains(text, '/') && !absl::StrContains(text, ',')) {
      throw NotFound(absl::StrCat(option, ": there is no file ", text));
    }
    return absl::StrSplit(text, ',');
  }
  const std::string all = ReadFileWhole(text);
  std::vector<std::string> list = ParseJsonList(all);
  if (list.empty()) {
    list = absl::StrSplit(all, '\n');
    for (std::string& line : list) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
    }
    while (!list.empty() && list.back().empty()) list.pop_back();
  }
  if (list.empty()) throw InvalidArgument(absl::StrCat(option, ": ", text, " is empty"));
  return list;
}

void WriteStdout(const std::string& text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = ReadUtf8(text.data() + at, text.data() + text.size(), &code);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
    if (length > 0 && (control || IsHidden(code))) {
      absl::StrAppendFormat(&shown, "\\u%04x", code);
    } else {
      shown.append(text, at, std::max<size_t>(1, length));
    }
    at += std::max<size_t>(1, length);
  }
  WriteStdoutAsIs(shown);
}

void WriteStdoutAsIs(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw InvalidArgument(absl::StrCat("cannot write the standard output: ", std::strerror(errno)));
  }
}

}  // namespace addend::cli

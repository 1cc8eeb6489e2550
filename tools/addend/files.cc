#include "tools/addend/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace addend::cli {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
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
      struct stat other = {};
      if (::stat(source.c_str(), &other) != 0) continue;
      if (other.st_dev == status.st_dev && other.st_ino == status.st_ino) {
        throw fail(absl::StrCat("it is read as well, as ", source));
      }
    }
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
  std::ifstream file(text, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) throw InvalidArgument(absl::StrCat(option, ": cannot read ", text));
  const std::string all = content.str();
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
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw InvalidArgument(absl::StrCat("cannot write the standard output: ", std::strerror(errno)));
  }
}

}  // namespace addend::cli

#include "core/onnx/external_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/base/text.h"

namespace addend::onnx {
namespace {

// The steps from the model's folder to a file.
std::vector<std::string> StepsOf(absl::string_view location, const std::string& where) {
  const auto refuse = [&](const char* why) {
    return InvalidArgument(absl::StrCat(where, ": its data are in ", Quoted(std::string(location)), ", ", why,
                                        "; weights are read from the model's folder and below it only"));
  };
  if (location.empty()) throw InvalidArgument(absl::StrCat(where, ": its external data have no location"));
  if (absl::StrContains(location, '\0')) throw refuse("a path with a zero in it");
  if (location.front() == '/') throw refuse("an absolute path");
  std::vector<std::string> steps;
  for (const absl::string_view step : absl::StrSplit(location, '/')) {
    if (step == "..") throw refuse("a path that leaves a folder");
    if (!step.empty() && step != ".") steps.emplace_back(step);
  }
  if (steps.empty() || location.back() == '/') throw refuse("which is a folder");
  return steps;
}

// The error for a step that cannot be opened. A link is named so: the system says of some that they are no folders.
Error NotOpened(int folder, const std::string& step, const std::string& path, const std::string& where, int error) {
  struct stat status = {};
  if (::fstatat(folder, step.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
    return InvalidArgument(absl::StrCat(where, ": its data are in ", Quoted(path), ", and ", Quoted(step),
                                        " is a symbolic link, which could lead out of the model's folder; put the "
                                        "file itself in its place"));
  }
  const Error system = FileError("read", Quoted(path), error);
  return Error(system.code(), absl::StrCat(where, ": ", system.what(), "; external data lie beside the model's file"));
}

int OpenBelow(int folder, const std::vector<std::string>& steps, const std::string& path, const std::string& where) {
  std::unique_ptr<Descriptor> inner;
  for (size_t k = 0; k + 1 < steps.size(); ++k) {
    const int fd = OpenFileAt(folder, steps[k], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0) throw NotOpened(folder, steps[k], path, where, errno);
    inner = std::make_unique<Descriptor>(fd);
    folder = fd;
  }
  // Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
  const int fd = OpenFileAt(folder, steps.back(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (fd < 0) throw NotOpened(folder, steps.back(), path, where, errno);
  return fd;
}

// Throws where a file is not the model's own.
void RequireOwn(int fd, const std::string& path, const std::string& where) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) throw FileError("read", Quoted(path), errno);
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgument(absl::StrCat(where, ": its data are in ", Quoted(path), ", which is no regular file"));
  }
  if (status.st_nlink > 1) {
    throw InvalidArgument(absl::StrCat(where, ": its data are in ", Quoted(path), ", which has ", status.st_nlink,
                                       " names (hard links), so that it could be a file from outside the model's "
                                       "folder; put a copy in its place"));
  }
}

}  // namespace

ExternalFiles::ExternalFiles(const std::string& path) {
  const size_t slash = path.rfind('/');
  folder_ = slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

const weights::Bytes& ExternalFiles::Map(absl::string_view location, const std::string& where,
                                         weights::MemoryBudget* budget) {
  if (folder_.empty()) {
    throw FailedPrecondition(absl::StrCat(where, ": its data are in another file, ", Quoted(std::string(location)),
                                          ", and a model that is given as bytes has no folder; load it from its file"));
  }
  const std::vector<std::string> steps = StepsOf(location, where);
  std::string path = absl::StrJoin(steps, "/");
  const auto found = places_.find(path);
  if (found != places_.end()) return files_[found->second].bytes;
  if (descriptor_ == nullptr) {
    const int fd = OpenFile(folder_, O_RDONLY | O_DIRECTORY);
    if (fd < 0) throw FileError("open the folder", OneLine(folder_), errno);
    descriptor_ = std::make_unique<Descriptor>(fd);
  }
  auto file = std::make_unique<Descriptor>(OpenBelow(descriptor_->get(), steps, path, where));
  RequireOwn(file->get(), path, where);
  budget->Take(3 * sizeof(ExternalFile) + weights::kMapNodeCost + 3 * path.size());
  const int fd = file->Release();
  ExternalFile external{path, weights::BytesOf(std::make_shared<weights::MappedFile>(fd, OneLine(path)))};
  budget->AddFile(external.bytes.size);
  places_.emplace(std::move(path), files_.size());
  files_.push_back(std::move(external));
  return files_.back().bytes;
}

}  // namespace addend::onnx

#include "core/weights/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/base/text.h"

namespace addend::weights {
namespace {

int64_t WrittenAt(const struct stat& status) {
  return static_cast<int64_t>(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : MappedFile(OpenToRead(path), path) {}

MappedFile::MappedFile(int fd, const std::string& path) : path_(path), file_(fd) {
  struct stat status = {};
  if (::fstat(file_.get(), &status) != 0) throw FileError("read", path, errno);
  if (status.st_size <= 0) throw InvalidArgument(absl::StrCat(path, ": the file is empty"));
  size_ = static_cast<size_t>(status.st_size);
  written_ = WrittenAt(status);
  // MAP_NORESERVE: pages are copied where they are written to, which of weights hardly any is.
  void* data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file_.get(), 0);
  if (data == MAP_FAILED) throw FileError("read", path, errno);
  data_ = static_cast<char*>(data);
}

MappedFile::~MappedFile() { ::munmap(data_, size_); }

void MappedFile::RequireUnchanged() const {
  struct stat status = {};
  if (::fstat(file_.get(), &status) != 0) throw FileError("read", path_, errno);
  if (static_cast<size_t>(status.st_size) == size_ && WrittenAt(status) == written_) return;
  throw FailedPrecondition(
      absl::StrCat(OneLine(path_), " was written since the model was loaded, whose weights are read from ",
                   "it while they are used; load the model again, and put new files in place by ", "renaming them"));
}

Bytes BytesOf(std::shared_ptr<MappedFile> file) {
  Bytes bytes;
  bytes.data = file->data();
  bytes.size = file->size();
  bytes.file = file;
  bytes.owner = std::move(file);
  return bytes;
}

Bytes MapFile(const std::string& path) { return BytesOf(std::make_shared<MappedFile>(path)); }

}  // namespace addend::weights

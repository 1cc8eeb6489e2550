#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/file_error.h"

namespace addend {

bool Descriptor::Close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

int OpenToRead(const std::string& path, uint64_t* size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw FileError("open", path, errno);
  struct stat status = {};
  if (::fstat(fd, &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      ::close(fd);
      throw InvalidArgument(absl::StrCat("cannot read ", path, ": it is a folder; name a file"));
    }
    if (size != nullptr && S_ISREG(status.st_mode)) *size = static_cast<uint64_t>(status.st_size);
  }
  return fd;
}

std::string ReadAt(int fd, const std::string& path, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  for (uint64_t done = 0; done < size;) {
    const ssize_t got = ::pread(fd, &bytes[done], size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("read", path, errno);
    if (got == 0) throw InvalidArgument(absl::StrCat("cannot read ", path, ": it became shorter meanwhile"));
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

int WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(fd, data, size);
    if (done < 0 && errno != EINTR) return errno;
    if (done <= 0) continue;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return 0;
}

void MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw FileError("make the folder", path, error.value());
}

void SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) ::fsync(file.get());
}

}  // namespace addend

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

int Descriptor::Release() { return std::exchange(fd_, -1); }

void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one.
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO) ::close(opened);
  }
}

int OpenFileAt(int folder, const std::string& path, int flags, mode_t mode) {
  if (path.find('\0') != std::string::npos) {
    errno = ENOENT;
    return -1;
  }
  const int fd = ::openat(folder, path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int behind = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return behind;
}

int OpenFile(const std::string& path, int flags, mode_t mode) { return OpenFileAt(AT_FDCWD, path, flags, mode); }

int OpenToRead(const std::string& path, uint64_t* size) {
  // Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
  const int fd = OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) throw FileError("open", path, errno);
  struct stat status = {};
  const char* what = nullptr;
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    throw FileError("read", path, error);
  }
  if (S_ISDIR(status.st_mode)) {
    what = "it is a folder; name a file";
  } else if (!S_ISREG(status.st_mode)) {
    what = "it is no regular file, but a pipe or a device, which may have no end; write its content to a file first";
  }
  if (what != nullptr) {
    ::close(fd);
    throw InvalidArgument(absl::StrCat("cannot read ", path, ": ", what));
  }
  if (size != nullptr) *size = static_cast<uint64_t>(status.st_size);
  return fd;
}

std::string ReadAt(int fd, const std::string& path, uint64_t offset, uint64_t size) {
  std::string bytes;
  if (size > bytes.max_size()) throw FileError("read", path, EFBIG);
  bytes.resize(size);
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
  const Descriptor file(OpenFile(folder, O_RDONLY | O_DIRECTORY));
  if (file.get() >= 0) ::fsync(file.get());
}

}  // namespace addend

// Files by their descriptors: opened, read by ranges, written as a whole, made to last.
//
// Note [Standard descriptors]
// Daemons start programs with the descriptors 0, 1 and 2 closed. The next file that is opened then becomes standard
// output, and whatever anybody prints is written into it. So no file is opened by those numbers: programs put /dev/null
// there first (OpenStandardStreams), and the library, whose program it does not know, moves its files behind them.
#ifndef ADDEND_CORE_BASE_FILE_H_
#define ADDEND_CORE_BASE_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace addend {

// Closes what it owns.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  // Whether closing succeeded: some file systems report a full disk only here.
  bool Close();
  // Gives it away, unclosed.
  int Release();

 private:
  int fd_;
};

// Opens /dev/null in place of standard input, output and error where they are closed; see Note [Standard descriptors].
// Every program calls this before anything else.
void OpenStandardStreams();
// ::open() with O_CLOEXEC, whose descriptor is never that of standard input, output or error. Gives -1, and errno.
int OpenFile(const std::string& path, int flags, mode_t mode = 0666);
// OpenFile(), for a path that is relative to an open folder.
int OpenFileAt(int folder, const std::string& path, int flags, mode_t mode = 0666);
// A file opened for reading; `size` is what it holds, in bytes, and the most that may be read of it. Throws NotFound if
// there is no such file, and InvalidArgument for whatever is no regular file behind its links (a folder, a pipe, a
// device: such may have no end), or cannot be opened.
int OpenToRead(const std::string& path, uint64_t* size = nullptr);
// So many bytes from there on. `path` stands in messages. Throws InvalidArgument where the file is shorter, or cannot
// be read.
std::string ReadAt(int fd, const std::string& path, uint64_t offset, uint64_t size);
// Writes all bytes where the file stands. Gives 0, or errno.
int WriteAll(int fd, const char* data, size_t size);
// Makes a folder and those that it is in, unless they are there. Throws InvalidArgument where that fails.
void MakeFolder(const std::string& path);
// Makes the names in the folder of a file last. Some file systems cannot, and need not.
void SyncFolderOf(const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_FILE_H_

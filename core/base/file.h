// Files by their descriptors: opened, read by ranges, written as a whole, made to last.
#ifndef ADDEND_CORE_BASE_FILE_H_
#define ADDEND_CORE_BASE_FILE_H_

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

 private:
  int fd_;
};

// A file opened for reading; `size` is what a regular file holds, in bytes, else 0. Throws NotFound if there is no such
// file, and InvalidArgument for a folder and for whatever else cannot be opened.
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

// Files of weights, mapped into memory, and the ranges of bytes in them.
#ifndef ADDEND_CORE_WEIGHTS_MAPPED_FILE_H_
#define ADDEND_CORE_WEIGHTS_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/file.h"

namespace addend::weights {

// A regular file, mapped copy-on-write: what is written to the bytes stays in this process. Pages are read from the
// disk when they are touched, so that what others write to the file shows in the bytes. The file must not be shortened
// while it is mapped, which would end the process at the first touch of what is missing. A file that is put in its
// place by renaming is another file, and disturbs nobody.
class MappedFile {
 public:
  // Throws NotFound if there is no such file, and InvalidArgument for what is no regular file or empty.
  explicit MappedFile(const std::string& path);
  // Maps a regular file that was opened for reading, and closes it in the end; `path` stands in messages.
  MappedFile(int fd, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }
  // Throws FailedPrecondition where the file was written since it was mapped.
  void RequireUnchanged() const;

 private:
  std::string path_;
  Descriptor file_;
  char* data_ = nullptr;
  size_t size_ = 0;
  int64_t written_ = 0;  // when, in nanoseconds
};

// Bytes, and what keeps them in memory; nothing does where the caller has to.
struct Bytes {
  char* data = nullptr;
  size_t size = 0;
  std::shared_ptr<void> owner;
  std::shared_ptr<const MappedFile> file = nullptr;  // whose bytes they are; null: of no file
};

// The bytes of a MappedFile.
Bytes MapFile(const std::string& path);
// The bytes of a file that is mapped already.
Bytes BytesOf(std::shared_ptr<MappedFile> file);

}  // namespace addend::weights

#endif  // ADDEND_CORE_WEIGHTS_MAPPED_FILE_H_

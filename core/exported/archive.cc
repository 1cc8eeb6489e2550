#include "core/exported/archive.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend::exported {
namespace {

constexpr uint32_t kStored = 0;
constexpr uint32_t kDeflated = 8;
constexpr uint16_t kEncrypted = 1;     // bit of an entry's flags
constexpr size_t kLongestName = 4096;  // in bytes
constexpr uint64_t kEntryCost = 256;   // of an entry in our list, without its name

// --------------------------------------------------------------------------------------- what minizip reads from

// minizip reads files through functions; these read memory.
struct Source {
  const Bytes* bytes;
  uint64_t position = 0;
};

voidpf OpenSource(voidpf opaque, const void* /*name*/, int /*mode*/) { return opaque; }

uLong ReadSource(voidpf /*opaque*/, voidpf stream, void* buffer, uLong count) {
  auto& source = *static_cast<Source*>(stream);
  const uint64_t left = source.bytes->size - std::min<uint64_t>(source.position, source.bytes->size);
  const uint64_t read = std::min<uint64_t>(count, left);
  if (read > 0) std::memcpy(buffer, source.bytes->data + source.position, read);
  source.position += read;
  return static_cast<uLong>(read);
}

uLong WriteSource(voidpf /*opaque*/, voidpf /*stream*/, const void* /*buffer*/, uLong /*count*/) { return 0; }

ZPOS64_T TellSource(voidpf /*opaque*/, voidpf stream) { return static_cast<Source*>(stream)->position; }

long SeekSource(voidpf /*opaque*/, voidpf stream, ZPOS64_T offset, int origin) {
  auto& source = *static_cast<Source*>(stream);
  uint64_t from = 0;
  if (origin == ZLIB_FILEFUNC_SEEK_CUR) from = source.position;
  if (origin == ZLIB_FILEFUNC_SEEK_END) from = source.bytes->size;
  // An offset that wraps is one beyond the end.
  if (offset > source.bytes->size || from > source.bytes->size - offset) return -1;
  source.position = from + offset;
  return 0;
}

int CloseSource(voidpf /*opaque*/, voidpf /*stream*/) { return 0; }
int SourceError(voidpf /*opaque*/, voidpf /*stream*/) { return 0; }

// A zip archive opened by minizip.
class Unzip {
 public:
  explicit Unzip(const Bytes& bytes) : source_{&bytes} {
    zlib_filefunc64_def functions = {};
    functions.zopen64_file = OpenSource;
    functions.zread_file = ReadSource;
    functions.zwrite_file = WriteSource;
    functions.ztell64_file = TellSource;
    functions.zseek64_file = SeekSource;
    functions.zclose_file = CloseSource;
    functions.zerror_file = SourceError;
    functions.opaque = &source_;
    file_ = unzOpen2_64("", &functions);
  }
  ~Unzip() {
    if (file_ != nullptr) unzClose(file_);
  }
  Unzip(const Unzip&) = delete;
  Unzip& operator=(const Unzip&) = delete;

  unzFile get() const { return file_; }

 private:
  Source source_;
  unzFile file_ = nullptr;
};

uint32_t Checksum(const char* data, size_t size) {
  uLong checksum = crc32(0, nullptr, 0);
  while (size > 0) {
    const auto piece = static_cast<uInt>(std::min<size_t>(size, size_t{1} << 30));
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(data), piece);
    data += piece;
    size -= piece;
  }
  return static_cast<uint32_t>(checksum);
}

// Unpacks from memory to memory: all bytes of `from`, exactly `size` of them.
bool Inflate(const char* from, uint64_t compressed, char* to, uint64_t size) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr uint64_t kPiece = uint64_t{1} << 30;
  int status = Z_OK;
  char beyond = 0;  // of what has no room
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
  stream.next_out = reinterpret_cast<Bytef*>(to);
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(compressed, kPiece));
      compressed -= stream.avail_in;
    }
    const bool full = size == 0 && stream.avail_out == 0;
    if (full) {
      stream.next_out = reinterpret_cast<Bytef*>(&beyond);
      stream.avail_out = 1;
    } else if (stream.avail_out == 0) {
      stream.avail_out = static_cast<uInt>(std::min(size, kPiece));
      size -= stream.avail_out;
    }
    status = inflate(&stream, Z_NO_FLUSH);
    if (full) {
      // The end of the stream may still have to be read; another byte may not.
      if (stream.avail_out == 0) status = Z_DATA_ERROR;
      stream.avail_out = 0;
    }
  }
  const bool whole =
      status == Z_STREAM_END && size == 0 && stream.avail_out == 0 && compressed == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  return whole;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------- files

Bytes MapFile(const std::string& path) {
  const auto fail = [&](int error) {
    const std::string message = absl::StrCat("cannot read ", path, ": ", std::generic_category().message(error));
    return error == ENOENT || error == ENOTDIR ? NotFound(message) : InvalidArgument(message);
  };
  // Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw fail(errno);
  struct stat status = {};
  if (::fstat(file, &status) != 0) {
    const int error = errno;
    ::close(file);
    throw fail(error);
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
    ::close(file);
    throw InvalidArgument(absl::StrCat(path, S_ISREG(status.st_mode) ? ": the file is empty" : ": is no regular file"));
  }
  const auto size = static_cast<size_t>(status.st_size);
  // MAP_NORESERVE: pages are copied where they are written to, which of weights hardly any is.
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  const int error = errno;
  ::close(file);
  if (data == MAP_FAILED) throw fail(error);
  Bytes bytes;
  bytes.data = static_cast<char*>(data);
  bytes.size = size;
  bytes.owner = std::shared_ptr<void>(data, [size](void* mapped) { ::munmap(mapped, size); });
  return bytes;
}

// ----------------------------------------------------------------------------------------------------------- archive

Archive::Archive(Bytes bytes, const std::string& name, MemoryBudget* budget)
    : bytes_(std::move(bytes)), name_(OneLine(name)), budget_(budget) {
  ReadDirectory();
}

void Archive::ReadDirectory() {
  const Unzip unzip(bytes_);
  if (unzip.get() == nullptr) {
    throw InvalidArgument(absl::StrCat(name_, ": is no zip archive, or is truncated"));
  }
  std::map<std::string, Entry> entries;
  std::string common;  // the folder of the first entry, with its slash
  bool one_folder = true;
  std::string name(kLongestName + 1, '\0');
  int status = unzGoToFirstFile(unzip.get());
  unz_global_info64 global = {};
  if (unzGetGlobalInfo64(unzip.get(), &global) == UNZ_OK && global.number_entry == 0) status = UNZ_END_OF_LIST_OF_FILE;
  for (; status == UNZ_OK; status = unzGoToNextFile(unzip.get())) {
    unz_file_info64 info = {};
    unz64_file_pos place = {};
    if (unzGetCurrentFileInfo64(unzip.get(), &info, name.data(), name.size(), nullptr, 0, nullptr, 0) != UNZ_OK ||
        unzGetFilePos64(unzip.get(), &place) != UNZ_OK) {
      status = UNZ_BADZIPFILE;
      break;
    }
    const uint64_t length = info.size_filename;
    if (length > kLongestName || name.find('\0') != length) {
      throw InvalidArgument(absl::StrCat(name_, ": entry ", entries.size() + 1, " has a name that is longer than ",
                                         kLongestName, " bytes or holds a zero"));
    }
    const std::string own = name.substr(0, length);
    if (absl::EndsWith(own, "/")) continue;                       // a folder
    const std::string folder = own.substr(0, own.find('/') + 1);  // none: "", as npos + 1 is 0
    if (entries.empty()) common = folder;
    one_folder = one_folder && folder == common && !folder.empty();
    Entry entry;
    entry.directory_offset = place.pos_in_zip_directory;
    entry.number = place.num_of_file;
    entry.compressed = info.compressed_size;
    entry.size = info.uncompressed_size;
    entry.checksum = static_cast<uint32_t>(info.crc);
    entry.method = static_cast<uint32_t>(info.compression_method);
    entry.encrypted = (info.flag & kEncrypted) != 0;
    budget_->Take(kEntryCost + 2 * length);
    if (!entries.emplace(own, entry).second) {
      throw InvalidArgument(absl::StrCat(name_, ": has two entries with the name ", OneLine(own)));
    }
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) {
    throw InvalidArgument(
        absl::StrCat(name_, ": the list of the zip archive's entries is damaged after entry ", entries.size()));
  }
  if (!one_folder) {
    entries_ = std::move(entries);
    return;
  }
  for (auto& entry : entries) entries_.emplace(entry.first.substr(common.size()), entry.second);
}

std::vector<std::string> Archive::Names(const std::string& prefix) const {
  std::vector<std::string> names;
  for (auto entry = entries_.lower_bound(prefix); entry != entries_.end(); ++entry) {
    if (!absl::StartsWith(entry->first, prefix)) break;
    names.push_back(entry->first);
  }
  return names;
}

std::string Archive::Place(const std::string& entry) const { return absl::StrCat(name_, ": ", OneLine(entry)); }

Bytes Archive::Read(const std::string& entry) const { return Content(entry, /*compare=*/true); }

Bytes Archive::Map(const std::string& entry) const { return Content(entry, /*compare=*/false); }

Bytes Archive::Content(const std::string& name, bool compare) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw InvalidArgument(absl::StrCat(name_, ": has no entry ", OneLine(name), "; the archive is incomplete"));
  }
  const Entry& entry = found->second;
  const auto fail = [&](const std::string& what) { return InvalidArgument(absl::StrCat(Place(name), ": ", what)); };
  if (entry.encrypted) throw fail("is encrypted; write the archive without a password");
  if (entry.method != kStored && entry.method != kDeflated) {
    throw fail(absl::StrCat("is compressed by method ", entry.method, "; only stored and deflated entries are read"));
  }
  // minizip compares the entry's own header with the list, and finds where the data begin.
  const Unzip unzip(bytes_);
  unz64_file_pos place = {};
  place.pos_in_zip_directory = entry.directory_offset;
  place.num_of_file = entry.number;
  int method = 0;
  int level = 0;
  if (unzip.get() == nullptr || unzGoToFilePos64(unzip.get(), &place) != UNZ_OK ||
      unzOpenCurrentFile2(unzip.get(), &method, &level, /*raw=*/1) != UNZ_OK) {
    throw fail("the entry's header is damaged, or not what the archive's list says");
  }
  const uint64_t begin = unzGetCurrentFileZStreamPos64(unzip.get());
  if (begin > bytes_.size || entry.compressed > bytes_.size - begin) {
    throw fail(absl::StrCat("is truncated: it should have ", entry.compressed, " bytes"));
  }
  Bytes content;
  content.size = entry.size;
  if (entry.method == kStored) {
    if (entry.size != entry.compressed) throw fail("is stored, and yet its two sizes differ");
    content.data = bytes_.data + begin;
    content.owner = bytes_.owner;
  } else {
    budget_->Take(entry.size);
    const std::shared_ptr<char> memory(new char[entry.size + 1], std::default_delete<char[]>());
    if (!Inflate(bytes_.data + begin, entry.compressed, memory.get(), entry.size)) {
      throw fail("is damaged: what is compressed cannot be unpacked");
    }
    content.data = memory.get();
    content.owner = memory;
    compare = true;
  }
  if (compare && Checksum(content.data, content.size) != entry.checksum) throw fail("is damaged: its checksum differs");
  return content;
}

}  // namespace addend::exported

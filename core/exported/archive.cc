#include "core/exported/archive.h"

#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/crc32.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend::exported {
namespace {

constexpr uint32_t kNoChecksum = 0;  // what torch writes where it is told to compute none
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kEncrypted = 0x2041;  // bits of an entry's flags: encrypted, strongly, with its headers
constexpr size_t kLongestName = 4096;    // in bytes
constexpr uint64_t kEntryCost = 256;     // of an entry in our list, without its name

// Signatures of the parts of a ZIP archive, and the sizes of their headers without the fields of varying length.
constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint64_t kLocalSize = 30;
constexpr uint32_t kCentralMark = 0x02014b50;
constexpr uint64_t kCentralSize = 46;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint64_t kEndSize = 22;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint64_t kEnd64Size = 56;
constexpr uint32_t kLocatorMark = 0x07064b50;
constexpr uint64_t kLocatorSize = 20;
constexpr uint64_t kLongestComment = 0xffff;

// Numbers that say: look for 64 bits elsewhere.
constexpr uint64_t kIn64 = 0xffffffff;
constexpr uint64_t kCountIn64 = 0xffff;
constexpr uint64_t kFieldOf64 = 1;

// Reads little-endian numbers one after the other.
class Fields {
 public:
  // Whoever makes one has seen that there are `size` bytes.
  Fields(const char* data, uint64_t size) : at_(data), end_(data + size) {}

  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  // Bytes that are not there are zero.
  uint64_t Number(uint64_t bytes) {
    uint64_t number = 0;
    const uint64_t there = std::min(bytes, left());
    for (uint64_t k = there; k-- > 0;) number = number << 8 | static_cast<unsigned char>(at_[k]);
    at_ += there;
    return number;
  }
  void Skip(uint64_t bytes) { at_ += std::min(bytes, left()); }

 private:
  const char* at_;
  const char* end_;
};

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

Archive::Archive(Bytes bytes, const std::string& name, MemoryBudget* budget)
    : bytes_(std::move(bytes)), name_(OneLine(name)), budget_(budget) {
  ReadDirectory();
  if (bytes_.file != nullptr) AskForHeaders();
}

void Archive::Damaged(const std::string& what) const { throw InvalidArgument(absl::StrCat(name_, ": ", what)); }

bool Archive::HasMark(uint64_t place, uint64_t size, uint32_t mark) const {
  return place <= bytes_.size && size <= bytes_.size - place && Fields(bytes_.data + place, 4).Number(4) == mark;
}

Archive::Directory Archive::FindDirectory() const {
  // The record at the end, behind which only its own comment stands.
  uint64_t end = bytes_.size;
  for (uint64_t comment = 0; comment <= kLongestComment && kEndSize + comment <= bytes_.size; ++comment) {
    const uint64_t place = bytes_.size - kEndSize - comment;
    if (HasMark(place, kEndSize, kEndMark) && Fields(bytes_.data + place + 20, 2).Number(2) == comment) {
      end = place;
      break;
    }
  }
  if (end == bytes_.size) Damaged("is no zip archive, or is truncated");
  Fields fields(bytes_.data + end + 4, kEndSize - 4);
  Directory directory;
  bool one_disk = fields.Number(2) == 0 && fields.Number(2) == 0;
  const uint64_t here = fields.Number(2);
  directory.count = fields.Number(2);
  directory.size = fields.Number(4);
  directory.begin = fields.Number(4);
  bool whole = here == directory.count;
  uint64_t after = end;
  // Writers may add the record of 64 bits also where 32 suffice, as torch does.
  if (end >= kLocatorSize && HasMark(end - kLocatorSize, kLocatorSize, kLocatorMark)) {
    Fields locator(bytes_.data + end - kLocatorSize + 4, kLocatorSize - 4);
    one_disk = one_disk && locator.Number(4) == 0;
    after = locator.Number(8);
    if (!HasMark(after, kEnd64Size, kEnd64Mark)) Damaged("the zip archive's record of 64 bits is damaged");
    Fields record(bytes_.data + after + 4, kEnd64Size - 4);
    record.Skip(12);  // its size, versions
    one_disk = one_disk && record.Number(4) == 0 && record.Number(4) == 0;
    const uint64_t here64 = record.Number(8);
    Directory in64;
    in64.count = record.Number(8);
    in64.size = record.Number(8);
    in64.begin = record.Number(8);
    whole = here64 == in64.count;
    // Two readers must not see two archives.
    const auto same = [](uint64_t short_number, uint64_t number, uint64_t most) {
      return short_number == number || short_number == most;
    };
    if (!same(directory.count, in64.count, kCountIn64) || !same(directory.size, in64.size, kIn64) ||
        !same(directory.begin, in64.begin, kIn64)) {
      Damaged("the zip archive's records of 32 and of 64 bits differ");
    }
    directory = in64;
  }
  if (!one_disk || !whole) Damaged("is a part of a zip archive; join its parts");
  if (directory.begin > after || directory.size != after - directory.begin) {
    Damaged("the list of the zip archive's entries is not where the archive says; it is truncated or damaged");
  }
  return directory;
}

void Archive::ReadDirectory() {
  const Directory directory = FindDirectory();
  std::map<std::string, Entry> entries;
  std::string common;  // the folder of the first entry, with its slash
  bool one_folder = true;
  uint64_t at = directory.begin;
  const uint64_t end = directory.begin + directory.size;
  for (uint64_t number = 1; number <= directory.count; ++number) {
    if (end - at < kCentralSize || !HasMark(at, kCentralSize, kCentralMark)) {
      Damaged(absl::StrCat("the list of the zip archive's entries is damaged at entry ", number));
    }
    Entry entry;
    Fields fields(bytes_.data + at + 4, kCentralSize - 4);
    fields.Skip(4);  // versions
    entry.flags = static_cast<uint16_t>(fields.Number(2));
    entry.method = static_cast<uint16_t>(fields.Number(2));
    fields.Skip(4);  // time
    entry.checksum = static_cast<uint32_t>(fields.Number(4));
    entry.compressed = fields.Number(4);
    entry.size = fields.Number(4);
    const uint64_t name_size = fields.Number(2);
    const uint64_t extra_size = fields.Number(2);
    const uint64_t comment_size = fields.Number(2);
    fields.Skip(8);  // disk, attributes
    entry.place = fields.Number(4);
    at += kCentralSize;
    if (end - at < name_size + extra_size + comment_size) {
      Damaged(absl::StrCat("the list of the zip archive's entries is damaged at entry ", number));
    }
    const std::string own(bytes_.data + at, name_size);
    if (name_size > kLongestName || own.find('\0') != std::string::npos) {
      Damaged(
          absl::StrCat("entry ", number, " has a name that is longer than ", kLongestName, " bytes or holds a zero"));
    }
    for (Fields extra(bytes_.data + at + name_size, extra_size); extra.left() >= 4;) {
      const uint64_t kind = extra.Number(2);
      const uint64_t size = std::min(extra.Number(2), extra.left());
      Fields field(bytes_.data + at + name_size + (extra_size - extra.left()), size);
      extra.Skip(size);
      if (kind != kFieldOf64) continue;
      for (uint64_t* value : {&entry.size, &entry.compressed, &entry.place}) {
        if (*value == kIn64 && field.left() >= 8) *value = field.Number(8);
      }
    }
    at += name_size + extra_size + comment_size;
    if (absl::EndsWith(own, "/")) continue;                       // a folder
    const std::string folder = own.substr(0, own.find('/') + 1);  // none: "", as npos + 1 is 0
    if (entries.empty()) common = folder;
    one_folder = one_folder && folder == common && !folder.empty();
    entry.name_size = static_cast<uint16_t>(name_size);
    budget_->Take(kEntryCost + 2 * name_size);
    if (!entries.emplace(own, entry).second) {
      Damaged(absl::StrCat("has two entries with the name ", OneLine(own)));
    }
  }
  directory_ = directory.begin;
  if (at != end) Damaged("the list of the zip archive's entries is longer than they are");
  if (!one_folder) {
    entries_ = std::move(entries);
    return;
  }
  for (auto& entry : entries) entries_.emplace(entry.first.substr(common.size()), entry.second);
}

// The disk reads the headers of all entries at once, and nothing around them. Touched one after the other, each would
// be waited for, with what lies around it.
void Archive::AskForHeaders() const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& [name, entry] : entries_) {
    if (entry.place > bytes_.size || bytes_.size - entry.place < kLocalSize) continue;  // Content() refuses it
    const uint64_t begin = entry.place - entry.place % page;
    // Advice: where the system does not take it, loading is slower and right.
    ::madvise(bytes_.data + begin, entry.place + kLocalSize - begin, MADV_WILLNEED);
  }
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

Bytes Archive::ReadWithin(const std::string& entry) const { return Content(entry, /*compare=*/false); }

void Archive::RequireWhole() const {
  for (const auto& entry : entries_) {
    const uint64_t left = budget_->left();
    Content(entry.first, /*compare=*/true);
    budget_->GiveBackTo(left);
  }
}

size_t Archive::CountUnchecked() const {
  size_t count = 0;
  for (const auto& entry : entries_) count += entry.second.size > 0 && entry.second.checksum == kNoChecksum ? 1 : 0;
  return count;
}

std::vector<std::string> Archive::Notes() const {
  const size_t unchecked = CountUnchecked();
  if (unchecked == 0) return {};
  return {absl::StrCat(unchecked, unchecked == 1 ? " entry of the file has" : " entries of the file have",
                       " no checksum, so that damage there is not seen")};
}

void Archive::RequireLittleEndian() const {
  constexpr char kEntry[] = "byteorder";
  if (!Has(kEntry)) return;
  const Bytes order = Read(kEntry);
  if (absl::string_view(order.data, order.size) == "little") return;
  throw InvalidArgument(
      absl::StrCat(Place(kEntry), ": the tensors are not little-endian; save the model on such a machine"));
}

Bytes Archive::Content(const std::string& name, bool compare) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw InvalidArgument(absl::StrCat(name_, ": has no entry ", OneLine(name), "; the archive is incomplete"));
  }
  const Entry& entry = found->second;
  const auto fail = [&](const std::string& what) { return InvalidArgument(absl::StrCat(Place(name), ": ", what)); };
  if ((entry.flags & kEncrypted) != 0) throw fail("is encrypted; write the archive without a password");
  if (entry.method != kStored && entry.method != kDeflated) {
    throw fail(absl::StrCat("is compressed by method ", entry.method, "; only stored and deflated entries are read"));
  }
  // The entry's own header, which repeats what the list says, and may be longer.
  const bool there = HasMark(entry.place, kLocalSize, kLocalMark) && entry.place < directory_;
  Fields fields(bytes_.data + (there ? entry.place : 0), there ? kLocalSize : 0);
  fields.Skip(6);
  const bool same = fields.Number(2) == entry.flags && fields.Number(2) == entry.method;
  fields.Skip(16);
  const uint64_t name_size = fields.Number(2);
  const uint64_t extra_size = fields.Number(2);
  if (!there || !same || name_size != entry.name_size) {
    throw fail("the entry's header is damaged, or not what the archive's list says");
  }
  const uint64_t begin = entry.place + kLocalSize + name_size + extra_size;
  if (begin > directory_ || entry.compressed > directory_ - begin) {
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
  if (compare && entry.checksum != kNoChecksum && Crc32(content.data, content.size) != entry.checksum) {
    throw fail("is damaged: its checksum differs; copy or download the file again");
  }
  return content;
}

}  // namespace addend::exported

// Zip archives in memory, read within bounds: those of torch.export, and those of torch.save inside them.
//
// Archives come from anywhere. Names of entries are only compared, never used as paths; sizes are believed only where
// the bytes are there; what is read of an entry is compared with its checksum.
#ifndef ADDEND_CORE_EXPORTED_ARCHIVE_H_
#define ADDEND_CORE_EXPORTED_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/weights/mapped_file.h"
#include "core/weights/memory_budget.h"

namespace addend::exported {

using weights::Bytes;
using weights::MemoryBudget;

class Archive {
 public:
  // Reads the list of entries. `name` stands for the archive in messages. If all entries lie in one folder, names are
  // those within it. Throws InvalidArgument for what is no zip archive, or has a name twice.
  Archive(Bytes bytes, const std::string& name, MemoryBudget* budget);

  const std::string& name() const { return name_; }
  bool Has(const std::string& entry) const { return entries_.count(entry) != 0; }
  // Names that begin so, in alphabetical order.
  std::vector<std::string> Names(const std::string& prefix) const;
  // An entry as messages name it: "model.pt2: models/model.json".
  std::string Place(const std::string& entry) const;

  // The content of an entry, compared with its checksum, unless it has none: torch can be told to compute none, and
  // then writes 0. A stored entry is not copied: its bytes are those of the archive, with the archive's owner. A
  // compressed one is unpacked into memory of its own. Throws InvalidArgument where there is no such entry, or it is
  // damaged, encrypted or compressed in another way.
  Bytes Read(const std::string& entry) const;
  // Reads without a comparison of stored entries, for an archive that is itself an entry of one, and was compared.
  Bytes ReadWithin(const std::string& entry) const;
  // Compares all entries with their checksums. Throws what Read() throws for the first that is damaged.
  void RequireWhole() const;
  // How many entries hold something and have no checksum.
  size_t CountUnchecked() const;
  // Notes for a reader of the result; one if CountUnchecked() is not 0.
  std::vector<std::string> Notes() const;
  // Throws InvalidArgument where the entry "byteorder", as torch writes it, says that numbers are big-endian.
  void RequireLittleEndian() const;

 private:
  struct Entry {
    uint64_t place = 0;  // of its own header
    uint64_t compressed = 0;
    uint64_t size = 0;
    uint32_t checksum = 0;
    uint16_t method = 0;
    uint16_t flags = 0;
    uint16_t name_size = 0;
  };
  // The list of entries, at the end of an archive.
  struct Directory {
    uint64_t begin = 0;
    uint64_t size = 0;
    uint64_t count = 0;
  };

  [[noreturn]] void Damaged(const std::string& what) const;
  bool HasMark(uint64_t place, uint64_t size, uint32_t mark) const;
  Directory FindDirectory() const;
  void ReadDirectory();
  void AskForHeaders() const;
  Bytes Content(const std::string& entry, bool compare) const;

  Bytes bytes_;
  std::string name_;
  MemoryBudget* budget_;
  uint64_t directory_ = 0;  // where the list begins, behind all entries
  std::map<std::string, Entry> entries_;
};

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_ARCHIVE_H_

// Archives and exported programs for tests, made by hand: also such as no writer makes.
#ifndef ADDEND_CORE_EXPORTED_ARCHIVE_TESTING_H_
#define ADDEND_CORE_EXPORTED_ARCHIVE_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend::exported {

// One entry of a zip archive, and how its headers lie.
struct ZipEntry {
  std::string name;
  std::string content;
  bool deflated = false;
  uint32_t alignment = 64;  // of the content of stored entries, as torch writes them
  uint16_t flags = 0;       // 1: encrypted
  int method = -1;          // another than it is
  int64_t claimed = -1;     // the size of the content that the headers say
  bool wrong_checksum = false;
  bool no_checksum = false;  // 0, as torch writes where it computes none
};

struct ZipOptions {
  bool zip64 = false;  // sizes and places in 64 bits
  std::string before;  // bytes in front of the archive
};

// The bytes of an archive.
std::string WriteZip(const std::vector<ZipEntry>& entries, const ZipOptions& options = {});
// The entries of an archive that WriteZip or torch wrote, stored or deflated, with their contents unpacked.
std::vector<ZipEntry> SplitZip(const std::string& archive);

// Parts of an archive of torch 2.9 and newer: y = relu(x * w) + b with a parameter, a buffer and a free size.
struct ProgramParts {
  Json program;
  Json weights;  // the configs
  Json constants;
  std::string weight;  // float32, 2 x 3
  std::string buffer;  // float32, 3

  ProgramParts();
  std::vector<ZipEntry> Entries() const;
  std::string Archive() const { return WriteZip(Entries()); }
};

// The pickle of torch.save for a dict of one float32 tensor of 2 x 3, as torch writes it: {"w": tensor}.
std::string SavedPickle();
// The archive of torch.save that holds a pickle and the bytes of storage 0.
std::string SavedArchive(const std::string& pickle, const std::string& storage);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_ARCHIVE_TESTING_H_

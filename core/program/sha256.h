// SHA-256 (FIPS 180-4), by which records of a run name their files.
#ifndef ADDEND_CORE_PROGRAM_SHA256_H_
#define ADDEND_CORE_PROGRAM_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace addend {

// A digest of bytes that come in pieces. It tells files apart; it is not meant for secrets.
class Sha256Digest {
 public:
  void Add(const char* data, size_t size);
  // The digest of all that was added, as 64 lower-case hexadecimal digits; nothing may be added afterwards.
  std::string Hex();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_ = {};
  size_t held_ = 0;     // bytes in block_
  uint64_t bytes_ = 0;  // all that were added
};

// The digest of a text's bytes.
std::string Sha256(const std::string& bytes);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_SHA256_H_

// The checksum of zip archives and PNG, CRC-32: it finds every single bit that was flipped.
#ifndef ADDEND_CORE_BASE_CRC32_H_
#define ADDEND_CORE_BASE_CRC32_H_

#include <cstddef>
#include <cstdint>

namespace addend {

// The checksum of bytes that come behind those of which `before` is the checksum.
uint32_t Crc32(const char* data, size_t size, uint32_t before = 0);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_CRC32_H_

#include "core/base/crc32.h"

#include <zlib.h>

#include <algorithm>

namespace addend {

uint32_t Crc32(const char* data, size_t size, uint32_t before) {
  uLong checksum = before;
  while (size > 0) {
    const auto piece = static_cast<uInt>(std::min<size_t>(size, size_t{1} << 30));
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(data), piece);
    data += piece;
    size -= piece;
  }
  return static_cast<uint32_t>(checksum);
}

}  // namespace addend

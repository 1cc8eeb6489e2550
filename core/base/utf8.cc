#include "core/base/utf8.h"

namespace addend {

size_t ReadUtf8(const char* at, const char* end, uint32_t* code) {
  if (at == end) return 0;
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(at[k]); };
  const unsigned char first = byte(0);
  size_t length = 0;
  if (first < 0x80) {
    *code = first;
    return 1;
  }
  if (first >= 0xc2 && first < 0xe0) {
    length = 2;
    *code = first & 0x1f;
  } else if (first >= 0xe0 && first < 0xf0) {
    length = 3;
    *code = first & 0x0f;
  } else if (first >= 0xf0 && first < 0xf5) {
    length = 4;
    *code = first & 0x07;
  }
  if (length == 0 || length > static_cast<size_t>(end - at)) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
    *code = (*code << 6) | (byte(k) & 0x3f);
  }
  const bool overlong = (length == 3 && *code < 0x800) || (length == 4 && *code < 0x10000);
  return overlong || (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff ? 0 : length;
}

bool IsUtf8(const std::string& text) { return ToUtf8(text) == text; }

std::string ToUtf8(const std::string& text) {
  std::string clean;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint32_t code = 0;
    const size_t size = ReadUtf8(at, end, &code);
    clean += size == 0 ? "\xef\xbf\xbd" : std::string(at, size);
    at += size == 0 ? 1 : size;
  }
  return clean;
}

}  // namespace addend

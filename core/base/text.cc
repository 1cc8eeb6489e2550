#include "core/base/text.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace addend {
namespace {

// The length of the UTF-8 sequence at `at`, and its code point; 0 where there is none.
size_t Sequence(const std::string& text, size_t at, uint32_t* code) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[at + k]); };
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
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
    *code = (*code << 6) | (byte(k) & 0x3f);
  }
  // Longer than need be, halves of surrogate pairs, beyond the last code point.
  const bool overlong = (length == 3 && *code < 0x800) || (length == 4 && *code < 0x10000);
  return overlong || (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff ? 0 : length;
}

bool Hidden(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

}  // namespace

std::string OneLine(const std::string& text) {
  std::string line;
  line.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = Sequence(text, at, &code);
    if (length == 0) {
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(text[at]));
      ++at;
      continue;
    }
    if (code == '\n') {
      line += "\\n";
    } else if (code == '\r') {
      line += "\\r";
    } else if (code == '\t') {
      line += "\\t";
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      absl::StrAppendFormat(&line, "\\x%02x", code);
    } else if (Hidden(code)) {
      absl::StrAppendFormat(&line, "\\u%04x", code);
    } else {
      line.append(text, at, length);
    }
    at += length;
  }
  return line;
}

}  // namespace addend

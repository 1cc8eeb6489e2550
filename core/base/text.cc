#include "core/base/text.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "core/base/utf8.h"

namespace addend {
namespace {

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
    const size_t length = ReadUtf8(text.data() + at, text.data() + text.size(), &code);
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

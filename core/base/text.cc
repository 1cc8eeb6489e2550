#include "core/base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/utf8.h"

namespace addend {

bool IsHidden(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

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
    } else if (IsHidden(code)) {
      absl::StrAppendFormat(&line, "\\u%04x", code);
    } else {
      line.append(text, at, length);
    }
    at += length;
  }
  return line;
}

std::string Shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  constexpr size_t kMark = 60;  // what is said between the two ends takes less
  const auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  const size_t kept = most > kMark ? most - kMark : 0;
  size_t begin = kept - kept / 4;
  size_t end = text.size() - kept / 4;
  for (size_t back = 0; back < 3 && begin > 0 && inside(begin); ++back) --begin;
  for (size_t on = 0; on < 3 && end < text.size() && inside(end); ++on) ++end;
  return absl::StrCat(text.substr(0, begin), " ... (", end - begin, " bytes left out) ... ", text.substr(end));
}

std::string Quoted(const std::string& text) {
  // Cut first: a text may be as large as its file. What is escaped may take four times as much.
  return Shortened(OneLine(Shortened(text, kMostQuoted)), 2 * kMostQuoted);
}

std::string ShellWord(const std::string& word) {
  const auto plain = [](char c) { return absl::ascii_isalnum(c) || std::strchr("%+,-./:=@_", c) != nullptr; };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMostListed = 1500;  // bytes
  std::string list;
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string name = Quoted(names[k]);
    if (k > 0 && list.size() + name.size() > kMostListed) {
      return absl::StrCat(list, " and ", names.size() - k, " more");
    }
    absl::StrAppend(&list, k == 0 ? "" : ", ", name);
  }
  return list;
}

}  // namespace addend

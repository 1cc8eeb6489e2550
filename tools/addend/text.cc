#include "tools/addend/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace addend::cli {
namespace {

std::string Ellipsis(const Terminal& terminal) { return terminal.utf8 ? "\u2026" : "..."; }

}  // namespace

Terminal StdoutTerminal() {
  Terminal terminal;
  winsize size = {};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<int>(size.ws_col, 60, 100);
  }
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = absl::AsciiStrToLower(value);
    terminal.utf8 = absl::StrContains(locale, "utf-8") || absl::StrContains(locale, "utf8");
    break;
  }
  return terminal;
}

std::string Clean(const std::string& text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t size = ReadUtf8(text.data() + at, text.data() + text.size(), &code);
    if (size == 0) {
      clean += '?';
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029) {
      clean += ' ';
    } else if (IsHidden(code)) {
      absl::StrAppendFormat(&clean, "\\u%04x", code);
    } else {
      clean.append(text, at, size);
    }
    at += size == 0 ? 1 : size;
  }
  return clean;
}

int DisplayWidth(const std::string& text) { return static_cast<int>(WidthOf(text)); }

std::string CutEnd(const std::string& text, int width, const Terminal& terminal) {
  return addend::CutEnd(text, width, Ellipsis(terminal));
}

std::string CutStart(const std::string& text, int width, const Terminal& terminal) {
  const std::string mark = Ellipsis(terminal);
  const int excess = DisplayWidth(text) - width;
  if (excess <= 0) return text;
  size_t cut = Fitting(text, excess + DisplayWidth(mark) - 1);
  uint32_t code = 0;
  cut += std::max<size_t>(ReadUtf8(text.data() + cut, text.data() + text.size(), &code), 1);
  return mark + text.substr(cut);
}

std::string PadRight(const std::string& text, int width) {
  return text + std::string(std::max(0, width - DisplayWidth(text)), ' ');
}

std::string PadLeft(const std::string& text, int width) {
  return std::string(std::max(0, width - DisplayWidth(text)), ' ') + text;
}

std::string Wrap(const std::string& text, int width, int indent) {
  return absl::StrCat(absl::StrJoin(Lines(text, width, indent), "\n"), "\n");
}

std::string Hanging(const std::string& first, const std::string& text, const Terminal& terminal) {
  const auto indent = static_cast<int>(first.size());
  std::string lines = first + Wrap(Clean(text), terminal.width - indent);
  for (size_t end = lines.find('\n'); end + 1 < lines.size(); end = lines.find('\n', end + 1)) {
    lines.insert(end + 1, indent, ' ');
  }
  return lines;
}

}  // namespace addend::cli

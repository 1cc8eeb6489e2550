#include "tools/addend/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

namespace addend::cli {
namespace {

constexpr uint32_t kInvalid = 0xFFFFFFFF;

// The code point at `*at`, which moves behind it; behind one byte and kInvalid where there is none.
uint32_t NextCodePoint(const std::string& text, size_t* at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte((*at)++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead < 0xF5   ? 3
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                                                 : 0;
  if (more == 0 || *at + more > text.size()) return kInvalid;
  uint32_t code = lead & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(*at + i) & 0xC0) != 0x80) return kInvalid;
    code = code << 6 | (byte(*at + i) & 0x3F);
  }
  const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
  if (overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return kInvalid;
  *at += more;
  return code;
}

// 0 for marks that join the character before them, 2 for the wide scripts and pictures of East Asia, else 1.
int WidthOf(uint32_t code) {
  static constexpr std::pair<uint32_t, uint32_t> kNone[] = {
      {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
      {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},
      {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E},
      {0x2060, 0x2064}, {0x20D0, 0x20F0}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
  static constexpr std::pair<uint32_t, uint32_t> kWide[] = {
      {0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
      {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},   {0xFF00, 0xFF60},
      {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  const auto within = [&](const auto& range) { return code >= range.first && code <= range.second; };
  if (std::any_of(std::begin(kNone), std::end(kNone), within)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), within) ? 2 : 1;
}

std::string Ellipsis(const Terminal& terminal) { return terminal.utf8 ? "\u2026" : "..."; }

std::string Printf(const char* format, int precision, double x) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), format, precision, x);
  return buffer;
}

// A number that rounds to zero has no sign.
std::string WithoutMinusZero(std::string text) {
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  return text;
}

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
    const size_t begin = at;
    const uint32_t code = NextCodePoint(text, &at);
    if (code == kInvalid) {
      clean += '?';
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029) {
      clean += ' ';
    } else if (IsHidden(code)) {
      absl::StrAppendFormat(&clean, "\\u%04x", code);
    } else {
      clean.append(text, begin, at - begin);
    }
  }
  return clean;
}

int DisplayWidth(const std::string& text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) width += WidthOf(NextCodePoint(text, &at));
  return width;
}

std::string CutEnd(const std::string& text, int width, const Terminal& terminal) {
  if (DisplayWidth(text) <= width) return text;
  const std::string mark = Ellipsis(terminal);
  int room = width - DisplayWidth(mark);
  size_t end = 0;
  for (size_t at = 0; at < text.size(); end = at) {
    room -= WidthOf(NextCodePoint(text, &at));
    if (room < 0) break;
  }
  return text.substr(0, end) + mark;
}

std::string CutStart(const std::string& text, int width, const Terminal& terminal) {
  int excess = DisplayWidth(text) - width;
  if (excess <= 0) return text;
  const std::string mark = Ellipsis(terminal);
  excess += DisplayWidth(mark);
  size_t at = 0;
  while (at < text.size() && excess > 0) excess -= WidthOf(NextCodePoint(text, &at));
  return mark + text.substr(at);
}

std::string PadRight(const std::string& text, int width) {
  return text + std::string(std::max(0, width - DisplayWidth(text)), ' ');
}

std::string PadLeft(const std::string& text, int width) {
  return std::string(std::max(0, width - DisplayWidth(text)), ' ') + text;
}

std::string Wrap(const std::string& text, int width, int indent) {
  std::string out;
  std::string line;
  int used = 0;
  for (const auto piece : absl::StrSplit(text, ' ')) {
    const std::string word(piece.data(), piece.size());
    const int wide = DisplayWidth(word);
    if (!line.empty() && used + 1 + wide > width) {
      absl::StrAppend(&out, line, "\n");
      line = std::string(indent, ' ') + word;
      used = indent + wide;
    } else {
      if (used > 0) line += ' ';
      line += word;
      used += wide + (used > 0 ? 1 : 0);
    }
  }
  return absl::StrCat(out, line, "\n");
}

std::string Hanging(const std::string& first, const std::string& text, const Terminal& terminal) {
  const auto indent = static_cast<int>(first.size());
  std::string lines = first + Wrap(Clean(text), terminal.width - indent);
  for (size_t end = lines.find('\n'); end + 1 < lines.size(); end = lines.find('\n', end + 1)) {
    lines.insert(end + 1, indent, ' ');
  }
  return lines;
}

std::string Plural(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Number(double x, int digits) {
  if (x == 0) return "0";
  return Printf("%.*g", digits, x);
}

std::string Small(double x) {
  if (x == 0) return "0";
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : "inf";
  return Printf("%.*e", 1, x);
}

NumberFormat::NumberFormat(const std::vector<double>& numbers, int digits) : digits_(digits) {
  double largest = 0;
  for (const double x : numbers) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  exponent_ = largest >= 1e7 || (largest > 0 && largest < 1e-4);
  decimals_ = largest > 0 ? std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(largest))), 0, 9) : 1;
}

std::string NumberFormat::operator()(double x) const {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  return WithoutMinusZero(exponent_ && x != 0 ? Printf("%.*e", digits_ - 1, x) : Printf("%.*f", decimals_, x));
}

std::string NumberFormat::Signed(double x) const {
  const std::string text = (*this)(x);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return x > 0 && !zero ? "+" + text : text;
}

}  // namespace addend::cli

#include "core/base/readable.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/utf8.h"

namespace addend {
namespace {

// The code point at `*at`, which moves behind it; behind one byte and U+FFFD where there is none.
uint32_t NextCodePoint(const std::string& text, size_t* at) {
  uint32_t code = 0xFFFD;
  const size_t size = ReadUtf8(text.data() + *at, text.data() + text.size(), &code);
  *at += std::max<size_t>(size, 1);
  return size == 0 ? 0xFFFD : code;
}

// A number as printf writes it, whatever the locale.
std::string Written(double x, std::chars_format format, int precision) {
  char buffer[400];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), x, format, precision).ptr};
}

// "nan", "inf", "-inf"
std::string NotFinite(double x) { return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"; }

// A number that rounds to zero has no sign.
std::string WithoutMinusZero(std::string text) {
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  return text;
}

}  // namespace

double InColumns(uint32_t code) {
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

double WidthOf(const std::string& text, Measure measure) {
  double width = 0;
  for (size_t at = 0; at < text.size();) width += measure(NextCodePoint(text, &at));
  return width;
}

size_t Fitting(const std::string& text, double width, Measure measure) {
  size_t end = 0;
  for (size_t at = 0; at < text.size(); end = at) {
    width -= measure(NextCodePoint(text, &at));
    if (width < 0) break;
  }
  return end;
}

std::string CutEnd(const std::string& text, double width, const std::string& mark, Measure measure) {
  if (WidthOf(text, measure) <= width) return text;
  return text.substr(0, Fitting(text, width - WidthOf(mark, measure), measure)) + mark;
}

std::vector<std::string> Lines(const std::string& text, double width, size_t indent, Measure measure) {
  std::vector<std::string> lines;
  std::string line;
  double used = 0;
  const double space = measure(' ');
  for (const auto piece : absl::StrSplit(text, ' ')) {
    const std::string word(piece.data(), piece.size());
    const double wide = WidthOf(word, measure);
    if (!line.empty() && used + space + wide > width) {
      lines.push_back(line);
      line = std::string(indent, ' ') + word;
      used = static_cast<double>(indent) * space + wide;
    } else {
      if (used > 0) line += ' ';
      line += word;
      used += wide + (used > 0 ? space : 0);
    }
  }
  lines.push_back(line);
  return lines;
}

std::string Plural(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Number(double x, int digits) {
  if (x == 0) return "0";
  return std::isfinite(x) ? Written(x, std::chars_format::general, digits) : NotFinite(x);
}

std::string Small(double x) {
  if (x == 0) return "0";
  return std::isfinite(x) ? Written(x, std::chars_format::scientific, 1) : NotFinite(x);
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
  if (!std::isfinite(x)) return NotFinite(x);
  return WithoutMinusZero(exponent_ && x != 0 ? Written(x, std::chars_format::scientific, digits_ - 1)
                                              : Written(x, std::chars_format::fixed, decimals_));
}

std::string NumberFormat::Signed(double x) const {
  const std::string text = (*this)(x);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return x > 0 && !zero ? "+" + text : text;
}

}  // namespace addend

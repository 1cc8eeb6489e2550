#include "core/audit/canonical_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

constexpr char kNaN[] = "NaN";
constexpr char kInfinity[] = "Infinity";
constexpr char kMinusInfinity[] = "-Infinity";

// The code units of a text, which decide where a key stands.
std::u16string CodeUnits(const std::string& text) {
  std::u16string units;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    uint32_t code = 0;
    const size_t size = ReadUtf8(at, end, &code);
    if (size == 0) throw InvalidArgument("a key is not UTF-8");
    at += size;
    if (code < 0x10000) {
      units += static_cast<char16_t>(code);
    } else {
      units += static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
      units += static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  return units;
}

void AppendText(const std::string& text, std::string& out) {
  try {
    out += Json(text).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::strict);
  } catch (const Json::exception&) {
    throw InvalidArgument("a text is not UTF-8");
  }
}

// An integer is the double that it equals; some beyond 2^53 are, and others would be read back as another number.
void AppendInteger(const Json& value, std::string& out) {
  const std::string digits = value.dump();
  if (CanonicalNumber(value.get<double>()) != digits) {
    throw InvalidArgument(absl::StrCat("the integer ", digits,
                                       " is not what a double holds (whole numbers up to 2^53); write it as a text"));
  }
  out += digits;
}

void Append(const Json& value, int depth, std::string& out) {
  if (depth > kMostNested) throw InvalidArgument(absl::StrCat("it is nested more than ", kMostNested, " deep"));
  switch (value.type()) {
    case Json::value_t::object: {
      std::vector<std::pair<std::u16string, const std::string*>> keys;
      for (const auto& entry : value.items()) keys.emplace_back(CodeUnits(entry.key()), &entry.key());
      std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      out += '{';
      for (size_t k = 0; k < keys.size(); ++k) {
        if (k > 0) out += ',';
        AppendText(*keys[k].second, out);
        out += ':';
        Append(value.at(*keys[k].second), depth + 1, out);
      }
      out += '}';
      return;
    }
    case Json::value_t::array:
      out += '[';
      for (size_t k = 0; k < value.size(); ++k) {
        if (k > 0) out += ',';
        Append(value[k], depth + 1, out);
      }
      out += ']';
      return;
    case Json::value_t::string:
      AppendText(value.get_ref<const std::string&>(), out);
      return;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      AppendInteger(value, out);
      return;
    case Json::value_t::number_float:
      out += CanonicalNumber(value.get<double>());
      return;
    default:
      out += "null";
  }
}

}  // namespace

std::string CanonicalJson(const Json& value) {
  std::string out;
  Append(value, 0, out);
  return out;
}

std::string Sha256Without(Json document, const std::string& key) {
  document.erase(key);
  return Sha256(CanonicalJson(document));
}

std::string CanonicalNumber(double number) {
  if (!std::isfinite(number)) throw InvalidArgument("a number of canonical JSON is finite");
  if (number == 0) return "0";
  // "d.dddde+XX", the shortest that reads back.
  char buffer[40];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), std::abs(number), std::chars_format::scientific);
  const std::string text(buffer, written.ptr);
  const size_t mark = text.find('e');
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  // The number of digits before the decimal point.
  const int point = std::atoi(text.c_str() + mark + 1) + 1;
  const int count = static_cast<int>(digits.size());
  const std::string sign = number < 0 ? "-" : "";
  if (count <= point && point <= 21) return absl::StrCat(sign, digits, std::string(point - count, '0'));
  if (0 < point && point <= 21) return absl::StrCat(sign, digits.substr(0, point), ".", digits.substr(point));
  if (-6 < point && point <= 0) return absl::StrCat(sign, "0.", std::string(-point, '0'), digits);
  const int exponent = point - 1;
  return absl::StrCat(sign, digits.substr(0, 1), count > 1 ? "." : "", digits.substr(1), exponent < 0 ? "e-" : "e+",
                      std::abs(exponent));
}

Json RecordedNumber(double number) {
  if (std::isnan(number)) return kNaN;
  if (std::isinf(number)) return number > 0 ? kInfinity : kMinusInfinity;
  return number;
}

double NumberOf(const Json& recorded) {
  if (recorded.is_number()) return recorded.get<double>();
  if (recorded == kNaN) return std::numeric_limits<double>::quiet_NaN();
  if (recorded == kInfinity) return std::numeric_limits<double>::infinity();
  if (recorded == kMinusInfinity) return -std::numeric_limits<double>::infinity();
  throw InvalidArgument("a recorded number is none");
}

}  // namespace addend

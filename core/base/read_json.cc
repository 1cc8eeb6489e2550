#include "core/base/read_json.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"

namespace addend {
namespace {

// The digits of a decimal without sign, point, exponent and zeros at the end.
std::string DigitsOf(absl::string_view decimal) {
  std::string digits;
  for (const char c : decimal) {
    if (c == 'e' || c == 'E') break;
    if (c >= '0' && c <= '9') digits += c;
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits;
}

// Finds the first key that an object has twice. (A callback of the parser could find it, but then each object costs a
// walk over the one around it.)
class TwiceFinder : public nlohmann::json_sax<Json> {
 public:
  const std::optional<std::string>& twice() const { return twice_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*token*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*elements*/) override { return Begin(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    twice_ = name;
    return false;
  }
  bool end_object() override { return End(); }
  bool start_array(size_t /*elements*/) override { return Begin(); }
  bool end_array() override { return End(); }
  bool parse_error(size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 protected:
  // How many lists and objects stand around what is read now.
  size_t depth() const { return keys_.size(); }
  virtual bool Begin() {
    keys_.emplace_back();
    return true;
  }

 private:
  bool End() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of the objects around; of lists, none
  std::optional<std::string> twice_;
};

// Says what else a value would lose of a text, and where it would be too deep, before there is a value.
class Reader : public TwiceFinder {
 public:
  const std::string& complaint() const { return complaint_; }

  bool number_float(number_float_t value, const string_t& token) override {
    if (token.find_first_of(".eE") != std::string::npos) return true;
    // An integer beyond 64 bits, such as an account's number.
    char shortest[40];
    const auto end = std::to_chars(shortest, shortest + sizeof(shortest), value, std::chars_format::scientific).ptr;
    if (DigitsOf(token) == DigitsOf({shortest, static_cast<size_t>(end - shortest)})) return true;
    return Refuse(
        absl::StrCat("holds the integer ", token, ", which has more digits than a number keeps; write it as text"));
  }
  bool key(string_t& name) override {
    return TwiceFinder::key(name) || Refuse(absl::StrCat("has the key \"", name, "\" twice"));
  }
  bool parse_error(size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Refuse("is no JSON");
  }

 private:
  bool Begin() override {
    TwiceFinder::Begin();
    return depth() <= kMostNested || Refuse(absl::StrCat("is nested more than ", kMostNested, " deep"));
  }
  bool Refuse(std::string complaint) {
    complaint_ = std::move(complaint);
    return false;
  }

  std::string complaint_;
};

}  // namespace

Json ReadJson(const std::string& text, const std::string& name) {
  Reader reader;
  if (!Json::sax_parse(text, &reader)) throw InvalidArgument(absl::StrCat(name, " ", reader.complaint()));
  return Json::parse(text);
}

std::optional<std::string> KeyTwice(const char* begin, const char* end) {
  TwiceFinder finder;
  Json::sax_parse(begin, end, &finder);
  return finder.twice();
}

}  // namespace addend

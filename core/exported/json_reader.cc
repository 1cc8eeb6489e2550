#include "core/exported/json_reader.h"

#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace addend::exported {
namespace {

// Deepest nesting of lists and objects. Each level takes some hundred bytes of the stack.
constexpr size_t kDeepest = 256;

// Characters that messages show of either end of a place.
constexpr size_t kLongestEnd = 400;

constexpr absl::string_view kNotNumbers[] = {"NaN", "Infinity", "-Infinity"};

double NotNumber(absl::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return word == "Infinity" ? infinity : -infinity;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(uint32_t code, std::string* text) {
  const auto add = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

}  // namespace

JsonReader::JsonReader(absl::string_view text, std::string where, MemoryBudget* budget)
    : at_(text.data()),
      begin_(text.data()),
      end_(text.data() + text.size()),
      where_(std::move(where)),
      budget_(budget) {}

std::string JsonReader::Place() const {
  std::string path;
  for (const Step& step : path_) {
    if (step.index >= 0) {
      absl::StrAppend(&path, "/", step.index);
    } else if (!step.key.empty()) {
      absl::StrAppend(&path, "/", Quoted(step.key));
    }
  }
  // Both ends say more than the middle.
  if (path.size() > 2 * kLongestEnd) {
    path = absl::StrCat(path.substr(0, kLongestEnd), "...", path.substr(path.size() - kLongestEnd));
  }
  return absl::StrCat(where_, path.empty() ? "" : ": ", path);
}

void JsonReader::Fail(const std::string& what) const {
  throw InvalidArgument(absl::StrCat(Place(), " (byte ", at_ - begin_, "): ", what));
}

void JsonReader::FailTwice(const std::string& key) const { Fail(absl::StrCat("has \"", Quoted(key), "\" twice")); }

void JsonReader::FailUnion() const { Fail("should have exactly one key, which says what it is"); }

void JsonReader::Space() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
}

bool JsonReader::Word(absl::string_view word) {
  if (static_cast<size_t>(end_ - at_) < word.size() || absl::string_view(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

void JsonReader::Expect(absl::string_view word, const char* what) {
  Space();
  if (!Word(word)) Fail(at_ == end_ ? "the JSON is truncated" : what);
}

JsonReader::Kind JsonReader::Next() {
  Space();
  if (at_ == end_) Fail("the JSON is truncated");
  switch (*at_) {
    case 'n':
      return Kind::kNull;
    case 't':
    case 'f':
      return Kind::kBool;
    case '"':
      return Kind::kString;
    case '[':
      return Kind::kArray;
    case '{':
      return Kind::kObject;
    default:
      if (*at_ != '-' && *at_ != 'N' && *at_ != 'I' && !IsDigit(*at_)) Fail("is no JSON");
      return Kind::kNumber;
  }
}

void JsonReader::Null() { Expect("null", "is not null"); }

bool JsonReader::Bool() {
  Space();
  if (Word("true")) return true;
  Expect("false", "is neither true nor false");
  return false;
}

absl::string_view JsonReader::Number() {
  Space();
  const char* begin = at_;
  const auto digits = [&] {
    const char* first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ - first;
  };
  Word("-");
  const char* whole = at_;
  const auto count = digits();
  if (count == 0 || (count > 1 && *whole == '0')) Fail("is no number");
  if (Word(".") && digits() == 0) Fail("is no number");
  if (Word("e") || Word("E")) {
    if (!Word("+")) Word("-");
    if (digits() == 0) Fail("is no number");
  }
  return absl::string_view(begin, static_cast<size_t>(at_ - begin));
}

int64_t JsonReader::Integer() {
  if (Next() != Kind::kNumber) Fail("is no integer");
  const absl::string_view text = Number();
  int64_t value = 0;
  if (text.find_first_of(".eE") != absl::string_view::npos) Fail("is no integer");
  if (!absl::SimpleAtoi(text, &value)) Fail("does not fit 64 bits");
  return value;
}

double JsonReader::Float() {
  if (Next() == Kind::kString) {
    const std::string text = String();
    for (const absl::string_view word : kNotNumbers) {
      if (text == word) return NotNumber(word);
    }
    Fail("is no number");
  }
  if (Next() != Kind::kNumber) Fail("is no number");
  for (const absl::string_view word : kNotNumbers) {
    if (Word(word)) return NotNumber(word);
  }
  const absl::string_view text = Number();
  double value = 0;
  const auto result = absl::from_chars(text.data(), text.data() + text.size(), value);
  // Out of range are also numbers that round to zero.
  const bool small = result.ec == std::errc::result_out_of_range && std::abs(value) < 1;
  if (result.ec != std::errc() && !small) Fail("is no number that 64 bits can hold");
  return value;
}

uint32_t JsonReader::Hexadecimal() {
  uint32_t code = 0;
  for (int k = 0; k < 4; ++k, ++at_) {
    if (at_ == end_) Fail("the JSON is truncated");
    const char c = *at_;
    const int digit = IsDigit(c)             ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) Fail("a string has a malformed \\u");
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  return code;
}

void JsonReader::Unicode(std::string* text) {
  uint32_t code = Hexadecimal();
  if (code >= 0xd800 && code < 0xe000) {
    // The first half of a pair, after which the second comes.
    const uint32_t second = code < 0xdc00 && Word("\\u") ? Hexadecimal() : 0;
    if (second < 0xdc00 || second >= 0xe000) Fail("a string has half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  AppendUtf8(code, text);
}

void JsonReader::Escape(std::string* text) {
  if (at_ == end_) Fail("the JSON is truncated");
  static constexpr absl::string_view kNames = "\"\\/bfnrt";
  static constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t";
  const char name = *at_++;
  if (name == 'u') return Unicode(text);
  const size_t found = kNames.find(name);
  if (found == absl::string_view::npos) Fail("a string has an unknown escape");
  text->push_back(kMeant[found]);
}

std::string JsonReader::String() {
  if (Next() != Kind::kString) Fail("is no string");
  ++at_;
  const char* close = at_;
  while (close != end_ && *close != '"') close += *close == '\\' && close + 1 != end_ ? 2 : 1;
  if (close == end_) Fail("the JSON is truncated: a string has no end");
  // No escape is shorter than what it means.
  std::string text;
  const auto length = static_cast<size_t>(close - at_);
  if (length >= sizeof(std::string) / 2) budget_->Take(length + 16);
  text.reserve(length);
  while (at_ != close) {
    const char* plain = at_;
    while (at_ != close && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20 &&
           static_cast<unsigned char>(*at_) < 0x80) {
      ++at_;
    }
    text.append(plain, at_);
    if (at_ == close) break;
    if (*at_ == '\\') {
      ++at_;
      Escape(&text);
      continue;
    }
    uint32_t code = 0;
    const size_t length_here = static_cast<unsigned char>(*at_) < 0x20 ? 0 : ReadUtf8(at_, close, &code);
    if (length_here == 0) Fail("a string holds a byte that is neither UTF-8 nor allowed in JSON");
    text.append(at_, length_here);
    at_ += length_here;
  }
  ++at_;
  return text;
}

void JsonReader::Open(char bracket) {
  const Kind kind = bracket == '[' ? Kind::kArray : Kind::kObject;
  if (Next() != kind) Fail(kind == Kind::kArray ? "is no list" : "is no object");
  ++at_;
  if (path_.size() >= kDeepest) Fail(absl::StrCat("is nested more than ", kDeepest, " levels deep"));
  path_.emplace_back();
}

bool JsonReader::More(char bracket, bool first) {
  Space();
  if (at_ == end_) Fail("the JSON is truncated");
  if (*at_ == bracket) {
    ++at_;
    return false;
  }
  if (!first) Expect(",", bracket == ']' ? "a list lacks a comma" : "an object lacks a comma");
  return true;
}

void JsonReader::Close() { path_.pop_back(); }

std::string JsonReader::Key() {
  std::string key = String();
  Expect(":", "a key of an object lacks its colon");
  return key;
}

void JsonReader::Skip() {
  const uint64_t left = budget_->left();
  SkipValue();
  budget_->GiveBackTo(left);
}

void JsonReader::SkipValue() {
  switch (Next()) {
    case Kind::kNull:
      return Null();
    case Kind::kBool:
      Bool();
      return;
    case Kind::kNumber:
      Float();
      return;
    case Kind::kString:
      String();
      return;
    case Kind::kArray:
      return Array([this] { SkipValue(); });
    case Kind::kObject:
      return Members([this](const std::string&) { SkipValue(); });
  }
}

void JsonReader::SkipUnknown(const std::string& key) {
  bool empty = true;
  switch (Next()) {
    case Kind::kNull:
      Null();
      break;
    case Kind::kBool:
      empty = !Bool();
      break;
    case Kind::kNumber:
      empty = Float() == 0;
      break;
    case Kind::kString:
      empty = String().empty();
      break;
    case Kind::kArray:
    case Kind::kObject: {
      const char open = *at_++;
      Space();
      empty = Word(open == '[' ? "]" : "}");
      break;
    }
  }
  if (!empty) {
    Fail(absl::StrCat(
        "\"", Quoted(key),
        "\" is not known to this version of Addend, and says something; update Addend, or export the model "
        "with an older torch"));
  }
}

void JsonReader::End() {
  Space();
  if (at_ != end_) Fail("something follows the JSON");
}

}  // namespace addend::exported

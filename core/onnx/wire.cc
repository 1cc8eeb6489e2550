#include "core/onnx/wire.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/utf8.h"

namespace addend::onnx {
namespace {

constexpr uint64_t kLargestTag = 0xffffffff;
constexpr int kBitsOfLastByte = 63;  // of a varint of ten bytes: one bit is left

const char* NameOf(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "a whole number";
    case WireType::kFixed64:
      return "a number of 64 bits";
    case WireType::kBytes:
      return "bytes with a length";
    case WireType::kFixed32:
      return "a number of 32 bits";
  }
  return "unknown";
}

bool IsText(absl::string_view bytes) {
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  while (at != end) {
    if (static_cast<unsigned char>(*at) < 0x80) {
      ++at;
      continue;
    }
    uint32_t code = 0;
    const size_t length = ReadUtf8(at, end, &code);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace

// --------------------------------------------------------------------------------------------------- repeated fields

void RepeatedField::ForEachNumber(absl::FunctionRef<void(uint64_t)> element) const {
  if (size_ == 0) return;
  size_t left = size_;  // the file may have been written to since they were counted
  const auto counted = [&](uint64_t bits) {
    if (left == 0) return;
    --left;
    element(bits);
  };
  MessageReader message(file_, message_, "repeated field", /*depth=*/0);
  while (message.Next()) {
    if (message.field() == field_) message.ForEachNumber(type_, counted);
  }
  if (left > 0) message.Fail("the file was written to while it was read; load it again");
}

void RepeatedField::ForEachBytes(absl::FunctionRef<void(absl::string_view)> element) const {
  if (size_ == 0) return;
  size_t left = size_;
  MessageReader message(file_, message_, "repeated field", /*depth=*/0);
  while (message.Next() && left > 0) {
    if (message.field() != field_) continue;
    element(message.Bytes());
    --left;
  }
  if (left > 0) message.Fail("the file was written to while it was read; load it again");
}

std::vector<int64_t> RepeatedField::Integers() const {
  std::vector<int64_t> numbers;
  if (size_ == 0) return numbers;
  file_->budget.Take(size_ * sizeof(int64_t));
  numbers.reserve(size_);
  ForEachNumber([&](uint64_t bits) { numbers.push_back(static_cast<int64_t>(bits)); });
  return numbers;
}

std::vector<float> RepeatedField::Floats() const {
  std::vector<float> numbers;
  if (size_ == 0) return numbers;
  file_->budget.Take(size_ * sizeof(float));
  numbers.reserve(size_);
  ForEachNumber([&](uint64_t bits) {
    const auto low = static_cast<uint32_t>(bits);
    float number = 0;
    std::memcpy(&number, &low, sizeof(number));
    numbers.push_back(number);
  });
  return numbers;
}

std::vector<absl::string_view> RepeatedField::Texts() const {
  std::vector<absl::string_view> texts;
  if (size_ == 0) return texts;
  file_->budget.Take(size_ * sizeof(absl::string_view));
  texts.reserve(size_);
  ForEachBytes([&](absl::string_view text) { texts.push_back(text); });
  return texts;
}

absl::string_view RepeatedField::Packed() const {
  if (size_ == 0 || (type_ != WireType::kFixed32 && type_ != WireType::kFixed64)) return {};
  const size_t bytes = size_ * (type_ == WireType::kFixed32 ? 4 : 8);
  MessageReader message(file_, message_, "repeated field", /*depth=*/0);
  while (message.Next()) {
    if (message.field() == field_ && message.wire_type_ == WireType::kBytes && message.bytes_.size() == bytes) {
      return message.bytes_;
    }
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------- messages

MessageReader::MessageReader(WireFile* file, const char* type) : MessageReader(file, file->bytes, type, 1) {}

MessageReader::MessageReader(WireFile* file, absl::string_view message, const char* type, int depth)
    : file_(file),
      type_(type),
      depth_(depth),
      begin_(message.data()),
      end_(message.data() + message.size()),
      at_(begin_),
      field_begin_(begin_) {}

std::string MessageReader::Place() const {
  return absl::StrCat(file_->name, " (byte ", field_begin_ - file_->bytes.data(), ", in ", type_, ")");
}

void MessageReader::Fail(const std::string& what) const { throw InvalidArgument(absl::StrCat(Place(), ": ", what)); }

uint64_t MessageReader::Varint(const char** at, const char* end) const {
  uint64_t value = 0;
  for (int shift = 0; *at != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*(*at)++);
    if (shift > kBitsOfLastByte || (shift == kBitsOfLastByte && byte > 1)) Fail("a number does not fit 64 bits");
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  Fail("a number is cut off; the file is truncated or damaged");
}

uint64_t MessageReader::Fixed(const char** at, const char* end, size_t size) const {
  if (static_cast<size_t>(end - *at) < size) Fail("a number is cut off; the file is truncated or damaged");
  uint64_t value = 0;
  for (size_t k = size; k-- > 0;) value = value << 8 | static_cast<unsigned char>((*at)[k]);
  *at += size;
  return value;
}

bool MessageReader::Next() {
  field_begin_ = at_;
  if (at_ == end_) return false;
  const uint64_t tag = Varint(&at_, end_);
  if (tag > kLargestTag || tag < 8)
    Fail("a field has no number that a field can have; this is no ONNX file, or damaged");
  field_ = static_cast<uint32_t>(tag >> 3);
  const auto type = static_cast<unsigned>(tag & 7);
  switch (type) {
    case static_cast<unsigned>(WireType::kVarint):
      bits_ = Varint(&at_, end_);
      break;
    case static_cast<unsigned>(WireType::kFixed64):
      bits_ = Fixed(&at_, end_, 8);
      break;
    case static_cast<unsigned>(WireType::kFixed32):
      bits_ = Fixed(&at_, end_, 4);
      break;
    case static_cast<unsigned>(WireType::kBytes): {
      const uint64_t length = Varint(&at_, end_);
      const auto left = static_cast<uint64_t>(end_ - at_);
      if (length > left) {
        Fail(absl::StrCat("field ", field_, " has ", length, " bytes where ", left,
                          " are left; the file is truncated or damaged"));
      }
      bytes_ = absl::string_view(at_, length);
      at_ += length;
      break;
    }
    default:
      Fail(absl::StrCat("field ", field_, type == 3 || type == 4 ? " is a group" : " has no type that is known",
                        ", which ONNX files do not have; this is no ONNX file, or damaged"));
  }
  wire_type_ = static_cast<WireType>(type);
  return true;
}

FieldCounts MessageReader::Count() const {
  FieldCounts counts = {};
  MessageReader again = *this;
  again.at_ = begin_;
  while (again.Next()) {
    if (again.field_ < counts.size()) ++counts[again.field_];
  }
  return counts;
}

void MessageReader::RequireOnce(const FieldCounts& counts, std::initializer_list<uint32_t> fields) const {
  for (const uint32_t field : fields) {
    if (counts[field] > 1) Fail(absl::StrCat("has field ", field, " ", counts[field], " times instead of once"));
  }
}

void MessageReader::RequireType(WireType type) const {
  if (wire_type_ == type) return;
  Fail(absl::StrCat("field ", field_, " is ", NameOf(wire_type_), " instead of ", NameOf(type)));
}

int64_t MessageReader::Integer() const {
  RequireType(WireType::kVarint);
  return static_cast<int64_t>(bits_);
}

int32_t MessageReader::Integer32() const {
  const int64_t number = Integer();
  if (number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max()) {
    Fail(absl::StrCat("field ", field_, " is ", number, ", which does not fit 32 bits"));
  }
  return static_cast<int32_t>(number);
}

float MessageReader::Float() const {
  RequireType(WireType::kFixed32);
  const auto low = static_cast<uint32_t>(bits_);
  float number = 0;
  std::memcpy(&number, &low, sizeof(number));
  return number;
}

absl::string_view MessageReader::Bytes() const {
  RequireType(WireType::kBytes);
  return bytes_;
}

absl::string_view MessageReader::Text() const {
  const absl::string_view text = Bytes();
  if (!IsText(text)) Fail(absl::StrCat("field ", field_, " is a text with bytes that are not UTF-8"));
  return text;
}

MessageReader MessageReader::Message(const char* type) const {
  MessageReader nested(file_, Bytes(), type, depth_ + 1);
  if (nested.depth_ > kDeepestMessage) {
    Fail(absl::StrCat("messages are nested more than ", kDeepestMessage, " levels deep"));
  }
  return nested;
}

void MessageReader::ForEachNumber(WireType type, absl::FunctionRef<void(uint64_t)> element) const {
  if (wire_type_ != WireType::kBytes) {
    RequireType(type);
    element(bits_);
    return;
  }
  const char* at = bytes_.data();
  const char* end = at + bytes_.size();
  while (at != end) {
    element(type == WireType::kVarint ? Varint(&at, end) : Fixed(&at, end, type == WireType::kFixed32 ? 4 : 8));
  }
}

void MessageReader::AddTo(RepeatedField* list, WireType type) const {
  size_t count = 0;
  if (type == WireType::kBytes) {
    RequireType(type);
    count = 1;
  } else if (type != WireType::kVarint && wire_type_ == WireType::kBytes) {
    // Weights may be many: they need not be touched to be counted.
    const size_t size = type == WireType::kFixed32 ? 4 : 8;
    if (bytes_.size() % size != 0) {
      Fail(absl::StrCat("field ", field_, " has ", bytes_.size(), " bytes, which are no numbers of ", size, " bytes"));
    }
    count = bytes_.size() / size;
  } else {
    ForEachNumber(type, [&](uint64_t) { ++count; });
  }
  if (count == 0) return;
  if (list->field_ != 0 && list->field_ != field_) {
    Fail(absl::StrCat("has elements in the fields ", list->field_, " and ", field_, " instead of in one"));
  }
  list->file_ = file_;
  list->message_ = absl::string_view(begin_, static_cast<size_t>(end_ - begin_));
  list->field_ = field_;
  list->type_ = type;
  list->size_ += count;
}

void MessageReader::RefuseUnknown() const {
  const bool empty = wire_type_ == WireType::kBytes ? bytes_.empty() : bits_ == 0;
  if (empty) return;
  throw Unimplemented(absl::StrCat(Place(), ": field ", field_,
                                   " is not known to this version of Addend, and says something; update Addend, or "
                                   "write the model for an older version of ONNX"));
}

}  // namespace addend::onnx

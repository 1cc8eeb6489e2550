// The wire format of Protocol Buffers, read in place: the fields of a message one after the other, within its bounds.
//
// Files come from anywhere, and may be written to while they are mapped. So every length is compared with what is left
// of the message, also where the same bytes are read a second time; nothing is copied, and nothing is believed because
// it was checked before.
//
// Note [Two readers of one file]
// Protobuf is lenient where a file is odd: it merges a message that occurs twice, takes the last of two numbers, skips
// a known field of another type, cuts numbers that are too long. A file that two programs read differently is a way to
// show one model to a checker and to run another. No writer makes such files, so they are refused.
#ifndef ADDEND_CORE_ONNX_WIRE_H_
#define ADDEND_CORE_ONNX_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/base/text.h"
#include "core/weights/memory_budget.h"

namespace addend::onnx {

// The most messages that may be nested in each other.
inline constexpr int kDeepestMessage = 256;

// A file, which all readers of its messages share.
struct WireFile {
  WireFile(const std::string& path, absl::string_view content)
      : name(OneLine(path)), bytes(content), budget(name, content.size()) {}

  std::string name;  // for messages
  absl::string_view bytes;
  weights::MemoryBudget budget;
};

// The types of fields on the wire, by their numbers. 3 and 4 begin and end a group, which nobody writes any more.
enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The number of times that each field occurs in a message, by the field's number.
using FieldCounts = std::array<size_t, 32>;

// The elements of a repeated field of numbers or bytes, packed or not, in their order. They are counted when the
// message is read, and decoded when they are asked for.
class RepeatedField {
 public:
  RepeatedField() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The field's number; 0: no element was added.
  uint32_t field() const { return field_; }

  // Calls `element` with the bits of each number: those of a varint, a float or a double.
  void ForEachNumber(absl::FunctionRef<void(uint64_t)> element) const;
  void ForEachBytes(absl::FunctionRef<void(absl::string_view)> element) const;
  // Copies, within the file's budget.
  std::vector<int64_t> Integers() const;
  std::vector<float> Floats() const;
  std::vector<absl::string_view> Texts() const;
  // The bytes of floats or doubles that stand packed in one piece, as in memory; empty where they do not.
  absl::string_view Packed() const;

 private:
  friend class MessageReader;

  WireFile* file_ = nullptr;
  absl::string_view message_;  // which has the field
  size_t size_ = 0;
  uint32_t field_ = 0;
  WireType type_ = WireType::kBytes;  // of one element
};

class MessageReader {
 public:
  // Reads the message that is a whole file. `type` names it in messages: "ModelProto".
  MessageReader(WireFile* file, const char* type);

  // Counts how often each field occurs. Throws what Next() throws for any of them.
  FieldCounts Count() const;
  // Throws InvalidArgument for the first of these fields that occurs more than once; see Note [Two readers of one
  // file].
  void RequireOnce(const FieldCounts& counts, std::initializer_list<uint32_t> fields) const;

  // Goes to the next field, and reads it as far as its type on the wire says; false behind the last. Throws
  // InvalidArgument where the bytes are no field, or it does not lie within the message.
  bool Next();
  uint32_t field() const { return field_; }

  // The value of the field. Each throws InvalidArgument where the field has another type on the wire.
  int64_t Integer() const;
  int32_t Integer32() const;
  float Float() const;
  absl::string_view Bytes() const;
  // Bytes that are UTF-8.
  absl::string_view Text() const;
  // A reader of the message that the field holds. Throws InvalidArgument where it is nested too deep.
  MessageReader Message(const char* type) const;
  // Counts the elements of the field, each of `type`, and adds them to those that `list` has of this message. Throws
  // InvalidArgument where `list` has elements of another field.
  void AddTo(RepeatedField* list, WireType type) const;
  // Throws Unimplemented where a field that is not known says something: neither 0 nor empty.
  void RefuseUnknown() const;

  // The byte of the file at which the message begins.
  size_t place() const { return static_cast<size_t>(begin_ - file_->bytes.data()); }
  WireFile* file() const { return file_; }
  // Throws InvalidArgument: "model.onnx (byte 12, in NodeProto): has no op_type".
  [[noreturn]] void Fail(const std::string& what) const;
  // The place of the field that was read last, as messages tell it.
  std::string Place() const;

  // Takes what `count` elements cost a vector that is empty, and makes room for them.
  template <typename T>
  void Reserve(size_t count, std::vector<T>* vector) const {
    // A field has two bytes at least, so that the product fits.
    file_->budget.Take(count * sizeof(T));
    vector->reserve(count);
  }

 private:
  friend class RepeatedField;

  MessageReader(WireFile* file, absl::string_view message, const char* type, int depth);

  void RequireType(WireType type) const;
  uint64_t Varint(const char** at, const char* end) const;
  uint64_t Fixed(const char** at, const char* end, size_t size) const;
  // Calls `element` with the bits of each number in the field, which is packed or a number itself.
  void ForEachNumber(WireType type, absl::FunctionRef<void(uint64_t)> element) const;

  WireFile* file_;
  const char* type_;
  int depth_;
  const char* begin_;
  const char* end_;
  const char* at_;
  const char* field_begin_;
  uint32_t field_ = 0;
  WireType wire_type_ = WireType::kVarint;
  uint64_t bits_ = 0;        // of a number
  absl::string_view bytes_;  // of what has a length
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_WIRE_H_

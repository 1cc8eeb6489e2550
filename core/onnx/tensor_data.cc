#include "core/onnx/tensor_data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace addend::onnx {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostBits = 128;  // of an element

// Fields of TensorProto with elements of a type.
constexpr uint32_t kFloatData = 4;
constexpr uint32_t kInt32Data = 5;
constexpr uint32_t kStringData = 6;
constexpr uint32_t kInt64Data = 7;
constexpr uint32_t kDoubleData = 10;
constexpr uint32_t kUint64Data = 11;

const char* NameOfField(uint32_t field) {
  switch (field) {
    case kFloatData:
      return "float_data";
    case kInt32Data:
      return "int32_data";
    case kStringData:
      return "string_data";
    case kInt64Data:
      return "int64_data";
    case kDoubleData:
      return "double_data";
    default:
      return "uint64_data";
  }
}

// A number of a typed field as it is stored: so many bits, between two bounds.
struct Entry {
  uint32_t field = 0;
  int bits = 0;
  int64_t least = 0;
  int64_t most = 0;
};

// A packed byte may be written as a signed or an unsigned number.
constexpr Entry kPackedByte = {kInt32Data, 8, -128, 255};

Entry EntryOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return {kFloatData, 32};
    case DataType::kDouble:
    case DataType::kComplex128:
      return {kDoubleData, 64};
    case DataType::kInt64:
      return {kInt64Data, 64};
    case DataType::kUint64:
      return {kUint64Data, 64};
    case DataType::kUint32:
      return {kUint64Data, 32, 0, 0xffffffff};
    case DataType::kString:
      return {kStringData, 0};
    case DataType::kInt32:
      return {kInt32Data, 32, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DataType::kInt16:
      return {kInt32Data, 16, std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    case DataType::kInt8:
      return {kInt32Data, 8, std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()};
    case DataType::kBool:
      return {kInt32Data, 8, 0, 1};
    case DataType::kUint16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return {kInt32Data, 16, 0, 0xffff};
    case DataType::kFloat6E2M3:
    case DataType::kFloat6E3M2:
      return {kInt32Data, 6, 0, 0x3f};
    case DataType::kUint4:
    case DataType::kInt4:
    case DataType::kFloat4E2M1:
    case DataType::kUint2:
    case DataType::kInt2:
      return kPackedByte;
    default:  // float8, uint8
      return {kInt32Data, 8, 0, 0xff};
  }
}

// Reads one tensor, and says of errors which it is.
class Reader {
 public:
  Reader(const TensorProto& tensor, const ModelProto& model, ExternalFiles* files)
      : tensor_(tensor), model_(model), files_(files) {}

  TensorData Read() {
    data_.type = tensor_.data_type;
    data_.dims = tensor_.dims;
    if (data_.type == DataType::kUndefined) Fail("has no type");
    CountElements();
    if (tensor_.is_external) {
      if (!tensor_.raw_data.empty() || !tensor_.values.empty()) Fail("has elements both in the file and beside it");
      ReadExternal();
    } else if (!tensor_.raw_data.empty()) {
      if (!tensor_.values.empty()) {
        Fail(absl::StrCat("has elements both in raw_data and in ", NameOfField(tensor_.values.field())));
      }
      RequireNoStrings("raw_data");
      RequireSize(tensor_.raw_data.size(), "raw_data");
      Share(tensor_.raw_data);
    } else {
      ReadTyped();
    }
    return std::move(data_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgument(absl::StrCat(PlaceText(tensor_, model_), " ", what));
  }

  void CountElements() {
    int64_t count = 1;  // a size of 0 counts as 1, so that no product of sizes overflows later
    bool empty = false;
    for (const int64_t dim : data_.dims) {
      if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) || count > kMost / kMostBits) {
        Fail("has sizes that are too large for any memory");
      }
      empty |= dim == 0;
    }
    data_.num_elements = empty ? 0 : count;
    num_bytes_ = static_cast<uint64_t>((data_.num_elements * BitsOf(data_.type) + 7) / 8);
  }

  void RequireNoStrings(const char* where) const {
    if (data_.type == DataType::kString) Fail(absl::StrCat("has strings in ", where, ", which can hold none"));
  }

  void RequireSize(uint64_t size, const char* where) const {
    if (size == num_bytes_) return;
    Fail(absl::StrCat("has ", size, " bytes in ", where, ", where its ", data_.num_elements, " elements of type ",
                      NameOf(data_.type), " take ", num_bytes_, "; the file is damaged"));
  }

  // Takes bytes of the model's file.
  void Share(absl::string_view bytes) {
    data_.bytes.data = const_cast<char*>(bytes.data());  // which is mapped copy-on-write, or copied where it is not
    data_.bytes.size = bytes.size();
    data_.bytes.owner = model_.bytes.owner;
    data_.bytes.file = model_.bytes.file;
  }

  void ReadTyped() {
    const RepeatedField& values = tensor_.values;
    const Entry entry = EntryOf(data_.type);
    if (!values.empty() && values.field() != entry.field) {
      Fail(absl::StrCat("of type ", NameOf(data_.type), " has its elements in ", NameOfField(values.field()),
                        " instead of ", NameOfField(entry.field)));
    }
    const auto num_elements = static_cast<uint64_t>(data_.num_elements);
    const uint64_t num_entries =
        entry.bits == 0
            ? num_elements
            : (num_elements * static_cast<uint64_t>(BitsOf(data_.type)) + static_cast<uint64_t>(entry.bits) - 1) /
                  static_cast<uint64_t>(entry.bits);
    if (values.size() != num_entries) {
      Fail(absl::StrCat("has ", values.size(), " numbers in ", NameOfField(entry.field), ", where its ", num_elements,
                        " elements of type ", NameOf(data_.type), " take ", num_entries, "; the file is damaged"));
    }
    if (data_.type == DataType::kString) {
      data_.strings = values;
      return;
    }
    const absl::string_view packed = values.Packed();
    if (!packed.empty()) return Share(packed);
    Store(entry);
  }

  // Copies numbers of a typed field into memory of their own.
  void Store(const Entry& entry) {
    model_.file->budget.Take(num_bytes_);
    const auto memory = std::make_shared<std::vector<char>>(num_bytes_);
    char* to = memory->data();
    uint64_t at = 0;  // in bits
    tensor_.values.ForEachNumber([&](uint64_t bits) {
      bits = Checked(bits, entry);
      if (entry.bits % 8 == 0) {
        for (int k = 0; k < entry.bits; k += 8) to[(at + static_cast<uint64_t>(k)) / 8] = static_cast<char>(bits >> k);
      } else {
        const uint64_t shifted = bits << (at % 8);
        to[at / 8] = static_cast<char>(to[at / 8] | static_cast<char>(shifted));
        if (shifted > 0xff) to[at / 8 + 1] = static_cast<char>(shifted >> 8);
      }
      at += static_cast<uint64_t>(entry.bits);
    });
    data_.bytes.data = to;
    data_.bytes.size = memory->size();
    data_.bytes.owner = memory;
  }

  // Throws for a number that its type cannot hold. Where all bits can be, any number is one.
  uint64_t Checked(uint64_t bits, const Entry& entry) const {
    if (entry.least == entry.most) return bits;
    auto number = static_cast<int64_t>(bits);
    // Some writers leave out the upper half of negative numbers.
    if (entry.field == kInt32Data && bits <= 0xffffffff && entry.least < 0) number = static_cast<int32_t>(bits);
    if (number >= entry.least && number <= entry.most) return bits;
    Fail(absl::StrCat("has the number ", number, " in ", NameOfField(entry.field), ", which no ", NameOf(data_.type),
                      " is"));
  }

  // A number of external_data, which is written as text.
  uint64_t NumberOf(absl::string_view text, const char* key) const {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(text, &number)) {
      Fail(absl::StrCat("has external data with the ", key, " ", Quoted(std::string(text)), ", which is no number"));
    }
    return number;
  }

  void ReadExternal() {
    RequireNoStrings("another file");
    absl::string_view location;
    uint64_t offset = 0;
    uint64_t length = num_bytes_;
    for (size_t k = 0; k < tensor_.external_data.size(); ++k) {
      const auto& [key, value] = tensor_.external_data[k];
      for (size_t before = 0; before < k; ++before) {
        if (tensor_.external_data[before].key == key) {
          Fail(absl::StrCat("has external data with two entries ", Quoted(std::string(key))));
        }
      }
      if (key == "location") {
        location = value;
      } else if (key == "offset") {
        offset = NumberOf(value, "offset");
      } else if (key == "length") {
        length = NumberOf(value, "length");
      } else if (key != "checksum") {
        Fail(absl::StrCat("has external data with the unknown entry ", Quoted(std::string(key))));
      }
    }
    RequireSize(length, "its external data");
    const std::string where = PlaceText(tensor_, model_);
    if (files_ == nullptr) throw FailedPrecondition(absl::StrCat(where, ": external data cannot be read here"));
    if (num_bytes_ == 0) return;
    const weights::Bytes& file = files_->Map(location, where, &model_.file->budget);
    if (offset > file.size || length > file.size - offset) {
      Fail(absl::StrCat("has ", length, " bytes from byte ", offset, " on in ", Quoted(std::string(location)),
                        ", which has ", file.size, " bytes; that file is truncated, or belongs to another model"));
    }
    data_.bytes = file;
    data_.bytes.data += offset;
    data_.bytes.size = length;
  }

  const TensorProto& tensor_;
  const ModelProto& model_;
  ExternalFiles* files_;
  TensorData data_;
  uint64_t num_bytes_ = 0;
};

// The number that `bits` bits are.
int SignExtended(int number, int bits) {
  const int sign = 1 << (bits - 1);
  return (number ^ sign) - sign;
}

// A tensor like another one, with elements of its own.
TensorData Like(const TensorData& data, DataType type, std::shared_ptr<std::vector<char>> memory) {
  TensorData copy;
  copy.type = type;
  copy.dims = data.dims;
  copy.num_elements = data.num_elements;
  copy.bytes.data = memory->data();
  copy.bytes.size = memory->size();
  copy.bytes.owner = std::move(memory);
  return copy;
}

template <typename T>
T NumberAt(const TensorData& data, size_t k) {
  T number = 0;
  std::memcpy(&number, data.bytes.data + k * sizeof(number), sizeof(number));
  return number;
}

// Elements of a narrow type as such of a wide one.
template <typename Narrow, typename Wide>
TensorData Copied(const TensorData& data, DataType type, weights::MemoryBudget* budget) {
  const auto count = static_cast<size_t>(data.num_elements);
  budget->Take(count * sizeof(Wide));
  const auto memory = std::make_shared<std::vector<char>>(count * sizeof(Wide));
  for (size_t k = 0; k < count; ++k) {
    const Wide number = NumberAt<Narrow>(data, k);
    std::memcpy(memory->data() + k * sizeof(number), &number, sizeof(number));
  }
  return Like(data, type, memory);
}

// Throws for a number of type uint64 that int64 does not hold.
void RequireHeldByInt64(const TensorData& data, const std::string& where) {
  for (size_t k = 0; k < static_cast<size_t>(data.num_elements); ++k) {
    const auto number = NumberAt<uint64_t>(data, k);
    if (number <= static_cast<uint64_t>(GreatestOf(data.type))) continue;
    throw Unimplemented(absl::StrCat(where, " holds the number ", number, "; of uint64 those up to ",
                                     GreatestOf(data.type), " are supported"));
  }
}

}  // namespace

std::string PlaceText(const TensorProto& tensor, const ModelProto& model) {
  return absl::StrCat(model.file->name, ": the tensor ",
                      tensor.name.empty() ? absl::StrCat("at byte ", tensor.place) : Quoted(std::string(tensor.name)));
}

TensorData ReadTensorData(const TensorProto& tensor, const ModelProto& model, ExternalFiles* files) {
  return Reader(tensor, model, files).Read();
}

TensorData Unpacked(const TensorData& data, weights::MemoryBudget* budget) {
  if (!IsPacked(data.type)) return data;
  const bool is_signed = IsSigned(data.type);
  const int bits = BitsOf(data.type);
  const size_t in_byte = 8 / static_cast<size_t>(bits);
  const auto count = static_cast<size_t>(data.num_elements);
  budget->Take(count);
  const auto memory = std::make_shared<std::vector<char>>(count);
  for (size_t k = 0; k < count; ++k) {
    const auto byte = static_cast<unsigned char>(data.bytes.data[k / in_byte]);
    const int number = byte >> (static_cast<int>(k % in_byte) * bits) & ((1 << bits) - 1);
    (*memory)[k] = static_cast<char>(is_signed ? SignExtended(number, bits) : number);
  }
  return Like(data, is_signed ? DataType::kInt8 : DataType::kUint8, memory);
}

TensorData Widened(const TensorData& data, const std::string& where, weights::MemoryBudget* budget) {
  switch (data.type) {
    case DataType::kUint16:
      return Copied<uint16_t, int32_t>(data, DataType::kInt32, budget);
    case DataType::kUint32:
      return Copied<uint32_t, int64_t>(data, DataType::kInt64, budget);
    case DataType::kUint64: {
      RequireHeldByInt64(data, where);
      TensorData same = data;
      same.type = DataType::kInt64;
      return same;
    }
    default:
      return data;
  }
}

}  // namespace addend::onnx

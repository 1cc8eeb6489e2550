#include "core/onnx/data_type.h"

#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"

namespace addend::onnx {
namespace {

struct Known {
  const char* name;
  int bits;
};

// The types by their numbers.
constexpr Known kKnown[] = {
    {"undefined", 0},      {"float32", 32},  {"uint8", 8},        {"int8", 8},           {"uint16", 16},
    {"int16", 16},         {"int32", 32},    {"int64", 64},       {"string", 0},         {"bool", 8},
    {"float16", 16},       {"float64", 64},  {"uint32", 32},      {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16}, {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8}, {"uint4", 4},     {"int4", 4},         {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},          {"int2", 2},      {"float6e2m3", 6},   {"float6e3m2", 6},
};

}  // namespace

bool IsDataType(int32_t number) { return number > 0 && number < static_cast<int32_t>(std::size(kKnown)); }

std::string NameOf(DataType type) {
  const auto number = static_cast<int32_t>(type);
  return number == 0 || IsDataType(number) ? kKnown[number].name : absl::StrCat("type ", number);
}

bool IsSigned(DataType type) {
  return type != DataType::kUint8 && type != DataType::kUint16 && type != DataType::kUint32 &&
         type != DataType::kUint64 && type != DataType::kUint4 && type != DataType::kUint2;
}

bool IsPacked(DataType type) {
  return type == DataType::kInt4 || type == DataType::kUint4 || type == DataType::kInt2 || type == DataType::kUint2;
}

bool IsWidened(DataType type) {
  return type == DataType::kUint16 || type == DataType::kUint32 || type == DataType::kUint64;
}

int64_t GreatestOf(DataType type) {
  const int bits = BitsOf(type);
  return bits < 64 ? (int64_t{1} << bits) - 1 : std::numeric_limits<int64_t>::max();
}

int BitsOf(DataType type) {
  const auto number = static_cast<int32_t>(type);
  return IsDataType(number) ? kKnown[number].bits : 0;
}

}  // namespace addend::onnx

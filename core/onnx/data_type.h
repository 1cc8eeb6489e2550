// The types of elements that ONNX knows, by their numbers in files.
#ifndef ADDEND_CORE_ONNX_DATA_TYPE_H_
#define ADDEND_CORE_ONNX_DATA_TYPE_H_

#include <cstdint>
#include <string>

namespace addend::onnx {

enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

// Whether a number in a file is that of a type; that of kUndefined is none.
bool IsDataType(int32_t number);
// The name of a type as messages have it: "float16", or "type 99" where it is not known.
std::string NameOf(DataType type);
// Whether it is a type of integers of 4 or 2 bits, which are unpacked into 8 when they are read.
bool IsPacked(DataType type);
// Whether it is one of the types uint16, uint32 and uint64, which LibTorch lacks; see Note [Integers in a wider type]
// in datum.h.
bool IsWidened(DataType type);
// The greatest integer of such a type that its wider type holds: of uint64 the greatest of int64.
int64_t GreatestOf(DataType type);
// Whether a type of integers has negative ones.
bool IsSigned(DataType type);
// The bits of an element in memory and in `raw_data`; 0 for strings.
int BitsOf(DataType type);

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_DATA_TYPE_H_

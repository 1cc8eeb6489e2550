#include "core/base/tensor_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace addend {
namespace {

struct Words {
  at::ScalarType dtype;
  const char* name;
  const char* word;
};

constexpr Words kWords[] = {
    {at::kByte, "u8", "uint8"},
    {at::kChar, "i8", "int8"},
    {at::kShort, "i16", "int16"},
    {at::kInt, "i32", "int32"},
    {at::kLong, "i64", "int64"},
    {at::kHalf, "f16", "float16"},
    {at::kBFloat16, "bf16", "bfloat16"},
    {at::kFloat, "f32", "float32"},
    {at::kDouble, "f64", "float64"},
    {at::kComplexHalf, "ComplexHalf", "complex32"},
    {at::kComplexFloat, "c64", "complex64"},
    {at::kComplexDouble, "c128", "complex128"},
    {at::kBool, "bool", "bool"},
};

const Words* Find(at::ScalarType dtype) {
  for (const Words& words : kWords) {
    if (words.dtype == dtype) return &words;
  }
  return nullptr;
}

}  // namespace

std::string ShapeText(at::IntArrayRef shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string DtypeName(at::ScalarType dtype) {
  const Words* words = Find(dtype);
  return words != nullptr ? words->name : c10::toString(dtype);
}

std::string DtypeWord(at::ScalarType dtype) {
  const Words* words = Find(dtype);
  return words != nullptr ? words->word : absl::AsciiStrToLower(c10::toString(dtype));
}

std::string TensorText(at::ScalarType dtype, at::IntArrayRef shape) {
  return absl::StrCat(DtypeName(dtype), ShapeText(shape));
}

}  // namespace addend

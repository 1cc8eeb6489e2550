// Parameters of every section: texts, arrays, shapes and dtypes.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c_api/bodies.h"
#include "core/base/utf8.h"

namespace addend::c_api {
namespace {

constexpr size_t kMostDims = 64;

struct DtypePair {
  int32_t number;
  at::ScalarType dtype;
};
constexpr DtypePair kDtypes[] = {
    {ADDEND_UINT8, at::kByte},
    {ADDEND_INT8, at::kChar},
    {ADDEND_INT16, at::kShort},
    {ADDEND_INT32, at::kInt},
    {ADDEND_INT64, at::kLong},
    {ADDEND_FLOAT16, at::kHalf},
    {ADDEND_FLOAT32, at::kFloat},
    {ADDEND_FLOAT64, at::kDouble},
    {ADDEND_BFLOAT16, at::kBFloat16},
    {ADDEND_COMPLEX64, at::kComplexFloat},
    {ADDEND_COMPLEX128, at::kComplexDouble},
    {ADDEND_BOOL, at::kBool},
    {0x2005, at::kComplexHalf},
};

bool IsUtf8(const char* text) {
  const char* end = text + std::strlen(text);
  for (uint32_t code = 0; text != end;) {
    const size_t size = ReadUtf8(text, end, &code);
    if (size == 0) return false;
    text += size;
  }
  return true;
}

}  // namespace

void RequireOut(const void* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidArgument(absl::StrCat(name, " is NULL"));
}

std::string Text(const char* text, const char* name) {
  RequireOut(text, name);
  if (!IsUtf8(text)) throw InvalidArgument(absl::StrCat(name, " is no UTF-8"));
  return text;
}

std::string TextOrEmpty(const char* text, const char* name) { return text == nullptr ? "" : Text(text, name); }

void RequireArray(const void* data, size_t size, const char* name) {
  if (data == nullptr && size > 0) throw InvalidArgument(absl::StrCat(name, " is NULL, but has ", size, " elements"));
}

at::ScalarType DtypeOf(int32_t dtype) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.number == dtype) return pair.dtype;
  }
  throw InvalidArgument(absl::StrCat("dtype ", dtype, " (DLPack's code ", dtype & 0xff, " of ", dtype >> 8,
                                     " bits) is none that LibTorch has"));
}

int32_t DtypeNumber(at::ScalarType dtype) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.dtype == dtype) return pair.number;
  }
  return 0;
}

std::vector<int64_t> ShapeOf(const int64_t* dims, size_t num_dims) {
  RequireArray(dims, num_dims, "dims");
  if (num_dims > kMostDims) {
    throw InvalidArgument(absl::StrCat("num_dims is ", num_dims, "; tensors have at most ", kMostDims, " dimensions"));
  }
  std::vector<int64_t> shape(dims, dims + num_dims);
  for (const int64_t size : shape) {
    if (size < 0) throw InvalidArgument(absl::StrCat("dims holds ", size, "; sizes are not negative"));
  }
  return shape;
}

size_t BytesOf(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(dtype));
  for (const int64_t size : shape) {
    if (size == 0) return 0;
  }
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      throw InvalidArgument(absl::StrCat("dims [", absl::StrJoin(shape, ", "), "] need more bytes than there can be"));
    }
  }
  return static_cast<size_t>(bytes);
}

const at::Tensor& TensorOf(const addend_tensor* tensor, const char* name) { return Get(tensor, name).tensor; }

at::Tensor TensorOrNone(const addend_tensor* tensor, const char* name) {
  return tensor == nullptr ? at::Tensor() : TensorOf(tensor, name);
}

}  // namespace addend::c_api

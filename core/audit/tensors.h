// Tensors in records: their bytes as text, and the salted digest by which an input is found again.
#ifndef ADDEND_CORE_AUDIT_TENSORS_H_
#define ADDEND_CORE_AUDIT_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/base/json.h"

namespace addend {

// {"data", "dtype", "shape"}: the elements one behind the other, in the byte order of the machine, which is little-
// endian on all that LibTorch runs on, as base64.
Json TensorJson(const at::Tensor& tensor);
// The tensor again, on the CPU. Throws InvalidArgument where dtype, shape and size of the data do not fit each other.
at::Tensor TensorOfJson(const Json& recorded);

// The dtype of a word: "float32". Throws InvalidArgument.
at::ScalarType DtypeOfWord(const std::string& word);
// "cpu", "cuda", "cuda:1". Throws InvalidArgument for what names no device.
at::Device DeviceOfWord(const std::string& word);

// A tensor that a model is given, as its digest sees it.
struct DigestedTensor {
  std::string name;
  at::Tensor value;
  at::Tensor parts;  // that the caller gave as components; undefined: none
};

// SHA-256, in hexadecimal digits, of the 32 bytes of the salt, and then for each tensor: the canonical JSON of
// {"dtype", "name", "shape"}, a line end and its bytes; and the same of its parts, where it has some. Without the salt,
// which each record draws anew, equal inputs would have equal digests. `salt`: 64 hexadecimal digits.
std::string SaltedDigest(const std::string& salt, const std::vector<DigestedTensor>& tensors);

// 32 random bytes of the system as 64 hexadecimal digits.
std::string NewSalt();
// Whether a text is 64 lower-case hexadecimal digits, as salts and digests are.
bool IsHex64(const std::string& text);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_TENSORS_H_

#include "core/audit/tensors.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/audit/canonical_json.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/base/tensor_text.h"
#include "core/program/sha256.h"

namespace addend {
namespace {

// On the CPU, the elements one behind the other.
at::Tensor Flat(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided)
    throw InvalidArgument("a sparse tensor cannot be recorded; give to_dense() of it");
  return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
}

size_t BytesOf(const at::Tensor& flat) { return static_cast<size_t>(flat.numel()) * flat.element_size(); }

void Add(const std::string& name, const at::Tensor& tensor, Sha256Digest& digest) {
  const at::Tensor flat = Flat(tensor);
  const std::string head =
      CanonicalJson({{"dtype", DtypeWord(flat.scalar_type())}, {"name", name}, {"shape", flat.sizes().vec()}}) + "\n";
  digest.Add(head.data(), head.size());
  if (flat.numel() > 0) digest.Add(static_cast<const char*>(flat.data_ptr()), BytesOf(flat));
}

std::string BytesOfHex(const std::string& salt) {
  if (!IsHex64(salt)) throw InvalidArgument("a salt is 64 lower-case hexadecimal digits");
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t k = 0; k < salt.size(); k += 2) bytes += static_cast<char>(16 * digit(salt[k]) + digit(salt[k + 1]));
  return bytes;
}

}  // namespace

Json TensorJson(const at::Tensor& tensor) {
  const at::Tensor flat = Flat(tensor);
  const absl::string_view bytes(flat.numel() == 0 ? "" : static_cast<const char*>(flat.data_ptr()), BytesOf(flat));
  return {{"data", absl::Base64Escape(bytes)}, {"dtype", DtypeWord(flat.scalar_type())}, {"shape", flat.sizes().vec()}};
}

at::Tensor TensorOfJson(const Json& recorded) {
  constexpr char kNone[] = "a recorded tensor does not hold what its shape and dtype say";
  std::string bytes;
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;
  try {
    if (!absl::Base64Unescape(recorded.at("data").get_ref<const std::string&>(), &bytes)) throw InvalidArgument(kNone);
    shape = recorded.at("shape").get<std::vector<int64_t>>();
    dtype = DtypeOfWord(recorded.at("dtype").get<std::string>());
  } catch (const Json::exception&) {
    throw InvalidArgument(kNone);
  }
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; })) throw InvalidArgument(kNone);
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  uint64_t count = empty ? 0 : 1;
  for (const int64_t size : shape) {
    if (!empty && count > bytes.size() / static_cast<uint64_t>(size)) throw InvalidArgument(kNone);
    count *= static_cast<uint64_t>(size);
  }
  if (count * c10::elementSize(dtype) != bytes.size()) throw InvalidArgument(kNone);
  at::Tensor tensor = at::empty(shape, dtype);
  if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

at::ScalarType DtypeOfWord(const std::string& word) {
  for (const at::ScalarType dtype :
       {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble,
        at::kComplexHalf, at::kComplexFloat, at::kComplexDouble, at::kBool}) {
    if (DtypeWord(dtype) == word) return dtype;
  }
  throw InvalidArgument(absl::StrCat("there is no dtype ", word));
}

at::Device DeviceOfWord(const std::string& word) {
  try {
    return at::Device(word);
  } catch (const c10::Error&) {
    throw InvalidArgument(absl::StrCat("\"", word, "\" names no device; use cpu, cuda or cuda:1, for example"));
  }
}

std::string SaltedDigest(const std::string& salt, const std::vector<DigestedTensor>& tensors) {
  Sha256Digest digest;
  const std::string bytes = BytesOfHex(salt);
  digest.Add(bytes.data(), bytes.size());
  for (const DigestedTensor& tensor : tensors) {
    Add(tensor.name, tensor.value, digest);
    if (tensor.parts.defined()) Add(tensor.name, tensor.parts, digest);
  }
  return digest.Hex();
}

std::string NewSalt() {
  char bytes[32];
  if (::getentropy(bytes, sizeof(bytes)) != 0) throw FileError("read", "random numbers of the system", errno);
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

bool IsHex64(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace addend

// DLPack structs with whatever in them: a status, or a tensor within the memory that there is.
#include <cstring>
#include <vector>

#include "addend/addend.hpp"
#include "c_api/dlpack_abi.h"
#include "tests/fuzz/bytes.h"

namespace addend {
namespace {

namespace dlpack = c_api::dlpack;

constexpr size_t kElements = 4096;

int Run(Bytes& bytes) {
  std::vector<double> memory(kElements, 1);
  int64_t shape[8] = {};
  int64_t strides[8] = {};
  static const int64_t numbers[] = {0, 1, 2, 3, 7, -1, INT64_MAX, INT64_MIN, int64_t{1} << 32, int64_t{1} << 62};
  const auto number = [&] { return bytes.Below(4) == 0 ? bytes.Word() : numbers[bytes.Below(10)]; };
  for (int64_t& size : shape) size = number();
  for (int64_t& stride : strides) stride = number();
  int deleted = 0;
  dlpack::Managed managed = {};
  dlpack::Tensor& tensor = managed.tensor;
  tensor.data = bytes.Below(8) == 0 ? nullptr : memory.data();
  tensor.device_type = bytes.Below(4) == 0 ? static_cast<int32_t>(bytes.Word()) : dlpack::kCpu;
  tensor.ndim = bytes.Below(8) == 0 ? static_cast<int32_t>(bytes.Word()) : static_cast<int32_t>(bytes.Below(9));
  tensor.type_code = bytes.Below(4) == 0 ? bytes.Next() : 2;
  tensor.type_bits = bytes.Below(4) == 0 ? bytes.Next() : 64;
  tensor.type_lanes = bytes.Below(8) == 0 ? bytes.Next() : 1;
  tensor.shape = bytes.Below(8) == 0 ? nullptr : shape;
  tensor.strides = bytes.Below(2) == 0 ? nullptr : strides;
  tensor.byte_offset = bytes.Below(2) == 0 ? 0 : bytes.Below(16);
  // The struct does not say how much memory there is: more than there is would be the caller's lie.
  const int32_t ndim = tensor.ndim >= 0 && tensor.ndim <= 8 && tensor.shape != nullptr ? tensor.ndim : 0;
  if (tensor.ndim > 8 && tensor.ndim <= 64) tensor.ndim = 65;
  double extent = 1;
  double row = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    extent += (static_cast<double>(shape[d]) - 1) * (tensor.strides == nullptr ? row : static_cast<double>(strides[d]));
    row *= static_cast<double>(shape[d]);
  }
  bool empty = false;
  for (int32_t d = 0; d < ndim; ++d) empty |= shape[d] == 0;
  const bool within = empty || extent + 4 <= kElements / 2.0;
  managed.manager = &deleted;
  managed.deleter = [](dlpack::Managed* self) { ++*static_cast<int*>(self->manager); };
  addend_tensor* made = nullptr;
  addend_status* status = addend_tensor_from_dlpack(&managed, 0, &made);
  if (status != nullptr) {
    addend_status_release(status);
    return deleted == 0 && made == nullptr ? 0 : -1;
  }
  const api::Tensor owner(made);
  if (within) {
    try {
      owner.ToString();
      owner.To<double>();
    } catch (const api::Error&) {
      // Complex numbers are no doubles.
    }
  }
  addend_tensor_release(nullptr);
  return 0;
}

}  // namespace
}  // namespace addend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addend::Bytes bytes(data, size);
  const int result = addend::Run(bytes);
  return addend_debug_live(ADDEND_HANDLE_ANY) == 0 ? result : -1;
}

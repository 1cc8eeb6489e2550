// The layout of DLPack's structs, which libraries agree on to exchange tensors: https://dmlc.github.io/dlpack. Declared
// here because the header that LibTorch brings along knows only the older of the two.
#ifndef ADDEND_C_API_DLPACK_ABI_H_
#define ADDEND_C_API_DLPACK_ABI_H_

#include <cstdint>

namespace addend::c_api::dlpack {

constexpr int32_t kCpu = 1;
constexpr int32_t kCuda = 2;
constexpr uint8_t kBool = 6;
constexpr uint32_t kMajor = 1;
constexpr uint64_t kReadOnly = 1;

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t type_code;
  uint8_t type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* manager;
  void (*deleter)(Managed* self);
};

struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(Tensor) == 48 && sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80, "DLPack's layout");

}  // namespace addend::c_api::dlpack

#endif  // ADDEND_C_API_DLPACK_ABI_H_

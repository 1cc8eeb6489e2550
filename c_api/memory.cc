#include "c_api/memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace addend::c_api {

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d > 1; --d) {
    if (__builtin_mul_overflow(strides[d - 1], std::max<int64_t>(sizes[d - 1], 1), &strides[d - 2])) {
      throw InvalidArgument(absl::StrCat("dims [", absl::StrJoin(sizes, ", "), "] need strides beyond 64 bits"));
    }
  }
  return strides;
}

size_t ExtentOf(const Layout& layout) {
  for (const int64_t size : layout.sizes) {
    if (size == 0) return 0;
  }
  int64_t last = 0;
  bool overflow = false;
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    const int64_t stride = layout.strides[d];
    if (stride < 0) throw InvalidArgument(absl::StrCat("strides hold ", stride, "; LibTorch has no negative strides"));
    int64_t way = 0;
    overflow |= __builtin_mul_overflow(layout.sizes[d] - 1, stride, &way) || __builtin_add_overflow(last, way, &last);
  }
  overflow |= __builtin_add_overflow(last, 1, &last) ||
              __builtin_mul_overflow(last, static_cast<int64_t>(c10::elementSize(layout.dtype)), &last);
  if (overflow) {
    throw InvalidArgument(absl::StrCat("dims [", absl::StrJoin(layout.sizes, ", "), "] with strides [",
                                       absl::StrJoin(layout.strides, ", "), "] reach further than any memory"));
  }
  return static_cast<size_t>(last);
}

at::Tensor Over(void* data, const Layout& layout, std::shared_ptr<Owner> owner) {
  const size_t alignment = c10::elementSize(c10::toRealValueType(layout.dtype));
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    throw InvalidArgument(absl::StrCat("data is not aligned to the ", alignment, " bytes of an element; copy it"));
  }
  const auto options = at::TensorOptions().dtype(layout.dtype).device(layout.device);
  return at::from_blob(
      data, layout.sizes, layout.strides, [owner = std::move(owner)](void*) {}, options, layout.device);
}

}  // namespace addend::c_api

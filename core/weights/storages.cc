#include "core/weights/storages.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend::weights {
namespace {

constexpr size_t kMaxDims = 64;  // what LibTorch's iterators accept
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool Multiply(int64_t a, int64_t b, int64_t* product) { return !__builtin_mul_overflow(a, b, product); }
bool Add(int64_t a, int64_t b, int64_t* sum) { return !__builtin_add_overflow(a, b, sum); }

Error Malformed(const std::string& where, const std::string& what) {
  return InvalidArgument(absl::StrCat(where, ": ", what));
}

// The number of elements from the storage's first to the tensor's last.
int64_t Extent(const Strided& strided, const std::string& where) {
  if (strided.sizes.size() > kMaxDims) {
    throw Malformed(where,
                    absl::StrCat("has ", strided.sizes.size(), " dimensions; at most ", kMaxDims, " are supported"));
  }
  if (strided.sizes.size() != strided.strides.size()) {
    throw Malformed(where,
                    absl::StrCat("has ", strided.sizes.size(), " sizes and ", strided.strides.size(), " strides"));
  }
  const std::string shape = ShapeText(strided.sizes);
  if (strided.offset < 0) throw Malformed(where, absl::StrCat("begins at ", strided.offset, ", before its storage"));
  const auto item = static_cast<int64_t>(c10::elementSize(strided.dtype));
  int64_t bytes = item;  // as if it were contiguous; a size of 0 counts as 1, so that nothing computed later overflows
  int64_t last = strided.offset;
  bool empty = false;
  for (size_t d = 0; d < strided.sizes.size(); ++d) {
    const int64_t size = strided.sizes[d];
    const int64_t stride = strided.strides[d];
    if (size < 0) throw Malformed(where, absl::StrCat("shape ", shape, " has a negative size"));
    if (stride < 0) throw Malformed(where, absl::StrCat("has the negative stride ", stride));
    int64_t way = 0;
    if (!Multiply(bytes, std::max<int64_t>(size, 1), &bytes) ||
        !Multiply(stride, std::max<int64_t>(size - 1, 0), &way) || !Add(last, way, &last)) {
      throw Malformed(where, absl::StrCat("shape ", shape, " is too large for any memory"));
    }
    empty |= size == 0;
  }
  if (empty) return 0;
  if (last > kMost / item - 1) throw Malformed(where, absl::StrCat("shape ", shape, " is too large for any memory"));
  return last + 1;
}

// Any other byte in a bool is undefined behaviour later on.
void CheckBooleans(SharedStorage& shared, const std::string& where) {
  if (shared.holds_booleans) return;
  const auto* bytes = static_cast<const unsigned char*>(shared.storage.data());
  const auto count = static_cast<size_t>(shared.storage.nbytes());
  const auto* wrong = std::find_if(bytes, bytes + count, [](unsigned char byte) { return byte > 1; });
  if (wrong != bytes + count) {
    throw Malformed(where,
                    absl::StrCat("holds a truth value ", static_cast<int>(*wrong), ", which is neither 0 nor 1"));
  }
  shared.holds_booleans = true;
}

}  // namespace

SharedStorage MakeStorage(const Bytes& bytes, size_t alignment, MemoryBudget* budget) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data) % std::max<size_t>(alignment, 1) == 0;
  c10::DataPtr data;
  if (bytes.owner != nullptr && aligned) {
    auto owner = std::make_unique<std::shared_ptr<void>>(bytes.owner);
    data = c10::DataPtr(
        bytes.data, owner.get(), [](void* kept) { delete static_cast<std::shared_ptr<void>*>(kept); },
        c10::Device(c10::kCPU));
    owner.release();
  } else {
    budget->Take(bytes.size);
    data = c10::GetCPUAllocator()->allocate(bytes.size);
    if (bytes.size > 0) std::memcpy(data.get(), bytes.data, bytes.size);
  }
  SharedStorage shared;
  shared.storage = c10::Storage(c10::Storage::use_byte_size_t(), static_cast<int64_t>(bytes.size), std::move(data),
                                /*allocator=*/nullptr, /*resizable=*/false);
  return shared;
}

at::Tensor MakeTensor(SharedStorage& shared, const Strided& strided, const std::string& where) {
  const int64_t extent = Extent(strided, where);
  const auto item = static_cast<int64_t>(c10::elementSize(strided.dtype));
  const auto available = static_cast<int64_t>(shared.storage.nbytes());
  if (extent > available / item) {
    throw Malformed(where, absl::StrCat("shape ", ShapeText(strided.sizes), " with strides ",
                                        ShapeText(strided.strides), " from element ", strided.offset, " takes ", extent,
                                        " elements of ", item, " bytes, and its storage has ", available, " bytes"));
  }
  if (strided.dtype == c10::ScalarType::Bool) CheckBooleans(shared, where);
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(shared.storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                               c10::scalarTypeToTypeMeta(strided.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(strided.sizes, strided.strides);
  tensor.unsafeGetTensorImpl()->set_storage_offset(extent == 0 ? 0 : strided.offset);
  return tensor;
}

}  // namespace addend::weights

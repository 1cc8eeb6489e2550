#include "core/program/memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>

namespace addend {
namespace {

const char* Begin(const c10::StorageImpl& storage) { return static_cast<const char*>(storage.data()); }
const char* Begin(const at::Tensor& tensor) { return static_cast<const char*>(tensor.data_ptr()); }

}  // namespace

size_t Extent(const at::Tensor& tensor) {
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.numel() == 0 ? 0 : (last + 1) * tensor.itemsize();
}

at::Tensor TensorIn(const c10::Storage& storage, const at::Tensor& like, at::IntArrayRef strides, int64_t offset) {
  return at::empty({0}, like.options().requires_grad(false)).set_(storage, offset, like.sizes(), strides);
}

bool LiesIn(const c10::StorageImpl& storage, const at::Tensor& tensor) {
  if (storage.data() == nullptr || tensor.numel() == 0) return false;
  const char* from = Begin(tensor);
  return from >= Begin(storage) && from + Extent(tensor) <= Begin(storage) + storage.nbytes();
}

at::Tensor SeenIn(const c10::Storage& storage, const at::Tensor& tensor) {
  const auto bytes = Begin(tensor) - Begin(*storage.unsafeGetStorageImpl());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  if (bytes % item != 0) return {};
  return TensorIn(storage, tensor, tensor.strides(), bytes / item);
}

at::Tensor WholeStorage(const at::Tensor& tensor) {
  const auto nbytes = static_cast<int64_t>(tensor.storage().nbytes());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  const at::ScalarType dtype = nbytes % item == 0 ? tensor.scalar_type() : at::kByte;
  const int64_t numel = nbytes / static_cast<int64_t>(c10::elementSize(dtype));
  return at::empty({0}, at::TensorOptions().dtype(dtype).device(tensor.device()))
      .set_(tensor.storage(), 0, {numel}, {1});
}

int64_t WritesTo(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_inference() ? static_cast<int64_t>(tensor._version()) : 0;
}

void AskForGradients(const at::Tensor& parameter) {
  if (parameter.is_floating_point() || parameter.is_complex()) parameter.set_requires_grad(true);
}

}  // namespace addend

#include "core/base/views.h"

#include <ATen/ops/as_strided.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/DimVector.h>

#include <algorithm>
#include <utility>

namespace addend {
namespace {

at::Tensor PlainView(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(base.storage()),
                                                             base.key_set(), base.dtype());
  view.unsafeGetTensorImpl()->set_storage_offset(offset);
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return view;
}

// Whether a view of a storage of `bytes` stays within it.
bool IsWithin(at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset, size_t itemsize, size_t bytes) {
  int64_t last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return offset >= 0;
    if (strides[d] < 0) return false;
    last += (sizes[d] - 1) * strides[d];
  }
  return offset >= 0 && (static_cast<size_t>(last) + 1) * itemsize <= bytes;
}

}  // namespace

bool IsPlain(const at::Tensor& base) {
  return !c10::GradMode::is_enabled() && base.layout() == at::kStrided && !base.is_conj() && !base.is_neg() &&
         base.has_storage() && !base.is_quantized() && (base.device().is_cpu() || base.device().is_cuda()) &&
         !base.key_set().has(c10::DispatchKey::Python);
}

at::Tensor Strided(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  if (!IsPlain(base) || !IsWithin(sizes, strides, offset, base.itemsize(), base.storage().nbytes())) {
    return at::as_strided(base, sizes, strides, offset);
  }
  return PlainView(base, sizes, strides, offset);
}

at::Tensor Select(const at::Tensor& tensor, int64_t dim, int64_t index) {
  if (!IsPlain(tensor) || index >= tensor.size(dim)) return tensor.select(dim, index);
  at::DimVector sizes(tensor.sizes());
  at::DimVector strides(tensor.strides());
  const int64_t offset = tensor.storage_offset() + index * strides[dim];
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return PlainView(tensor, sizes, strides, offset);
}

at::Tensor Narrow(const at::Tensor& tensor, int64_t dim, int64_t first, int64_t count) {
  if (first == 0 && count == tensor.size(dim)) return tensor;
  if (!IsPlain(tensor) || first + count > tensor.size(dim)) return tensor.narrow(dim, first, count);
  at::DimVector sizes(tensor.sizes());
  sizes[dim] = count;
  return PlainView(tensor, sizes, tensor.strides(), tensor.storage_offset() + first * tensor.stride(dim));
}

at::Tensor Unsqueezed(const at::Tensor& tensor, int64_t dim) {
  if (!IsPlain(tensor)) return tensor.unsqueeze(dim);
  at::DimVector sizes(tensor.sizes());
  at::DimVector strides(tensor.strides());
  const int64_t stride = dim < tensor.dim() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(sizes.begin() + dim, 1);
  strides.insert(strides.begin() + dim, stride);
  return PlainView(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor Transposed(const at::Tensor& tensor, int64_t a, int64_t b) {
  if (!IsPlain(tensor)) return tensor.transpose(a, b);
  at::DimVector sizes(tensor.sizes());
  at::DimVector strides(tensor.strides());
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return PlainView(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor Parted(const at::Tensor& tensor, int64_t dim, int64_t inner) {
  const int64_t outer = tensor.size(dim) / inner;
  if (!IsPlain(tensor)) {
    at::DimVector sizes(tensor.sizes());
    sizes[dim] = outer;
    sizes.insert(sizes.begin() + dim + 1, inner);
    return tensor.view(sizes);
  }
  at::DimVector sizes(tensor.sizes());
  at::DimVector strides(tensor.strides());
  sizes[dim] = outer;
  sizes.insert(sizes.begin() + dim + 1, inner);
  strides.insert(strides.begin() + dim + 1, strides[dim]);
  strides[dim] *= inner;
  return PlainView(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor Moved(const at::Tensor& tensor, int64_t from, int64_t to) {
  if (from == to) return tensor;
  if (!IsPlain(tensor)) return tensor.movedim(from, to);
  at::DimVector sizes(tensor.sizes());
  at::DimVector strides(tensor.strides());
  for (at::DimVector* own : {&sizes, &strides}) {
    const int64_t moved = (*own)[from];
    own->erase(own->begin() + from);
    own->insert(own->begin() + to, moved);
  }
  return PlainView(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor Expanded(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return tensor.sizes() == sizes ? tensor : tensor.expand(sizes);
}

at::Tensor Reshaped(const at::Tensor& tensor, at::IntArrayRef sizes) {
  if (tensor.sizes() == sizes) return tensor;
  if (!IsPlain(tensor) || !tensor.is_contiguous()) return tensor.reshape(sizes);
  at::DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  if (c10::multiply_integers(sizes) != tensor.numel()) return tensor.reshape(sizes);  // which says what is wrong
  return PlainView(tensor, sizes, strides, tensor.storage_offset());
}

at::Tensor InDtype(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.scalar_type() == dtype ? tensor : tensor.to(dtype);
}

at::Tensor Resolved(const at::Tensor& tensor) {
  if (!tensor.defined() || !(tensor.is_conj() || tensor.is_neg())) return tensor;
  return tensor.resolve_conj().resolve_neg();
}

}  // namespace addend

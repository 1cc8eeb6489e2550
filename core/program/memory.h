// Where tensors lie in memory: an exchange format tells where elements lie, not which storage object they belong to.
#ifndef ADDEND_CORE_PROGRAM_MEMORY_H_
#define ADDEND_CORE_PROGRAM_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>

namespace addend {

// How many bytes a tensor reaches from its first element on.
size_t Extent(const at::Tensor& tensor);
// A tensor of this dtype and size in a storage.
at::Tensor TensorIn(const c10::Storage& storage, const at::Tensor& like, at::IntArrayRef strides, int64_t offset);
// Whether all elements of the tensor lie in the storage's memory.
bool LiesIn(const c10::StorageImpl& storage, const at::Tensor& tensor);
// The same elements through another storage object, in which they lie; undefined where they are no whole number of
// elements from its beginning.
at::Tensor SeenIn(const c10::Storage& storage, const at::Tensor& tensor);
// One-dimensional over the tensor's whole storage, in its dtype where the storage is a whole number of such elements,
// else in bytes.
at::Tensor WholeStorage(const at::Tensor& tensor);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_MEMORY_H_

// Places of tensors in memory: an exchange format tells where elements lie, not which storage object they belong to.
#ifndef ADDEND_CORE_PROGRAM_MEMORY_H_
#define ADDEND_CORE_PROGRAM_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>

namespace addend {

// The extent of a tensor in bytes, from its first element on.
size_t Extent(const at::Tensor& tensor);
// A tensor of this dtype and size in a storage.
at::Tensor TensorIn(const c10::Storage& storage, const at::Tensor& like, at::IntArrayRef strides, int64_t offset);
// Whether all elements of the tensor lie in the storage's memory.
bool LiesIn(const c10::StorageImpl& storage, const at::Tensor& tensor);
// Returns the same elements through another storage object that holds them; undefined if they are not a whole number of
// elements from its beginning.
at::Tensor SeenIn(const c10::Storage& storage, const at::Tensor& tensor);
// Returns the tensor's whole storage as one dimension, in its dtype if the storage is a whole number of such elements,
// else in bytes.
at::Tensor WholeStorage(const at::Tensor& tensor);
// How often operators have written a tensor, as far as LibTorch counts it: not in inference tensors.
int64_t WritesTo(const at::Tensor& tensor);
// Makes a parameter ask for gradients, as its author's did, if its dtype can have any. No gradient is ever computed,
// but LibTorch multiplies in another order where a factor asks for them (at::matmul, for inputs that are not
// contiguous), and so rounds otherwise.
void AskForGradients(const at::Tensor& parameter);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_MEMORY_H_

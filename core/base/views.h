// Views and conversions that cost nothing where there is nothing to do.
//
// Every operator's operands, outputs and rows are viewed several times. Through LibTorch's dispatcher each view takes
// as long as a small operator, and so does a conversion that changes nothing. Where nobody differentiates, the views
// here do without. Where somebody does, they are those of LibTorch: autograd has to know of views, also of tensors
// without gradients, because what is written through them may have some.
#ifndef ADDEND_CORE_BASE_VIEWS_H_
#define ADDEND_CORE_BASE_VIEWS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace addend {

// Whether views of the tensor do without the dispatcher here and now: nobody differentiates, and it lies in memory as
// it is.
bool IsPlain(const at::Tensor& tensor);
// as_strided.
at::Tensor Strided(const at::Tensor& base, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset);
// tensor.select(dim, index); neither is negative.
at::Tensor Select(const at::Tensor& tensor, int64_t dim, int64_t index);
// tensor.narrow(dim, first, count); nothing is negative.
at::Tensor Narrow(const at::Tensor& tensor, int64_t dim, int64_t first, int64_t count);
// tensor.unsqueeze(dim), which is not negative.
at::Tensor Unsqueezed(const at::Tensor& tensor, int64_t dim);
// tensor.transpose(a, b); neither is negative.
at::Tensor Transposed(const at::Tensor& tensor, int64_t a, int64_t b);
// tensor.unflatten(dim, {size / inner, inner}); `dim` is not negative.
at::Tensor Parted(const at::Tensor& tensor, int64_t dim, int64_t inner);
// tensor.movedim(from, to); neither is negative.
at::Tensor Moved(const at::Tensor& tensor, int64_t from, int64_t to);
// tensor.expand(sizes).
at::Tensor Expanded(const at::Tensor& tensor, at::IntArrayRef sizes);
// tensor.reshape(sizes), which has no -1.
at::Tensor Reshaped(const at::Tensor& tensor, at::IntArrayRef sizes);

// tensor.to(dtype).
at::Tensor InDtype(const at::Tensor& tensor, at::ScalarType dtype);
// The tensor with its lazy conjugation or negation carried out, for kernels that walk over memory. Undefined stays so.
at::Tensor Resolved(const at::Tensor& tensor);

}  // namespace addend

#endif  // ADDEND_CORE_BASE_VIEWS_H_

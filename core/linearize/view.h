// Tensors over a storage: from the one dimension in which storages are kept to what an operand is, and back.
//
// Note [Numbers of a storage]
// A storage is kept in the dtype that it was first seen with. An operand may read it differently: complex numbers as
// pairs of real ones (view_as_real, real, imag), pairs as complex numbers, and each element as its conjugate or
// negative, which LibTorch does lazily. The views here do the same to values, references and rows, so that a write
// through one of them lands where the model's own write did.
#ifndef ADDEND_CORE_LINEARIZE_VIEW_H_
#define ADDEND_CORE_LINEARIZE_VIEW_H_

#include <ATen/core/Tensor.h>

#include "core/program/program.h"

namespace addend {

// Whether an operand has rows.
bool CarriesRows(const Operand& operand);

// The whole storage of a tensor as one dimension in the storage's dtype, sharing its memory. Detached unless
// `differentiable`.
at::Tensor Flat(const at::Tensor& tensor, const StorageInfo& storage, bool differentiable);

// A tensor with a geometry over a one-dimensional tensor of its storage.
at::Tensor ViewOf(const at::Tensor& flat, const Geometry& geometry);
// An operand over a one-dimensional tensor of its storage, of the storage's dtype. May be lazily conjugated or negated.
at::Tensor ViewOf(const at::Tensor& flat, const Operand& operand);

// Rows [R, *sizes] of an operand over the rows [R, numel] of its storage; the same holds. Undefined where the rows lie
// so that no view of them exists: `Paired` gives some that do.
at::Tensor RowsViewOf(const at::Tensor& rows, const Operand& operand);
// A copy of real rows [R, numel] in which every row can be read as complex numbers.
at::Tensor Paired(const at::Tensor& rows);

// The elements themselves where a view conjugates or negates them lazily: kernels that walk over memory need that.
at::Tensor Resolved(const at::Tensor& tensor);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_VIEW_H_

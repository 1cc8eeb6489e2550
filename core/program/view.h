// Views of storages: from the one dimension in which storages are kept to the geometry of an operand, and back.
//
// Note [Numbers of a storage]
// A storage is kept in the dtype that its first tensor had. An operand may read it in another way: complex numbers as
// pairs of real ones (view_as_real, real, imag), pairs as complex numbers, and each element as its conjugate or
// negative, which LibTorch does lazily. The views here read values, references and rows in the same way, so that a
// write through one of them lands where the model's own write did.
#ifndef ADDEND_CORE_PROGRAM_VIEW_H_
#define ADDEND_CORE_PROGRAM_VIEW_H_

#include <ATen/core/Tensor.h>

#include "core/base/views.h"
#include "core/program/traced_calls.h"

namespace addend {

// Whether an operand has rows.
bool CarriesRows(const Operand& operand);

// Returns the whole storage of a tensor as one dimension in the storage's dtype, sharing its memory. Detached unless
// `differentiable`.
at::Tensor Flat(const at::Tensor& tensor, const StorageInfo& storage, bool differentiable);

// Returns the tensor with this geometry over a one-dimensional tensor of its storage.
at::Tensor ViewOf(const at::Tensor& flat, const Geometry& geometry);
// Returns the operand over a one-dimensional tensor of its storage, of the storage's dtype. It may be lazily conjugated
// or negated.
at::Tensor ViewOf(const at::Tensor& flat, const Operand& operand);

// Returns a tensor as an operator is given it that runs again, without derivatives: a number that LibTorch wrapped is
// one again, and what had derivatives says so.
at::Tensor AsGiven(const at::Tensor& tensor, const Operand& operand);
// The operand over its storage, as the operator is given it.
at::Tensor GivenAgain(const at::Tensor& flat, const Operand& operand);

// Whether a tensor lies in its storage as an operand does.
bool HasLayout(const at::Tensor& tensor, const Operand& operand);

// Returns the rows [R, *sizes] of an operand over the rows [R, numel] of its storage. They may be lazily conjugated or
// negated. Undefined if the rows lie so that no such view exists; Paired() gives rows for which it does.
at::Tensor RowsViewOf(const at::Tensor& rows, const Operand& operand);
// Returns a copy of real rows [R, numel] in which every row can be read as complex numbers.
at::Tensor Paired(const at::Tensor& rows);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_VIEW_H_

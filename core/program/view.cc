#include "core/program/view.h"

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <c10/util/DimVector.h>

namespace addend {
namespace {

at::Tensor WithFlags(at::Tensor view, const Operand& operand) {
  if (operand.conjugated) view = at::_conj(view);
  return operand.negated ? at::_neg_view(view) : view;
}

}  // namespace

bool CarriesRows(const Operand& operand) {
  return operand.storage >= 0 && operand.decomposed && Continuous(operand.dtype);
}

at::Tensor Flat(const at::Tensor& tensor, const StorageInfo& storage, bool differentiable) {
  // A view that autograd knows of keeps the tensor that it is of.
  const c10::AutoGradMode grad(differentiable && c10::GradMode::is_enabled());
  // A view that autograd does not know of needs no detached tensor.
  const bool plain = tensor.scalar_type() == storage.dtype && IsPlain(tensor);
  const bool attached = tensor.is_conj() || tensor.is_neg() || (tensor.requires_grad() && !plain);
  at::Tensor own = differentiable || !attached ? tensor : tensor.detach();
  // Wrap the memory of an inference tensor in another tensor, which rules can differentiate.
  if (tensor.is_inference()) {
    own = at::empty({0}, tensor.options())
              .set_(tensor.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }
  if (own.is_conj()) own = at::_conj(own);
  if (own.is_neg()) own = at::_neg_view(own);
  if (own.scalar_type() == storage.dtype) return Strided(own, {storage.numel}, {1}, 0);
  const int64_t bytes = storage.numel * static_cast<int64_t>(c10::elementSize(storage.dtype));
  return at::as_strided(own, {bytes / static_cast<int64_t>(own.itemsize())}, {1}, 0).view(storage.dtype);
}

at::Tensor ViewOf(const at::Tensor& flat, const Geometry& geometry) {
  return Strided(flat, geometry.sizes, geometry.strides, geometry.offset + flat.storage_offset());
}

at::Tensor ViewOf(const at::Tensor& flat, const Operand& operand) {
  // Plain storages may be read in any way that LibTorch allows.
  at::Tensor own = flat;
  if (flat.scalar_type() != operand.dtype) {
    const auto size = static_cast<int64_t>(c10::elementSize(operand.dtype));
    const int64_t rest = flat.numel() * static_cast<int64_t>(flat.itemsize()) % size;
    own = flat.narrow(0, 0, flat.numel() - rest / static_cast<int64_t>(flat.itemsize())).view(operand.dtype);
  }
  return WithFlags(ViewOf(own, operand.geometry), operand);
}

at::Tensor AsGiven(const at::Tensor& tensor, const Operand& operand) {
  const bool requires_grad = operand.requires_grad && !tensor.requires_grad() && !tensor.is_inference();
  if (!operand.wrapped_number && !requires_grad) return tensor;
  // The marks are set on a copy, because others may hold the tensor. The copy shares its memory, as that of alias()
  // does, which costs as much as a small operator.
  at::Tensor own(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  if (operand.wrapped_number) own.unsafeGetTensorImpl()->set_wrapped_number(true);
  if (requires_grad) own.set_requires_grad(true);
  return own;
}

at::Tensor GivenAgain(const at::Tensor& flat, const Operand& operand) {
  return AsGiven(ViewOf(flat, operand), operand);
}

bool HasLayout(const at::Tensor& tensor, const Operand& operand) {
  return tensor.defined() && tensor.scalar_type() == operand.dtype && tensor.sizes() == operand.geometry.sizes &&
         tensor.strides() == operand.geometry.strides && tensor.storage_offset() == operand.geometry.offset;
}

at::Tensor RowsViewOf(const at::Tensor& rows, const Operand& operand) {
  at::Tensor own = rows;
  const bool complex = at::isComplexType(operand.dtype);
  if (own.is_complex() && !complex) {
    own = at::view_as_real(own);  // [R, numel, 2]
  } else if (!own.is_complex() && complex) {
    if (own.stride(0) % 2 != 0 || own.storage_offset() % 2 != 0) return {};
    own = at::view_as_complex(
        at::as_strided(own, {own.size(0), own.size(1) / 2, 2}, {own.stride(0), 2, 1}, own.storage_offset()));
  }
  at::DimVector sizes = {own.size(0)};
  at::DimVector strides = {own.stride(0)};
  sizes.append(operand.geometry.sizes.begin(), operand.geometry.sizes.end());
  strides.append(operand.geometry.strides.begin(), operand.geometry.strides.end());
  // Rows may themselves be a slice, so their own offset counts.
  return WithFlags(Strided(own, sizes, strides, own.storage_offset() + operand.geometry.offset), operand);
}

at::Tensor Paired(const at::Tensor& rows) {
  const int64_t numel = rows.size(1);
  at::Tensor copy = at::empty({rows.size(0), numel + numel % 2}, rows.options()).narrow(1, 0, numel);
  return copy.copy_(rows);
}

}  // namespace addend

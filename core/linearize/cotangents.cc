#include "core/linearize/cotangents.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <utility>

#include "core/program/view.h"

namespace addend {
namespace {

// Whether two elements of a view with these strides may share memory. May say yes for some views that do not overlap.
bool MayOverlap(at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::SmallVector<std::pair<int64_t, int64_t>, 8> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// Cotangents of an operand as those of the same memory without lazy conjugation and negation, and back.
at::Tensor Flipped(at::Tensor rows, const Operand& operand) {
  if (operand.conjugated) rows = rows.conj();
  if (operand.negated) rows = rows.neg();
  return Resolved(rows);
}

}  // namespace

void Cotangents::Add(const Operand& operand, const at::Tensor& given) {
  if (CoversWhole(operand, StorageOf(operand))) {
    rows_.AddWhole(operand, given);
    return;
  }
  const at::Tensor own = Flipped(InDtype(given, RowDtype(operand.dtype)), operand);
  const StorageInfo& storage = StorageOf(operand);
  const bool same_dtype = at::isComplexType(storage.dtype) == at::isComplexType(operand.dtype);
  if (!rows_.Has(operand.storage) && same_dtype && own.numel() == rows_.count() * storage.numel &&
      !MayOverlap(operand.geometry.sizes, operand.geometry.strides)) {
    // The view has every element of its storage in another order.
    rows_.PutEmpty(operand);
    ViewOfPlain(operand).copy_(own);
    return;
  }
  rows_.Own(operand);
  AddInto(operand, own);
}

at::Tensor Cotangents::Take(const Call& call, const Operand& output) {
  if (!rows_.Has(output.storage)) return {};
  if (CoversWhole(output, StorageOf(output))) {
    at::DimVector sizes = {rows_.count()};
    sizes.append(output.geometry.sizes.begin(), output.geometry.sizes.end());
    const at::Tensor taken = Reshaped(rows_.Flat(output.storage), sizes);
    rows_.Drop(output.storage);
    return taken;
  }
  const bool born_here = !output.written || call.resized_output;
  if (born_here) {
    const at::Tensor taken = Flipped(ViewOfPlain(output), output);
    rows_.Drop(output.storage);
    return taken;
  }
  rows_.Own(output);
  const at::Tensor region = ViewOfPlain(output);
  const at::Tensor taken = Flipped(region.clone(at::MemoryFormat::Contiguous), output);
  region.zero_();
  return taken;
}

// The operand's view of its storage, without lazy conjugation and negation.
at::Tensor Cotangents::ViewOfPlain(const Operand& operand) {
  Operand plain = operand;
  plain.conjugated = plain.negated = false;
  return rows_.View(plain);
}

void Cotangents::AddInto(const Operand& operand, at::Tensor given) {
  Operand region = operand;
  for (size_t d = 0; d < region.geometry.sizes.size(); ++d) {
    if (region.geometry.strides[d] != 0 || region.geometry.sizes[d] <= 1) continue;
    given = given.sum(static_cast<int64_t>(d) + 1, /*keepdim=*/true);
    region.geometry.sizes[d] = 1;
  }
  if (!MayOverlap(region.geometry.sizes, region.geometry.strides)) {
    ViewOfPlain(region).add_(given);
    return;
  }
  const at::ScalarType stored = StorageOf(operand).dtype;
  const bool pairs = at::isComplexType(stored) && !at::isComplexType(operand.dtype);
  const bool complex = !at::isComplexType(stored) && at::isComplexType(operand.dtype);
  Operand whole = region;
  const int64_t numel = StorageOf(operand).numel;
  whole.geometry = {{pairs ? 2 * numel : complex ? numel / 2 : numel}, {1}, 0};
  const at::Tensor all = ViewOfPlain(whole);
  const at::Tensor numbers = at::arange(all.size(1), given.options().dtype(at::kLong));
  const at::Tensor index = ViewOf(numbers, region.geometry).reshape({-1});
  all.index_add_(1, index, given.reshape({rows_.count(), -1}));
}

}  // namespace addend

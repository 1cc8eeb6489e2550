#include "core/linearize/row_table.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "core/base/error.h"
#include "core/program/view.h"

namespace addend {

RowTable::RowTable(const TracedRun& trace, int64_t count)
    : trace_(trace), count_(count), entries_(trace.storages.size()), unknown_(std::make_shared<char>()) {}

at::TensorOptions RowTable::Options(const Operand& operand) const {
  const StorageInfo& storage = StorageOf(operand);
  return at::TensorOptions().device(storage.device).dtype(RowDtype(storage.dtype));
}

at::Tensor RowTable::Zeros(const Operand& operand) const {
  return at::zeros({count_, StorageOf(operand).numel}, Options(operand));
}

at::Tensor RowTable::View(const Operand& operand) {
  Entry& entry = entries_[operand.storage];
  if (!entry.rows.defined()) PutFlat(operand.storage, Zeros(operand));
  const at::Tensor view = RowsViewOf(entry.rows, operand);
  if (view.defined()) return view;
  entry.rows = Paired(entry.rows);
  entry.owner = std::make_shared<char>();
  return RowsViewOf(entry.rows, operand);
}

void RowTable::Own(const Operand& operand) {
  Entry& entry = entries_[operand.storage];
  entry.sum = at::Tensor();
  if (!entry.rows.defined()) {
    entry.rows = Zeros(operand);
  } else if (IsAlone(entry)) {
    return;
  } else {
    entry.rows = entry.rows.clone(at::MemoryFormat::Contiguous);
  }
  entry.owner = std::make_shared<char>();
}

void RowTable::PutEmpty(const Operand& operand) {
  PutFlat(operand.storage, at::empty({count_, StorageOf(operand).numel}, Options(operand)));
}

void RowTable::Put(const Operand& operand, const at::Tensor& rows) {
  if (rows.is_complex() && !at::isComplexType(operand.dtype)) throw Internal("complex rows of a real tensor");
  if (CoversWhole(operand, StorageOf(operand))) {
    PutFlat(operand.storage, Flattened(operand, rows));
    return;
  }
  PutFlat(operand.storage, Zeros(operand));
  View(operand).copy_(rows);
}

void RowTable::PutFlat(int storage, at::Tensor flat) {
  entries_[storage] = {std::move(flat), std::make_shared<char>(), at::Tensor()};
}

void RowTable::AddWhole(const Operand& operand, const at::Tensor& rows) {
  Entry& entry = entries_[operand.storage];
  const at::Tensor flat = Flattened(operand, rows);
  if (!entry.rows.defined()) {
    entry = {flat, unknown_, at::Tensor()};
  } else if (IsAlone(entry)) {
    entry.rows.add_(flat);
  } else {
    PutFlat(operand.storage, entry.rows + flat);
  }
}

void RowTable::Share(int from, int to) { entries_[to] = entries_[from]; }

void RowTable::NoteSharing(int from, int to) {
  if (from < 0 || from == to || !Has(from) || !Has(to)) return;
  if (Flat(from).storage().unsafeGetStorageImpl() == Flat(to).storage().unsafeGetStorageImpl()) {
    entries_[to].owner = entries_[from].owner;
  }
}

at::Tensor RowTable::Flattened(const Operand& operand, const at::Tensor& rows) const {
  const StorageInfo& storage = StorageOf(operand);
  const at::Tensor flat = Reshaped(InDtype(Resolved(rows), RowDtype(storage.dtype)), {count_, storage.numel});
  return storage.numel > 1 && flat.stride(1) != 1 ? flat.contiguous() : flat;
}

}  // namespace addend

// Rows of every storage of a run: what both sweeps carry from node to node.
//
// Note [Rows of storages]
// A storage owns rows [R, numel]. Operands view them as the model viewed the storage, so views need no node of their
// own. Two storages may share rows, if an operator changes nothing or a map hands on its input; so rows are copied
// before they are written, unless no other storage has them. LibTorch's own counts do not tell this, because views keep
// their bases alive. Missing rows are zero.
#ifndef ADDEND_CORE_LINEARIZE_ROW_TABLE_H_
#define ADDEND_CORE_LINEARIZE_ROW_TABLE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/run/trace.h"

namespace addend {

class RowTable {
 public:
  // Makes a table without rows. `count`: R. The trace must outlive the table.
  RowTable(const TracedRun& trace, int64_t count);

  int64_t count() const { return count_; }
  bool Has(int storage) const { return entries_[storage].rows.defined(); }
  // [R, numel] of the storage; undefined where it has none.
  const at::Tensor& Flat(int storage) const { return entries_[storage].rows; }
  // Options of an operand's storage with the dtype of its rows.
  at::TensorOptions Options(const Operand& operand) const;
  // New rows [R, numel] of an operand's storage, all zero; the table does not keep them.
  at::Tensor Zeros(const Operand& operand) const;

  // Rows of an operand, [R, *S], which share memory with those of its storage; zeros are made where it has none. The
  // view may be lazily conjugated or negated; a write through it lands where the model's write landed.
  at::Tensor View(const Operand& operand);
  // Makes rows that no other storage has, which may be written through View. Call it before each write.
  void Own(const Operand& operand);
  // Gives the storage rows of its own, which are to be written before anybody reads them.
  void PutEmpty(const Operand& operand);
  // Replaces the rows of an operand's storage by `rows` [R, *S]; what the operand does not cover becomes zero. The
  // table's rows may share memory with `rows`: see NoteSharing.
  void Put(const Operand& operand, const at::Tensor& rows);
  // Replaces the rows of a storage by new ones, [R, numel].
  void PutFlat(int storage, at::Tensor flat);
  // Adds `rows` [R, *S] to the rows of an operand that covers its storage. The table may keep `rows`, which may have
  // other owners.
  void AddWhole(const Operand& operand, const at::Tensor& rows);
  // Lets `to` share the rows of `from`, and the sum that is known of them.
  void Share(int from, int to);
  // Notes whether two storages have the same memory, after `to` was given rows that were made from `from`.
  void NoteSharing(int from, int to);
  void Drop(int storage) { entries_[storage] = {}; }

  // The sum of components and leftover of a storage, as the check found it; undefined if it is not known. Own and Put
  // forget it.
  at::Tensor& SumOf(int storage) { return entries_[storage].sum; }

 private:
  struct Entry {
    at::Tensor rows;
    std::shared_ptr<char> owner;  // shared by the entries that have the same memory
    at::Tensor sum;
  };

  bool IsAlone(const Entry& entry) const { return entry.owner.use_count() == 1; }
  const StorageInfo& StorageOf(const Operand& operand) const { return trace_.storages[operand.storage]; }
  at::Tensor Flattened(const Operand& operand, const at::Tensor& rows) const;

  const TracedRun& trace_;
  int64_t count_;
  std::vector<Entry> entries_;     // by storage
  std::shared_ptr<char> unknown_;  // owner of rows that somebody outside may have
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_ROW_TABLE_H_

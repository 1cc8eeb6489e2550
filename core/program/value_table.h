// Which value of a program a tensor is while its run is recorded; see Note [Values and storages] in recorded_program.h.
#ifndef ADDEND_CORE_PROGRAM_VALUE_TABLE_H_
#define ADDEND_CORE_PROGRAM_VALUE_TABLE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program/recorded_program.h"
#include "core/program/storage_table.h"

namespace addend {

// Fills in the program's values and storages. Tensors are dense: each has a storage.
class ValueTable {
 public:
  // `program` must outlive the table.
  explicit ValueTable(RecordedProgram* program) : program_(program) {}

  // The value that the tensor object is known as; -1: none, or the object is another tensor by now.
  int Find(const at::Tensor& tensor) const;
  // A value with the same elements in this storage, which is the tensor's: an alias made behind the dispatcher's back
  // is known as that value from now on. If several fit, the one with the tensor's strides is taken, else the newest.
  // -1: none.
  int FindAlias(const at::Tensor& tensor, int storage);
  // A new value, which the tensor object is known as from now on.
  int Add(const at::Tensor& tensor, int storage, ValueKind kind, std::string name);

  // The number of the tensor's storage; -1: not known.
  int FindStorage(const at::Tensor& tensor) const;
  // The number of the tensor's storage; if it is not known, adds it with this kind.
  int StorageOf(const at::Tensor& tensor, ValueKind kind);
  // The storage is that of `tensor` from now on, which was not known before.
  void ReplaceStorage(int storage, const at::Tensor& tensor);
  // How often calls have written the storage.
  int Version(int storage) const { return static_cast<int>(program_->storages[storage].writers.size()); }
  const StorageTable& storages() const { return storages_; }

  void Reserve(size_t values);
  // Forgets all tensors.
  void Clear();

 private:
  RecordedProgram* program_;
  StorageTable storages_;
  absl::flat_hash_map<const c10::TensorImpl*, int> objects_;
  std::vector<int> last_;    // by storage: the value made in it last; -1: none
  std::vector<int> before_;  // by value: the value made in its storage before it; -1: none
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_VALUE_TABLE_H_

// Numbers for storages: which storage a tensor lies in, and whether it still lives.
#ifndef ADDEND_CORE_PROGRAM_STORAGE_TABLE_H_
#define ADDEND_CORE_PROGRAM_STORAGE_TABLE_H_

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace addend {

// Storages are numbered in the order in which they are first seen. The table keeps no memory alive, but as long as it
// lives no storage that it knows gives its address to another one: a number always means one storage.
class StorageTable {
 public:
  // The storage's number, and whether it is new.
  std::pair<int, bool> Add(c10::StorageImpl* storage);
  // -1 where the storage was never added.
  int Find(const c10::StorageImpl* storage) const;
  // Whether the number means this storage.
  bool Is(int number, const c10::StorageImpl* storage) const { return entries_[number].address == storage; }
  // Null where the storage has been freed.
  c10::intrusive_ptr<c10::StorageImpl> Alive(int number) const { return entries_[number].guard.lock(); }
  // How many hold the storage; 0: it has been freed.
  int64_t UseCount(int number) const { return static_cast<int64_t>(entries_[number].guard.use_count()); }
  // The number means another storage from now on, which must not have one of its own.
  void Replace(int number, c10::StorageImpl* storage);

  int size() const { return static_cast<int>(entries_.size()); }
  void Reserve(size_t storages);
  void Clear();

 private:
  struct Entry {
    explicit Entry(c10::StorageImpl* storage);
    c10::weak_intrusive_ptr<c10::StorageImpl> guard;  // keeps the address from being used again
    c10::StorageImpl* address;
  };
  std::vector<Entry> entries_;  // by number
  absl::flat_hash_map<const c10::StorageImpl*, int> numbers_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_STORAGE_TABLE_H_

#include "core/program/storage_table.h"

namespace addend {

StorageTable::Entry::Entry(c10::StorageImpl* storage)
    : guard(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)), address(storage) {}

std::pair<int, bool> StorageTable::Add(c10::StorageImpl* storage) {
  const auto [found, is_new] = numbers_.try_emplace(storage, size());
  if (is_new) entries_.emplace_back(storage);
  return {found->second, is_new};
}

int StorageTable::Find(const c10::StorageImpl* storage) const {
  const auto found = numbers_.find(storage);
  return found == numbers_.end() ? -1 : found->second;
}

void StorageTable::Replace(int number, c10::StorageImpl* storage) {
  numbers_.erase(entries_[number].address);
  entries_[number] = Entry(storage);
  numbers_.emplace(storage, number);
}

void StorageTable::Reserve(size_t storages) {
  entries_.reserve(storages);
  numbers_.reserve(storages);
}

void StorageTable::Clear() {
  entries_.clear();
  numbers_.clear();
}

}  // namespace addend

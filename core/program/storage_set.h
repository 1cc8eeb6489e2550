// A set of storages, by their numbers.
#ifndef ADDEND_CORE_PROGRAM_STORAGE_SET_H_
#define ADDEND_CORE_PROGRAM_STORAGE_SET_H_

#include <cstddef>
#include <vector>

namespace addend {

class StorageSet {
 public:
  void Add(int storage) {
    if (static_cast<size_t>(storage) >= held_.size()) held_.resize(storage + 1, 0);
    held_[storage] = 1;
  }
  void Remove(int storage) {
    if (Contains(storage)) held_[storage] = 0;
  }
  bool Contains(int storage) const { return static_cast<size_t>(storage) < held_.size() && held_[storage] != 0; }

 private:
  std::vector<char> held_;  // by storage: 1 or 0, in bytes since bits grow slowly
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_STORAGE_SET_H_

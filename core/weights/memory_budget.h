// Limit of the memory that reading one file may allocate, whatever the file says of its sizes.
#ifndef ADDEND_CORE_WEIGHTS_MEMORY_BUDGET_H_
#define ADDEND_CORE_WEIGHTS_MEMORY_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace addend::weights {

// Bytes of an entry of a map, without key and value.
inline constexpr uint64_t kMapNodeCost = 64;
// Bytes of a tensor, without its name and elements.
inline constexpr uint64_t kTensorCost = 1024;

// Counts down from four times the file's size and 64 MiB; the file's are those of all files that it is made of. Only
// what is needed for a moment is given back; what a program keeps is taken for good.
class MemoryBudget {
 public:
  MemoryBudget(std::string name, uint64_t file_size)
      : name_(std::move(name)), file_size_(file_size), left_(4 * file_size + kBase) {}

  // Throws InvalidArgument if less is left.
  void Take(uint64_t bytes) {
    if (bytes > left_) {
      throw InvalidArgument(absl::StrCat(name_, ": reading it would take more than ", 4 * file_size_ + kBase,
                                         " bytes of memory, four times the file's ", file_size_,
                                         " bytes and 64 MiB; it is damaged, or made to fill memory"));
    }
    left_ -= bytes;
  }

  // Another file, of this size, belongs to the one that is read.
  void AddFile(uint64_t size) {
    file_size_ += size;
    left_ += 4 * size;
  }

  uint64_t left() const { return left_; }
  // Gives back what was taken since this much was left: it is released.
  void GiveBackTo(uint64_t left) { left_ = left; }

  // Takes what one more element costs a vector, which has the old and the new elements while it grows.
  template <typename T>
  void TakeElement(const std::vector<T>& /*vector*/) {
    Take(3 * sizeof(T));
  }

 private:
  static constexpr uint64_t kBase = uint64_t{64} << 20;

  std::string name_;
  uint64_t file_size_;
  uint64_t left_;
};

}  // namespace addend::weights

#endif  // ADDEND_CORE_WEIGHTS_MEMORY_BUDGET_H_

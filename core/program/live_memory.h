// Live tensors: those of another library's program, known by their memory.
//
// Note [Live tensors]
// A live model belongs to another library, a Python module say, and its tensors reach us through an exchange format
// that tells where elements lie but not which storage they belong to. Recorders know tensors by their storages. So
// inputs, parameters and buffers are declared by their memory, and met when an operator is called with a tensor whose
// storage holds that memory: that is the storage that the model computes with. An output is found among the storages
// that operators have shown, as the one that is alive and holds its memory. Two at once hold it only where one was made
// to alias the other; then it is the one that an operator has shown last.
#ifndef ADDEND_CORE_PROGRAM_LIVE_MEMORY_H_
#define ADDEND_CORE_PROGRAM_LIVE_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <vector>

#include "core/program/storage_table.h"

namespace addend {

class LiveMemory {
 public:
  // A declared tensor in the storage of a live one.
  struct Met {
    int number = -1;    // of the declaration; -1: nothing declared was met
    at::Tensor tensor;  // undefined where its memory is no whole number of elements from the storage's beginning
  };

  // `storages`: those that operators have shown; must outlive this object.
  explicit LiveMemory(const StorageTable* storages) : storages_(storages) {}

  // Declares an input, which is met once, or a parameter or buffer, which may be met in several storages. Of several in
  // one place the first is the owner. `number` is the caller's own. Tensors without elements and those of the meta
  // device have no memory and are never met.
  void DeclareInput(int number, const at::Tensor& tensor);
  void DeclareNamed(int number, const at::Tensor& tensor);

  // The inputs whose memory the storage holds, by number; they count as met from now on.
  std::vector<Met> MeetInputs(const c10::Storage& storage);
  // Whether the tensor shares memory with an input that was not met.
  bool OverlapsInput(const at::Tensor& tensor) const;
  // The parameter or buffer that the tensor is; else the first of those in its storage.
  Met MeetNamed(const at::Tensor& tensor) const;

  // An operator has shown the storage of this number.
  void Know(int storage);
  // The number of the storage that operators have shown and that holds the tensor's memory; -1: none does.
  int Holder(const at::Tensor& tensor) const;
  // The tensor in that storage; undefined where there is none.
  at::Tensor Find(const at::Tensor& tensor) const;

 private:
  struct Declared {
    int number;
    at::Tensor tensor;
  };
  using ByAddress = std::multimap<const char*, Declared>;
  static void Declare(int number, const at::Tensor& tensor, ByAddress* declared);

  const StorageTable* storages_;
  ByAddress inputs_;  // not met so far
  ByAddress named_;
  std::vector<int64_t> shown_;  // by storage: counts up; 0: by no operator
  int64_t count_ = 0;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_LIVE_MEMORY_H_

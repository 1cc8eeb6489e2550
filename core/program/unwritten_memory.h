// Memory that calls of a recorded program allocate with no defined content.
//
// Where its elements are read before a recorded call has written them, something else has: torch.tensor() fills what
// empty() gave it behind the dispatcher. Such memory is a constant of the program; see RecordedStorage::kind.
#ifndef ADDEND_CORE_PROGRAM_UNWRITTEN_MEMORY_H_
#define ADDEND_CORE_PROGRAM_UNWRITTEN_MEMORY_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "core/program/recorded_program.h"
#include "core/program/storage_set.h"

namespace addend {

class UnwrittenMemory {
 public:
  // `program` must outlive this object.
  explicit UnwrittenMemory(RecordedProgram* program) : program_(program) {}

  // The storage holds nothing yet / what a call wrote.
  void Add(int storage) { unwritten_.Add(storage); }
  void Remove(int storage) { unwritten_.Remove(storage); }
  // The call at hand, the next of the program, reads the storage by this tensor, unless Forget() is called.
  void Read(int storage, const at::Tensor& tensor) {
    if (unwritten_.Contains(storage)) read_.push_back({storage, tensor});
  }
  void Forget() { read_.clear(); }
  bool HasRead() const { return !read_.empty(); }
  // Makes constants of what was read.
  void FillRead();
  // Makes a constant of the tensor's storage, if it is unwritten: the call at hand reads and writes it.
  void FillBeforeWrite(int storage, const at::Tensor& tensor) {
    if (unwritten_.Contains(storage)) Fill(storage, tensor);
  }

 private:
  void Fill(int storage, const at::Tensor& tensor);

  struct ReadTensor {
    int storage;
    at::Tensor tensor;
  };
  RecordedProgram* program_;
  StorageSet unwritten_;
  std::vector<ReadTensor> read_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_UNWRITTEN_MEMORY_H_

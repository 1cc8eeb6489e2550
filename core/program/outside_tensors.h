// Tensors that no call of a recorded program made: inputs, the model's parameters and buffers, constants.
#ifndef ADDEND_CORE_PROGRAM_OUTSIDE_TENSORS_H_
#define ADDEND_CORE_PROGRAM_OUTSIDE_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program/live_memory.h"
#include "core/program/name_table.h"
#include "core/program/recorded_program.h"
#include "core/program/value_table.h"

namespace addend {

// Makes values of them when a call is the first to read one.
class OutsideTensors {
 public:
  // All three must outlive this object.
  OutsideTensors(RecordedProgram* program, ValueTable* values, NameTable* names)
      : program_(program), values_(values), names_(names) {}

  // Declared tensors may come in other storage objects over the same memory; see Note [Live tensors].
  void MatchMemory() { memory_.emplace(&values_->storages()); }
  // A parameter (`learned`) or a buffer.
  void Declare(const std::string& name, const at::Tensor& tensor, bool learned);
  // The value of a new input. Throws InvalidArgument where it is one already, and FailedPrecondition where a call or
  // another input has its memory.
  int AddInput(const at::Tensor& tensor, const std::string& name);

  // A tensor in a storage that is not known. True where it is the storage of an input, as which it is known from now
  // on. Throws InvalidArgument for inputs whose place in it cannot be told.
  bool MeetInput(const at::Tensor& tensor);
  // Whether a tensor in a storage that is not known is of an input's memory.
  bool IsInput(const at::Tensor& tensor) const { return memory_ && memory_->OverlapsInput(tensor); }
  // The value of a tensor in a storage that is not known, nor an input's.
  int Add(const at::Tensor& tensor);
  // A call has shown the storage.
  void Know(int storage) {
    if (memory_) memory_->Know(storage);
  }
  // The tensor as calls have met it; undefined where none has met its memory.
  at::Tensor FindMet(const at::Tensor& tensor) const;
  // Returns what FindMet() does, or a parameter that no call has read. Throws NotFound if none has met its memory.
  at::Tensor AsMet(const at::Tensor& tensor) const;

 private:
  struct Declared {
    std::string name;
    at::Tensor tensor;
    bool learned = false;
  };

  RecordedProgram* program_;
  ValueTable* values_;
  NameTable* names_;
  std::vector<Declared> declared_;
  absl::flat_hash_map<const c10::TensorImpl*, size_t> by_tensor_;
  absl::flat_hash_map<const c10::StorageImpl*, size_t> by_storage_;
  std::optional<LiveMemory> memory_;  // inputs are declared as their storages, the others as they are in declared_
  int constants_ = 0;
  int saved_ = 0;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_OUTSIDE_TENSORS_H_

// The guards of a program while its run is recorded; see Note [What a run freezes] in recorded_program.h.
//
// Note [What depends on data]
// A guard is worth its name where it can fail: where the number depends on elements of an input, or on what was drawn.
// Storages tell: those of inputs do, what a generator filled does, and so does whatever a call wrote or gave that read
// one that does. Once marked a storage stays so. Everything else (parameters, constants, sizes and what is computed
// from them) is the same in each replay. Constants that were made of numbers of the input are so as well, since the
// operators by which numbers leave are guards themselves.
#ifndef ADDEND_CORE_PROGRAM_GUARD_TABLE_H_
#define ADDEND_CORE_PROGRAM_GUARD_TABLE_H_

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "core/program/operator_traits.h"
#include "core/program/recorded_program.h"
#include "core/program/storage_set.h"

namespace addend {

// Fills in the program's guards.
class GuardTable {
 public:
  // `program` must outlive the table.
  explicit GuardTable(RecordedProgram* program) : program_(program) {}

  // The elements of the storage depend on data.
  void Mark(int storage) { from_data_.Add(storage); }
  // Whether the call reads elements that depend on data. `first`: of the arguments that count.
  bool ReadsData(const RecordedCall& call, const OperatorTraits& traits, int16_t first = 0) const;
  // Marks the storages of all results and written arguments of a call that depends on data.
  void MarkResults(const RecordedCall& call, const OperatorTraits& traits);
  // Guards what the call has told the program around the operators, if anything. `call`: the next of the program.
  // `results`: what it returned. `from_data`: the call read or drew data.
  void Add(RecordedCall* call, const OperatorTraits& traits, c10::ArrayRef<c10::IValue> results, bool from_data);

 private:
  bool TellsSizes(const RecordedCall& call, const OperatorTraits& traits) const;

  RecordedProgram* program_;
  StorageSet from_data_;
};

// A list is shared: the model may change it after the call. What stands for it stays.
c10::IValue Frozen(const c10::IValue& value);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_GUARD_TABLE_H_

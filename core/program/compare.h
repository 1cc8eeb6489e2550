// Compares two recorded programs.
//
// Note [Views at some sizes]
// reshape() and contiguous() give a view, or the very tensor that they read, where its strides allow that, and a copy
// elsewhere; a dimension of size 1 allows more. So recordings of one model with inputs of several sizes differ in which
// values share a storage, in the versions of storages, and, where contiguous() gave its argument back, in which of the
// two a later call is said to read. None of that is another program: a replay calls the same operators, which decide
// anew. What does count is who wrote the elements that a call reads.
#ifndef ADDEND_CORE_PROGRAM_COMPARE_H_
#define ADDEND_CORE_PROGRAM_COMPARE_H_

#include <c10/util/ArrayRef.h>

#include <optional>
#include <string>

#include "core/program/recorded_program.h"

namespace addend {

struct ProgramDifference {
  int call = -1;     // the first call that differs, by its index in the first program; -1: the outputs differ
  std::string text;  // "the argument alpha is 2, not 1"
};

// Whether another tensor in the storage has the same elements in the same order, whatever the strides of dimensions
// with one element are.
bool SameElements(const Geometry& geometry, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset);
// Whether two values of a program are one tensor: the same elements of one storage.
bool SameTensor(const RecordedProgram& program, int a, int b);
// The storage of `found` that holds the value which lay first in the storage of `expected`, whose values have the same
// numbers; -1: `found` has no such value. Storages are not numbered alike; see Note [Views at some sizes].
int StorageLike(const RecordedProgram& expected, int storage, const RecordedProgram& found);

// Returns the first call in which `found` differs from `expected`: in operator, arguments, values that it reads, dtypes
// of its results or, with `sizes`, their shapes. Numbers that guards saw are data and are not compared. Nullopt:
// nothing differs.
std::optional<ProgramDifference> FirstDifference(const RecordedProgram& expected, const RecordedProgram& found,
                                                 bool sizes = true);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_COMPARE_H_

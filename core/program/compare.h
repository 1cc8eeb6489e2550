// Compares two recorded programs.
#ifndef ADDEND_CORE_PROGRAM_COMPARE_H_
#define ADDEND_CORE_PROGRAM_COMPARE_H_

#include <optional>
#include <string>

#include "core/program/recorded_program.h"

namespace addend {

struct ProgramDifference {
  int call = -1;     // the first call that differs, by its index in the first program; -1: the outputs differ
  std::string text;  // "the argument alpha is 2, not 1"
};

// Returns the first call in which `found` differs from `expected`: in operator, arguments, values that it reads, dtypes
// of its results or, with `sizes`, their shapes. Numbers that guards saw are data and are not compared. Nullopt:
// nothing differs.
std::optional<ProgramDifference> FirstDifference(const RecordedProgram& expected, const RecordedProgram& found,
                                                 bool sizes = true);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_COMPARE_H_

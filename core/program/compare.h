// Are two recordings the same program?
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

// The first call in which `found` does something else than `expected`: operators, arguments, what they read, the dtypes
// of what they give and, with `sizes`, their shapes. What guards saw is data and not compared. Nullopt: nothing
// differs.
std::optional<ProgramDifference> FirstDifference(const RecordedProgram& expected, const RecordedProgram& found,
                                                 bool sizes = true);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_COMPARE_H_

// Recorded programs in another precision.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_

#include <ATen/core/Tensor.h>

#include "core/program/recorded_program.h"

namespace addend {

// Converts a program: every floating-point tensor, parameters and constants included, to the real dtype `dtype`,
// complex tensors to the complex dtype of `dtype`; integers and bools stay. The result is replayed with inputs of these
// dtypes, and stops at an operator that gives another dtype. Recorded numbers stay as they are, so a replay that
// compares floating-point numbers needs a tolerance. Throws InvalidArgument if `dtype` is not floating-point, and
// Unimplemented if the program needs a complex dtype that `dtype` does not have, or sees memory as floating-point
// numbers and as something else.
RecordedProgram InDtype(const RecordedProgram& program, at::ScalarType dtype);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_

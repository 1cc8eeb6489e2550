// Recorded programs in another precision.
#ifndef ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_
#define ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_

#include <ATen/core/Tensor.h>

#include "core/program/recorded_program.h"

namespace addend {

// The program with every floating-point tensor, parameters and constants included, in the real dtype `dtype`, and
// complex ones in the complex dtype of it; integers and bools stay. It is replayed with inputs of these dtypes, and
// stops at an operator that gives another one. Recorded numbers stay as they are: a replay that compares floating-point
// ones needs a tolerance. Throws InvalidArgument where `dtype` is no floating-point one, Unimplemented where it has no
// complex dtype that the program needs, or where memory is seen as floating-point numbers and as something else.
RecordedProgram InDtype(const RecordedProgram& program, at::ScalarType dtype);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_PROGRAM_DTYPE_H_

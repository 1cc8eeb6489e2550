// Makes recordings of one model with inputs of several sizes comparable call by call; see Note [Views at some sizes] in
// core/program/compare.h.
//
// Note [Calls that are left out]
// contiguous() of a tensor that is contiguous never reaches the dispatcher, in Python and in C++: a recording at sizes
// where that is so lacks the call, although the model makes it. A recording at other sizes shows that it does. Such a
// call gives its argument back, so it is added without running anything, and the program holds for both.
#ifndef ADDEND_CORE_RECORDING_ALIGN_H_
#define ADDEND_CORE_RECORDING_ALIGN_H_

#include <vector>

#include "core/program/recorded_program.h"

namespace addend {

// Gives each program the calls of contiguous() that it lacks, and makes all of them name the same values where several
// are one tensor in some. Programs that do not go alike stay apart, which FirstDifference() finds.
void Align(const std::vector<RecordedProgram*>& programs);

}  // namespace addend

#endif  // ADDEND_CORE_RECORDING_ALIGN_H_

// References that are not finite, replaced before anything is linearized.
//
// Note [Stand-ins]
// Where f(reference) is not finite although f(value) is (a logarithm of a black pixel, say), or where a pole lies
// between them (1 / d of references with the other sign), no secant means anything. The operator is linearized at the
// value, and its output's reference becomes what makes the two meet, f(value) - slope * move. Whatever the model
// computed from that reference is then computed once more from its stand-in. Such a reference is no longer what the
// model gives on the baseline: the report counts it.
#ifndef ADDEND_CORE_LINEARIZE_STAND_IN_H_
#define ADDEND_CORE_LINEARIZE_STAND_IN_H_

#include "core/linearize/trace.h"

namespace addend {

// Replaces the reference of an output of call `call` and runs the later operators once more on what follows from it.
// Throws Unimplemented where one of them draws random numbers, which cannot be drawn again.
void ReplaceReference(TracedRun& trace, int64_t call, size_t output, const at::Tensor& reference);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_STAND_IN_H_

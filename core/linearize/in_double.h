// The value of a tensor of a run as float64 gives it: how much of what the model computed is rounding of its own.
#ifndef ADDEND_CORE_LINEARIZE_IN_DOUBLE_H_
#define ADDEND_CORE_LINEARIZE_IN_DOUBLE_H_

#include <ATen/core/Tensor.h>

#include "core/linearize/linearization.h"

namespace addend {

// Makes the calls that read decomposed tensors once more, in float64, on the inputs, parameters and conditions of the
// run. Returns what the probe is then, [*S] in float64; undefined where the run does not hold what that takes (its
// memory was limited, it draws random numbers, it computes in complex numbers), or an operator does not run in float64.
at::Tensor ValueInDouble(const TracedRun& trace, const Probe& probe);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_IN_DOUBLE_H_

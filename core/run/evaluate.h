// A traced call, run once more as it ran: for values and references that were dropped. See Note [Stretches] in
// checkpoints.h.
#ifndef ADDEND_CORE_RUN_EVALUATE_H_
#define ADDEND_CORE_RUN_EVALUATE_H_

#include <cstdint>
#include <vector>

#include "core/program/traced_calls.h"
#include "core/run/traced_run.h"

namespace addend {

// Makes what the call gave, in value and reference, from its operands, which are held, and keeps it in the trace where
// it is missing. What is there already is compared: throws FailedPrecondition, with the position, where the operator
// gives other bits than it gave to the model.
void Evaluate(TracedRun& trace, const Call& call);

// The calls that have to run again, in their order, until the versions that these operands are of are there again.
std::vector<int64_t> CallsThatMake(const TracedRun& trace, const std::vector<Operand>& operands);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_EVALUATE_H_

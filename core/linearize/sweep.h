// The forward sweep: it sends the rows of all components and of the leftover through a linearization at once.
#ifndef ADDEND_CORE_LINEARIZE_SWEEP_H_
#define ADDEND_CORE_LINEARIZE_SWEEP_H_

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/linearize/linearization.h"
#include "core/linearize/operator_check.h"

namespace addend {

// The rows of one probe.
struct ProbeRows {
  at::Tensor components;   // [numc, *S]
  at::Tensor leftover;     // [*S]
  at::Tensor reference;    // [*S]
  at::Tensor value;        // [*S]
  bool decomposed = true;  // false: nothing of the input reaches it
  bool finite = false;     // the value was seen to be; false: not looked at
  int64_t depth = 0;       // the longest chain of operators that led to it
  bool single = false;     // rounded as single precision is somewhere on the way
};

struct SweepResult {
  std::vector<ProbeRows> probes;        // as in Linearization::probes
  std::vector<OperatorCheck> checks;    // one for each node where Policy::check is every_op
  std::vector<OperatorCheck> failures;  // tracing failures that the policy did not make an error
  double worst_recovery_error = 0;      // of all checks, those of outputs and probes included
  // See direction.h. `backward`: the components of the probes were found backward. `turned`: that was tried, but they
  // did not add up to their sum, so all components went forward.
  bool backward = false;
  bool turned = false;
};

// Note [Absorbing]
// With Policy::on_failure kAbsorb, a tracing failure is mended right after the operator that failed, before anything
// reads its rows: what the recovery lacks of the value is added to the leftover. Elements with parts that are not
// finite, though the value is, lose their parts: all of value - reference is leftover. So later operators continue with
// a true recovery, and a bracket beyond its bound ends in the leftover. Nothing else moves an error into the leftover.
// With Check::kOutputs only outputs and probes are checked; if one is off, a second sweep checks every operator.

// Sends all rows through a linearization. `progress` counts nodes; may be empty. Throws Error(kInternal) with the
// operator's position on a tracing failure where Policy::on_failure is kError.
SweepResult SweepForward(const Linearization& linearization, const Progress& progress = nullptr);

// Sweeps a trace that holds only some of the components, or sums of them. Tolerances are computed for `components`, the
// number in the whole run.
SweepResult SweepPart(const Linearization& linearization, int64_t components, const Progress& progress = nullptr);

// Sweeps components only: no leftover, no moves, no checks. `sums`: what SumsBeforePayments gives for all components of
// the run that these are a part of. No node may depend on all components together (see payments.h).
SweepResult SweepComponents(const Linearization& linearization, const std::vector<at::Tensor>& sums,
                            const Progress& progress = nullptr);

// For each node that distributes a constant over the components (see Bias): the sum of all components of its first
// output before the distribution, [*S]; undefined tensors for other nodes. Costs one sweep forward of one component.
std::vector<at::Tensor> SumsBeforePayments(const Linearization& linearization);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SWEEP_H_

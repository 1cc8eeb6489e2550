// The forward sweep: rows of all components and of the leftover, sent through a linearization at once.
#ifndef ADDEND_CORE_LINEARIZE_SWEEP_H_
#define ADDEND_CORE_LINEARIZE_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/linearize/linearization.h"

namespace addend {

// What the check after an operator found. Errors are relative to the largest magnitude of the operator's value; the
// bracket may be relative to the terms that it is summed from where those cancel.
struct OperatorCheck {
  int64_t call = -1;
  Kind kind = Kind::kLinear;
  double recovery_error = 0;
  double tolerance = 0;  // relative as well
  bool recovered = true;
  double bracket = 0;
  double bracket_bound = -1;  // -1: the policy leaves something over here, nothing to judge
  bool bracket_holds = true;
  double leftover = 0;    // largest magnitude of the leftover row over that of the value
  bool absorbed = false;  // it failed, and what the parts lacked went to the leftover (Policy::on_failure)
  double seconds = 0;

  bool ok() const { return recovered && bracket_holds; }
};

// The rows of one probe.
struct ProbeRows {
  at::Tensor components;   // [numc, *S]
  at::Tensor leftover;     // [*S]
  at::Tensor reference;    // [*S]
  at::Tensor value;        // [*S]
  bool decomposed = true;  // false: nothing of the input reaches it
  int64_t depth = 0;       // the longest chain of operators that led to it
  bool single = false;     // rounded as single precision is somewhere on the way
};

struct SweepResult {
  std::vector<ProbeRows> probes;        // as in Linearization::probes
  std::vector<OperatorCheck> checks;    // one for each node where Policy::check is every_op
  std::vector<OperatorCheck> failures;  // tracing failures that the policy did not make an error
  double worst_recovery_error = 0;      // of all checks, those of outputs and probes included
  // See direction.h. The components of the probes were found backward; or that was tried, and they did not come to what
  // their sum became.
  bool backward = false;
  bool turned = false;
};

// Note [Absorbing]
// Where Policy::on_failure is kAbsorb, a tracing failure is mended right after the operator that failed, before
// anything reads its rows: what the recovery lacks of the value is added to the leftover. Elements with parts that are
// not finite though the value is lose their parts, and all of value - reference is leftover. Later operators so go on
// with a true recovery. A closed form whose coefficients leave a bracket beyond its bound ends up with that bracket in
// its leftover. Nothing else moves an error into the leftover. With Check::kOutputs only outputs and probes are looked
// at; where one is off, a second sweep looks at every operator.

// `progress(done, total)` counts nodes; may be empty. Throws Error(kInternal) with the operator's position on a tracing
// failure where Policy::on_failure is kError.
SweepResult SweepForward(const Linearization& linearization,
                         const std::function<void(int64_t, int64_t)>& progress = nullptr);

// By node that pays a constant to components: the sum of all components of its first output before it does, [*S].
// Undefined for others. One sweep forward with everything in one component.
std::vector<at::Tensor> SumsBeforePayments(const Linearization& linearization);

// The same for a part of the components, or for sums of them; tolerances are those of all `components`.
SweepResult SweepPart(const Linearization& linearization, int64_t components,
                      const std::function<void(int64_t, int64_t)>& progress = nullptr);

// The components alone: no leftover, no moves, nothing is checked. `sums`: what SumsBeforePayments gives for all
// components of the sweep that these are a part of. Nodes whose policy looks at all components together are not for it.
SweepResult SweepComponents(const Linearization& linearization, const std::vector<at::Tensor>& sums,
                            const std::function<void(int64_t, int64_t)>& progress = nullptr);

// The choice of a policy that makes a node look at all components together, as a user writes it.
std::string JointChoice(const Node& node, const Policy& policy);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SWEEP_H_

// The backward sweep: the contributions of all components to chosen numbers, in one pass backward through a
// linearization, whatever the number of components.
//
// Note [Cotangents]
// A target is a weighted sum of elements of the probes; the weights are its cotangent there. Each storage that matters
// owns cotangents [targets, storage numel], as it owns rows in the forward sweep, and operands view them in the same
// way, so views need no step of their own. Going backward, a node reads the cotangent of what its call wrote and then
// zeroes it, because the elements that were overwritten have no effect any more; the transpose of its map is added to
// the cotangents of its inputs. Elements that an operand reads several times (expand, unfold) get the sum of all
// cotangents. Where rows begin, <cotangent, component> is the component's contribution to the target.
//
// Note [Brackets seen from a target]
// The bracket of a node, f(x) - f(b) - L(X), adds <g, f(x) - f(b)> - <g, L(X)> to a target with cotangent g behind the
// node. Because <g, L(X)> = <transpose of L g, X>, no further run of the map is needed where a rule claims a bound for
// its bracket; the bound is checked. Where a rule claims none, L(X) is computed by the forward map, because a wrong
// transpose would otherwise be hidden in the leftover. So the sum of components, leftover and reference equals the
// value only if transposes and forward maps agree.
#ifndef ADDEND_CORE_LINEARIZE_ADJOINT_H_
#define ADDEND_CORE_LINEARIZE_ADJOINT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/linearize/linearization.h"
#include "core/linearize/operator_check.h"

namespace addend {

struct AdjointOptions {
  // Whether only AdjointResult::components and terms are computed, and nothing is judged.
  bool components_only = false;
  // Whether to find what passes through every operator's outputs; see NodeRelevance.
  bool nodes = false;
  // Whether to find where the terms of all targets grow most; see Growth.
  bool growth = false;
  Progress progress;  // counts nodes
};

// The relevance that passes through one output of an operator: <cotangent, value - reference>, of all components
// together and the leftover. Outputs that no target depends on are left out.
struct NodeRelevance {
  int64_t call = 0;
  int output = 0;
  at::Tensor passed;    // [targets]
  at::Tensor leftover;  // [targets]: the part of it that the operator itself left over; for its first output only
};

// The call at which the terms of the targets grow most. The terms of a tensor are |cotangent * (value - reference)|,
// summed over its elements before they cancel. Going backward, their sum over all tensors that are met at once grows;
// `call` is where it grew by the largest factor.
struct Growth {
  int64_t call = -1;  // -1: nowhere
  double factor = 1;
};

// The result of a backward sweep. All tensors are float64; those of shape [targets] are on the CPU, where they are
// judged, the others on the cotangents' device. Where the model computes with complex numbers they are real parts: Re
// <cotangent, .>.
struct AdjointResult {
  at::Tensor components;  // [targets, numc], or with TracedRun::ElementsRead() more
  at::Tensor given;       // [targets]: the sum of the components
  at::Tensor terms;       // [targets]: the magnitudes of what components are summed from
  at::Tensor value;       // [targets]: <cotangent, value of the probes>
  at::Tensor reference;   // [targets]
  at::Tensor leftover;    // [targets]
  // [targets]: the sum of the magnitudes of components, leftover and reference.
  at::Tensor mass;
  // The attributions of the elements of each start of the trace, <cotangent, value - reference> element by element,
  // [targets, *S], in the dtype of its rows; undefined if no target depends on the start.
  std::vector<at::Tensor> starts;
  std::vector<NodeRelevance> nodes;  // in the order of the calls; empty unless asked for
  Growth growth;                     // nowhere unless asked for
  // Recovery error: |components + leftover + reference - value| over |value| (over 1 if that is zero), the worst of all
  // targets; and the part of it that rounding explains. Zero with Check::kOff.
  double recovery_error = 0;
  double tolerance = 0;
  std::vector<OperatorCheck> failures;  // those that the policy did not make an error
  std::vector<int64_t> depth;           // by probe: the longest chain of operators that led to it
  std::vector<bool> single;             // by probe: rounded as single precision is somewhere on the way
};

// Sweeps backward. `cotangents`: one for each probe of the linearization, [targets, *S] of the rows' dtype; undefined:
// no target uses the probe. At least one is defined. Throws FailedPrecondition with the operator's position if a policy
// choice is not linear in the components, so that there is nothing to transpose, and Internal with the position of a
// tracing failure if Policy::on_failure is kError.
AdjointResult SweepBackward(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                            const AdjointOptions& options = {});

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_ADJOINT_H_

// The reverse sweep: what every component gives to chosen numbers, in one pass back through a linearization, however
// many components there are.
//
// Note [Cotangents]
// A target is a weighted sum of elements of the probes; the weights are its cotangent there. Going back through the
// nodes, each storage that matters owns cotangents [targets, storage numel] as it owns rows in the forward sweep, and
// operands view them in the same way, so that views need no step of their own. A node reads the cotangent of what its
// call wrote and then zeroes it, because what stood there before plays no part any more; its map's transpose is added
// to the cotangents of its inputs. Elements that an operand sees several times (expand, unfold) get the sum of what
// comes back to each. Where rows begin, <cotangent, component> is what a component gives to the target.
//
// Note [Brackets seen from a target]
// What a node leaves over, f(x) - f(b) - L(X), gives <g, f(x) - f(b)> - <g, L(X)> to a target with cotangent g behind
// the node, and <g, L(X)> = <transpose of L g, X> needs no further run of the map. Where a rule claims a bound for what
// it leaves over, that is used, and the bound is checked. Where it claims none, L(X) is computed by the forward map:
// else a wrong transpose would be hidden in the leftover. So the sum of components, leftover and reference equals the
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
  // Only AdjointResult::components and terms are found, and nothing is judged.
  bool components_only = false;
  // Finds what every operator's outputs give to the targets; see NodeRelevance.
  bool nodes = false;
  // Finds where the terms grow most that all targets are summed from; see Growth.
  bool growth = false;
  Progress progress;  // counts nodes
};

// What passes through one output of an operator: <cotangent, value - reference>, of all components together and the
// leftover. Outputs that no target depends on are left out.
struct NodeRelevance {
  int64_t call = 0;
  int output = 0;
  at::Tensor passed;    // [targets]
  at::Tensor leftover;  // [targets]: the part of it that the operator itself left over; for its first output only
};

// Seen from the targets, what passes through a tensor comes to the sum of |cotangent * (value - reference)| over its
// elements, before they cancel. On the way back that sum, over all tensors that are met at once, grows; here it grew by
// the largest factor.
struct Growth {
  int64_t call = -1;  // -1: nowhere
  double factor = 1;
};

// All tensors are float64. Real parts where the model computes with complex numbers: Re <cotangent, .>.
struct AdjointResult {
  at::Tensor components;  // [targets, numc]
  at::Tensor terms;       // [targets]: the magnitudes of what components are summed from
  at::Tensor value;       // [targets]: <cotangent, value of the probes>
  at::Tensor reference;   // [targets]
  at::Tensor leftover;    // [targets]
  // [targets]: the sum of the magnitudes of components, leftover and reference.
  at::Tensor mass;
  // By start of the trace: <cotangent, value - reference> element by element, [targets, *S], in the dtype of its rows;
  // undefined where no target depends on it.
  std::vector<at::Tensor> starts;
  std::vector<NodeRelevance> nodes;  // in the order of the calls; empty unless asked for
  Growth growth;                     // nowhere unless asked for
  // |components + leftover + reference - value| over |value| (over 1 where that is zero), the worst of all targets, and
  // what rounding explains of it. Zero with Check::kOff.
  double recovery_error = 0;
  double tolerance = 0;
  std::vector<OperatorCheck> failures;  // those that the policy did not make an error
  std::vector<int64_t> depth;           // by probe: the longest chain of operators that led to it
};

// `cotangents`: one for each probe of the linearization, [targets, *S] of the rows' dtype; undefined: no target uses
// the probe. At least one is defined. Throws FailedPrecondition with the operator's position where the policy's choice
// is not linear in the components, so that there is nothing to transpose, and Internal with that of a tracing failure
// where Policy::on_failure is kError.
AdjointResult SweepBackward(const Linearization& linearization, const std::vector<at::Tensor>& cotangents,
                            const AdjointOptions& options = {});

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_ADJOINT_H_

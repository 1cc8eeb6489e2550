// Which operators gradients pass through when compositions are in autograd's graph.
//
// Note [Gradients]
// The parts of a result depend on the parts of the operands in two ways: the map is applied to them, and its
// coefficients come from the value, which is their sum. Gradients are right if a rule computes both by LibTorch
// operators alone. Loops of Addend's own, and derivatives that autograd took outside the graph, would silently drop
// out. So gradients pass only through the rules named here, each of which is tested against finite differences, and
// everything else is refused.
#ifndef ADDEND_CORE_EAGER_DIFFERENTIABLE_H_
#define ADDEND_CORE_EAGER_DIFFERENTIABLE_H_

#include <string>
#include <vector>

#include "core/base/policy.h"
#include "core/program/traced_calls.h"

namespace addend {

// The names of the rules that gradients pass through.
const std::vector<std::string>& DifferentiableRules();

// Throw Unimplemented, with the name of an operator or a choice that no gradient passes through.
void RequireDifferentiable(const TracedCalls& traced);
void RequireDifferentiable(const Policy& policy);

}  // namespace addend

#endif  // ADDEND_CORE_EAGER_DIFFERENTIABLE_H_

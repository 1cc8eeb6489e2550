// The path rule by quadrature, for operators of which nothing is known but their derivative in LibTorch.
#ifndef ADDEND_CORE_RULES_PATH_H_
#define ADDEND_CORE_RULES_PATH_H_

#include "core/rules/rule.h"

namespace addend {

// Linearizes any operator by its mean Jacobian along the line from the references of all decomposed operands to their
// values, as one matrix for each pair of output and operand. It takes one backward pass for each output element at each
// node, and memory for the matrices: the last resort. Opaque where nothing is differentiable. Complex numbers count as
// pairs of real ones.
RuleResult PathThroughAutograd(const RuleCall& call);

// Whether autograd has a derivative of a result: not one of its functions that stand for a missing derivative.
bool Differentiable(const at::Tensor& output);

// Linearizes a function of one output that is elementwise in all its tensor operands, which may broadcast. Each element
// has nodes of its own, and all elements are evaluated at once.
RuleResult PathElementwise(const RuleCall& call);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_PATH_H_

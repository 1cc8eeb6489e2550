// The path rule by quadrature, for operators of which nothing is known but that LibTorch differentiates them.
#ifndef ADDEND_CORE_RULES_PATH_H_
#define ADDEND_CORE_RULES_PATH_H_

#include "core/rules/rule.h"

namespace addend {

// Any operator: the mean Jacobian along the line from the references of all decomposed operands to their values, as one
// matrix for each pair of output and operand. It takes one backward pass for each output element at each node, and the
// matrices: the last resort. Opaque where nothing is differentiable. Complex numbers count as pairs of real ones.
RuleResult PathThroughAutograd(const RuleCall& call);

// Functions that are elementwise in all their tensor operands, which may broadcast; one output. Each element has
// nodes of its own, and all elements are evaluated at once.
RuleResult PathElementwise(const RuleCall& call);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_PATH_H_

// The nodes that average a softmax along the line from one row of scores to another; see Note [Softmax path].
#ifndef ADDEND_CORE_RULES_PATH_NODES_H_
#define ADDEND_CORE_RULES_PATH_NODES_H_

#include <c10/core/ScalarType.h>

#include "core/rules/quadrature.h"

namespace addend {

// half_range: half of the range of the row's move. dtype: what is computed in, which says how small the error has to
// be. Without nodes where the move is longer than can be followed.
Quadrature PathNodes(double half_range, at::ScalarType dtype);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_PATH_NODES_H_

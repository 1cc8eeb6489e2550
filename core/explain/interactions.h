// Interactions: which part of each group's contribution is there only because another group is not at its baseline.
//
// Note [What an interaction is]
// With phi_i(x) the contribution of group i to the target at the input x, and x/j the input with group j at its
// baseline,
//   phi_ij = phi_i(x) - phi_i(x/j)   for j != i: what group i's contribution owes to group j,
//   phi_ii = phi_i(x) - sum over j != i of phi_ij: what it owes to no single other one.
// The rows of this matrix add up to the contributions, and all of it with reference and leftover to the value, exactly,
// by definition. An entry off the diagonal is 0 where i contributes the same without j. It is positive where j's being
// there adds to i's contribution, negative where j takes from it.
//
// The contributions are those of the policy, which follows a path from the baseline to the input: so the entries depend
// on the path, too, as do Shapley interactions on their coalitions. phi_ij need not be phi_ji: that i lives off j says
// nothing about j off i. Of x * y * z, multiplied from left to right by halves, z is paid a half and x a quarter.
// Without x nothing remains, so that phi_zx is a half of the product, and phi_xz a quarter. Groups that work only all
// together are counted once for each partner, which makes the diagonal negative (here -1/4 and -1/2). `asymmetry`
// measures the first: 0 where the matrix is symmetric, 1 where of each pair one entry is 0.
#ifndef ADDEND_CORE_EXPLAIN_INTERACTIONS_H_
#define ADDEND_CORE_EXPLAIN_INTERACTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/explain/attribute.h"

namespace addend {

struct Interactions {
  Contributions numbers;              // of the input, by component
  std::vector<double> contributions;  // by group
  // [group][group]: row i is what group i's contribution is made of.
  std::vector<std::vector<double>> matrix;
  std::vector<double> values;     // by group: the target with that group at its baseline
  std::vector<double> leftovers;  // by group: what is left over there
  double asymmetry = 0;           // sum of |phi_ij - phi_ji| over sum of (|phi_ij| + |phi_ji|), i < j
  Attribution attribution;        // of the input
};

// The interactions of groups in the one target of the options, by groups + 1 attributions in one batch as far as that
// is possible; see Note [Examples in batches]. groups: by component, counted from 0. Throws what Attribute() throws;
// InvalidArgument for another number of targets than one, for targets of each example, for ids, operators and splits
// inside the model.
Interactions AttributeInteractions(const TracedModel& model, const std::vector<Input>& inputs,
                                   const std::vector<int64_t>& groups, const AttributeOptions& options = {},
                                   int64_t at_once = 0);

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_INTERACTIONS_H_

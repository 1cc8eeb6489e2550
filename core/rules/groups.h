// Groups of elements that become one element: sums, means, products and extrema of all elements that are written to the
// same place.
//
// Note [Groups]
// Scatters, segments and bags are given by a list of entries: element `source` (numbered through the operands, see Note
// [Element numbers]) belongs to the group of output `target`. A sum over groups is a scatter of the rows. For extrema
// and products the groups become a table, [outputs, members of the largest group], padded with kNoElement.
// extrema and products the groups become a table, [outputs, members of the largest group], padded with kNoElement.
#ifndef ADDEND_CORE_RULES_GROUPS_H_
#define ADDEND_CORE_RULES_GROUPS_H_

#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace addend {

// The elements are those of `operands`, numbered together, and behind them one that never moves, with the number
// `elements`.
struct Groups {
  std::vector<int> operands;
  at::Tensor source;  // [entries], int64
  at::Tensor target;  // [entries], int64
  int64_t outputs = 0;
  int64_t elements = 0;
  double constant = 0;  // the element that never moves
};

// Reduces every group. `how`: "sum" ("add"), "mean", "amax" ("max"), "amin" ("min") or "prod" ("multiply").
RuleResult ReduceGroups(const RuleCall& call, const Groups& groups, const std::string& how);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_GROUPS_H_

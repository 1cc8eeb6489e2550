// Linear rules made of the operator itself: it is called once, on all rows.
#ifndef ADDEND_CORE_RULES_ROW_OPERATOR_H_
#define ADDEND_CORE_RULES_ROW_OPERATOR_H_

#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace addend {

// How the row axis in front of the operands is passed to an operator.
struct RowAxis {
  // Names of the arguments that number dimensions of the operand: an integer or a list of integers. None is passed as
  // it is, so an operator that then flattens its operand is not for this rule.
  std::vector<std::string> dims = {};
  // The operator takes one batch dimension in front, dimension 0 of its operand: rows and batch become one.
  bool fold_batch = false;
};

// The first argument moves, all others rest.
// output rows = operator(rows) - operator(zeros): the second term is left out for Kind::kLinear. The operator treats
// what is in front of the dimensions that it works on as a batch.
RuleResult LinearOperator(const RuleCall& call, Kind kind, const RowAxis& axis = {});

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ROW_OPERATOR_H_

// Linear maps given element by element: which element of the operands goes where, and with which weight.
//
// Note [Element numbers]
// The elements of several operands are numbered together, one operand after the other, each in the order of its sizes,
// whatever its strides. Outputs are numbered in the same way. Where an operator puts elements can then be found by
// running it on their numbers (Rearrangement), or by tables of numbers that follow its definition.
#ifndef ADDEND_CORE_RULES_ELEMENT_MAP_H_
#define ADDEND_CORE_RULES_ELEMENT_MAP_H_

#include <vector>

#include "core/rules/rule.h"

namespace addend {

// The number that stands for no element: a constant, or the padding of a table.
constexpr int64_t kNoElement = -1;

// Returns the numbers of an operand's elements, from `first` on: int64, of the operand's sizes.
at::Tensor ElementNumbers(const at::Tensor& like, int64_t first = 0);

// Makes a map in which output element o is the sum over j of weight[o, j] times element source[o, j] of `operands`,
// numbered together. `source` and `weight` are [outputs, J]; without `weight` all weights are 1. Elements of plain
// operands and kNoElement add nothing. The outputs are the floating-point outputs of the call.
RuleResult WeightedGather(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                          const at::Tensor& weight = {});

// Makes a map that adds weight[e] times element source[e] to element target[e] of the only floating-point output. All
// tensors are [entries].
RuleResult WeightedScatter(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                           const at::Tensor& target, const at::Tensor& weight = {});

// Makes the map of an operator whose every output element is an element of some operand or a constant: the operator
// itself, run on element numbers, says which. An operator that does arithmetic is noticed and refused.
RuleResult Rearrangement(const RuleCall& call, Kind kind);

// Drops candidates without a share from each group: the [outputs, J] tables of sources and shares become narrower.
void KeepShares(at::Tensor* source, at::Tensor* shares);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ELEMENT_MAP_H_

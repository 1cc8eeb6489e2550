// Linear maps that are told element by element: which element of the operands goes where, and with which weight.
//
// Note [Element numbers]
// The elements of several operands are counted through, one operand after the other, each in the order of its sizes
// whatever its strides. Outputs are counted the same way. What an operator does with elements can then be found by
// letting it work on their numbers (Rearrangement), or by tables of numbers that follow its definition.
#ifndef ADDEND_CORE_RULES_ELEMENT_MAP_H_
#define ADDEND_CORE_RULES_ELEMENT_MAP_H_

#include <vector>

#include "core/rules/rule.h"

namespace addend {

// Numbers that stand for no element: a constant, or the padding of a table.
constexpr int64_t kNoElement = -1;

// The numbers of an operand's elements, from `first` on: int64, of the operand's sizes.
at::Tensor ElementNumbers(const at::Tensor& like, int64_t first = 0);

// Output element o is the sum over j of weight[o, j] times element source[o, j] of `operands`, counted through.
// `source` and `weight` are [outputs, J]; without `weight` all weights are 1. Elements of plain operands and kNoElement
// add nothing. The outputs are the floating-point outputs of the call.
RuleResult WeightedGather(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                          const at::Tensor& weight = {});

// Adds weight[e] times element source[e] to element target[e] of the only floating-point output. All are [entries].
RuleResult WeightedScatter(const RuleCall& call, Kind kind, const std::vector<int>& operands, const at::Tensor& source,
                           const at::Tensor& target, const at::Tensor& weight = {});

// For operators whose every output element is an element of some operand or a constant: the operator itself, at work
// on element numbers, tells which. Whatever arithmetic an operator does is noticed and refused.
RuleResult Rearrangement(const RuleCall& call, Kind kind);

// Of the candidates in each group, only those with a share: [outputs, J] tables of sources and shares become narrower.
void KeepShares(at::Tensor* source, at::Tensor* shares);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ELEMENT_MAP_H_

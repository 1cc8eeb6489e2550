// Labels of ids through operators: which component an integer or boolean belongs to.
//
// Note [Ids]
// Integers and booleans have no rows, because they do not move continuously. But a model may join, shift, pad, cast or
// clamp ids before it looks them up, and each id still comes from one component. For each tensor of integers or
// booleans that depends on a split input, the tracer therefore keeps what the recorded operators give on the baseline
// and, for each element, the only component that the element depends on (-1: none, or several). Rows begin where such
// ids become numbers: in an embedding, or in a cast. An element that depends on several components is in none of them.
#ifndef ADDEND_CORE_RUN_IDS_H_
#define ADDEND_CORE_RUN_IDS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/intercept/operator.h"
#include "core/rules/id_flow.h"

namespace addend {

// An integer or boolean operand of a call.
struct IdOperand {
  at::Tensor labels;  // int64, of the operand's shape: components, -1 for none; undefined: none anywhere
  at::Tensor moves;   // bool, of the operand's shape: where value and reference differ; undefined: nowhere
};

struct IdLabels {
  at::Tensor labels;   // int64, of the result's shape; undefined: no element has one
  bool mixed = false;  // an element depends on several components, or on what no component has
  bool moves = false;  // mixed, and something that the call reads is another one on the baseline
};

// Whether a tensor argument of an operator that moves elements is what it moves, and not where to.
bool IsMoved(const std::string& argument);

// Returns the labels of the first result of a call. `arguments`: as the model passed them; `operands`: its tensors, in
// schema order, lists flattened; `sizes`: of the result.
IdLabels CarryLabels(IdFlow flow, const Operator& op, const std::vector<c10::IValue>& arguments,
                     const std::vector<IdOperand>& operands, at::IntArrayRef sizes);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_IDS_H_

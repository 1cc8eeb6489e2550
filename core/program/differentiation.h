// Models that differentiate inside.
//
// Note [Differentiation]
// An operator that LibTorch defines by others computes numbers for its gradient that are none of its results:
// layer_norm() a mean, einsum() permuted operands, lstm() everything but its last step. A model that asks for a
// gradient inside reads them. A recording that has the operator whole would take them for constants: a replay on other
// inputs, and the reference, would be those of the recorded run, without a word. So from where a model begins to
// differentiate by what it computes or was given, such operators are recorded as those that they consist of. Programs
// and traces decide alike, so that their calls have the same numbers. What is left, such as gradients by parameters
// alone, is told of: what no operator was seen to give, and what a gradient reads first, was saved.
#ifndef ADDEND_CORE_PROGRAM_DIFFERENTIATION_H_
#define ADDEND_CORE_PROGRAM_DIFFERENTIATION_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>

#include "core/intercept/operator.h"
#include "core/program/operator_traits.h"

namespace addend {

// Whether a call begins to differentiate: one of its tensors is asked for a gradient, is not computed from others that
// are, and `inner` says of it that the model was given it or computed it. Parameters are asked for gradients, too.
bool Differentiates(const Operator& op, const torch::jit::Stack& stack,
                    const std::function<bool(const at::Tensor&)>& inner);

// Whether a tensor that no operator was seen to give is one that an operator saved for its gradient: a gradient is the
// first to read it. Numbers of the program that became tensors are none.
bool IsSaved(const at::Tensor& tensor);
// How notes on such tensors begin, before what it was that was read, or where.
inline constexpr char kReadsSaved[] = "a gradient reads what an operator saved for it: ";

// Whether an operator is recorded as those that it consists of, where the model differentiates.
bool IsTakenApart(const Operator& op, const OperatorTraits& traits);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_DIFFERENTIATION_H_

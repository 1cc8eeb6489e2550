// Functions that are constant but for steps.
#ifndef ADDEND_CORE_RULES_STEPS_H_
#define ADDEND_CORE_RULES_STEPS_H_

#include <ATen/core/function_schema.h>

#include "core/intercept/operator.h"
#include "core/rules/rule.h"

namespace addend {

// Note [Steps at rest]
// A step is shared by what crosses it, however short the move: its height over the move. Where nothing moves, there is
// no such quotient, but components may still be there that cancel. In a layer that is quantised by its own scale, the
// numbers that are rounded do not move at all when all inputs do alike, while each input moves them, and the scale
// moves them back. What climbs by 1 in a grid of 1 (round, floor) has the slope 1 there, its mean; then nothing of
// these components is lost, and what they come to is still zero. sign has the slope 0. A move that is rounding is no
// move.

// A function of one operand, elementwise and constant but for steps, under the policy's nonlinearity. `at_rest`: see
// Note [Steps at rest].
RuleResult Steps(const RuleCall& call, int operand, double at_rest = 0);

// The slope of the same between two values of its argument, and whether that is all of each step: a step that rounding
// makes is not shared. `step`: what the function moves by.
at::Tensor SlopeOfSteps(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& step, double at_rest,
                        bool* exact);

// Whether an operator casts a tensor to another dtype.
bool IsCast(const c10::FunctionSchema& schema);
// The operator that a cast of floats to integers is, where the integers hold them: floats without their fractions.
Operator Truncation();

}  // namespace addend

#endif  // ADDEND_CORE_RULES_STEPS_H_

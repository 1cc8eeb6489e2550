// The secant slope of elementwise functions of one tensor.
#ifndef ADDEND_CORE_RULES_POINTWISE_H_
#define ADDEND_CORE_RULES_POINTWISE_H_

#include <ATen/core/Tensor.h>

#include <functional>

#include "core/rules/rule.h"

namespace addend {

// How near to each other value and reference may be before the secant slope gives way to the derivative.
enum class Curve {
  kSmooth,           // bends on the scale of 1: tanh, gelu, exp
  kPower,            // bends on the scale of its argument: sqrt, log, pow
  kPiecewiseLinear,  // kinks: leaky_relu, hardsigmoid
  kUnitPieces,       // kinks between pieces that are x, -x or a constant: relu, abs, clamp
};
// The derivative of an elementwise function at some points, of a shape of their own.
using KnownDerivative = at::Tensor (*)(const RuleCall& call, const at::Tensor& points);
// Elementwise functions of the first argument. Without `known` autograd differentiates them, which takes longer.
RuleResult Pointwise(const RuleCall& call, Curve curve, KnownDerivative known = nullptr);
// The slope alone: f(value) - f(reference) over the move. `derivative` is called with points of value's shape, or,
// where it is the same function for each element (`pointwise`), with some of the points in one dimension. `finite`:
// value and reference are known to be.
at::Tensor SecantSlope(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& f_value,
                       const at::Tensor& f_reference, Curve curve,
                       const std::function<at::Tensor(const at::Tensor&)>& derivative, bool pointwise = false,
                       bool finite = false);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_POINTWISE_H_

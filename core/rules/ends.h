// Matrices at both ends of the line, and what to do where one end is missing.
//
// Note [Secants of equations]
// Most results of linear algebra solve an equation that is bilinear in the matrices that it is about: A Y = B,
// A = L L^T, A = Q R with Q^T Q = 1. A difference of products is exact at their middles, xy - bs = (x - b)(y + s)/2 +
// (x + b)/2 (y - s), so the difference of two solutions solves the equation's differential, taken at the middle of
// both. That is a closed form: linear in the rows, nothing is left over, and no quadrature is needed. Where value and
// reference meet it is the derivative.
#ifndef ADDEND_CORE_RULES_ENDS_H_
#define ADDEND_CORE_RULES_ENDS_H_

#include <ATen/TensorOperators.h>

#include <functional>

#include "core/rules/rule.h"

namespace addend {

struct Ends {
  at::Tensor value;
  at::Tensor reference;
  at::Tensor Middle() const { return (value + reference) / 2; }
};

// Throws Unimplemented where an output is complex.
void RequireReal(const RuleCall& call);

at::Tensor TransposeMatrix(const at::Tensor& matrix);
inline Ends TransposeMatrix(const Ends& ends) { return {TransposeMatrix(ends.value), TransposeMatrix(ends.reference)}; }

Ends EndsOf(const RuleOperand& operand);
Ends EndsOf(const RuleOutput& output);
Ends Both(const Ends& ends, const std::function<at::Tensor(const at::Tensor&)>& f);

// Of which matrices [*batch, M, N] the value is finite and the reference is not; undefined where of none.
at::Tensor MissingReference(const Ends& matrices);
// `mask` or `other`; undefined counts as false everywhere.
at::Tensor Either(const at::Tensor& mask, const at::Tensor& other);
// The same with the value in place of the reference where `mask` [*batch] is true. Coefficients that are made of such
// ends are the derivative at the value.
Ends ValueWhere(const at::Tensor& mask, const Ends& matrices);

// To be called last, where coefficients were made at the value for the matrices that `mask` [*batch] picks. What that
// leaves over becomes the reference where the operator's own is not finite (Note [Stand-ins]), else leftover.
void MeetValue(const RuleCall& call, const at::Tensor& mask, RuleResult* result);
// The largest element of value - reference - L(move) over all outputs, relative to the largest value of each. What it
// keeps is leftover, so `exact` becomes false.
void KeepBracket(const RuleCall& call, RuleResult* result);

// Reads rows as the operators on symmetric matrices do, which look at one triangle only: mirrored. Where both ends are
// symmetric, rows are read as autograd reads them: whole, or (`halves`) as the mean of themselves and their transposes.
std::function<at::Tensor(const at::Tensor&)> SymmetricRows(const RuleOperand& operand, bool upper, bool halves);
// The matrix as those operators see it.
at::Tensor Mirrored(const at::Tensor& matrix, bool upper);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ENDS_H_

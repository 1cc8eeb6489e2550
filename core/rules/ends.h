// Matrices at both ends of the line from reference to value, and how to linearize where one end is missing.
//
// Note [Secants of equations]
// Most results of linear algebra solve an equation that is bilinear in the matrices: A Y = B, A = L L^T, A = Q R with
// Q^T Q = 1. A difference of products is exact at their middles, xy - bs = (x - b)(y + s)/2 + (x + b)/2 (y - s). So the
// difference of two solutions solves the equation's differential, taken at the middle of both. This is a closed form:
// linear in the rows, with nothing left over and without quadrature. Where value and reference meet, it is the
// derivative.
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

// Throws Unimplemented if an output is complex.
void RequireReal(const RuleCall& call);

at::Tensor TransposeMatrix(const at::Tensor& matrix);
inline Ends TransposeMatrix(const Ends& ends) { return {TransposeMatrix(ends.value), TransposeMatrix(ends.reference)}; }

Ends EndsOf(const RuleOperand& operand);
Ends EndsOf(const RuleOutput& output);
Ends Both(const Ends& ends, const std::function<at::Tensor(const at::Tensor&)>& f);

// Marks the matrices [*batch, M, N] whose value is finite and whose reference is not; undefined if there are none.
at::Tensor MissingReference(const Ends& matrices);
// Returns `mask` or `other`, element by element; undefined counts as false everywhere.
at::Tensor Either(const at::Tensor& mask, const at::Tensor& other);
// Returns the ends with the value in place of the reference where `mask` [*batch] is true. Coefficients that are made
// of such ends are the derivative at the value.
Ends ValueWhere(const at::Tensor& mask, const Ends& matrices);

// Finishes a result whose coefficients were made at the value for the matrices that `mask` [*batch] picks; call it
// last. What these coefficients leave over becomes the reference if the operator's own is not finite (Note
// [Stand-ins]), and leftover otherwise.
void MeetValue(const RuleCall& call, const at::Tensor& mask, RuleResult* result);
// Lets a result keep its bracket: sets `quadrature` to the largest element of value - reference - L(move) over all
// outputs, relative to the largest value of each, and `exact` to false, so that the bracket becomes leftover.
void KeepBracket(const RuleCall& call, RuleResult* result);

// Returns how operators on symmetric matrices read rows: they look at one triangle only, so rows are mirrored. If both
// ends are symmetric, rows are read as autograd reads them: whole, or (`halves`) as the mean of themselves and their
// transposes.
std::function<at::Tensor(const at::Tensor&)> SymmetricRows(const RuleOperand& operand, bool upper, bool halves);
// Returns the matrix as operators on symmetric matrices see it: one triangle, mirrored.
at::Tensor Mirrored(const at::Tensor& matrix, bool upper);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ENDS_H_

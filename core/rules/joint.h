// The choices of a policy that look at all components together: how an elementwise function's effect is spread by
// magnitude, and who is paid a constant. Rows are [numc + 2, *S]: components, leftover, move.
//
// Note [Zero over zero]
// A share whose denominator is zero is zero: nothing is attributed there, and what the operator does stays in the
// residual, so that recovery holds.
#ifndef ADDEND_CORE_RULES_JOINT_H_
#define ADDEND_CORE_RULES_JOINT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/base/policy.h"

namespace addend {

// See Note [Zero over zero].
at::Tensor QuotientOrZero(const at::Tensor& numerator, const at::Tensor& denominator);

// Where the line from one number to the other leads through zero between its ends. Real lines do where their ends
// have opposite signs, complex ones only where they have opposite directions: nearly all of those lead past zero.
at::Tensor PassesZero(const at::Tensor& from, const at::Tensor& to);

// abs_affine and hybrid_affine. Every row c, the leftover's too, gets |c| / A of slope * move, where A is the sum of
// the rows' magnitudes; where |move| is at least `threshold` times A it gets slope * c instead (no threshold: nowhere).
at::Tensor SpreadByMagnitude(const at::Tensor& rows, const at::Tensor& slope, const std::optional<double>& threshold);

// What each component is paid of a constant that broadcasts to S: [numc, *S]. `components`: [numc, *S].
at::Tensor ConstantShares(const at::Tensor& components, const at::Tensor& constant, Bias bias, double parameter);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_JOINT_H_

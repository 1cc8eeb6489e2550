// Policy choices that depend on all components together: spreading the effect of an elementwise function by magnitude,
// and paying constants to components. Rows are [numc + 2, *S]: components, leftover, move.
//
// Note [Zero over zero]
// A share whose denominator is zero is zero: nothing is attributed there, and the effect of the operator stays in the
// residual, so that recovery holds.
#ifndef ADDEND_CORE_RULES_JOINT_H_
#define ADDEND_CORE_RULES_JOINT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/base/policy.h"

namespace addend {

// The quotient, or zero where the denominator is zero: see Note [Zero over zero].
at::Tensor QuotientOrZero(const at::Tensor& numerator, const at::Tensor& denominator);

// Marks where the line from one number to the other passes zero between its ends. Real lines do if their ends have
// opposite signs, complex lines only if their ends have opposite directions, which nearly none have.
at::Tensor PassesZero(const at::Tensor& from, const at::Tensor& to);

// Applies abs_affine and hybrid_affine. Every row c, the leftover's too, gets |c| / A of slope * move, where A is the
// sum of the rows' magnitudes; where |move| is at least `threshold` times A, the row gets slope * c instead (no
// threshold: nowhere).
at::Tensor SpreadByMagnitude(const at::Tensor& rows, const at::Tensor& slope, const std::optional<double>& threshold);

// Returns each component's share of a constant that broadcasts to S: [numc, *S]. `components`: [numc, *S].
at::Tensor ConstantShares(const at::Tensor& components, const at::Tensor& constant, Bias bias, double parameter);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_JOINT_H_

// The measurements of a forward sweep after an operator: the bracket, which may go into the leftover, and how far the
// recovery is from the value.
#ifndef ADDEND_CORE_LINEARIZE_SETTLE_H_
#define ADDEND_CORE_LINEARIZE_SETTLE_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace addend {

// Largest magnitudes over the elements whose value is finite. Other elements are left out, because no sum of finite
// parts is infinite. A NaN among what is measured makes the result NaN.
struct Settled {
  double error = 0;  // |recovery - value|
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double bracket = 0;  // |value - reference - L(move)|
  double passed = 0;   // |L(move)|
  // The largest sum of the magnitudes of components, leftover and reference; only of SettleUnread.
  double mass = 0;
};

struct SettleOptions {
  bool find_bracket = true;   // the move row holds L(move) and is to become value - reference
  bool keep_bracket = false;  // the bracket is added to the leftover row
  bool judge = true;          // error and leftover are found
  bool mass = false;          // so is the mass; by SettleUnread() only
  // The largest magnitudes of value and reference where both are known to be finite; negative: not known.
  double value = -1;
  double reference = -1;
};

// Settles the rows of one tensor. `rows`: [numc + 2, *S]: components, leftover, move; `value` and `reference`: [*S] of
// the rows' dtype. `sum` [*S]: in: the sum of components and leftover if it is known already; out: that sum, if it was
// judged. One pass over contiguous rows on the CPU; LibTorch operators elsewhere.
Settled Settle(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference, const SettleOptions& options,
               at::Tensor* sum);
// The numbers of Settled, in the order of its fields: `unread` ones lie on a device, each of one element; where they
// are undefined, `known` has them.
struct UnreadSettled {
  std::array<at::Tensor, 7> unread;
  std::array<double, 7> known = {};
};
// Computes what Settle() does, without waiting for a device.
UnreadSettled SettleUnread(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                           const SettleOptions& options, at::Tensor* sum);
// Several of them, by one read.
std::vector<Settled> ReadSettled(const std::vector<UnreadSettled>& all);
// Settles the rows by LibTorch operators, on every device; the fused loop is tested against this function.
Settled SettleByOperators(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                          const SettleOptions& options, at::Tensor* sum);

// The tolerance of recovery for rounding alone, relative to the magnitudes of the terms: `depth` operators in a row,
// each of which rounds `components` terms, in single or double precision.
double RecoveryTolerance(bool single, int64_t components, int64_t depth);
// RecoveryTolerance() for any precision, of which `epsilon` is the distance from 1 to the next number.
double RecoveryTolerance(double epsilon, int64_t components, int64_t depth);

// How far the recovery of what is asked for may be from its value, whatever its parts are, relative to the value's own
// scale. Beyond `told` (1e-3 in single precision, 1e-9 in double) it is said, beyond `failed` (ten times that) it is a
// tracing failure. A `tolerance` of the policy that is more takes the place of either.
struct RecoveryLimits {
  double told;
  double failed;
};
RecoveryLimits RecoveryLimitsOf(bool single, std::optional<double> tolerance);

// How far two sums of the same parts may be apart that went different ways: half of the digits (1e-3 in single
// precision, 4e-8 in double, or `tolerance` if that is more) of the largest magnitude of the `value`, plus the rounding
// of its `terms`. Infinite if both are zero, because there is nothing to measure against.
double OwnAllowance(bool single, double value, double terms, std::optional<double> tolerance);

// The largest mass of an element: the sum of magnitudes over components, leftover and reference, against which rounding
// is measured. Stops looking once it has found `enough`.
double LargestMass(const at::Tensor& rows, const at::Tensor& reference, double enough);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SETTLE_H_

// The numbers of a forward sweep's check after an operator: the bracket, which goes into the leftover, and how far the
// recovery is from the value.
#ifndef ADDEND_CORE_LINEARIZE_SETTLE_H_
#define ADDEND_CORE_LINEARIZE_SETTLE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace addend {

// Largest magnitudes over the elements whose value is finite: no sum of finite parts is infinite, so others have none.
// A NaN among what is measured makes the result NaN.
struct Settled {
  double error = 0;  // |recovery - value|
  double value = 0;
  double reference = 0;
  double leftover = 0;
  double bracket = 0;  // |value - reference - L(move)|
  double passed = 0;   // |L(move)|
};

struct SettleOptions {
  bool find_bracket = true;   // the move row holds L(move) and is to become value - reference
  bool keep_bracket = false;  // the bracket is added to the leftover row
  bool judge = true;          // error and leftover are found
};

// `rows`: [numc + 2, *S]: components, leftover, move; value and reference: [*S] of the rows' dtype. `sum`: as S; in:
// the sum of components and leftover where it is known already; out: that sum (where it was judged). One pass over the
// rows on the CPU, where they are contiguous; composed of LibTorch operators elsewhere.
Settled Settle(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference, const SettleOptions& options,
               at::Tensor* sum);
// The same composed of LibTorch operators, on every device: what the fused loop is tested against.
Settled SettleByOperators(at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference,
                          const SettleOptions& options, at::Tensor* sum);

// How far recovery may be off through rounding alone, over what the terms come to: `depth` operators one behind the
// other, of which each rounds `components` terms, in single or double precision.
double RecoveryTolerance(bool single, int64_t components, int64_t depth);

// How far the recovery of a tensor that was asked for may be off whatever its parts cancel to: half of the digits (1e-3
// in single precision, 4e-8 in double, or `tolerance` where that is more) of the largest magnitude of its `value`, and
// the rounding of what the model itself has there, its reference and the `terms` of its sum. Infinite where all are
// zero, so that there is nothing to measure against.
double OwnAllowance(bool single, double value, double terms, std::optional<double> tolerance);

// The largest sum of magnitudes over components, leftover and reference, which is what rounding is measured against.
// Stops looking once it has found `enough`.
double LargestMass(const at::Tensor& rows, const at::Tensor& reference, double enough);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_SETTLE_H_

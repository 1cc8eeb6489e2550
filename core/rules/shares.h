// Shares of the line on which each of several candidates is the largest.
#ifndef ADDEND_CORE_RULES_SHARES_H_
#define ADDEND_CORE_RULES_SHARES_H_

#include <ATen/core/Tensor.h>

namespace addend {

// Shares of the path on which each candidate along the last dimension of reference + t * (value - reference),
// t in 0..1, is the largest: the exact upper envelope of lines, ties shared. Same shape as value; sums to 1.
at::Tensor EnvelopeShares(const at::Tensor& value, const at::Tensor& reference);
// Computes the shares by LibTorch's operators, for all devices, and where gradients pass: k^2 memory for k candidates.
at::Tensor EnvelopeSharesOfPairs(const at::Tensor& value, const at::Tensor& reference);
// All of the share to the largest value (the first of several).
at::Tensor WinnerShares(const at::Tensor& value);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_SHARES_H_

// Moves, and sums and products of rows over the elements of a tensor. They are added up in float64 and in one order,
// so that the number of threads changes nothing; one pass on the CPU, composed of LibTorch operators elsewhere. Functions
// that end in ByOperators are the composed form on every device: what the loops are tested against.
#ifndef ADDEND_CORE_LINEARIZE_ROW_SUMS_H_
#define ADDEND_CORE_LINEARIZE_ROW_SUMS_H_

#include <ATen/core/Tensor.h>

namespace addend {

// value - reference, zero where both are the same and where the value is not finite: nothing can be missing there.
at::Tensor FiniteMove(const at::Tensor& value, const at::Tensor& reference);
at::Tensor FiniteMoveByOperators(const at::Tensor& value, const at::Tensor& reference);

// cotangents [R, *S], value and reference [*S] -> [R], float64: the sum of cotangent * move, the real part of
// conj(cotangent) * move where they are complex.
at::Tensor ProductsWithMove(const at::Tensor& cotangents, const at::Tensor& value, const at::Tensor& reference);
at::Tensor ProductsWithMoveByOperators(const at::Tensor& cotangents, const at::Tensor& value,
                                       const at::Tensor& reference);

// What rows lack of a value: value - reference - their sum, in the rows' dtype but added up in float64; zero where that
// is not finite. rows [R, *S], value and reference [*S] -> [*S].
at::Tensor MissingOf(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference);
at::Tensor MissingOfByOperators(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference);

// The largest finite magnitude of a tensor; 0 where there is none.
double LargestFinite(const at::Tensor& tensor);
// Spacing of a dtype's numbers near 1; of a complex dtype, that of its parts.
double EpsilonOf(at::ScalarType dtype);

// Re conj(a) * b, element by element.
at::Tensor RealProduct(const at::Tensor& a, const at::Tensor& b);
// [R, *S] -> [R], added up in float64.
at::Tensor SumOfEach(const at::Tensor& rows);
// SumOfEach of RealProduct(rows, other), other [*S], and of the magnitudes of rows.
at::Tensor ProductsOfEach(const at::Tensor& rows, const at::Tensor& other);
at::Tensor MagnitudeOfEach(const at::Tensor& rows);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_ROW_SUMS_H_

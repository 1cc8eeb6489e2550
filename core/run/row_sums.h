// Moves, and sums and products of rows over the elements of a tensor. They are added up in float64 and in one order,
// so that the number of threads changes nothing; one pass on the CPU, composed of LibTorch operators elsewhere.
// Functions that end in ByOperators are the composed form on every device: what the loops are tested against.
#ifndef ADDEND_CORE_RUN_ROW_SUMS_H_
#define ADDEND_CORE_RUN_ROW_SUMS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace addend {

// The move value - reference: zero where both are equal, and where the value is not finite, because nothing can be
// missing there.
at::Tensor FiniteMove(const at::Tensor& value, const at::Tensor& reference);
at::Tensor FiniteMoveByOperators(const at::Tensor& value, const at::Tensor& reference);

// Sums the products of cotangents with the move: cotangents [R, *S], value and reference [*S] -> [R], float64. Complex
// numbers give the real part of conj(cotangent) * move.
at::Tensor ProductsWithMove(const at::Tensor& cotangents, const at::Tensor& value, const at::Tensor& reference);
at::Tensor ProductsWithMoveByOperators(const at::Tensor& cotangents, const at::Tensor& value,
                                       const at::Tensor& reference);

// The missing part of a value: value - reference - sum of the rows, in the rows' dtype but added in float64; zero where
// it is not finite. rows [R, *S], value and reference [*S] -> [*S].
at::Tensor MissingOf(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference);
at::Tensor MissingOfByOperators(const at::Tensor& rows, const at::Tensor& value, const at::Tensor& reference);

// The elements of a tensor as numbers of the host, in their order.
std::vector<double> Doubles(const at::Tensor& tensor);
// A tensor [n], float64, of these numbers; `options` say where.
at::Tensor OfDoubles(const std::vector<double>& numbers, const at::TensorOptions& options);

// The largest magnitude of a tensor as a tensor of one element, which nobody has to wait for; NaN if there is one.
at::Tensor MaxAbs(const at::Tensor& tensor);
// The largest finite one of real magnitudes, as a tensor of one element.
at::Tensor MaxFinite(const at::Tensor& sizes);
// The largest finite magnitude of a tensor; 0 where there is none.
double LargestFinite(const at::Tensor& tensor);
// The spacing of a dtype's numbers near 1; for a complex dtype, that of its parts.
double EpsilonOf(at::ScalarType dtype);

// The real product Re conj(a) * b, element by element.
at::Tensor RealProduct(const at::Tensor& a, const at::Tensor& b);
// The sum of each row, [R, *S] -> [R], added in float64.
at::Tensor SumOfEach(const at::Tensor& rows);
// The sum of each row of RealProduct(rows, other), other [*S]; and the sum of the magnitudes of each row.
at::Tensor ProductsOfEach(const at::Tensor& rows, const at::Tensor& other);
at::Tensor MagnitudeOfEach(const at::Tensor& rows);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_ROW_SUMS_H_

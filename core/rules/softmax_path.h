// The path of a softmax between two ends of its scores: the coefficients of its rule, which attention has as well.
//
// Note [Softmax path]
// L = integral of J(b + t X) over t in 0..1 with J = diag p - p p^T. A softmax ignores shifts, so what bends it in a
// row is half the range of the move X. From that half range and the dtype the number of Gauss-Legendre nodes is taken,
// row by row, from tables of the largest half range h at which the error stays under 1e-6 in float32 and 1e-12 in
// float64. They hold for the worst row: two candidates that change places, wherever on the line. No other row has poles
// nearer to the line than theirs, pi / (2 h): the exponents of a softmax differ by 2 h at most. Longer moves are cut
// into pieces. The bracket is the exact error that remains; it is leftover and reported.
#ifndef ADDEND_CORE_RULES_SOFTMAX_PATH_H_
#define ADDEND_CORE_RULES_SOFTMAX_PATH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/rules/quadrature.h"

namespace addend {

// The scores at both ends, row by row, and the quadrature that each row takes.
struct SoftmaxPath {
  int64_t width = 0;
  at::Tensor value;      // [G, T]
  at::Tensor reference;  // [G, T]
  at::Tensor choice;     // [G], int64 on the CPU: which of `rules` a row takes; undefined without rows
  std::vector<std::shared_ptr<const Quadrature>> rules;  // null where no row takes it
};

// value, reference: [G, T]. Throws Unimplemented, in the name of `op`, where a move is infinite or too long to follow.
SoftmaxPath MakeSoftmaxPath(const std::string& op, const at::Tensor& value, const at::Tensor& reference);
// Sends rows [R, G, T] through the softmax. Every J is symmetric: this is the transpose as well.
at::Tensor AlongSoftmaxPath(const SoftmaxPath& path, const at::Tensor& rows);
// The mean of p over the path, [G, T]: what log_softmax subtracts and logsumexp gives. Undefined where there are no
// rows.
at::Tensor MeanProbabilities(const SoftmaxPath& path);
// The relative error that the quadrature may leave.
double SoftmaxPathError(at::ScalarType dtype);
// The nodes that average a softmax along a move of which this is half the range. dtype: what is computed in, which says
// how small the error has to be. Null where the move is longer than can be followed.
std::shared_ptr<const Quadrature> PathNodes(double half_range, at::ScalarType dtype);
// Half the range of the longest move that MakeSoftmaxPath follows.
double LongestHalfRange(at::ScalarType dtype);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_SOFTMAX_PATH_H_

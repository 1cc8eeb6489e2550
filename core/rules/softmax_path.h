// The path of a softmax between two ends of its scores: the coefficients of its rule, which attention has as well.
//
// Note [Softmax path]
// L = integral of J(b + t X) over t in 0..1 with J = diag p - p p^T. A softmax ignores shifts, so what bends it in a
// row is half the range of the move X. From that half range and the dtype the number of Gauss-Legendre nodes is taken,
// row by row, from tables of the largest half range h at which the error stays under 1e-6 in float32 and 1e-12 in
// float64. They hold for the worst row: two candidates that change places, wherever on the line. No other row has poles
// nearer to the line than theirs, pi / (2 h): the exponents of a softmax differ by 2 h at most. Longer moves are cut
// into pieces. The bracket is the exact error that remains; it is leftover and reported.
//
// Note [Far scores]
// Scores that are masked by a large number at one end only (-1e9, or the lowest number that there is) move so far that
// equal pieces do not follow them. What bends a softmax on a piece of the line is the half range of those candidates
// only that come near the top of it there, so such rows are cut in halves where that is still too much: a few dozen
// pieces, most of them next to where the masks set in. They are computed in float64; at each node, scores are taken
// relative to the largest one there, so that the large numbers of a row cancel before they are multiplied. A mask below
// -1e10 is put there on the line, where a softmax has long been zero, and the rows of its moves are made smaller in
// proportion: that keeps the sum. Rounding leaves few digits of such numbers, or none, so that a far row may miss that
// much; the rows beside it do not.
#ifndef ADDEND_CORE_RULES_SOFTMAX_PATH_H_
#define ADDEND_CORE_RULES_SOFTMAX_PATH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/rules/quadrature.h"

namespace addend {

// A row that moves too far for equal pieces; see Note [Far scores]. All in float64, on the CPU.
struct FarRow {
  int64_t row = 0;
  at::Tensor start;    // [T], the reference
  at::Tensor move;     // [T]
  at::Tensor scale;    // [T], of the rows of the moves; undefined: one
  int64_t anchor = 0;  // the candidate that the others' rows are taken from before they are scaled
  bool shifts = true;  // whether what log_softmax subtracts is known: the anchor is masked at no end
  Quadrature nodes;
};

// The scores at both ends, row by row, and the quadrature that each row takes.
struct SoftmaxPath {
  int64_t width = 0;
  at::Tensor value;      // [G, T]
  at::Tensor reference;  // [G, T]
  at::Tensor choice;     // [G], int64 on the CPU: which of `rules` a row takes; undefined without rows
  std::vector<std::shared_ptr<const Quadrature>> rules;  // null where no row takes it
  at::Tensor move;                                       // [G, T], where there are no loops; not of far rows
  std::vector<at::Tensor> nodes;                         // by rule, where there are no loops: [2, nodes], with weights
  std::vector<FarRow> far;                               // their value and reference are zeros
  double error = 0;                                      // of the quadrature
  double far_error = 0;                                  // of far rows, beside it: what rounding leaves of their digits
  double longest_near = 0;                               // half the range of the longest move of the others
};

// value, reference: [G, T]. Throws Unimplemented, in the name of `op`, where a move is infinite or too long to follow.
// `finite`: value and reference are known to be.
SoftmaxPath MakeSoftmaxPath(const std::string& op, const at::Tensor& value, const at::Tensor& reference,
                            bool finite = false);
// Sends rows [R, G, T] through the softmax. Every J is symmetric: this is the transpose as well, but for far rows.
at::Tensor AlongSoftmaxPath(const SoftmaxPath& path, const at::Tensor& rows, bool transposed = false);
// The mean of p over the path, [G, T]: what log_softmax subtracts and logsumexp gives. Undefined where there are no
// rows.
at::Tensor MeanProbabilities(const SoftmaxPath& path);
// The relative error to claim for outputs at both ends and for what the map makes of the move, each [G, N] with the
// rows of the path. Far rows may miss more than others; that is claimed only where no other row misses more than its
// own error, so that a wrong result there is not taken for rounding.
double ErrorToClaim(const SoftmaxPath& path, const at::Tensor& value, const at::Tensor& reference,
                    const at::Tensor& moved);
// The relative error that the quadrature may leave.
double SoftmaxPathError(at::ScalarType dtype);
// The nodes that average a softmax along a move of which this is half the range. dtype: what is computed in, which says
// how small the error has to be. Null where the move is longer than can be followed.
std::shared_ptr<const Quadrature> PathNodes(double half_range, at::ScalarType dtype);
// The nodes for one row that moves farther, [T] in float64; see Note [Far scores]. start: less its largest element.
std::shared_ptr<const Quadrature> FarNodesOf(const at::Tensor& start, const at::Tensor& move);
// Half the range of the longest move that equal pieces follow.
double LongestHalfRange(at::ScalarType dtype);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_SOFTMAX_PATH_H_

// Fused loops over the steps of LSTMs; lstm.cc says what they compute. The order of gates is LibTorch's: input, forget,
// cell and output gate side by side.
#ifndef ADDEND_CORE_RULES_LSTM_KERNEL_H_
#define ADDEND_CORE_RULES_LSTM_KERNEL_H_

#include <cstdint>

namespace addend {

// cell = forget * before + input * candidate, from gates [4 * size] after their functions.
template <typename T>
void LstmCell(const T* gates, const T* before, T* cell, int64_t size);

// The slope of sigmoid and tanh between two points.
enum class GateSlope {
  kSecant,    // (f(x) - f(b)) / (x - b), the derivative where both are near
  kScaling,   // f(x) / x
  kGradient,  // f'(x)
  kNone,      // 0
};
// How a factor of a product moves; see Note [Products] in kinds.h.
enum class LstmFactor {
  kMoves,
  kLeads,        // it moves, and what it multiplies moves after it
  kByMagnitude,  // it moves, and what it multiplies has a share by magnitude: Note [Shares by magnitude] in kinds.h
  kFrozen,       // it moves, but the policy reads its value only
  kRests,        // it is plain
};

// One row of one step, known at both ends of the line.
template <typename T>
struct LstmPoint {
  const T* sums;      // [4 * size]: gates before their functions
  const T* gates;     // [4 * size]: after them
  const T* before;    // [size]: the cell before the step
  const T* cell;      // [size]: the cell after it
  const T* squashed;  // [size]: tanh of that
};
template <typename T>
struct LstmChoices {
  GateSlope slope;
  LstmFactor gates;
  T small;  // moves up to this are near
  // Weights of shares by magnitude, where a coefficient opens and where it closes: of gates, and of the cell before the
  // first step.
  T opens;
  T closes;
  T cell_opens;
  T cell_closes;
};

// Coefficients of a step as a linear map on rows of its gates g and of the cell c before it:
//   c' = of_gates[0] g[0] + of_gates[1] g[1] + of_gates[2] g[2] + keep c,   h' = of_gates[3] g[3] + show c'.
template <typename T>
void LstmCoefficients(const LstmPoint<T>& value, const LstmPoint<T>& reference, const LstmChoices<T>& choices,
                      LstmFactor before, T* of_gates, T* keep, T* show, int64_t size);

// Applies the map of a step: writes the cell and the output, which may be null.
template <typename T>
void LstmApply(const T* gates, const T* before, const T* of_gates, const T* keep, const T* show, T* cell, T* hidden,
               int64_t size);
// Applies the transpose of the map of a step: from the cotangents of cell and output (null: zero) to those of the
// gates; adds to that of the cell before.
template <typename T>
void LstmTranspose(const T* back_cell, const T* back_hidden, const T* of_gates, const T* keep, const T* show,
                   T* back_gates, T* back_before, int64_t size);

// Computes out [n] += row [k] x matrix [k, n] for a single row, for which a general product would first pack the
// matrix.
template <typename T>
void AddRowTimesMatrix(const T* row, const T* matrix, T* out, int64_t k, int64_t n);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_LSTM_KERNEL_H_

#include "core/rules/lstm_kernel.h"

#include <cmath>

#include "core/rules/kernels.h"

namespace addend {
namespace {

template <typename T>
ADDEND_ALWAYS_INLINE void Cell(const T* gates, const T* before, T* cell, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) cell[j] = gates[n + j] * before[j] + gates[j] * gates[2 * n + j];
}

// Both functions are told by their results: sigmoid' = y (1 - y), tanh' = 1 - y^2.
template <bool kTanh, typename T>
ADDEND_ALWAYS_INLINE T DerivativeAt(T y) {
  return kTanh ? 1 - y * y : y * (1 - y);
}

// The slope between b and x. For a small move it is the mean derivative of both ends, because the secant loses digits
// to cancellation: the mean errs by move^2 / 12 times the third derivative, less than rounding does.
template <bool kTanh, GateSlope kSlope, typename T>
ADDEND_ALWAYS_INLINE T SlopeBetween(T x, T b, T at_x, T at_b, T small) {
  if (kSlope == GateSlope::kNone) return 0;
  if (kSlope == GateSlope::kGradient) return DerivativeAt<kTanh>(at_x);
  if (kSlope == GateSlope::kScaling) return x == 0 ? T(0) : at_x / x;
  const T move = x - b;
  const T mean = (DerivativeAt<kTanh>(at_x) + DerivativeAt<kTanh>(at_b)) / 2;
  const bool near = std::abs(move) <= small;
  const T secant = (at_x - at_b) / (near ? T(1) : move);
  return near ? mean : secant;
}

// Point at which one of two factors meets the other's rows.
template <typename T>
struct Stance {
  T rows;   // 1 where its own rows are read, else 0
  T shift;  // how far it is from its value towards its reference where the other's rows meet it
};

// The stance of the first of two factors, by the choice that Meet in kinds.cc makes.
template <typename T>
Stance<T> StanceOf(LstmFactor factor, LstmFactor other) {
  const auto reads = [](LstmFactor one, LstmFactor two) {
    if (one == LstmFactor::kRests) return false;
    return one != LstmFactor::kFrozen || two == LstmFactor::kFrozen || two == LstmFactor::kRests;
  };
  Stance<T> stance = {reads(factor, other) ? T(1) : T(0), 0};
  if (!reads(factor, other) || !reads(other, factor)) return stance;
  const auto leads = [](LstmFactor one) { return one == LstmFactor::kLeads || one == LstmFactor::kByMagnitude; };
  stance.shift = leads(factor) == leads(other) ? T(0.5) : leads(factor) ? T(0) : T(1);
  return stance;
}

// Share of the content v of a coefficient a; see Note [Shares by magnitude] in kinds.h.
template <typename T>
ADDEND_ALWAYS_INLINE T ShareOf(T a, T at_b, T v, T v_at_b, T opens, T closes) {
  const T stands = (std::abs(a) > std::abs(at_b) ? opens : closes) * std::abs(v);
  const T both = stands + std::abs(v_at_b);
  return both > 0 ? stands / (both > 0 ? both : T(1)) : T(1);
}

// Which coefficients of a step share by magnitude.
enum class Sharing { kNone, kGates, kCell };

template <GateSlope kSlope, Sharing kSharing, typename T>
ADDEND_ALWAYS_INLINE void CoefficientsBy(const LstmPoint<T>& x, const LstmPoint<T>& b, const LstmChoices<T>& choices,
                                         LstmFactor before, T* of_gates, T* keep, T* show, int64_t n) {
  const T small = choices.small;
  const Stance<T> gate = StanceOf<T>(choices.gates, LstmFactor::kMoves);
  const Stance<T> gated = StanceOf<T>(LstmFactor::kMoves, choices.gates);
  const Stance<T> forget = StanceOf<T>(choices.gates, before);
  const Stance<T> kept = StanceOf<T>(before, choices.gates);
  const bool gates_share = kSharing == Sharing::kGates;
  // A cell before that is a coefficient itself meets the forget gate as another coefficient, by half.
  const bool forget_shares = gates_share && before == LstmFactor::kMoves;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const int64_t f = n + j;
    const int64_t c = 2 * n + j;
    const int64_t o = 3 * n + j;
    const T of_input = SlopeBetween<false, kSlope>(x.sums[j], b.sums[j], x.gates[j], b.gates[j], small);
    const T of_forget = SlopeBetween<false, kSlope>(x.sums[f], b.sums[f], x.gates[f], b.gates[f], small);
    const T of_candidate = SlopeBetween<true, kSlope>(x.sums[c], b.sums[c], x.gates[c], b.gates[c], small);
    const T of_output = SlopeBetween<false, kSlope>(x.sums[o], b.sums[o], x.gates[o], b.gates[o], small);
    const T of_cell = SlopeBetween<true, kSlope>(x.cell[j], b.cell[j], x.squashed[j], b.squashed[j], small);
    // How far contents are from their values where the rows of gates meet them; gates are the rest of the way.
    T candidate = gated.shift;
    T earlier = kept.shift;
    T squashed = gated.shift;
    if (gates_share) {
      candidate = ShareOf(x.gates[j], b.gates[j], x.gates[c], b.gates[c], choices.opens, choices.closes);
      squashed = ShareOf(x.gates[o], b.gates[o], x.squashed[j], b.squashed[j], choices.opens, choices.closes);
      const T own = ShareOf(x.gates[f], b.gates[f], x.before[j], b.before[j], choices.opens, choices.closes);
      earlier = forget_shares ? own : earlier;
    }
    if (kSharing == Sharing::kCell) {
      const T own = ShareOf(x.before[j], b.before[j], x.gates[f], b.gates[f], choices.cell_opens, choices.cell_closes);
      earlier = 1 - own;
    }
    const T input = gates_share ? 1 - candidate : gate.shift;
    const T output = gates_share ? 1 - squashed : gate.shift;
    const T forgotten = forget_shares || kSharing == Sharing::kCell ? 1 - earlier : forget.shift;
    of_gates[j] = gate.rows * of_input * (x.gates[c] + (b.gates[c] - x.gates[c]) * candidate);
    of_gates[f] = forget.rows * of_forget * (x.before[j] + (b.before[j] - x.before[j]) * earlier);
    of_gates[c] = of_candidate * (x.gates[j] + (b.gates[j] - x.gates[j]) * input);
    of_gates[o] = gate.rows * of_output * (x.squashed[j] + (b.squashed[j] - x.squashed[j]) * squashed);
    keep[j] = kept.rows * (x.gates[f] + (b.gates[f] - x.gates[f]) * forgotten);
    show[j] = of_cell * (x.gates[o] + (b.gates[o] - x.gates[o]) * output);
  }
}

template <Sharing kSharing, typename T>
ADDEND_ALWAYS_INLINE void Coefficients(const LstmPoint<T>& x, const LstmPoint<T>& b, const LstmChoices<T>& choices,
                                       LstmFactor before, T* of_gates, T* keep, T* show, int64_t n) {
  switch (choices.slope) {
    case GateSlope::kSecant:
      return CoefficientsBy<GateSlope::kSecant, kSharing>(x, b, choices, before, of_gates, keep, show, n);
    case GateSlope::kScaling:
      return CoefficientsBy<GateSlope::kScaling, kSharing>(x, b, choices, before, of_gates, keep, show, n);
    case GateSlope::kGradient:
      return CoefficientsBy<GateSlope::kGradient, kSharing>(x, b, choices, before, of_gates, keep, show, n);
    case GateSlope::kNone:
      return CoefficientsBy<GateSlope::kNone, kSharing>(x, b, choices, before, of_gates, keep, show, n);
  }
}

Sharing SharingOf(LstmFactor gates, LstmFactor before) {
  if (gates == LstmFactor::kByMagnitude) return Sharing::kGates;
  return before == LstmFactor::kByMagnitude && gates == LstmFactor::kMoves ? Sharing::kCell : Sharing::kNone;
}

template <typename T>
ADDEND_ALWAYS_INLINE void Apply(const T* g, const T* before, const T* k, const T* keep, const T* show, T* cell,
                                T* hidden, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    cell[j] = k[j] * g[j] + k[n + j] * g[n + j] + k[2 * n + j] * g[2 * n + j] + keep[j] * before[j];
  }
  if (hidden == nullptr) return;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) hidden[j] = k[3 * n + j] * g[3 * n + j] + show[j] * cell[j];
}

template <typename T>
ADDEND_ALWAYS_INLINE void Transpose(const T* back_cell, const T* back_hidden, const T* k, const T* keep, const T* show,
                                    T* back_gates, T* back_before, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T hidden = back_hidden[j];
    const T cell = back_cell[j] + show[j] * hidden;
    back_gates[j] = k[j] * cell;
    back_gates[n + j] = k[n + j] * cell;
    back_gates[2 * n + j] = k[2 * n + j] * cell;
    back_gates[3 * n + j] = k[3 * n + j] * hidden;
    back_before[j] += keep[j] * cell;
  }
}

// Four rows of the matrix at a time, so that the sums are read and written once for all of them.
template <typename T>
ADDEND_ALWAYS_INLINE void AddProduct(const T* row, const T* matrix, T* out, int64_t k, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const T* m = matrix + i * n;
    const T a = row[i];
    const T b = row[i + 1];
    const T c = row[i + 2];
    const T d = row[i + 3];
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] += (a * m[j] + b * m[n + j]) + (c * m[2 * n + j] + d * m[3 * n + j]);
  }
  for (; i < k; ++i) {
    const T* m = matrix + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] += row[i] * m[j];
  }
}

// Plain functions and not templates: target_clones does not go on templates.
#define ADDEND_LSTM_CLONES(T)                                                                                        \
  ADDEND_WIDEST_VECTORS void CellOf(const T* gates, const T* before, T* cell, int64_t n) {                           \
    Cell(gates, before, cell, n);                                                                                    \
  }                                                                                                                  \
  ADDEND_WIDEST_VECTORS void CoefficientsOf(const LstmPoint<T>& x, const LstmPoint<T>& b,                            \
                                            const LstmChoices<T>& choices, LstmFactor before, T* of_gates, T* keep,  \
                                            T* show, int64_t n) {                                                    \
    switch (SharingOf(choices.gates, before)) {                                                                      \
      case Sharing::kNone:                                                                                           \
        return Coefficients<Sharing::kNone>(x, b, choices, before, of_gates, keep, show, n);                         \
      case Sharing::kGates:                                                                                          \
        return Coefficients<Sharing::kGates>(x, b, choices, before, of_gates, keep, show, n);                        \
      case Sharing::kCell:                                                                                           \
        return Coefficients<Sharing::kCell>(x, b, choices, before, of_gates, keep, show, n);                         \
    }                                                                                                                \
  }                                                                                                                  \
  ADDEND_WIDEST_VECTORS void ApplyOf(const T* g, const T* before, const T* k, const T* keep, const T* show, T* cell, \
                                     T* hidden, int64_t n) {                                                         \
    Apply(g, before, k, keep, show, cell, hidden, n);                                                                \
  }                                                                                                                  \
  ADDEND_WIDEST_VECTORS void TransposeOf(const T* back_cell, const T* back_hidden, const T* k, const T* keep,        \
                                         const T* show, T* back_gates, T* back_before, int64_t n) {                  \
    Transpose(back_cell, back_hidden, k, keep, show, back_gates, back_before, n);                                    \
  }                                                                                                                  \
  ADDEND_WIDEST_VECTORS void ProductOf(const T* row, const T* matrix, T* out, int64_t k, int64_t n) {                \
    AddProduct(row, matrix, out, k, n);                                                                              \
  }
ADDEND_LSTM_CLONES(float)
ADDEND_LSTM_CLONES(double)
#undef ADDEND_LSTM_CLONES

}  // namespace

template <typename T>
void LstmCell(const T* gates, const T* before, T* cell, int64_t size) {
  CellOf(gates, before, cell, size);
}

template <typename T>
void LstmCoefficients(const LstmPoint<T>& value, const LstmPoint<T>& reference, const LstmChoices<T>& choices,
                      LstmFactor before, T* of_gates, T* keep, T* show, int64_t size) {
  CoefficientsOf(value, reference, choices, before, of_gates, keep, show, size);
}

template <typename T>
void LstmApply(const T* gates, const T* before, const T* of_gates, const T* keep, const T* show, T* cell, T* hidden,
               int64_t size) {
  ApplyOf(gates, before, of_gates, keep, show, cell, hidden, size);
}

template <typename T>
void LstmTranspose(const T* back_cell, const T* back_hidden, const T* of_gates, const T* keep, const T* show,
                   T* back_gates, T* back_before, int64_t size) {
  TransposeOf(back_cell, back_hidden, of_gates, keep, show, back_gates, back_before, size);
}

template <typename T>
void AddRowTimesMatrix(const T* row, const T* matrix, T* out, int64_t k, int64_t n) {
  ProductOf(row, matrix, out, k, n);
}

#define ADDEND_INSTANTIATE_LSTM(T)                                                                                   \
  template void LstmCell<T>(const T*, const T*, T*, int64_t);                                                        \
  template void LstmCoefficients<T>(const LstmPoint<T>&, const LstmPoint<T>&, const LstmChoices<T>&, LstmFactor, T*, \
                                    T*, T*, int64_t);                                                                \
  template void LstmApply<T>(const T*, const T*, const T*, const T*, const T*, T*, T*, int64_t);                     \
  template void LstmTranspose<T>(const T*, const T*, const T*, const T*, const T*, T*, T*, int64_t);                 \
  template void AddRowTimesMatrix<T>(const T*, const T*, T*, int64_t, int64_t);
ADDEND_INSTANTIATE_LSTM(float)
ADDEND_INSTANTIATE_LSTM(double)
#undef ADDEND_INSTANTIATE_LSTM

}  // namespace addend

// Fused CPU loops for maps whose ATen form would pass over the rows many times. Each has an ATen form beside its only
// caller, which serves the other devices and is what the loop is tested against.
#ifndef ADDEND_CORE_RULES_KERNELS_H_
#define ADDEND_CORE_RULES_KERNELS_H_

#include <cstdint>
#include <vector>

// One binary serves every x86-64: the loader picks the widest vectors that the machine has.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ADDEND_WIDEST_VECTORS __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define ADDEND_WIDEST_VECTORS
#endif
// A template's body that is compiled once for each clone of the function that calls it.
#if defined(__GNUC__)
#define ADDEND_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ADDEND_ALWAYS_INLINE inline
#endif

namespace addend {

// Coefficients of a normalization over groups of `size` elements: see normalization.cc for what they mean.
template <typename T>
struct NormalizerView {
  const T* middle;   // [groups, size]; null where the normalizer is frozen
  const T* met;      // [groups, size]; the same as middle by half, null where the normalizer is frozen
  const T* inverse;  // [groups]
  const T* bend;     // [groups]; null where the normalizer is frozen
  const T* weight;   // [size]; null for none
  int64_t groups;
  int64_t size;
};

// output[r, g, :] = inverse[g] * (c - mean c) + bend[g] * met[g, :] * mean(middle[g, :] * c), c = input[r, g, :], times
// the weight. Transposed, the weight multiplies the input, and middle and met change places.
template <typename T>
void NormalizeRows(const T* input, T* output, int64_t rows, const NormalizerView<T>& coefficients, bool transposed);

// What the coefficients of a normalizer are made from, group by group: see MakeNormalizer in normalization.cc.
template <typename T>
struct NormalizerEnds {
  const T* value;      // [groups, size]
  const T* reference;  // the same; null where the normalizer is frozen
  int64_t groups;
  int64_t size;
  T eps;
};
// Where they go: see Normalizer in normalization.cc.
template <typename T>
struct NormalizerCoefficients {
  T* middle;   // [groups, size]
  T* met;      // [groups, size]; null: by half
  T* inverse;  // [groups]
  T* bend;     // [groups]
};
// Only `inverse` is written where there is no reference. Returns the largest, over the groups, of what is cancelled
// where means are taken off (InnerTerms in normalization.cc), NaN left out.
template <typename T>
T FindNormalizer(const NormalizerEnds<T>& ends, const NormalizerCoefficients<T>& found);

extern template float FindNormalizer<float>(const NormalizerEnds<float>&, const NormalizerCoefficients<float>&);
extern template double FindNormalizer<double>(const NormalizerEnds<double>&, const NormalizerCoefficients<double>&);

// Ends of the lines along which an elementwise function is linearized; all arrays have n elements.
template <typename T>
struct SecantView {
  const T* value;
  const T* reference;
  const T* f_value;
  const T* f_reference;
  int64_t n;
  // A move is small up to `limit`, or, where `relative`, up to limit times the middle of the line.
  T limit;
  bool relative;
};

// slope = (f_value - f_reference) / move, whatever comes out where the move is zero. Returns the indices of the small
// moves, in order.
template <typename T>
std::vector<int64_t> SecantQuotients(const SecantView<T>& view, T* slope);

extern template std::vector<int64_t> SecantQuotients<float>(const SecantView<float>&, float*);
extern template std::vector<int64_t> SecantQuotients<double>(const SecantView<double>&, double*);

// middle = (a + b) / 2, of n elements each.
template <typename T>
void Middles(const T* a, const T* b, T* middle, int64_t n);

// move = value - reference, zero where both are the same, infinities and NaN included; of n elements each.
template <typename T>
void Moves(const T* value, const T* reference, T* move, int64_t n);

extern template void Moves<float>(const float*, const float*, float*, int64_t);
extern template void Moves<double>(const double*, const double*, double*, int64_t);
extern template void Middles<float>(const float*, const float*, float*, int64_t);
extern template void Middles<double>(const double*, const double*, double*, int64_t);

// No NaN and no infinity among n numbers.
template <typename T>
bool AllFiniteNumbers(const T* numbers, int64_t n);
// The largest finite magnitude among n numbers; 0 where there is none.
template <typename T>
T LargestFinite(const T* numbers, int64_t n);

extern template bool AllFiniteNumbers<float>(const float*, int64_t);
extern template bool AllFiniteNumbers<double>(const double*, int64_t);
extern template float LargestFinite<float>(const float*, int64_t);
extern template double LargestFinite<double>(const double*, int64_t);

// The indices of the rows of [rows, size] that have an element other than zero, in order.
template <typename T>
std::vector<int64_t> NonzeroRows(const T* matrix, int64_t rows, int64_t size);

extern template std::vector<int64_t> NonzeroRows<float>(const float*, int64_t, int64_t);
extern template std::vector<int64_t> NonzeroRows<double>(const double*, int64_t, int64_t);
extern template void NormalizeRows<float>(const float*, float*, int64_t, const NormalizerView<float>&, bool);
extern template void NormalizeRows<double>(const double*, double*, int64_t, const NormalizerView<double>&, bool);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_KERNELS_H_

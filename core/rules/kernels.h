// Fused CPU loops for maps whose ATen form would pass over the rows many times. The ATen form of each stands beside its
// only caller; it serves the other devices, and the loop is tested against it.
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

// Terms that are added in the dtype of the numbers; the sums of so many are added in double precision. A row may be an
// image or a vocabulary: beside a sum near one, thousands of small terms would vanish.
constexpr int64_t kSummedAtOnce = 256;

// The coefficients of a normalization over groups of `size` elements; normalization.cc says what they mean.
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

// Applies a normalizer: output[r, g, :] = inverse[g] * (c - mean c) + bend[g] * met[g, :] * mean(middle[g, :] * c),
// with c = input[r, g, :], times the weight. Transposed, the weight multiplies the input, and middle and met change
// places.
template <typename T>
void NormalizeRows(const T* input, T* output, int64_t rows, const NormalizerView<T>& coefficients, bool transposed);

// Both ends of a normalization, from which its coefficients are made group by group: see MakeNormalizer in
// normalization.cc.
template <typename T>
struct NormalizerEnds {
  const T* value;      // [groups, size]
  const T* reference;  // the same; null where the normalizer is frozen
  int64_t groups;
  int64_t size;
  T eps;
};
// Memory for the coefficients: see Normalizer in normalization.cc.
template <typename T>
struct NormalizerCoefficients {
  T* middle;   // [groups, size]
  T* met;      // [groups, size]; null: by half
  T* inverse;  // [groups]
  T* bend;     // [groups]
};
// Computes the coefficients; only `inverse` if there is no reference. Returns the largest, over the groups, of the
// terms that cancel where means are subtracted (InnerTerms in normalization.cc), NaN left out.
template <typename T>
T FindNormalizer(const NormalizerEnds<T>& ends, const NormalizerCoefficients<T>& found);

extern template float FindNormalizer<float>(const NormalizerEnds<float>&, const NormalizerCoefficients<float>&);
extern template double FindNormalizer<double>(const NormalizerEnds<double>&, const NormalizerCoefficients<double>&);

// Both ends of the lines along which an elementwise function is linearized; all arrays have n elements.
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

// Computes slope = (f_value - f_reference) / move, without regard to moves of zero. Returns the indices of the small
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

// True if there is no NaN and no infinity among n numbers.
template <typename T>
bool AllFiniteNumbers(const T* numbers, int64_t n);
// Returns the largest finite magnitude among n numbers; 0 if there is none.
template <typename T>
T LargestFinite(const T* numbers, int64_t n);

extern template bool AllFiniteNumbers<float>(const float*, int64_t);
extern template bool AllFiniteNumbers<double>(const double*, int64_t);
extern template float LargestFinite<float>(const float*, int64_t);
extern template double LargestFinite<double>(const double*, int64_t);

// Returns the indices of the rows of [rows, size] that have a nonzero element, in order.
template <typename T>
std::vector<int64_t> NonzeroRows(const T* matrix, int64_t rows, int64_t size);

extern template std::vector<int64_t> NonzeroRows<float>(const float*, int64_t, int64_t);
extern template std::vector<int64_t> NonzeroRows<double>(const double*, int64_t, int64_t);
extern template void NormalizeRows<float>(const float*, float*, int64_t, const NormalizerView<float>&, bool);
extern template void NormalizeRows<double>(const double*, double*, int64_t, const NormalizerView<double>&, bool);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_KERNELS_H_

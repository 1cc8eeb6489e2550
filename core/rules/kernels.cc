#include "core/rules/kernels.h"

#include <vector>

namespace addend {
namespace {

template <typename T>
ADDEND_ALWAYS_INLINE void NormalizeGroup(const T* c, T* out, const T* middle, T inverse, T bend, const T* weight,
                                         int64_t n) {
  T sum = 0;
  T along = 0;
  if (middle != nullptr) {
#pragma omp simd reduction(+ : sum, along)
    for (int64_t j = 0; j < n; ++j) {
      sum += c[j];
      along += c[j] * middle[j];
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += c[j];
  }
  const T mean = sum / static_cast<T>(n);
  const T push = bend * along / static_cast<T>(n);
  if (middle != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = inverse * (c[j] - mean) + push * middle[j];
  } else {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = inverse * (c[j] - mean);
  }
  if (weight != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] *= weight[j];
  }
}

// Two plain functions and not a template: target_clones does not go on templates.
ADDEND_WIDEST_VECTORS void NormalizeOneGroup(const float* c, float* out, const float* middle, float inverse, float bend,
                                             const float* weight, int64_t n) {
  NormalizeGroup(c, out, middle, inverse, bend, weight, n);
}
ADDEND_WIDEST_VECTORS void NormalizeOneGroup(const double* c, double* out, const double* middle, double inverse,
                                             double bend, const double* weight, int64_t n) {
  NormalizeGroup(c, out, middle, inverse, bend, weight, n);
}

}  // namespace

template <typename T>
void NormalizeRows(const T* input, T* output, int64_t rows, const NormalizerView<T>& k, bool weight_first) {
  const int64_t total = rows * k.groups;
#pragma omp parallel if (total * k.size > 32768)
  {
    std::vector<T> weighted(weight_first && k.weight != nullptr ? k.size : 0);
#pragma omp for
    for (int64_t i = 0; i < total; ++i) {
      const int64_t g = i % k.groups;
      const T* c = input + i * k.size;
      const T* post = k.weight;
      if (!weighted.empty()) {
        for (int64_t j = 0; j < k.size; ++j) weighted[j] = c[j] * k.weight[j];
        c = weighted.data();
        post = nullptr;
      }
      NormalizeOneGroup(c, output + i * k.size, k.middle == nullptr ? nullptr : k.middle + g * k.size, k.inverse[g],
                        k.bend == nullptr ? T(0) : k.bend[g], post, k.size);
    }
  }
}

template <typename T>
std::vector<int64_t> NonzeroRows(const T* matrix, int64_t rows, int64_t size) {
  std::vector<int64_t> found;
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = matrix + r * size;
    // NaN is not zero. Rows that are not zero mostly show it at once.
    for (int64_t j = 0; j < size; ++j) {
      if (row[j] == T(0)) continue;
      found.push_back(r);
      break;
    }
  }
  return found;
}

template std::vector<int64_t> NonzeroRows<float>(const float*, int64_t, int64_t);
template std::vector<int64_t> NonzeroRows<double>(const double*, int64_t, int64_t);
template void NormalizeRows<float>(const float*, float*, int64_t, const NormalizerView<float>&, bool);
template void NormalizeRows<double>(const double*, double*, int64_t, const NormalizerView<double>&, bool);

}  // namespace addend

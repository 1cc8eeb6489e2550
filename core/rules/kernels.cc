#include "core/rules/kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/in_parallel.h"
#include "core/rules/move.h"

namespace addend {
namespace {

// One group: the factors of a row c of it.
template <typename T>
struct GroupNormalizer {
  const T* along;   // what c is taken along; null where the normalizer is frozen
  const T* pushes;  // what that moves
  T inverse;
  T bend;
  const T* weight;  // null for none
};

template <typename T>
ADDEND_ALWAYS_INLINE void NormalizeGroup(const T* c, T* out, const GroupNormalizer<T>& group, int64_t n) {
  const T* along = group.along;
  const T* pushes = group.pushes;
  const T inverse = group.inverse;
  double all = 0;
  double product_of_all = 0;
  for (int64_t first = 0; first < n; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, n);
    T sum = 0;
    T product = 0;
    if (along != nullptr) {
#pragma omp simd reduction(+ : sum, product)
      for (int64_t j = first; j < end; ++j) {
        sum += c[j];
        product += c[j] * along[j];
      }
    } else {
#pragma omp simd reduction(+ : sum)
      for (int64_t j = first; j < end; ++j) sum += c[j];
    }
    all += sum;
    product_of_all += product;
  }
  const T mean = static_cast<T>(all / static_cast<double>(n));
  const T push = static_cast<T>(group.bend * (product_of_all / static_cast<double>(n)));
  if (along != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = inverse * (c[j] - mean) + push * pushes[j];
  } else {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = inverse * (c[j] - mean);
  }
  const T* weight = group.weight;
  if (weight != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] *= weight[j];
  }
}

// Two plain functions and not a template: target_clones does not go on templates.
ADDEND_WIDEST_VECTORS void NormalizeOneGroup(const float* c, float* out, const GroupNormalizer<float>& group,
                                             int64_t n) {
  NormalizeGroup(c, out, group, n);
}
ADDEND_WIDEST_VECTORS void NormalizeOneGroup(const double* c, double* out, const GroupNormalizer<double>& group,
                                             int64_t n) {
  NormalizeGroup(c, out, group, n);
}

}  // namespace

template <typename T>
void NormalizeRows(const T* input, T* output, int64_t rows, const NormalizerView<T>& k, bool transposed) {
  const int64_t total = rows * k.groups;
  const T* along = transposed ? k.met : k.middle;
  const T* pushes = transposed ? k.middle : k.met;
  InParallelIf(total * k.size > 32768, total, [&](int64_t from, int64_t to) {
    std::vector<T> weighted(transposed && k.weight != nullptr ? k.size : 0);
    for (int64_t i = from; i < to; ++i) {
      const int64_t g = i % k.groups;
      const T* c = input + i * k.size;
      GroupNormalizer<T> group = {nullptr, nullptr, k.inverse[g], 0, k.weight};
      if (along != nullptr) {
        group.along = along + g * k.size;
        group.pushes = pushes + g * k.size;
        group.bend = k.bend[g];
      }
      if (!weighted.empty()) {
        for (int64_t j = 0; j < k.size; ++j) weighted[j] = c[j] * k.weight[j];
        c = weighted.data();
        group.weight = nullptr;
      }
      NormalizeOneGroup(c, output + i * k.size, group, k.size);
    }
  });
}

namespace {

// The largest of what `of_range(from, to)` returns for the ranges of 0 ... count - 1; at least 0.
template <typename T, typename OfRange>
T LargestOfRanges(bool pays, int64_t count, const OfRange& of_range) {
  T largest = 0;
  std::mutex mutex;
  InParallelIf(pays, count, [&](int64_t from, int64_t to) {
    const T own = of_range(from, to);
    const std::lock_guard<std::mutex> lock(mutex);
    largest = std::max(largest, own);
  });
  return largest;
}

}  // namespace

namespace {

template <typename T>
struct Deviation {
  T mean;
  T inverse;  // 1 / sqrt(variance + eps)
  T largest;
};

template <typename T>
ADDEND_ALWAYS_INLINE Deviation<T> DeviationOf(const T* x, int64_t n, T eps) {
  double all = 0;
  T largest = 0;
  for (int64_t first = 0; first < n; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, n);
    T sum = 0;
#pragma omp simd reduction(+ : sum) reduction(max : largest)
    for (int64_t j = first; j < end; ++j) {
      sum += x[j];
      const T size = std::abs(x[j]);
      largest = largest > size ? largest : size;
    }
    all += sum;
  }
  const T mean = static_cast<T>(all / static_cast<double>(n));
  double squares = 0;
  for (int64_t first = 0; first < n; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, n);
    T square = 0;
#pragma omp simd reduction(+ : square)
    for (int64_t j = first; j < end; ++j) square += (x[j] - mean) * (x[j] - mean);
    squares += square;
  }
  return {mean, static_cast<T>(1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps))), largest};
}

template <typename T>
ADDEND_ALWAYS_INLINE T FindGroup(const NormalizerEnds<T>& ends, int64_t g, const NormalizerCoefficients<T>& found) {
  const int64_t n = ends.size;
  const T* value = ends.value + g * n;
  const Deviation<T> x = DeviationOf(value, n, ends.eps);
  found.inverse[g] = x.inverse;
  if (ends.reference == nullptr) return x.largest * x.inverse;
  const T* reference = ends.reference + g * n;
  const Deviation<T> b = DeviationOf(reference, n, ends.eps);
  T* middle = found.middle + g * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) middle[j] = ((value[j] - x.mean) + (reference[j] - b.mean)) / 2;
  found.bend[g] = -2 * (x.inverse * x.inverse) * (b.inverse * b.inverse) / (x.inverse + b.inverse);
  if (found.met == nullptr) {
    found.inverse[g] = (x.inverse + b.inverse) / 2;
    return (x.largest + b.largest) * found.inverse[g];
  }
  T* met = found.met + g * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) met[j] = reference[j] - b.mean;
  return (x.largest + b.largest) * x.inverse + b.largest * b.inverse;
}

// Two plain functions and not a template: target_clones does not go on templates.
ADDEND_WIDEST_VECTORS float FindOneGroup(const NormalizerEnds<float>& ends, int64_t g,
                                         const NormalizerCoefficients<float>& found) {
  return FindGroup(ends, g, found);
}
ADDEND_WIDEST_VECTORS double FindOneGroup(const NormalizerEnds<double>& ends, int64_t g,
                                          const NormalizerCoefficients<double>& found) {
  return FindGroup(ends, g, found);
}

}  // namespace

template <typename T>
T FindNormalizer(const NormalizerEnds<T>& ends, const NormalizerCoefficients<T>& found) {
  return LargestOfRanges<T>(ends.groups * ends.size > 32768, ends.groups, [&](int64_t from, int64_t to) {
    T largest = 0;
    for (int64_t g = from; g < to; ++g) largest = std::max(largest, FindOneGroup(ends, g, found));
    return largest;
  });
}

template float FindNormalizer<float>(const NormalizerEnds<float>&, const NormalizerCoefficients<float>&);
template double FindNormalizer<double>(const NormalizerEnds<double>&, const NormalizerCoefficients<double>&);

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

namespace {

// Elements that one thread takes at a time, and those that are looked through for small moves together: mostly there
// are none.
constexpr int64_t kSecantBlock = 8192;
constexpr int64_t kSecantPiece = 64;

template <typename T>
ADDEND_ALWAYS_INLINE bool IsSmall(T reference, T move, T limit, bool relative) {
  // The middle of the line counts for relative limits only.
  const T bound = relative ? std::abs(reference + move / 2) * limit : limit;
  return std::abs(move) <= bound;
}

template <typename T, bool kRelative>
ADDEND_ALWAYS_INLINE void QuotientsOfBlock(const SecantView<T>& view, T* slope, int64_t first, int64_t last,
                                           std::vector<int64_t>* found) {
  const T limit = view.limit;
  for (int64_t begin = first; begin < last; begin += kSecantPiece) {
    const int64_t n = std::min(kSecantPiece, last - begin);
    const T* value = view.value + begin;
    const T* reference = view.reference + begin;
    const T* f_value = view.f_value + begin;
    const T* f_reference = view.f_reference + begin;
    T* out = slope + begin;
    int small = 0;
#pragma omp simd reduction(+ : small)
    for (int64_t j = 0; j < n; ++j) {
      const T move = MoveAt(value[j], reference[j]);
      out[j] = (f_value[j] - f_reference[j]) / move;
      small += IsSmall(reference[j], move, limit, kRelative) ? 1 : 0;
    }
    if (small == 0) continue;
    for (int64_t j = 0; j < n; ++j) {
      if (IsSmall(reference[j], MoveAt(value[j], reference[j]), limit, kRelative)) found->push_back(begin + j);
    }
  }
}

// Two plain functions each and no templates: target_clones does not go on those.
ADDEND_WIDEST_VECTORS void QuotientsOfOneBlock(const SecantView<float>& view, float* slope, int64_t first, int64_t last,
                                               std::vector<int64_t>* found) {
  view.relative ? QuotientsOfBlock<float, true>(view, slope, first, last, found)
                : QuotientsOfBlock<float, false>(view, slope, first, last, found);
}
ADDEND_WIDEST_VECTORS void QuotientsOfOneBlock(const SecantView<double>& view, double* slope, int64_t first,
                                               int64_t last, std::vector<int64_t>* found) {
  view.relative ? QuotientsOfBlock<double, true>(view, slope, first, last, found)
                : QuotientsOfBlock<double, false>(view, slope, first, last, found);
}

template <typename T>
ADDEND_ALWAYS_INLINE void MiddlesOfBlock(const T* a, const T* b, T* middle, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) middle[j] = (a[j] + b[j]) / 2;
}
ADDEND_WIDEST_VECTORS void MiddlesOfOneBlock(const float* a, const float* b, float* middle, int64_t n) {
  MiddlesOfBlock(a, b, middle, n);
}
ADDEND_WIDEST_VECTORS void MiddlesOfOneBlock(const double* a, const double* b, double* middle, int64_t n) {
  MiddlesOfBlock(a, b, middle, n);
}

template <typename T>
ADDEND_ALWAYS_INLINE void MovesOfBlock(const T* value, const T* reference, T* move, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) move[j] = MoveAt(value[j], reference[j]);
}
ADDEND_WIDEST_VECTORS void MovesOfOneBlock(const float* value, const float* reference, float* move, int64_t n) {
  MovesOfBlock(value, reference, move, n);
}
ADDEND_WIDEST_VECTORS void MovesOfOneBlock(const double* value, const double* reference, double* move, int64_t n) {
  MovesOfBlock(value, reference, move, n);
}

template <typename T>
ADDEND_ALWAYS_INLINE bool FiniteBlock(const T* numbers, int64_t n) {
  int bad = 0;
#pragma omp simd reduction(+ : bad)
  for (int64_t j = 0; j < n; ++j) bad += std::abs(numbers[j]) <= std::numeric_limits<T>::max() ? 0 : 1;
  return bad == 0;
}
ADDEND_WIDEST_VECTORS bool FiniteOneBlock(const float* numbers, int64_t n) { return FiniteBlock(numbers, n); }
ADDEND_WIDEST_VECTORS bool FiniteOneBlock(const double* numbers, int64_t n) { return FiniteBlock(numbers, n); }

template <typename T>
ADDEND_ALWAYS_INLINE T LargestOfBlock(const T* numbers, int64_t n) {
  T largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < n; ++j) {
    const T size = std::abs(numbers[j]);
    const T finite = size <= std::numeric_limits<T>::max() ? size : T(0);
    largest = largest > finite ? largest : finite;
  }
  return largest;
}
ADDEND_WIDEST_VECTORS float LargestOfOneBlock(const float* numbers, int64_t n) { return LargestOfBlock(numbers, n); }
ADDEND_WIDEST_VECTORS double LargestOfOneBlock(const double* numbers, int64_t n) { return LargestOfBlock(numbers, n); }

int64_t BlocksOf(int64_t n) { return (n + kSecantBlock - 1) / kSecantBlock; }

}  // namespace

template <typename T>
std::vector<int64_t> SecantQuotients(const SecantView<T>& view, T* slope) {
  const int64_t blocks = BlocksOf(view.n);
  // A parallel region costs more than small tensors do, also where it asks for one thread.
  if (blocks <= 1) {
    std::vector<int64_t> small;
    QuotientsOfOneBlock(view, slope, 0, view.n, &small);
    return small;
  }
  std::vector<std::vector<int64_t>> found(blocks);
  InParallelIf(blocks > 4, blocks, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      QuotientsOfOneBlock(view, slope, b * kSecantBlock, std::min(view.n, (b + 1) * kSecantBlock), &found[b]);
    }
  });
  std::vector<int64_t> small;
  for (const std::vector<int64_t>& own : found) small.insert(small.end(), own.begin(), own.end());
  return small;
}

namespace {

// work(first, count) for each block of n elements.
template <typename Work>
void InBlocks(int64_t n, const Work& work) {
  const int64_t blocks = BlocksOf(n);
  if (blocks <= 1) return work(0, n);
  InParallelIf(blocks > 8, blocks, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; ++k) work(k * kSecantBlock, std::min(kSecantBlock, n - k * kSecantBlock));
  });
}

}  // namespace

template <typename T>
void Middles(const T* a, const T* b, T* middle, int64_t n) {
  InBlocks(n, [=](int64_t first, int64_t count) { MiddlesOfOneBlock(a + first, b + first, middle + first, count); });
}

template <typename T>
void Moves(const T* value, const T* reference, T* move, int64_t n) {
  InBlocks(
      n, [=](int64_t first, int64_t count) { MovesOfOneBlock(value + first, reference + first, move + first, count); });
}

template void Moves<float>(const float*, const float*, float*, int64_t);
template void Moves<double>(const double*, const double*, double*, int64_t);
template void Middles<float>(const float*, const float*, float*, int64_t);
template void Middles<double>(const double*, const double*, double*, int64_t);

template <typename T>
bool AllFiniteNumbers(const T* numbers, int64_t n) {
  std::atomic<bool> finite{true};
  InBlocks(n, [&](int64_t first, int64_t count) {
    if (!FiniteOneBlock(numbers + first, count)) finite = false;
  });
  return finite;
}

template <typename T>
T LargestFinite(const T* numbers, int64_t n) {
  const int64_t blocks = BlocksOf(n);
  if (blocks <= 1) return LargestOfOneBlock(numbers, n);
  return LargestOfRanges<T>(blocks > 8, blocks, [&](int64_t from, int64_t to) {
    T largest = 0;
    for (int64_t b = from; b < to; ++b) {
      const int64_t first = b * kSecantBlock;
      largest = std::max(largest, LargestOfOneBlock(numbers + first, std::min(kSecantBlock, n - first)));
    }
    return largest;
  });
}

template std::vector<int64_t> SecantQuotients<float>(const SecantView<float>&, float*);
template std::vector<int64_t> SecantQuotients<double>(const SecantView<double>&, double*);
template bool AllFiniteNumbers<float>(const float*, int64_t);
template bool AllFiniteNumbers<double>(const double*, int64_t);
template float LargestFinite<float>(const float*, int64_t);
template double LargestFinite<double>(const double*, int64_t);

}  // namespace addend

#include "core/rules/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
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
void UpperEnvelope(const T* value, const T* reference, T* shares, int64_t n) {
  struct Line {
    double slope, start;
    int64_t index;
    int64_t count;  // how many candidates are this very line
  };
  std::vector<Line> lines;
  lines.reserve(n);
  const auto line_of = [&](int64_t i) {
    const double start = reference[i];
    return Line{value[i] == reference[i] ? 0 : static_cast<double>(value[i]) - start, start, i, 1};
  };
  for (int64_t i = 0; i < n; ++i) {
    shares[i] = 0;
    const Line line = line_of(i);
    if (std::isfinite(line.slope) && !(line.start < -std::numeric_limits<T>::max())) lines.push_back(line);
  }
  if (lines.empty()) {  // all of them infinitely low: one is as good as another
    for (int64_t i = 0; i < n; ++i) shares[i] = T(1) / static_cast<T>(n);
    return;
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.slope != b.slope ? a.slope < b.slope : a.start > b.start; });
  // Where a line overtakes one of smaller slope.
  const auto crossing = [](const Line& slow, const Line& fast) {
    return (slow.start - fast.start) / (fast.slope - slow.slope);
  };
  std::vector<Line> hull;
  for (const Line& line : lines) {
    if (!hull.empty() && hull.back().slope == line.slope) {  // parallel: the first, highest one stays
      hull.back().count += hull.back().start == line.start ? 1 : 0;
      continue;
    }
    while (hull.size() > 1 && crossing(hull[hull.size() - 2], line) <= crossing(hull[hull.size() - 2], hull.back())) {
      hull.pop_back();
    }
    hull.push_back(line);
  }
  std::vector<std::pair<std::pair<double, double>, double>> winners;  // slope and start, share of each candidate
  double from = 0;
  for (size_t h = 0; h < hull.size(); ++h) {
    const double to = h + 1 < hull.size() ? std::clamp(crossing(hull[h], hull[h + 1]), 0.0, 1.0) : 1.0;
    const double length = std::max(0.0, to - from);
    if (length > 0) {
      if (hull[h].count == 1) {
        shares[hull[h].index] = static_cast<T>(length);
      } else {
        winners.push_back({{hull[h].slope, hull[h].start}, length / static_cast<double>(hull[h].count)});
      }
    }
    from = std::max(from, to);
  }
  for (const auto& [winner, share] : winners) {
    for (const Line& line : lines) {
      if (line.slope == winner.first && line.start == winner.second) shares[line.index] = static_cast<T>(share);
    }
  }
}

template void UpperEnvelope<float>(const float*, const float*, float*, int64_t);
template void UpperEnvelope<double>(const double*, const double*, double*, int64_t);

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

// Elements that one thread takes at a time.
constexpr int64_t kSecantBlock = 8192;

// value - reference, zero where both are the same, infinities and NaN included.
template <typename T>
ADDEND_ALWAYS_INLINE T MoveAt(const SecantView<T>& view, int64_t j) {
  const T v = view.value[j];
  const T r = view.reference[j];
  const bool same = v == r || (v != v && r != r);
  return same ? T(0) : v - r;
}

template <typename T>
ADDEND_ALWAYS_INLINE bool IsSmall(const SecantView<T>& view, T move, int64_t j) {
  const T bound = view.relative ? std::abs(view.reference[j] + move / 2) * view.limit : view.limit;
  return std::abs(move) <= bound;
}

template <typename T>
ADDEND_ALWAYS_INLINE int64_t QuotientsOfBlock(const SecantView<T>& view, T* slope, int64_t first, int64_t last) {
  int64_t small = 0;
#pragma omp simd reduction(+ : small)
  for (int64_t j = first; j < last; ++j) {
    const T move = MoveAt(view, j);
    slope[j] = (view.f_value[j] - view.f_reference[j]) / move;
    small += IsSmall(view, move, j) ? 1 : 0;
  }
  return small;
}

// Two plain functions and not a template: target_clones does not go on templates.
ADDEND_WIDEST_VECTORS int64_t QuotientsOfOneBlock(const SecantView<float>& view, float* slope, int64_t first,
                                                  int64_t last) {
  return QuotientsOfBlock(view, slope, first, last);
}
ADDEND_WIDEST_VECTORS int64_t QuotientsOfOneBlock(const SecantView<double>& view, double* slope, int64_t first,
                                                  int64_t last) {
  return QuotientsOfBlock(view, slope, first, last);
}

}  // namespace

template <typename T>
int64_t SecantQuotients(const SecantView<T>& view, T* slope) {
  int64_t small = 0;
  const int64_t blocks = (view.n + kSecantBlock - 1) / kSecantBlock;
#pragma omp parallel for reduction(+ : small) if (blocks > 4)
  for (int64_t b = 0; b < blocks; ++b) {
    small += QuotientsOfOneBlock(view, slope, b * kSecantBlock, std::min(view.n, (b + 1) * kSecantBlock));
  }
  return small;
}

template <typename T>
std::vector<int64_t> SmallMoves(const SecantView<T>& view) {
  std::vector<int64_t> small;
  for (int64_t j = 0; j < view.n; ++j) {
    if (IsSmall(view, MoveAt(view, j), j)) small.push_back(j);
  }
  return small;
}

template int64_t SecantQuotients<float>(const SecantView<float>&, float*);
template int64_t SecantQuotients<double>(const SecantView<double>&, double*);
template std::vector<int64_t> SmallMoves<float>(const SecantView<float>&);
template std::vector<int64_t> SmallMoves<double>(const SecantView<double>&);

}  // namespace addend

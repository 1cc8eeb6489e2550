#include "core/rules/softmax_kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/in_parallel.h"
#include "core/rules/kernels.h"
#include "core/rules/move.h"

namespace addend {
namespace {

// exp(x) for x <= 0 to the last bit or two: 2^k exp(r), r at most half of log 2, as its Taylor series. Zero where it
// would be denormal; NaN stays NaN. libm's is not inlined and so not vectorized.
ADDEND_ALWAYS_INLINE float ExpOf(float given) {
  constexpr float kLeast = -87.0f;
  const float x = given < kLeast ? kLeast : given;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  const float shifted = x * 1.44269504f + kRound;
  const float k = shifted - kRound;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127u) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power * static_cast<float>(!(given < kLeast));
}

ADDEND_ALWAYS_INLINE double ExpOf(double given) {
  constexpr double kLeast = -708.0;
  const double x = given < kLeast ? kLeast : given;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x * 1.4426950408889634 + kRound;
  const double k = shifted - kRound;
  const double r = (x - k * 6.93145751953125e-1) - k * 1.42860682030941723212e-6;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023u) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power * static_cast<double>(!(given < kLeast));
}

// The moves of a group.
template <typename T>
ADDEND_ALWAYS_INLINE void MovesOf(const SoftmaxEnds<T>& ends, int64_t g, T* move) {
  const T* value = ends.value + g * ends.width;
  const T* reference = ends.reference + g * ends.width;
#pragma omp simd
  for (int64_t j = 0; j < ends.width; ++j) move[j] = MoveAt(value[j], reference[j]);
}

template <typename T>
ADDEND_ALWAYS_INLINE bool HalfRangeOf(const T* value, const T* reference, int64_t width, T* half_range) {
  T largest = -std::numeric_limits<T>::infinity();
  T least = std::numeric_limits<T>::infinity();
  int64_t bad = 0;
#pragma omp simd reduction(max : largest) reduction(min : least) reduction(+ : bad)
  for (int64_t j = 0; j < width; ++j) {
    const T move = MoveAt(value[j], reference[j]);
    bad += !(std::abs(move) <= std::numeric_limits<T>::max());
    largest = largest > move ? largest : move;
    least = least < move ? least : move;
  }
  *half_range = (largest - least) / 2;
  return bad == 0;
}

// Unnormalized probabilities at t; returns one over their sum. Scores that are infinitely low in both ends stay so.
template <typename T>
ADDEND_ALWAYS_INLINE T Exponentials(const T* reference, const T* move, T t, int64_t width, T* e) {
  T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < width; ++j) {
    e[j] = reference[j] + t * move[j];
    largest = largest > e[j] ? largest : e[j];
  }
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) e[j] = ExpOf(e[j] - largest);
  double all = 0;
  for (int64_t first = 0; first < width; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, width);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = first; j < end; ++j) sum += e[j];
    all += sum;
  }
  return static_cast<T>(1 / all);
}

// Nodes that pass over the rows together, and rows that pass over the nodes together.
constexpr int64_t kNodesAtOnce = 4;

// At four nodes, p: [4, width], and weights: [4], adds the sum of weight * p * (row - <p, row>) to one row or to two.
// `mass`: [width], the sum of weight * p. A softmax ignores shifts of a row: <p, row> at the first node is taken off,
// so that nothing large cancels.
template <typename T>
ADDEND_ALWAYS_INLINE void AddToOne(const T* p, const T* weights, const T* mass, int64_t width, const T* row, T* out) {
  const T* p0 = p;
  const T* p1 = p + width;
  const T* p2 = p + 2 * width;
  const T* p3 = p + 3 * width;
  double all[kNodesAtOnce] = {0, 0, 0, 0};
  for (int64_t first = 0; first < width; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, width);
    T a0 = 0, a1 = 0, a2 = 0, a3 = 0;
#pragma omp simd reduction(+ : a0, a1, a2, a3)
    for (int64_t j = first; j < end; ++j) {
      a0 += p0[j] * row[j];
      a1 += p1[j] * row[j];
      a2 += p2[j] * row[j];
      a3 += p3[j] * row[j];
    }
    all[0] += a0;
    all[1] += a1;
    all[2] += a2;
    all[3] += a3;
  }
  const T a0 = static_cast<T>(all[0]);
  const T a1 = weights[1] * static_cast<T>(all[1] - all[0]);
  const T a2 = weights[2] * static_cast<T>(all[2] - all[0]);
  const T a3 = weights[3] * static_cast<T>(all[3] - all[0]);
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    out[j] += mass[j] * (row[j] - a0) - (a1 * p1[j] + a2 * p2[j] + a3 * p3[j]);
  }
}

template <typename T>
ADDEND_ALWAYS_INLINE void AddToTwo(const T* p, const T* weights, const T* mass, int64_t width, const T* row,
                                   const T* next, T* out, T* next_out) {
  const T* p0 = p;
  const T* p1 = p + width;
  const T* p2 = p + 2 * width;
  const T* p3 = p + 3 * width;
  double all[2 * kNodesAtOnce] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int64_t first = 0; first < width; first += kSummedAtOnce) {
    const int64_t end = std::min(first + kSummedAtOnce, width);
    T a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    T b0 = 0, b1 = 0, b2 = 0, b3 = 0;
#pragma omp simd reduction(+ : a0, a1, a2, a3, b0, b1, b2, b3)
    for (int64_t j = first; j < end; ++j) {
      const T a = row[j];
      const T b = next[j];
      a0 += p0[j] * a;
      a1 += p1[j] * a;
      a2 += p2[j] * a;
      a3 += p3[j] * a;
      b0 += p0[j] * b;
      b1 += p1[j] * b;
      b2 += p2[j] * b;
      b3 += p3[j] * b;
    }
    const T sums[2 * kNodesAtOnce] = {a0, a1, a2, a3, b0, b1, b2, b3};
    for (int64_t k = 0; k < 2 * kNodesAtOnce; ++k) all[k] += sums[k];
  }
  const T a0 = static_cast<T>(all[0]);
  const T a1 = weights[1] * static_cast<T>(all[1] - all[0]);
  const T a2 = weights[2] * static_cast<T>(all[2] - all[0]);
  const T a3 = weights[3] * static_cast<T>(all[3] - all[0]);
  const T b0 = static_cast<T>(all[4]);
  const T b1 = weights[1] * static_cast<T>(all[5] - all[4]);
  const T b2 = weights[2] * static_cast<T>(all[6] - all[4]);
  const T b3 = weights[3] * static_cast<T>(all[7] - all[4]);
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    out[j] += mass[j] * (row[j] - a0) - (a1 * p1[j] + a2 * p2[j] + a3 * p3[j]);
    next_out[j] += mass[j] * (next[j] - b0) - (b1 * p1[j] + b2 * p2[j] + b3 * p3[j]);
  }
}

// scratch: [2 + kNodesAtOnce, width]
template <typename T>
ADDEND_ALWAYS_INLINE void PathOfGroup(const SoftmaxEnds<T>& ends, int64_t g, const NodesView& rule, const T* rows,
                                      int64_t num_rows, T* output, T* scratch) {
  const int64_t width = ends.width;
  const int64_t stride = ends.groups * width;
  const T* reference = ends.reference + g * width;
  T* move = scratch;
  T* mass = scratch + width;
  T* p = scratch + 2 * width;
  MovesOf(ends, g, move);
  for (int64_t r = 0; r < num_rows; ++r) {
    T* out = output + r * stride + g * width;
    for (int64_t j = 0; j < width; ++j) out[j] = 0;
  }
  for (int64_t first = 0; first < rule.count; first += kNodesAtOnce) {
    T weights[kNodesAtOnce] = {0, 0, 0, 0};
    for (int64_t j = 0; j < width; ++j) mass[j] = 0;
    for (int64_t k = 0; k < kNodesAtOnce; ++k) {
      T* own = p + k * width;
      if (first + k >= rule.count) {
        for (int64_t j = 0; j < width; ++j) own[j] = 0;
        continue;
      }
      const T inverse = Exponentials(reference, move, static_cast<T>(rule.nodes[first + k]), width, own);
      const T weight = static_cast<T>(rule.weights[first + k]);
      weights[k] = weight;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        own[j] *= inverse;
        mass[j] += weight * own[j];
      }
    }
    int64_t r = 0;
    for (; r + 1 < num_rows; r += 2) {
      const T* row = rows + r * stride + g * width;
      T* out = output + r * stride + g * width;
      AddToTwo(p, weights, mass, width, row, row + stride, out, out + stride);
    }
    if (r < num_rows) {
      AddToOne(p, weights, mass, width, rows + r * stride + g * width, output + r * stride + g * width);
    }
  }
}

template <typename T>
ADDEND_ALWAYS_INLINE void MeanOfGroup(const SoftmaxEnds<T>& ends, int64_t g, const NodesView& rule, T* output,
                                      T* scratch) {
  const int64_t width = ends.width;
  const T* reference = ends.reference + g * width;
  T* out = output + g * width;
  T* move = scratch;
  T* e = scratch + width;
  MovesOf(ends, g, move);
  for (int64_t j = 0; j < width; ++j) out[j] = 0;
  for (int64_t k = 0; k < rule.count; ++k) {
    const T inverse = Exponentials(reference, move, static_cast<T>(rule.nodes[k]), width, e);
    const T weight = static_cast<T>(rule.weights[k]) * inverse;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) out[j] += weight * e[j];
  }
}

// Two plain functions each and no templates: target_clones does not go on those.
ADDEND_WIDEST_VECTORS bool HalfRangeOfOne(const float* v, const float* r, int64_t width, float* half_range) {
  return HalfRangeOf(v, r, width, half_range);
}
ADDEND_WIDEST_VECTORS bool HalfRangeOfOne(const double* v, const double* r, int64_t width, double* half_range) {
  return HalfRangeOf(v, r, width, half_range);
}
ADDEND_WIDEST_VECTORS void PathOfOneGroup(const SoftmaxEnds<float>& ends, int64_t g, const NodesView& rule,
                                          const float* rows, int64_t num_rows, float* output, float* scratch) {
  PathOfGroup(ends, g, rule, rows, num_rows, output, scratch);
}
ADDEND_WIDEST_VECTORS void PathOfOneGroup(const SoftmaxEnds<double>& ends, int64_t g, const NodesView& rule,
                                          const double* rows, int64_t num_rows, double* output, double* scratch) {
  PathOfGroup(ends, g, rule, rows, num_rows, output, scratch);
}
ADDEND_WIDEST_VECTORS void MeanOfOneGroup(const SoftmaxEnds<float>& ends, int64_t g, const NodesView& rule,
                                          float* output, float* scratch) {
  MeanOfGroup(ends, g, rule, output, scratch);
}
ADDEND_WIDEST_VECTORS void MeanOfOneGroup(const SoftmaxEnds<double>& ends, int64_t g, const NodesView& rule,
                                          double* output, double* scratch) {
  MeanOfGroup(ends, g, rule, output, scratch);
}

// Elements from which on threads pay.
constexpr int64_t kWorthThreads = 16384;
// Groups that one thread takes at a time: their quadratures have different numbers of nodes.
constexpr int64_t kGroupsAtOnce = 16;

}  // namespace

template <typename T>
bool HalfRanges(const SoftmaxEnds<T>& ends, T* half_range) {
  std::atomic<bool> finite{true};
  InParallelIf(ends.groups * ends.width > kWorthThreads, ends.groups, [&](int64_t from, int64_t to) {
    for (int64_t g = from; g < to; ++g) {
      const int64_t first = g * ends.width;
      if (!HalfRangeOfOne(ends.value + first, ends.reference + first, ends.width, half_range + g)) finite = false;
    }
  });
  return finite;
}

template <typename T>
void SoftmaxAlongPath(const SoftmaxEnds<T>& ends, const NodesView* const* rules, const T* rows, int64_t num_rows,
                      T* output) {
  const bool pays = ends.groups * ends.width * num_rows > kWorthThreads;
  InParallel(ends.groups, pays ? kGroupsAtOnce : ends.groups, [&](int64_t from, int64_t to) {
    std::vector<T> scratch((2 + kNodesAtOnce) * ends.width);
    for (int64_t g = from; g < to; ++g) {
      PathOfOneGroup(ends, g, *rules[g], rows, num_rows, output, scratch.data());
    }
  });
}

template <typename T>
void MeanSoftmaxAlongPath(const SoftmaxEnds<T>& ends, const NodesView* const* rules, T* output) {
  const bool pays = ends.groups * ends.width > kWorthThreads;
  InParallel(ends.groups, pays ? kGroupsAtOnce : ends.groups, [&](int64_t from, int64_t to) {
    std::vector<T> scratch(2 * ends.width);
    for (int64_t g = from; g < to; ++g) MeanOfOneGroup(ends, g, *rules[g], output, scratch.data());
  });
}

template bool HalfRanges<float>(const SoftmaxEnds<float>&, float*);
template bool HalfRanges<double>(const SoftmaxEnds<double>&, double*);
template void SoftmaxAlongPath<float>(const SoftmaxEnds<float>&, const NodesView* const*, const float*, int64_t,
                                      float*);
template void SoftmaxAlongPath<double>(const SoftmaxEnds<double>&, const NodesView* const*, const double*, int64_t,
                                       double*);
template void MeanSoftmaxAlongPath<float>(const SoftmaxEnds<float>&, const NodesView* const*, float*);
template void MeanSoftmaxAlongPath<double>(const SoftmaxEnds<double>&, const NodesView* const*, double*);

}  // namespace addend

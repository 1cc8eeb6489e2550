#include "core/rules/gather_kernel.h"

#include <algorithm>

#include "core/base/in_parallel.h"

namespace addend {
namespace {

constexpr int64_t kBlock = 8192;

template <typename T>
void GatherBlock(const GatherView<T>& view, const T* row, int64_t first, int64_t last, T* output) {
  const int64_t width = view.width;
  for (int64_t o = first; o < last; ++o) {
    T sum = 0;
    for (int64_t j = o * width; j < (o + 1) * width; ++j) {
      if (view.source[j] < 0) continue;
      const T element = row[view.source[j]];
      sum += view.weight != nullptr ? view.weight[j] * element : element;
    }
    output[o] = sum;
  }
}

}  // namespace

template <typename T>
void GatherRows(const GatherView<T>& view, const T* rows, int64_t num_rows, T* output) {
  const int64_t blocks = (view.outputs + kBlock - 1) / kBlock;
  InParallelIf(num_rows * view.outputs * view.width > 32768, num_rows * blocks, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t r = i / blocks;
      const int64_t first = (i % blocks) * kBlock;
      GatherBlock(view, rows + r * view.elements, first, std::min(view.outputs, first + kBlock),
                  output + r * view.outputs);
    }
  });
}

template <typename T>
void ScatterCotangent(const GatherView<T>& view, const T* cotangent, T* output) {
  std::fill(output, output + view.elements, T(0));
  const int64_t width = view.width;
  for (int64_t o = 0; o < view.outputs; ++o) {
    const T g = cotangent[o];
    for (int64_t j = o * width; j < (o + 1) * width; ++j) {
      if (view.source[j] < 0) continue;
      output[view.source[j]] += view.weight != nullptr ? view.weight[j] * g : g;
    }
  }
}

template void GatherRows<float>(const GatherView<float>&, const float*, int64_t, float*);
template void GatherRows<double>(const GatherView<double>&, const double*, int64_t, double*);
template void ScatterCotangent<float>(const GatherView<float>&, const float*, float*);
template void ScatterCotangent<double>(const GatherView<double>&, const double*, double*);

}  // namespace addend

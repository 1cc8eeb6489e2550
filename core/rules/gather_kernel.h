// Weighted sums of single elements, and their transpose, in fused loops; element_map.cc has the ATen forms.
#ifndef ADDEND_CORE_RULES_GATHER_KERNEL_H_
#define ADDEND_CORE_RULES_GATHER_KERNEL_H_

#include <cstdint>

namespace addend {

// The elements of a row that each output is the sum of.
template <typename T>
struct GatherView {
  const int64_t* source;  // [outputs, width]: places in a row; negative: nothing
  const T* weight;        // the same shape; null: all are 1
  int64_t outputs, width;
  int64_t elements;  // of a row
};

// Computes output[r, o] = sum over j of weight[o, j] * rows[r, source[o, j]]. rows: [num_rows, elements]; output:
// [num_rows, outputs].
template <typename T>
void GatherRows(const GatherView<T>& view, const T* rows, int64_t num_rows, T* output);

// Computes the transpose of GatherRows: output[e] = sum over all (o, j) with source[o, j] = e of weight[o, j] *
// cotangent[o]. cotangent: [outputs]; output: [elements].
template <typename T>
void ScatterCotangent(const GatherView<T>& view, const T* cotangent, T* output);

extern template void GatherRows<float>(const GatherView<float>&, const float*, int64_t, float*);
extern template void GatherRows<double>(const GatherView<double>&, const double*, int64_t, double*);
extern template void ScatterCotangent<float>(const GatherView<float>&, const float*, float*);
extern template void ScatterCotangent<double>(const GatherView<double>&, const double*, double*);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_GATHER_KERNEL_H_

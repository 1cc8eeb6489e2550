// Sums of elements by the component that each belongs to.
#ifndef ADDEND_CORE_LINEARIZE_LABEL_SUMS_H_
#define ADDEND_CORE_LINEARIZE_LABEL_SUMS_H_

#include <ATen/core/Tensor.h>

namespace addend {

// Adds each element to the sum of its label; those with the label -1 are left out. products: [R, blocks, n], float32 or
// float64; labels: [blocks, n], int64; sums: [R, blocks, numc], float64, contiguous. Returns the magnitudes of what was
// added, [R, blocks], float64. In the order of the elements, in float64: one pass on the CPU, LibTorch operators
// elsewhere.
at::Tensor AddByLabel(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& sums);
// Computes AddByLabel with LibTorch operators, on every device; the loop is tested against this function.
at::Tensor AddByLabelByOperators(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& sums);

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_LABEL_SUMS_H_

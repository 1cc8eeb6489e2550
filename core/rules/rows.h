// Small helpers on rows; see Note [Rows] in rule.h.
#ifndef ADDEND_CORE_RULES_ROWS_H_
#define ADDEND_CORE_RULES_ROWS_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace addend {

// [R, *s] -> [R, 1, ..., 1, *s] with `rank` dimensions behind the row axis.
at::Tensor RightAlign(const at::Tensor& rows, int64_t rank);
// A dimension of a tensor with `rank` dimensions, as a dimension of its rows.
int64_t RowDim(int64_t dim, int64_t rank);
// The sizes of rows of a tensor with `sizes`: [rows, *sizes].
at::DimVector WithRows(int64_t rows, at::IntArrayRef sizes);
// No NaN and no infinity. Cheap where that is so.
bool AllFinite(const at::Tensor& tensor);
// The largest magnitude of all elements, 0 where there are none; NaN and infinity count.
double LargestMagnitude(const at::Tensor& tensor);
// Zero where elements are not finite.
at::Tensor FiniteOrZero(const at::Tensor& tensor);
// Folds the rows into dimension 0, which `f` treats as a batch, and unfolds them: [R, N, *s] -> f([R * N, *s]).
at::Tensor FoldBatch(const at::Tensor& rows, const std::function<at::Tensor(const at::Tensor&)>& f);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ROWS_H_

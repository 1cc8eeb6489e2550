// Products of rows with a matrix that is the same for all rows.
//
// Note [Rows times matrix]
// The rows join the dimension that the product does not sum over, so that the batch of the product stays the model's
// own (heads, say) and every GEMM is as large as can be:
//   rows [R, *batch, M, K] x plain [*batch, K, N]  is one product [batch, R * M, K] x [batch, K, N];
//   plain [*batch, M, K] x rows [R, *batch, K, N]  is one product [batch, M, K] x [batch, K, R * N].
#ifndef ADDEND_CORE_RULES_ROW_PRODUCT_H_
#define ADDEND_CORE_RULES_ROW_PRODUCT_H_

#include <ATen/core/Tensor.h>

namespace addend {

// Multiplies rows [R, *batch, M, K] x plain [*batch, K, N]; the batches broadcast.
at::Tensor RowsTimesPlain(const at::Tensor& rows, const at::Tensor& plain);
// Multiplies plain [*batch, M, K] x rows [R, *batch, K, N]; the batches broadcast.
at::Tensor PlainTimesRows(const at::Tensor& plain, const at::Tensor& rows);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ROW_PRODUCT_H_

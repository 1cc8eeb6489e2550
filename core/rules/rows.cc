#include "core/rules/rows.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "core/base/host_read.h"
#include "core/base/views.h"
#include "core/rules/for_loops.h"
#include "core/rules/kernels.h"

namespace addend {

at::Tensor RightAlign(const at::Tensor& rows, int64_t rank) {
  if (rows.dim() - 1 >= rank) return rows;
  at::Tensor aligned = rows;
  for (int64_t d = rows.dim() - 1; d < rank; ++d) aligned = Unsqueezed(aligned, 1);
  return aligned;
}

at::DimVector WithRows(int64_t rows, at::IntArrayRef sizes) {
  at::DimVector all;
  all.push_back(rows);
  all.append(sizes.begin(), sizes.end());
  return all;
}

int64_t RowDim(int64_t dim, int64_t rank) { return (dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim) + 1; }

bool AllFinite(const at::Tensor& tensor) {
  if (tensor.is_complex()) return AllFinite(at::view_as_real(tensor.resolve_conj()));
  if (IsDenseOnCpu(tensor)) {
    return DispatchReal(tensor.scalar_type(),
                        [&](auto zero) { return AllFiniteNumbers(tensor.data_ptr<decltype(zero)>(), tensor.numel()); });
  }
  // A sum is finite only if all of its terms are. It may overflow all the same: then it takes a closer look.
  return std::isfinite(ReadNumber(tensor.sum())) || ReadFlag(at::isfinite(tensor).all());
}

double LargestMagnitude(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  if (IsDenseOnCpu(tensor) && AllFinite(tensor)) {
    return DispatchReal(tensor.scalar_type(), [&](auto zero) {
      return static_cast<double>(LargestFinite(tensor.data_ptr<decltype(zero)>(), tensor.numel()));
    });
  }
  return ReadNumber(tensor.abs().max());
}

at::Tensor FiniteOrZero(const at::Tensor& tensor) {
  // One call for real numbers. Its gradient is a product with zero where an element is not finite.
  const bool followed = c10::GradMode::is_enabled() && tensor.requires_grad();
  if (!tensor.is_complex() && !followed) return tensor.nan_to_num(0.0, 0.0, 0.0);
  return tensor.masked_fill(at::isfinite(tensor).logical_not_(), 0);
}

at::Tensor FoldBatch(const at::Tensor& rows, const std::function<at::Tensor(const at::Tensor&)>& f) {
  at::DimVector folded;
  folded.push_back(rows.size(0) * rows.size(1));
  folded.append(rows.sizes().begin() + 2, rows.sizes().end());
  const at::Tensor result = f(rows.reshape(folded));
  at::DimVector unfolded;
  unfolded.push_back(rows.size(0));
  unfolded.push_back(rows.size(1));
  unfolded.append(result.sizes().begin() + 1, result.sizes().end());
  return result.reshape(unfolded);
}

}  // namespace addend

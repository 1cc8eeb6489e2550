#include "core/explain/output_scales.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/linearize/row_sums.h"

namespace addend {
namespace {

// How many elements a row has; see Note [Rows of an output].
int64_t RowLength(at::IntArrayRef sizes, int64_t numel) {
  if (sizes.size() < 2 || sizes[0] == 0) return numel;
  if (sizes.size() > 3) return numel / sizes[0];
  return sizes.back() > 1 ? sizes.back() : numel;
}

template <typename T>
void FindLargest(const T* numbers, int64_t length, std::vector<double>& rows) {
  const T largest = std::numeric_limits<T>::max();
  for (double& row : rows) {
    T most = 0;
    for (int64_t k = 0; k < length; ++k) {
      const T size = std::abs(numbers[k]);
      if (size <= largest && size > most) most = size;
    }
    row = most;
    numbers += length;
  }
}

}  // namespace

at::Tensor RowsOfOutput(const at::Tensor& output) {
  const int64_t length = RowLength(output.sizes(), output.numel());
  return output.reshape({length == 0 ? 1 : output.numel() / length, length});
}

OutputScales::OutputScales(const at::Tensor& value) : sizes_(value.sizes()) {
  if (value.numel() == 0) {
    rows_ = {0};
    return;
  }
  const c10::AutoGradMode no_grad(false);
  const int64_t length = RowLength(value.sizes(), value.numel());
  rows_.resize(value.numel() / length);
  const bool plain = value.device().is_cpu() && value.is_contiguous() && !value.is_neg();
  if (plain && value.scalar_type() == at::kFloat) {
    FindLargest(value.data_ptr<float>(), length, rows_);
  } else if (plain && value.scalar_type() == at::kDouble) {
    FindLargest(value.data_ptr<double>(), length, rows_);
  } else {
    const at::Tensor sizes = value.abs();
    const at::Tensor finite = sizes.masked_fill(at::isfinite(sizes).logical_not_(), 0);
    rows_ = Doubles(RowsOfOutput(finite).amax(-1));
  }
  whole_ = *std::max_element(rows_.begin(), rows_.end());
}

double OutputScales::OfIndex(const std::vector<int64_t>& index) const {
  if (rows_.size() == 1) return OfRow(0);
  const size_t leading = sizes_.size() > 3 ? 1 : sizes_.size() - 1;
  if (index.size() < leading) return whole_;
  int64_t row = 0;
  for (size_t d = 0; d < leading; ++d) row = row * sizes_[d] + index[d];
  return row >= 0 && row < static_cast<int64_t>(rows_.size()) ? OfRow(static_cast<size_t>(row)) : whole_;
}

double OutputScales::Of(const Target& target) const {
  if (target.quantity == Target::Quantity::kContinuation) return whole_;
  if (target.quantity == Target::Quantity::kSum) {
    double scale = 0;
    for (const Target& part : target.parts) scale = std::max(scale, Of(part));
    return scale;
  }
  const double scale = OfIndex(target.index);
  return target.subtract.empty() ? scale : std::max(scale, OfIndex(target.subtract));
}

}  // namespace addend

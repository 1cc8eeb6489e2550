#include "core/explain/output_scales.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/run/row_sums.h"

namespace addend {
namespace {

// Whether a row is everything behind the first dimension; else it is what the last one runs over.
bool AreWhole(at::IntArrayRef sizes) { return sizes.size() > 3 || sizes.back() == 1; }

// How many elements a row has; see Note [Rows of an output].
int64_t RowLength(at::IntArrayRef sizes, int64_t numel, bool each_example) {
  if (sizes.empty() || sizes[0] == 0) return numel;
  if (sizes.size() == 1) return each_example ? 1 : numel;
  return AreWhole(sizes) ? numel / sizes[0] : sizes.back();
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
  const int64_t length = RowLength(output.sizes(), output.numel(), /*each_example=*/false);
  return output.reshape({length == 0 ? 1 : output.numel() / length, length});
}

OutputScales::OutputScales(const at::Tensor& value, bool each_example)
    : value_(value.detach()), sizes_(value.sizes()), each_example_(each_example) {
  if (value.numel() == 0) {
    rows_ = {0};
    return;
  }
  const c10::AutoGradMode no_grad(false);
  const int64_t length = RowLength(value.sizes(), value.numel(), each_example);
  rows_.resize(value.numel() / length);
  const bool plain = value.device().is_cpu() && value.is_contiguous() && !value.is_neg();
  if (plain && value.scalar_type() == at::kFloat) {
    FindLargest(value.data_ptr<float>(), length, rows_);
  } else if (plain && value.scalar_type() == at::kDouble) {
    FindLargest(value.data_ptr<double>(), length, rows_);
  } else {
    const at::Tensor sizes = value.abs();
    const at::Tensor finite = sizes.masked_fill(at::isfinite(sizes).logical_not_(), 0);
    rows_ = Doubles(finite.reshape({-1, length}).amax(-1));
  }
  whole_ = *std::max_element(rows_.begin(), rows_.end());
}

int64_t OutputScales::RowOf(const std::vector<int64_t>& index) const {
  if (rows_.size() == 1) return 0;
  const size_t leading = sizes_.size() == 1 || AreWhole(sizes_) ? 1 : sizes_.size() - 1;
  if (index.size() < leading) return -1;
  int64_t row = 0;
  for (size_t d = 0; d < leading; ++d) row = row * sizes_[d] + index[d];
  return row >= 0 && row < static_cast<int64_t>(rows_.size()) ? row : -1;
}

double OutputScales::OfIndex(const std::vector<int64_t>& index) const {
  const int64_t row = RowOf(index);
  return row < 0 ? whole_ : OfRow(static_cast<size_t>(row));
}

double OutputScales::OfExample(int64_t example) const {
  const auto count = static_cast<int64_t>(rows_.size());
  const bool among = sizes_.size() > (each_example_ ? 0 : 1) && example >= 0 && example < sizes_[0];
  if (!among || count % sizes_[0] != 0) return whole_;
  const auto first = rows_.begin() + example * (count / sizes_[0]);
  const double largest = *std::max_element(first, first + count / sizes_[0]);
  return largest > 0 ? largest : whole_;
}

bool OutputScales::IsOfZeros(const Target& target) const {
  if (target.quantity != Target::Quantity::kElement) return false;
  const int64_t row = RowOf(target.index);
  const int64_t other = target.subtract.empty() ? row : RowOf(target.subtract);
  return row >= 0 && other >= 0 && rows_[static_cast<size_t>(row)] == 0 && rows_[static_cast<size_t>(other)] == 0;
}

double OutputScales::SpreadAt(const std::vector<int64_t>& index) const {
  const c10::AutoGradMode no_grad(false);
  const int64_t row = RowOf(index);
  if (row < 0 || value_.is_complex()) return OfIndex(index);
  const auto rows = static_cast<int64_t>(rows_.size());
  const at::Tensor numbers = value_.reshape({rows, -1}).select(0, row).to(at::kDouble);
  const at::Tensor finite = numbers.masked_select(at::isfinite(numbers));
  return finite.numel() == 0 ? 0 : (finite.max() - finite.min()).item<double>();
}

double OutputScales::Of(const Target& target) const {
  switch (target.quantity) {
    case Target::Quantity::kProbability:
      return std::min(SpreadAt(target.index), 1.0);
    case Target::Quantity::kLogProbability:
    case Target::Quantity::kEntropy:
      return SpreadAt(target.index);
    case Target::Quantity::kContinuation:
      return (target.index.empty() ? whole_ : OfExample(target.index[0])) * static_cast<double>(target.ids.size());
    case Target::Quantity::kSum: {
      double scale = 0;
      for (const Target& part : target.parts) scale += Of(part);
      return scale;
    }
    case Target::Quantity::kRegion: {
      double count = 1;
      for (size_t d = 0; d < target.region.size(); ++d) {
        const Target::Span& span = target.region[d];
        if (!span.one) count *= static_cast<double>(span.end.value_or(sizes_[d]) - span.begin);
      }
      const bool of_one = !target.region.empty() && target.region[0].one;
      return (of_one ? OfExample(target.region[0].begin) : whole_) * count;
    }
    case Target::Quantity::kElement:
      break;
  }
  const double scale = OfIndex(target.index);
  return target.subtract.empty() ? scale : std::max(scale, OfIndex(target.subtract));
}

}  // namespace addend

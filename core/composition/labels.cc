#include "core/composition/labels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/tensor_text.h"

namespace addend {

at::Tensor LabelsAlong(const at::Tensor& value, const std::vector<int64_t>& dims) {
  const at::DimVector ones(value.dim(), 1);
  at::Tensor labels = at::zeros(ones, at::TensorOptions().dtype(at::kLong).device(value.device()));
  for (const int64_t d : dims) {
    at::DimVector shape = ones;
    shape[d] = value.size(d);
    labels = labels * value.size(d) + at::arange(value.size(d), labels.options()).view(shape);
  }
  return labels;
}

at::Tensor AlignLabels(const at::Tensor& value, const at::Tensor& labels) {
  std::vector<int64_t> shape = labels.sizes().vec();
  bool fits = labels.dim() <= value.dim();
  for (int64_t i = 0; fits && i < labels.dim(); ++i) fits = shape[i] == value.size(i) || shape[i] == 1;
  if (!fits) {
    throw InvalidArgument(absl::StrCat(
        "labels of shape ", ShapeText(labels.sizes()),
        " are neither of the shape of the value nor of its leading dimensions: ", ShapeText(value.sizes())));
  }
  shape.resize(static_cast<size_t>(value.dim()), 1);
  return labels.reshape(shape);
}

int64_t CheckLabels(const at::Tensor& labels, int64_t numc) {
  if (numc < -1)
    throw InvalidArgument(absl::StrCat("numc is ", numc, "; it is -1 (as many as needed) or not negative"));
  const at::Tensor flat = labels.to(at::Device(at::kCPU), at::kLong).contiguous();
  const auto* data = static_cast<const int64_t*>(flat.data_ptr());
  int64_t largest = -1;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (data[i] < -1) throw InvalidArgument(absl::StrCat("label ", data[i], " is negative; -1 means no component"));
    if (numc >= 0 && data[i] >= numc) {
      throw InvalidArgument(absl::StrCat("label ", data[i], " is out of range for numc ", numc));
    }
    largest = std::max(largest, data[i]);
  }
  if (numc >= 0) return numc;
  if (largest == std::numeric_limits<int64_t>::max()) {
    throw InvalidArgument(absl::StrCat("label ", largest, " is too large"));
  }
  return largest + 1;
}

}  // namespace addend

#include "core/onnx/plain_convolution.h"

#include <ATen/ops/convolution.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace addend::onnx {

using at::Tensor;

PerDimension KernelOf(const Context& context, const Tensor& weight) {
  if (weight.dim() < 3) throw context.Invalid("the weight has no spatial dimension");
  const PerDimension sizes = weight.sizes().slice(2).vec();
  if (PerDimensionAttribute(context, "kernel_shape", sizes.size(), 0) != sizes &&
      context.HasAttribute("kernel_shape")) {
    throw context.Invalid("the attribute kernel_shape is not the shape of the weight");
  }
  constexpr size_t kMostDimensions = 3;
  if (sizes.size() > kMostDimensions) {
    throw context.Refused(absl::StrCat("convolutions over ", sizes.size(), " dimensions are not computed"));
  }
  return sizes;
}

c10::optional<Tensor> BiasOf(const Context& context, size_t k) {
  return context.Has(k) ? c10::optional<Tensor>(context.Tensor(k)) : c10::nullopt;
}

std::vector<std::string> ConvolutionAttributes(std::vector<std::string> more) {
  more.insert(more.end(), {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  return more;
}

Tensor PlainConvolution(const Context& context, Tensor x, const Tensor& weight, const c10::optional<Tensor>& bias) {
  Windows windows = WindowsOf(context, SpatialSizes(context, x), KernelOf(context, weight));
  const bool is_even = windows.before == windows.after &&
                       std::all_of(windows.before.begin(), windows.before.end(), [](int64_t pad) { return pad >= 0; });
  if (!is_even) {
    x = PadSpatial(x, windows.before, windows.after);
    windows.before.assign(windows.rank(), 0);
  }
  return at::convolution(x, weight, bias, windows.strides, windows.before, windows.dilations,
                         /*transposed=*/false, PerDimension(windows.rank(), 0), context.IntAttribute("group", 1));
}

}  // namespace addend::onnx

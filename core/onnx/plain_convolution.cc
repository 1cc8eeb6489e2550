#include "core/onnx/plain_convolution.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>

#include <algorithm>

namespace addend::onnx {
namespace {

using at::Tensor;

// Zeros in front of each dimension, then behind each.
std::vector<int64_t> PadsOf(const Context& context, const Tensor& x, const Tensor& weight,
                            const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations) {
  const size_t rank = strides.size();
  const std::string automatic = context.TextAttribute("auto_pad", "NOTSET");
  std::vector<int64_t> pads(2 * rank, 0);
  if (automatic == "VALID") return pads;
  if (automatic == "NOTSET" || automatic.empty()) return context.IntsAttribute("pads", pads);
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") throw context.Invalid("auto_pad has no such value");
  for (size_t k = 0; k < rank; ++k) {
    const auto dim = static_cast<int64_t>(k) + 2;
    const int64_t last = (x.size(dim) + strides[k] - 1) / strides[k] - 1;
    const int64_t reach = (weight.size(dim) - 1) * dilations[k] + 1;
    const int64_t total = std::max<int64_t>(last * strides[k] + reach - x.size(dim), 0);
    pads[k] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[k + rank] = total - pads[k];
  }
  return pads;
}

}  // namespace

std::vector<std::string> ConvolutionAttributes(std::vector<std::string> more) {
  more.insert(more.end(), {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  return more;
}

Tensor PlainConvolution(const Context& context, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t rank = x.dim() - 2;
  if (rank < 1 || weight.dim() != x.dim())
    throw context.Invalid("the input and the weight have not as many dimensions");
  const std::vector<int64_t> ones(static_cast<size_t>(rank), 1);
  const std::vector<int64_t> strides = context.IntsAttribute("strides", ones);
  const std::vector<int64_t> dilations = context.IntsAttribute("dilations", ones);
  if (strides.size() != ones.size() || dilations.size() != ones.size()) {
    throw context.Invalid("strides or dilations are not one for each dimension");
  }
  const std::vector<int64_t> kernel = context.IntsAttribute("kernel_shape", weight.sizes().slice(2).vec());
  if (kernel != weight.sizes().slice(2).vec()) throw context.Invalid("kernel_shape is not the weight's");
  const std::vector<int64_t> pads = PadsOf(context, x, weight, strides, dilations);
  if (pads.size() != 2 * ones.size()) throw context.Invalid("pads are not two for each dimension");
  const auto middle = pads.begin() + rank;
  const std::vector<int64_t> front(pads.begin(), middle);
  const bool is_even = std::equal(pads.begin(), middle, middle) && *std::min_element(pads.begin(), pads.end()) >= 0;
  Tensor padded = x;
  if (!is_even) {
    // The last dimension comes first.
    std::vector<int64_t> sides;
    for (size_t k = ones.size(); k-- > 0;) sides.insert(sides.end(), {pads[k], pads[k + ones.size()]});
    padded = at::constant_pad_nd(x, sides, 0);
  }
  const std::vector<int64_t> none(ones.size(), 0);
  return at::convolution(padded, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt, strides,
                         is_even ? front : none, dilations, /*transposed=*/false, none,
                         context.IntAttribute("group", 1));
}

}  // namespace addend::onnx

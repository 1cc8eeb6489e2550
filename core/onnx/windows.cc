#include "core/onnx/windows.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace addend::onnx {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Padding such that there are as many windows as strides in the input; what is odd lies behind it for SAME_UPPER.
void PadToSame(const PerDimension& sizes, bool upper, Windows* windows) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int64_t count = CeilDiv(sizes[k], windows->strides[k]);
    const int64_t needed = (count - 1) * windows->strides[k] + windows->Span(k);
    const int64_t total = std::max<int64_t>(needed - sizes[k], 0);
    windows->before[k] = upper ? total / 2 : total - total / 2;
    windows->after[k] = total - windows->before[k];
    windows->outputs[k] = count;
  }
}

void CountOutputs(const Context& context, const PerDimension& sizes, bool ceil, Windows* windows) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int64_t stride = windows->strides[k];
    const int64_t room = sizes[k] + windows->before[k] + windows->after[k] - windows->Span(k);
    if (room < 0) {
      throw context.Invalid(absl::StrCat("a window of ", windows->Span(k), " elements does not fit into ", sizes[k],
                                         " with padding of ", windows->before[k], " and ", windows->after[k]));
    }
    int64_t count = (ceil ? CeilDiv(room, stride) : room / stride) + 1;
    if (ceil && (count - 1) * stride >= sizes[k] + windows->before[k]) --count;
    windows->outputs[k] = count;
  }
}

}  // namespace

bool Windows::IsDilated() const {
  return std::any_of(dilations.begin(), dilations.end(), [](int64_t dilation) { return dilation != 1; });
}

PerDimension SpatialSizes(const Context& context, const at::Tensor& x) {
  if (x.dim() < 3) throw context.Invalid(absl::StrCat("the input has ", x.dim(), " dimensions, none of them spatial"));
  return x.sizes().slice(2).vec();
}

PerDimension PerDimensionAttribute(const Context& context, const char* name, size_t count, int64_t otherwise) {
  const PerDimension numbers = context.IntsAttribute(name);
  if (numbers.empty()) return PerDimension(count, otherwise);
  if (numbers.size() == count) return numbers;
  throw context.Invalid(absl::StrCat("the attribute ", name, " has ", numbers.size(), " numbers, not ", count));
}

std::string AutoPadOf(const Context& context) {
  const std::string text = context.TextAttribute("auto_pad", "NOTSET");
  if (text == "NOTSET" || text == "VALID" || text == "SAME_UPPER" || text == "SAME_LOWER") return text;
  throw context.Invalid(absl::StrCat("the attribute auto_pad is \"", text, "\""));
}

Windows WindowsOf(const Context& context, const PerDimension& sizes, PerDimension kernel, bool ceil) {
  const size_t rank = sizes.size();
  if (kernel.size() != rank) {
    throw context.Invalid(absl::StrCat("the kernel has ", kernel.size(), " dimensions, the input ", rank));
  }
  Windows windows;
  windows.kernel = std::move(kernel);
  windows.strides = PerDimensionAttribute(context, "strides", rank, 1);
  windows.dilations = PerDimensionAttribute(context, "dilations", rank, 1);
  for (size_t k = 0; k < rank; ++k) {
    if (windows.kernel[k] < 1 || windows.strides[k] < 1 || windows.dilations[k] < 1) {
      throw context.Invalid("a size, stride or dilation of windows is not positive");
    }
  }
  windows.before.resize(rank);
  windows.after.resize(rank);
  windows.outputs.resize(rank);
  const std::string auto_pad = AutoPadOf(context);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    PadToSame(sizes, auto_pad == "SAME_UPPER", &windows);
    return windows;
  }
  if (auto_pad == "NOTSET") {
    const PerDimension pads = PerDimensionAttribute(context, "pads", 2 * rank, 0);
    std::copy_n(pads.begin(), rank, windows.before.begin());
    std::copy_n(pads.begin() + static_cast<int64_t>(rank), rank, windows.after.begin());
  }
  CountOutputs(context, sizes, ceil && auto_pad == "NOTSET", &windows);
  return windows;
}

at::Tensor PadSpatial(const at::Tensor& x, const PerDimension& before, const PerDimension& after, double value) {
  std::vector<int64_t> pads;
  bool any = false;
  for (size_t k = before.size(); k-- > 0;) {
    pads.push_back(before[k]);
    pads.push_back(after[k]);
    any = any || before[k] != 0 || after[k] != 0;
  }
  return any ? at::constant_pad_nd(x, pads, value) : x;
}

}  // namespace addend::onnx

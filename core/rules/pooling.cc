// Pooling: averages are linear, maxima select.
#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/im2col.h>

#include <limits>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

struct Window {
  std::vector<int64_t> size, stride, padding, dilation;
  bool ceil = false;
};

std::vector<int64_t> Pair(std::vector<int64_t> values, int64_t otherwise) {
  if (values.empty()) values = {otherwise, otherwise};
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

// Every window of the last two dimensions as a column: [N, C, H, W] -> [N * C, outputs, window]. Padding never wins.
at::Tensor Columns(const at::Tensor& images, const Window& window, double fill, at::IntArrayRef output_sizes) {
  const int64_t height = images.size(-2);
  const int64_t width = images.size(-1);
  // With ceil mode the last window may reach beyond the padded image.
  const auto reach = [&](int64_t d, int64_t size, int64_t outputs) {
    const int64_t end = (outputs - 1) * window.stride[d] + window.dilation[d] * (window.size[d] - 1) + 1;
    return std::max<int64_t>(window.padding[d], end - size - window.padding[d]);
  };
  const int64_t below = reach(0, height, output_sizes[output_sizes.size() - 2]);
  const int64_t right = reach(1, width, output_sizes[output_sizes.size() - 1]);
  const at::Tensor padded = at::constant_pad_nd(images.reshape({-1, 1, height, width}),
                                                {window.padding[1], right, window.padding[0], below}, fill);
  at::Tensor columns = at::im2col(padded, window.size, window.dilation, {0, 0}, window.stride).transpose(1, 2);
  return columns;
}

RuleResult MaxPool2d(const RuleCall& call) {
  Window window;
  window.size = Pair(call.Ints(1), 1);
  window.stride = call.Ints(2).empty() ? window.size : Pair(call.Ints(2), 1);
  window.padding = Pair(call.Ints(3), 0);
  window.dilation = Pair(call.Ints(4), 1);
  const RuleOperand& input = call.Require(0);
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  const int64_t outputs = output_sizes[output_sizes.size() - 2] * output_sizes[output_sizes.size() - 1];
  const double never = -std::numeric_limits<double>::infinity();
  const auto columns = [=](const at::Tensor& t, double fill) {
    return Columns(t, window, fill, output_sizes).narrow(1, 0, outputs);
  };
  const bool fast = call.policy->preset == Preset::kFast;
  const at::Tensor value = columns(input.value, never);
  const at::Tensor shares = fast ? WinnerShares(value) : EnvelopeShares(value, columns(input.reference, never));
  RuleResult result = LinearIn(call, Kind::kSelection, 0, [=](const at::Tensor& rows) {
    const int64_t r = rows.size(0);
    const at::Tensor moved = columns(rows, 0).reshape({r, shares.size(0), shares.size(1), shares.size(2)});
    at::DimVector sizes;
    sizes.push_back(r);
    sizes.append(output_sizes.begin(), output_sizes.end());
    return (moved * shares).sum(-1).view(sizes);
  });
  result.exact = !fast;
  return result;
}

RuleResult AvgPool2d(const RuleCall& call) {
  const auto size = call.Ints(1);
  const auto stride = call.Ints(2);
  const auto padding = call.Ints(3);
  const bool ceil = call.Bool(4, false);
  const bool count_padding = call.Bool(5, true);
  const Optional<int64_t> divisor = call.IsNone(6) ? Optional<int64_t>() : Optional<int64_t>(call.Int(6, 1));
  return LinearIn(call, Kind::kLinear, 0, [=](const at::Tensor& rows) {
    return FoldBatch(rows, [&](const at::Tensor& batch) {
      return at::avg_pool2d(batch, size, stride, padding, ceil, count_padding, divisor);
    });
  });
}

RuleResult AdaptiveAvgPool2d(const RuleCall& call) {
  const auto size = call.Ints(1);
  return LinearIn(call, Kind::kLinear, 0, [=](const at::Tensor& rows) {
    return FoldBatch(rows, [&](const at::Tensor& batch) { return at::adaptive_avg_pool2d(batch, size); });
  });
}

}  // namespace

void RegisterPooling(Registry& registry) {
  registry.Register({"aten::max_pool2d_with_indices", Kind::kSelection, MaxPool2d});
  registry.Register({"aten::avg_pool2d", Kind::kLinear, AvgPool2d});
  registry.Register({"aten::_adaptive_avg_pool2d", Kind::kLinear, AdaptiveAvgPool2d});
}

}  // namespace addend

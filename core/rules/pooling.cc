// Pooling: averages are linear, maxima select. Every maximum is told by a table: which elements of a plane stand in
// which window. One rule serves windows of any kind and any number of dimensions.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/element_map.h"
#include "core/rules/envelope_kernel.h"
#include "core/rules/families.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"
#include "core/rules/row_operator.h"

namespace addend {
namespace {

// For each output along one dimension the elements of its window: [planes or 1, outputs, window], kNoElement where the
// window reaches beyond the input.
using Windows = std::vector<at::Tensor>;

std::vector<int64_t> Spread(std::vector<int64_t> values, size_t count, int64_t otherwise) {
  if (values.empty()) values = {otherwise};
  if (values.size() == 1) values.resize(count, values[0]);
  return values;
}

// Windows of `width` elements that lie `dilation` apart, which begin `stride` apart, the first at -padding.
at::Tensor SlidingWindows(int64_t outputs, int64_t width, int64_t stride, int64_t padding, int64_t dilation,
                          int64_t size, const at::TensorOptions& options) {
  const at::Tensor windows = at::empty({1, outputs, width}, at::kLong);
  auto* place = windows.data_ptr<int64_t>();
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < width; ++k) {
      const int64_t position = o * stride - padding + k * dilation;
      *place++ = position >= 0 && position < size ? position : kNoElement;
    }
  }
  return windows.to(options.device());
}

// Combine() of two tables on the host.
at::Tensor CombineOnCpu(const at::Tensor& slow, const at::Tensor& fast, int64_t size) {
  const int64_t planes = std::max(slow.size(0), fast.size(0));
  const at::Tensor both = at::empty({planes, slow.size(1) * fast.size(1), slow.size(2) * fast.size(2)}, at::kLong);
  const auto* of_slow = slow.data_ptr<int64_t>();
  const auto* of_fast = fast.data_ptr<int64_t>();
  auto* place = both.data_ptr<int64_t>();
  for (int64_t p = 0; p < planes; ++p) {
    const int64_t* s = of_slow + (slow.size(0) == 1 ? 0 : p * slow.size(1) * slow.size(2));
    const int64_t* f = of_fast + (fast.size(0) == 1 ? 0 : p * fast.size(1) * fast.size(2));
    for (int64_t i = 0; i < slow.size(1); ++i) {
      for (int64_t j = 0; j < fast.size(1); ++j) {
        for (int64_t k = 0; k < slow.size(2); ++k) {
          const int64_t row = s[i * slow.size(2) + k];
          for (int64_t l = 0; l < fast.size(2); ++l) {
            const int64_t column = f[j * fast.size(2) + l];
            *place++ = row < 0 || column < 0 ? kNoElement : row * size + column;
          }
        }
      }
    }
  }
  return both;
}

// One table for all spatial dimensions together, from that of each: [planes or 1, outputs, window] of numbers within a
// plane.
at::Tensor Combine(const Windows& windows, at::IntArrayRef sizes) {
  at::Tensor table = windows[0];
  for (size_t d = 1; d < windows.size(); ++d) {
    if (table.device().is_cpu()) {
      table = CombineOnCpu(table.contiguous(), windows[d].contiguous(), sizes[d]);
      continue;
    }
    const at::Tensor slow = table.unsqueeze(2).unsqueeze(4);
    const at::Tensor fast = windows[d].unsqueeze(1).unsqueeze(3);
    const at::Tensor outside = slow.lt(0).logical_or(fast.lt(0));
    const at::Tensor both = (slow * sizes[d] + fast).masked_fill(outside, kNoElement);
    table = both.reshape({both.size(0), both.size(1) * both.size(2), both.size(3) * both.size(4)});
  }
  return table;
}

// The maximum of every window: which elements, counted through, have which shares of it.
struct Maxima {
  at::Tensor source, share;  // [planes * outputs, width]; without `share` all are 1
  at::Tensor largest;        // [planes * outputs]
};

// value, reference: [planes, plane]; within: [planes or 1, outputs, window]. Without `reference` the largest value has
// the whole share.
Maxima MaximaOf(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& within) {
  const int64_t planes = value.size(0);
  at::Tensor table = within.expand({planes, within.size(1), within.size(2)});
  const at::Tensor outside = table.lt(0);
  const at::Tensor first = at::arange(planes, table.options()).mul_(value.size(1)).view({planes, 1, 1});
  table = (table + first).masked_fill(outside, kNoElement);
  const at::Tensor flat = table.clamp_min(0).reshape({-1});
  const auto candidates = [&](const at::Tensor& t) {
    const double never = -std::numeric_limits<double>::infinity();
    return t.reshape({-1}).index_select(0, flat).view(table.sizes()).masked_fill_(outside, never);
  };
  const at::Tensor among = candidates(value);
  Maxima found;
  if (reference.defined()) {
    found.share = EnvelopeShares(among, candidates(reference));
    KeepShares(&table, &found.share);
    found.share = found.share.reshape({-1, table.size(2)});
  } else {
    table = table.gather(-1, at::argmax(among, -1, /*keepdim=*/true));
  }
  found.source = table.reshape({-1, table.size(2)});
  found.largest = among.amax(-1).reshape({-1});
  return found;
}

template <typename T>
Maxima MaximaOnCpu(const at::Tensor& value, const at::Tensor& reference, const at::Tensor& within) {
  const int64_t outputs = value.size(0) * within.size(1);
  const WindowsView<T> windows = {value.data_ptr<T>(),
                                  reference.defined() ? reference.data_ptr<T>() : nullptr,
                                  within.data_ptr<int64_t>(),
                                  value.size(0),
                                  value.size(1),
                                  within.size(0),
                                  within.size(1),
                                  within.size(2)};
  Maxima found;
  found.largest = at::empty({outputs}, value.options());
  if (!reference.defined()) {
    found.source = at::empty({outputs, 1}, within.options());
    WindowWinners(windows, found.source.data_ptr<int64_t>(), found.largest.data_ptr<T>());
    return found;
  }
  const at::Tensor shares = at::empty({outputs, within.size(2)}, value.options());
  const int64_t width = std::max<int64_t>(WindowShares(windows, shares.data_ptr<T>(), found.largest.data_ptr<T>()), 1);
  found.source = at::empty({outputs, width}, within.options());
  found.share = at::empty({outputs, width}, value.options());
  KeepPositiveShares(windows, shares.data_ptr<T>(), width, found.source.data_ptr<int64_t>(), found.share.data_ptr<T>());
  return found;
}

// The shares of the line on which each element of a window is the largest.
RuleResult MaxPool(const RuleCall& call, const Windows& windows) {
  const RuleOperand& input = call.Require("self");
  const int64_t spatial = static_cast<int64_t>(windows.size());
  const at::IntArrayRef sizes = input.value.sizes().slice(input.value.dim() - spatial);
  int64_t plane = 1;
  for (const int64_t size : sizes) plane *= size;
  const at::Tensor& output = call.outputs[0].value;
  if (output.numel() == 0) {
    const at::Tensor none = at::full({0, 1}, kNoElement, output.options().dtype(at::kLong));
    return WeightedGather(call, Kind::kSelection, {call.OperandAt("self")}, none);
  }
  const bool fast = call.policy->preset == Preset::kFast;
  const int64_t planes = input.value.numel() / plane;
  const at::Tensor value = input.value.reshape({planes, plane}).contiguous();
  const at::Tensor reference = fast ? at::Tensor() : input.reference.reshape({planes, plane}).contiguous();
  const at::Tensor within = Combine(windows, sizes).contiguous();
  Maxima found;
  if (ForLoops(value) && (fast || ForLoops(reference))) {
    found = DispatchReal(value.scalar_type(),
                         [&](auto zero) { return MaximaOnCpu<decltype(zero)>(value, reference, within); });
  } else {
    found = MaximaOf(value, reference, within);
  }
  const at::Tensor given = output.reshape({-1});
  if (!ReadFlag(found.largest.eq(given).logical_or_(given.isnan()).all())) {
    throw Internal("the windows of " + call.name + " are not those of LibTorch");
  }
  RuleResult result = WeightedGather(call, Kind::kSelection, {call.OperandAt("self")}, found.source, found.share);
  result.exact = !fast;
  return result;
}

// max_pool(self, kernel_size, stride, padding, dilation, ceil_mode) over so many dimensions.
RuleResult SlidingMaxPool(const RuleCall& call, int64_t spatial) {
  const auto size = Spread(call.Ints("kernel_size"), spatial, 1);
  const auto stride = call.Ints("stride").empty() ? size : Spread(call.Ints("stride"), spatial, 1);
  const auto padding = Spread(call.Ints("padding"), spatial, 0);
  const auto dilation = Spread(call.Ints("dilation"), spatial, 1);
  const at::Tensor& input = call.Require("self").value;
  const at::Tensor& output = call.outputs[0].value;
  const auto options = output.options().dtype(at::kLong);
  Windows windows;
  for (int64_t d = 0; d < spatial; ++d) {
    windows.push_back(SlidingWindows(output.size(d - spatial), size[d], stride[d], padding[d], dilation[d],
                                     input.size(d - spatial), options));
  }
  return MaxPool(call, windows);
}

// Output o of O covers the elements from floor(o I / O) to ceil((o + 1) I / O).
RuleResult AdaptiveMaxPool(const RuleCall& call, int64_t spatial) {
  const at::Tensor& input = call.Require("self").value;
  const at::Tensor& output = call.outputs[0].value;
  const auto options = output.options().dtype(at::kLong);
  Windows windows;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t from = input.size(d - spatial);
    const int64_t to = output.size(d - spatial);
    int64_t longest = 1;
    std::vector<int64_t> starts;
    std::vector<int64_t> ends;
    for (int64_t o = 0; o < to; ++o) {
      starts.push_back(o * from / to);
      ends.push_back(((o + 1) * from + to - 1) / to);
      longest = std::max(longest, ends.back() - starts.back());
    }
    const at::Tensor start = at::tensor(starts, at::kLong).to(options.device()).unsqueeze(1);
    const at::Tensor end = at::tensor(ends, at::kLong).to(options.device()).unsqueeze(1);
    const at::Tensor position = start + at::arange(longest, options);
    windows.push_back(position.masked_fill(position.ge(end), kNoElement).unsqueeze(0));
  }
  return MaxPool(call, windows);
}

// fractional_max_pool(self, kernel_size, output_size, random_samples): the last window ends with the input, the others
// begin at floor((o + u) a) - floor(u a) for a sample u in 0..1 of each plane and a = (I - K) / (O - 1).
RuleResult FractionalMaxPool(const RuleCall& call, int64_t spatial) {
  const auto size = Spread(call.Ints("kernel_size"), spatial, 1);
  const at::Tensor& input = call.Require("self").value;
  const at::Tensor& output = call.outputs[0].value;
  const at::Tensor samples = call.Require("random_samples").value.to(input.scalar_type()).reshape({-1, spatial});
  const auto options = output.options().dtype(at::kLong);
  Windows windows;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t from = input.size(d - spatial);
    const int64_t to = output.size(d - spatial);
    // In two dimensions the samples are in the order width, height; in three as the dimensions are.
    const at::Tensor sample = samples.select(1, spatial == 2 ? 1 - d : d).unsqueeze(1);
    at::Tensor start = at::full({samples.size(0), to}, from - size[d], options);
    if (to > 1) {
      // In the precision of the input, as LibTorch computes it.
      const bool single = input.scalar_type() == at::kFloat;
      const double step = single ? static_cast<double>(static_cast<float>(from - size[d]) / static_cast<float>(to - 1))
                                 : static_cast<double>(from - size[d]) / static_cast<double>(to - 1);
      const at::Tensor o = at::arange(to - 1, options).to(input.scalar_type());
      start.narrow(1, 0, to - 1).copy_(((o + sample) * step).to(at::kLong) - (sample * step).to(at::kLong));
    }
    windows.push_back(start.unsqueeze(2) + at::arange(size[d], options));
  }
  return MaxPool(call, windows);
}

// Operators that take [batch, channels, *spatial], and also [channels, *spatial], to which the rows are the batch.
RuleResult OnPlanes(const RuleCall& call, int64_t spatial) {
  RowAxis axis;
  axis.fold_batch = call.Require("self").value.dim() == spatial + 2;
  return LinearOperator(call, Kind::kLinear, axis);
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices): each
// gradient goes to the element that its index names. Of self only the sizes are read.
RuleResult MaxPoolBackward(const RuleCall& call, int64_t spatial) {
  if (!call.Decomposed("grad_output")) return Opaque(call);
  const at::DimVector sizes(call.Require("self").value.sizes());
  const at::Tensor index = call.Require("indices").value.flatten(-spatial);
  return LinearIn(call, Kind::kLinear, "grad_output", [=](const at::Tensor& rows) {
    at::DimVector all = WithRows(rows.size(0), sizes);
    at::DimVector spread = WithRows(rows.size(0), index.sizes());
    const at::Tensor none = at::zeros(all, rows.options()).flatten(-spatial);
    return none.scatter_add(-1, index.expand(spread), rows.flatten(-spatial)).view(all);
  });
}

}  // namespace

void RegisterPooling(Registry& registry) {
  struct Name {
    const char* name;
    int64_t spatial;
  };
  for (const auto& [name, spatial] : std::vector<Name>{{"aten::max_pool1d", 1},  // has a kernel of its own
                                                       {"aten::max_pool2d_with_indices", 2},
                                                       {"aten::max_pool3d_with_indices", 3}}) {
    registry.Register(
        {name, Kind::kSelection, [spatial = spatial](const RuleCall& c) { return SlidingMaxPool(c, spatial); }});
  }
  for (const auto& [name, spatial] :
       std::vector<Name>{{"aten::adaptive_max_pool2d", 2}, {"aten::adaptive_max_pool3d", 3}}) {
    registry.Register(
        {name, Kind::kSelection, [spatial = spatial](const RuleCall& c) { return AdaptiveMaxPool(c, spatial); }});
  }
  for (const auto& [name, spatial] : std::vector<Name>{{"aten::max_pool2d_with_indices_backward", 2},
                                                       {"aten::max_pool3d_with_indices_backward", 3},
                                                       {"aten::adaptive_max_pool2d_backward", 2},
                                                       {"aten::adaptive_max_pool3d_backward", 3},
                                                       {"aten::fractional_max_pool2d_backward", 2},
                                                       {"aten::fractional_max_pool3d_backward", 3}}) {
    registry.Register(
        {name, Kind::kLinear, [spatial = spatial](const RuleCall& c) { return MaxPoolBackward(c, spatial); }});
  }
  for (const auto& [name, spatial] :
       std::vector<Name>{{"aten::fractional_max_pool2d", 2}, {"aten::fractional_max_pool3d", 3}}) {
    registry.Register(
        {name, Kind::kSelection, [spatial = spatial](const RuleCall& c) { return FractionalMaxPool(c, spatial); }});
  }
  for (const auto& [name, spatial] : std::vector<Name>{{"aten::avg_pool2d", 2},
                                                       {"aten::avg_pool3d", 3},
                                                       {"aten::_adaptive_avg_pool2d", 2},
                                                       {"aten::_adaptive_avg_pool3d", 3}}) {
    registry.Register({name, Kind::kLinear, [spatial = spatial](const RuleCall& c) { return OnPlanes(c, spatial); }});
  }
}

}  // namespace addend

// Convolutions: with plain weights all rows are one batch, with a plain input the rows of the weights are output
// channels of one convolution. conv1d, conv2d, conv3d and the transposed ones expand to aten::convolution.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// The arguments of a convolution, under whatever name it is called.
struct Convolution {
  std::vector<int64_t> stride, padding, dilation = {1};
  bool transposed = false;
  std::vector<int64_t> output_padding = {0};
  int64_t groups = 1;
  bool time_first = false;  // [time, batch, channels] with weights [time, in, out]

  at::Tensor operator()(const at::Tensor& input, const at::Tensor& kernel) const {
    if (IsOfPlanes(input, kernel)) {
      const int64_t planes = input.size(0);
      return WithGroups(planes)(input.transpose(0, 1), ForEachPlane(kernel, planes)).transpose(0, 1);
    }
    return at::convolution(input, kernel, {}, stride, padding, dilation, transposed, output_padding, groups);
  }
  // The transpose of that by its input, of which only the sizes matter.
  at::Tensor BackToInput(const at::Tensor& g, const at::Tensor& input, const at::Tensor& kernel) const {
    if (IsOfPlanes(input, kernel)) {
      const int64_t planes = input.size(0);
      return WithGroups(planes)
          .BackToInput(g.transpose(0, 1), input.transpose(0, 1), ForEachPlane(kernel, planes))
          .transpose(0, 1);
    }
    const size_t spatial = static_cast<size_t>(input.dim()) - 2;
    const auto full = [&](std::vector<int64_t> values) {
      if (values.size() == 1) values.resize(spatial, values[0]);
      return values;
    };
    return std::get<0>(at::convolution_backward(g, input, kernel, at::OptionalIntArrayRef(), full(stride),
                                                full(padding), full(dilation), transposed, full(output_padding), groups,
                                                {true, false, false}));
  }

 private:
  // Whether each image has one channel, before and after. oneDNN takes such a batch without vectors, but the channels
  // of one image, each with a kernel of its own, in vectors: up to twenty times as fast. Fewer images do not pay.
  bool IsOfPlanes(const at::Tensor& input, const at::Tensor& kernel) const {
    constexpr int64_t kFew = 16;
    const bool flat = kernel.dim() == 3 || kernel.dim() == 4;
    return flat && !transposed && groups == 1 && kernel.size(0) == 1 && kernel.size(1) == 1 && kernel.numel() > 1 &&
           input.size(0) >= kFew && input.device().is_cpu() && input.scalar_type() == at::kFloat && at::hasMKLDNN() &&
           at::globalContext().userEnabledMkldnn();
  }
  Convolution WithGroups(int64_t count) const {
    Convolution own = *this;
    own.groups = count;
    return own;
  }
  static at::Tensor ForEachPlane(const at::Tensor& kernel, int64_t planes) {
    at::DimVector sizes(kernel.sizes());
    sizes[0] = planes;
    return kernel.expand(sizes);
  }
};

// [R, time, batch, channels] <-> [R, batch, channels, time]
at::Tensor TimeLast(const at::Tensor& rows) { return rows.permute({0, 2, 3, 1}); }
at::Tensor TimeFirst(const at::Tensor& rows) { return rows.permute({0, 3, 1, 2}); }

// Applies the rows of the weights to a plain input [N, C, *]. In each group of channels the rows come one after the
// other: weights [R, O, I, *] as [groups * R * O / groups, I, *], transposed ones [R, I, O / groups, *] as [I, R * O /
// groups, *].
at::Tensor RowsOfWeights(const Convolution& convolution, const at::Tensor& input, const at::Tensor& rows) {
  const int64_t r = rows.size(0);
  const int64_t groups = convolution.groups;
  at::DimVector sizes;
  at::Tensor kernel;
  if (convolution.transposed) {
    sizes = {rows.size(1), r * rows.size(2)};
    kernel = rows.movedim(0, 1);
  } else {
    sizes = {r * rows.size(1), rows.size(2)};
    at::DimVector split = {r, groups, rows.size(1) / groups};
    split.append(rows.sizes().begin() + 2, rows.sizes().end());
    kernel = rows.reshape(split).movedim(0, 1);
  }
  sizes.append(rows.sizes().begin() + 3, rows.sizes().end());
  const at::Tensor output = convolution(input, kernel.reshape(sizes));
  const int64_t channels = output.size(1) / r;
  at::DimVector apart = {output.size(0), groups, r, channels / groups};
  at::DimVector together = {r, output.size(0), channels};
  apart.append(output.sizes().begin() + 2, output.sizes().end());
  together.append(output.sizes().begin() + 2, output.sizes().end());
  return output.reshape(apart).movedim(2, 0).reshape(together);
}

// Rows of a bias [R, channels] as rows of the output, which has so many dimensions behind its channels.
at::Tensor RowsOfBias(const at::Tensor& rows, const at::DimVector& output_sizes, int64_t behind_channels) {
  at::DimVector sizes = {rows.size(0)};
  sizes.resize(output_sizes.size() - behind_channels, 1);
  sizes.push_back(rows.size(1));
  sizes.resize(1 + output_sizes.size(), 1);
  return rows.reshape(sizes).expand(WithRows(rows.size(0), output_sizes));
}

RuleResult Convolve(const RuleCall& call, const Convolution& convolution) {
  const int input = call.OperandAt(call.First());
  const int weight = call.OperandAt("weight");
  const int bias = call.OperandAt("bias");
  const RuleOperand& x = call.operands[input];
  const RuleOperand& w = call.operands[weight];
  const Meeting meeting = Meet(*call.policy, x, w);
  const bool x_moves = meeting.first_moves;
  const bool w_moves = meeting.second_moves;
  const bool bias_moves = bias >= 0 && call.operands[bias].decomposed;
  const bool time_first = convolution.time_first;
  // Some names also take an input without a batch.
  const bool lone = x.value.dim() < w.value.dim();

  const auto as_input = [=](at::Tensor rows) {
    if (lone) rows = rows.unsqueeze(1);
    return time_first ? TimeLast(rows) : rows;
  };
  const auto as_weight = [=](const at::Tensor& rows) { return time_first ? rows.permute({0, 3, 2, 1}) : rows; };
  const at::Tensor met_input = as_input(meeting.first.unsqueeze(0)).select(0, 0);
  const at::Tensor met_weight = as_weight(meeting.second.unsqueeze(0)).select(0, 0);

  RuleResult result;
  result.kind = x.decomposed && w.decomposed ? Kind::kBilinear : Kind::kAffine;
  if (x_moves) result.inputs.push_back(input);
  if (w_moves) result.inputs.push_back(weight);
  if (bias_moves) result.inputs.push_back(bias);
  if (result.inputs.empty()) return result;
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  // The channels are last, or in front of the spatial dimensions.
  const int64_t behind_channels = time_first ? 0 : w.value.dim() - 2;
  // With plain weights one convolution backwards; autograd, which serves all else, would run one forward as well.
  RowsFunction transpose;
  if (x_moves && !w_moves && !bias_moves && !time_first && !lone) {
    // Only the sizes of the input matter here.
    const at::Tensor like = at::zeros({1}, met_input.options()).expand(met_input.sizes());
    transpose = [=](const Rows& cotangents) -> Rows {
      return {convolution.BackToInput(cotangents[0], like, met_weight)};
    };
  }
  const auto forward = [=](const Rows& rows) -> Rows {
    at::Tensor sum;
    size_t next = 0;
    if (x_moves) {
      sum = FoldBatch(as_input(rows[next++]), [&](const at::Tensor& batch) { return convolution(batch, met_weight); });
    }
    if (w_moves) {
      const at::Tensor passed = RowsOfWeights(convolution, met_input, as_weight(rows[next++]));
      sum = sum.defined() ? sum.add_(passed) : passed;
    }
    if (time_first && sum.defined()) sum = TimeFirst(sum);
    if (lone && sum.defined()) sum = sum.squeeze(1);
    if (bias_moves) {
      const at::Tensor moved = RowsOfBias(rows[next], output_sizes, behind_channels);
      sum = sum.defined() ? sum + moved : moved;
    }
    return {sum};
  };
  result.map = MakeMap(call, result.inputs, forward, transpose);
  return result;
}

Convolution ArgumentsOf(const RuleCall& call) {
  Convolution c;
  c.stride = call.Ints("stride");
  c.padding = call.Ints("padding");
  if (call.Has("dilation")) c.dilation = call.Ints("dilation");
  if (call.Has("output_padding")) c.output_padding = call.Ints("output_padding");
  c.transposed = call.Bool("transposed", false);
  c.groups = call.Int("groups", 1);
  return c;
}

RuleResult General(const RuleCall& call) { return Convolve(call, ArgumentsOf(call)); }

RuleResult Transposed(const RuleCall& call) {
  Convolution c = ArgumentsOf(call);
  c.transposed = true;
  return Convolve(call, c);
}

RuleResult TimeBatchChannels(const RuleCall& call) {
  Convolution c;
  c.stride = {1};
  c.padding = {call.Int("pad", 0)};
  c.time_first = true;
  return Convolve(call, c);
}

}  // namespace

void RegisterConvolution(Registry& registry) {
  for (const char* name :
       {"aten::convolution", "aten::_convolution", "aten::mkldnn_convolution", "aten::_slow_conv2d_forward",
        "aten::slow_conv3d_forward", "aten::slow_conv_dilated2d", "aten::slow_conv_dilated3d"}) {
    registry.Register(Rule{name, Kind::kAffine, General}.Multiplies().By(Products::kConvolution));
  }
  for (const char* name : {"aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d"}) {
    registry.Register(Rule{name, Kind::kAffine, Transposed}.By(Products::kConvolution));
  }
  registry.Register(Rule{"aten::conv_tbc", Kind::kAffine, TimeBatchChannels}.By(Products::kMatmul));
}

}  // namespace addend

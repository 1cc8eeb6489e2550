// Normalizations: of a batch, of channels, of groups, of rows; and softmax.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr double kEpsilon = 1e-5;

// The product of the sizes of some dimensions.
int64_t Count(c10::IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Half types are normalized in float32 where the attribute stash_type says so, as it does unless it is given.
Tensor Stashed(const Context& context, const Tensor& x) {
  return InType(x, std::max(c10::elementSize(x.scalar_type()), size_t{4}) == c10::elementSize(x.scalar_type())
                       ? x.scalar_type()
                       : context.TypeAttribute("stash_type", DataType::kFloat));
}

// --------------------------------------------------------------------------------------------- batches, channels

// Before version 9 each element behind the batch may be a channel of its own.
Results BatchOfElements(const Context& context) {
  const Tensor x = context.Tensor(0);
  const auto flat = [&](size_t k) { return at::flatten(context.Tensor(k)); };
  const Tensor result = at::batch_norm(at::flatten(x, 1), flat(1), flat(2), flat(3), flat(4), /*training=*/false, 0,
                                       context.FloatAttribute("epsilon", kEpsilon), /*cudnn_enabled=*/false);
  return at::reshape(result, x.sizes());
}

// Normalizes by the batch itself; the results are statistics that training goes on with, too.
Results TrainedBatch(const Context& context) {
  const Tensor x = context.Tensor(0);
  const double momentum = context.FloatAttribute("momentum", 0.9);
  std::vector<int64_t> dims(static_cast<size_t>(x.dim() - 1), 0);
  std::iota(dims.begin() + 1, dims.end(), 2);
  const Tensor result = at::batch_norm(x, context.Tensor(1), context.Tensor(2), {}, {}, /*training=*/true, 0,
                                       context.FloatAttribute("epsilon", kEpsilon), /*cudnn_enabled=*/false);
  if (!context.Wants(1) && !context.Wants(2)) return result;
  const auto moved = [&](size_t k, const Tensor& now) {
    return at::add(at::mul(context.Tensor(k), momentum), at::mul(now, 1 - momentum));
  };
  return {result, moved(3, at::mean(x, dims)), moved(4, at::var(x, dims, /*unbiased=*/false))};
}

Results BatchNormalization(const Context& context) {
  const bool trains = context.FlagAttribute("training_mode", false);
  if (!trains && (context.Wants(1) || context.Wants(2))) {
    throw context.Refused("statistics of training are among the outputs; export the model for inference");
  }
  if (trains) return TrainedBatch(context);
  if (!context.FlagAttribute("spatial", true)) return BatchOfElements(context);
  const Tensor x = context.Tensor(0);
  const auto type = context.Tensor(3).scalar_type();  // statistics may be wider
  const Tensor result = at::batch_norm(
      InType(x, type), InType(context.Tensor(1), type), InType(context.Tensor(2), type), context.Tensor(3),
      InType(context.Tensor(4), type), /*training=*/false, 0, context.FloatAttribute("epsilon", kEpsilon),
      /*cudnn_enabled=*/false);
  return InType(result, x.scalar_type());
}

Results InstanceNormalization(const Context& context) {
  return at::instance_norm(context.Tensor(0), context.Tensor(1), context.Tensor(2), {}, {}, /*use_input_stats=*/true, 0,
                           context.FloatAttribute("epsilon", kEpsilon), /*cudnn_enabled=*/false);
}

// Scale and bias of groups before version 21, of channels later.
Results GroupNormalization(const Context& context) {
  const Tensor given = context.Tensor(0);
  const Tensor x = Stashed(context, given);
  const int64_t groups = context.IntAttribute("num_groups");
  if (x.dim() < 2 || groups < 1 || x.size(1) % groups != 0) {
    throw context.Invalid("the channels do not divide into the groups of the attribute num_groups");
  }
  const auto of_channels = [&](size_t k) {
    const Tensor factor = InType(context.Tensor(k), x.scalar_type());
    if (context.version() >= 21 || groups == x.size(1)) return factor;
    return at::reshape(at::expand_copy(at::unsqueeze(factor, 1), {groups, x.size(1) / groups}), {-1});
  };
  const Tensor result = at::group_norm(x, groups, of_channels(1), of_channels(2),
                                       context.FloatAttribute("epsilon", kEpsilon), /*cudnn_enabled=*/false);
  return InType(result, given.scalar_type());
}

// --------------------------------------------------------------------------------------------------------- rows

// The sizes of the dimensions from the attribute `axis` on.
std::vector<int64_t> RowSizes(const Context& context, const Tensor& x) {
  const int64_t axis = context.Axis(context.IntAttribute("axis", -1), x.dim());
  return x.sizes().slice(static_cast<size_t>(axis)).vec();
}

Results LayerNormalization(const Context& context) {
  const Tensor given = context.Tensor(0);
  const Tensor x = Stashed(context, given);
  const std::vector<int64_t> sizes = RowSizes(context, given);
  const double epsilon = context.FloatAttribute("epsilon", kEpsilon);
  const bool wants_statistics = context.Wants(1) || context.Wants(2);
  Tensor scale = context.OptionalTensor(1), bias = context.OptionalTensor(2);
  // LibTorch's operator takes a scale of these sizes alone; half types are scaled behind it.
  const bool is_plain = given.scalar_type() == x.scalar_type() && (!scale.defined() || scale.sizes() == sizes) &&
                        (!bias.defined() || bias.sizes() == sizes);
  const auto optional = [&](const Tensor& factor) {
    return is_plain && factor.defined() ? c10::optional<Tensor>(factor) : c10::nullopt;
  };
  Tensor result, mean, deviation;
  if (wants_statistics) {
    std::tie(result, mean, deviation) = at::native_layer_norm(x, sizes, optional(scale), optional(bias), epsilon);
  } else {
    result = at::layer_norm(x, sizes, optional(scale), optional(bias), epsilon, /*cudnn_enable=*/false);
  }
  result = InType(result, given.scalar_type());
  if (!is_plain && scale.defined()) result = at::mul(result, scale);
  if (!is_plain && bias.defined()) result = at::add(result, bias);
  return wants_statistics ? Results{result, mean, deviation} : Results(result);
}

Results RmsNormalization(const Context& context) {
  const Tensor given = context.Tensor(0);
  const Tensor x = Stashed(context, given);
  std::vector<int64_t> dims(RowSizes(context, given).size());
  std::iota(dims.begin(), dims.end(), given.dim() - static_cast<int64_t>(dims.size()));
  const Tensor mean = at::mean(at::square(x), dims, /*keepdim=*/true);
  const Tensor result = at::mul(x, at::rsqrt(at::add(mean, context.FloatAttribute("epsilon", kEpsilon))));
  return at::mul(InType(result, given.scalar_type()), context.Tensor(1));
}

// Divides by a power of the mean square of the channels around each.
Results Lrn(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t size = context.IntAttribute("size");
  if (x.dim() < 2 || size < 1)
    throw context.Invalid("the input has no channels, or the attribute size is not positive");
  const Tensor squares = at::reshape(at::square(x), {x.size(0), 1, x.size(1), -1});
  const Tensor padded = at::constant_pad_nd(squares, {0, 0, (size - 1) / 2, size / 2}, 0);
  const Tensor means = at::reshape(at::avg_pool2d(padded, {size, 1}, {1, 1}), x.sizes());
  const Tensor norm =
      at::pow(at::add(at::mul(means, context.FloatAttribute("alpha", 1e-4)), context.FloatAttribute("bias", 1)),
              context.FloatAttribute("beta", 0.75));
  return at::div(x, norm);
}

// Rows of zeros stay zeros: they are divided by 1. The smallest of norms serves a baseline of zeros.
Results LpNormalization(const Context& context) {
  const Tensor x = context.Tensor(0);
  const int64_t p = context.IntAttribute("p", 2);
  if (p != 1 && p != 2) throw context.Invalid("the attribute p is neither 1 nor 2");
  const int64_t axis = context.Axis(context.IntAttribute("axis", -1), x.dim());
  const Tensor norm = at::linalg_vector_norm(x, p, at::IntArrayRef{axis}, /*keepdim=*/true);
  const double least = x.scalar_type() == at::kHalf ? 6e-8 : std::numeric_limits<float>::min();
  return at::div(x, at::masked_fill(at::clamp_min(norm, least), at::eq(norm, 0), 1));
}

Results MeanVarianceNormalization(const Context& context) {
  const Tensor x = context.Tensor(0);
  const std::vector<int64_t> axes = context.Axes(context.IntsAttribute("axes", {0, 2, 3}), x.dim());
  const Tensor deviation = at::sqrt(at::var(x, axes, /*unbiased=*/false, /*keepdim=*/true));
  return at::div(at::sub(x, at::mean(x, axes, /*keepdim=*/true)), at::add(deviation, 1e-9));
}

// ------------------------------------------------------------------------------------------------------ softmax

// Along one axis, or before version 13 along all from an axis on together.
template <typename Along>
Results AlongAxis(const Context& context, const Along& along) {
  const Tensor x = context.Tensor(0);
  const bool is_flat = context.version() < 13;
  const int64_t rank = std::max<int64_t>(x.dim(), 1);
  const int64_t given = context.IntAttribute("axis", is_flat ? 1 : -1);
  if (!is_flat) return along(x, context.Axis(given, rank));
  // The axis may be the rank here: rows of one element each.
  const int64_t axis = given == x.dim() ? given : context.Axis(given, rank);
  if (axis == x.dim() - 1) return along(x, axis);
  const int64_t rows = Count(x.sizes().slice(0, static_cast<size_t>(axis)));
  const int64_t columns = Count(x.sizes().slice(static_cast<size_t>(axis)));
  return at::reshape(along(at::reshape(x, {rows, columns}), 1), x.sizes());
}

Results Softmax(const Context& context) {
  return AlongAxis(context, [](const Tensor& x, int64_t axis) { return at::softmax(x, axis); });
}

Results LogSoftmax(const Context& context) {
  return AlongAxis(context, [](const Tensor& x, int64_t axis) { return at::log_softmax(x, axis); });
}

// One at the first of the largest, zero elsewhere.
Results Hardmax(const Context& context) {
  return AlongAxis(context, [](const Tensor& x, int64_t axis) {
    return at::scatter(at::zeros_like(x), axis, at::argmax(x, axis, /*keepdim=*/true), 1);
  });
}

}  // namespace

void RegisterNormalizations(OperatorTable& table) {
  table.Add("BatchNormalization", 1, BatchNormalization)
      .Inputs(5)
      .Attributes({"consumed_inputs", "epsilon", "is_test", "momentum", "spatial"});
  table.Add("BatchNormalization", 9, BatchNormalization).Inputs(5).Attributes({"epsilon", "momentum", "training_mode"});
  table.Add("InstanceNormalization", 1, InstanceNormalization).Inputs(3).Attributes({"consumed_inputs", "epsilon"});
  // The standard has it from version 17 on; ONNX Runtime writes it into older models.
  table.Add("LayerNormalization", 1, LayerNormalization).Inputs(2, 3).Attributes({"axis", "epsilon", "stash_type"});
  table.Add("GroupNormalization", 18, GroupNormalization).Inputs(3).Attributes({"epsilon", "num_groups", "stash_type"});
  table.Add("RMSNormalization", 23, RmsNormalization).Inputs(2).Attributes({"axis", "epsilon", "stash_type"});
  table.Add("LRN", 1, Lrn).Attributes({"alpha", "beta", "bias", "size"});
  table.Add("LpNormalization", 1, LpNormalization).Attributes({"axis", "p"});
  table.Add("MeanVarianceNormalization", 9, MeanVarianceNormalization).Attributes({"axes"});
  table.Add("Softmax", 1, Softmax).Attributes({"axis"});
  table.Add("LogSoftmax", 1, LogSoftmax).Attributes({"axis"});
  table.Add("Hardmax", 1, Hardmax).Attributes({"axis"});
}

}  // namespace addend::onnx

// Normalization layers.
//
// Note [Normalization in closed form]
// A layer norm is centre, square, mean, rsqrt and a product; each has a closed path rule, and together they are one
// map:
//   out = weight * (inverse * (c - mean c) + bend * m * mean(m * c))
// with m the middle of the centred value and reference, inverse the mean of both 1/std, and
// bend = 2 * secant slope of rsqrt between both variances = -2 rx^2 rb^2 / (rx + rb), a form without cancellation.
// Where the normalizer is frozen, inverse is the value's 1/std and the second term is gone.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/kernels.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

struct Normalizer {
  at::Tensor middle;   // [groups, size], undefined where frozen
  at::Tensor inverse;  // [groups, 1]
  at::Tensor bend;     // [groups, 1], undefined where frozen
  at::Tensor weight;   // [size] or undefined
};

Normalizer MakeNormalizer(const RuleOperand& input, int64_t size, double eps, bool frozen, const at::Tensor& weight) {
  const auto centred = [&](const at::Tensor& t) {
    const at::Tensor flat = t.reshape({-1, size});
    return flat - flat.mean(-1, /*keepdim=*/true);
  };
  const auto inverse_std = [&](const at::Tensor& c) { return at::rsqrt(c.square().mean(-1, true) + eps); };
  const at::Tensor x = centred(input.value);
  const at::Tensor rx = inverse_std(x);
  Normalizer n;
  n.weight = weight.defined() ? weight.reshape({-1}).contiguous() : weight;
  n.inverse = rx;
  if (frozen) return n;
  const at::Tensor b = centred(input.reference);
  const at::Tensor rb = inverse_std(b);
  n.middle = ((x + b) / 2).contiguous();
  n.inverse = ((rx + rb) / 2).contiguous();
  n.bend = (-2 * rx.square() * rb.square() / (rx + rb)).contiguous();
  return n;
}

template <typename T>
at::Tensor ApplyOnCpu(const Normalizer& n, const at::Tensor& rows, bool transposed) {
  const at::Tensor input = rows.contiguous();
  at::Tensor output = at::empty_like(input);
  const int64_t groups = n.inverse.numel();
  const int64_t size = input.size(-1);
  const NormalizerView<T> view = {n.middle.defined() ? n.middle.data_ptr<T>() : nullptr,
                                  n.inverse.data_ptr<T>(),
                                  n.bend.defined() ? n.bend.data_ptr<T>() : nullptr,
                                  n.weight.defined() ? n.weight.data_ptr<T>() : nullptr,
                                  groups,
                                  size};
  NormalizeRows<T>(input.data_ptr<T>(), output.data_ptr<T>(), input.size(0), view, transposed);
  return output;
}

// rows: [R, groups, size]. The map without its weight is symmetric, so transposing only moves the weight to the input.
at::Tensor Apply(const Normalizer& n, const at::Tensor& rows, bool transposed) {
  if (rows.device().is_cpu() && rows.scalar_type() == n.inverse.scalar_type()) {
    if (rows.scalar_type() == at::kFloat) return ApplyOnCpu<float>(n, rows, transposed);
    if (rows.scalar_type() == at::kDouble) return ApplyOnCpu<double>(n, rows, transposed);
  }
  const at::Tensor c = transposed && n.weight.defined() ? rows * n.weight : rows;
  at::Tensor out = (c - c.mean(-1, true)) * n.inverse;
  if (n.middle.defined()) out = out + n.bend * n.middle * (n.middle * c).mean(-1, true);
  return !transposed && n.weight.defined() ? out * n.weight : out;
}

// native_layer_norm gives the mean and 1/std of each group as well: linear, and rsqrt of the variance along its secant.
Rows Statistics(const Normalizer& n, const at::Tensor& rows) {
  const at::Tensor mean = rows.mean(-1, true);
  return {mean, n.middle.defined() ? n.bend * (n.middle * rows).mean(-1, true) : at::zeros_like(mean)};
}

at::Tensor TransposedStatistics(const Normalizer& n, const at::Tensor& mean, const at::Tensor& inverse, int64_t size) {
  at::Tensor sum;
  if (mean.defined()) sum = mean.reshape(n.inverse.sizes()) / size + at::zeros({1, size}, mean.options());
  if (inverse.defined() && n.middle.defined()) {
    const at::Tensor along = inverse.reshape(n.inverse.sizes()) * n.bend * n.middle / size;
    sum = sum.defined() ? sum + along : along;
  }
  return sum;
}

// Normalizes groups of `size` adjacent elements; `scale`, where defined, multiplies the result (broadcast to it).
RuleResult Normalize(const RuleCall& call, int64_t size, double eps, const at::Tensor& weight,
                     const at::Tensor& scale) {
  const bool frozen = call.policy->Freezes(kFreezeNormalizer);
  const Normalizer n = MakeNormalizer(call.Require(0), size, eps, frozen, weight);
  const at::DimVector sizes(call.Require(0).value.sizes());
  const int64_t groups = n.inverse.numel();
  RuleResult result = LinearIn(
      call, Kind::kRewrite, 0,
      [=](const at::Tensor& rows) {
        const at::Tensor out = Apply(n, rows.reshape({rows.size(0), groups, size}), false).view(rows.sizes());
        return scale.defined() ? out * scale : out;
      },
      [=](const at::Tensor& g) {
        const at::Tensor scaled = scale.defined() ? g * scale : g;
        return Apply(n, scaled.reshape({1, groups, size}), true).view(sizes);
      });
  result.exact = !frozen;
  return result;
}

void RequirePlain(const RuleCall& call, std::initializer_list<int> arguments) {
  for (const int argument : arguments) {
    if (call.Decomposed(argument)) throw Unimplemented(call.name + " with decomposed parameters");
  }
}

at::Tensor ValueOrNone(const RuleCall& call, int argument) {
  const RuleOperand* operand = call.Find(argument);
  return operand == nullptr ? at::Tensor() : operand->value;
}

// layer_norm(input, normalized_shape, weight, bias, eps); native_layer_norm has the same order.
RuleResult LayerNorm(const RuleCall& call) {
  RequirePlain(call, {2, 3});
  const auto shape = call.Ints(1);
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  RuleResult result = Normalize(call, size, call.Double(4, 1e-5), ValueOrNone(call, 2), at::Tensor());
  result.constant = ValueOrNone(call, 3);
  return result;
}

// The same with the statistics of each group as outputs 1 and 2.
RuleResult NativeLayerNorm(const RuleCall& call) {
  RequirePlain(call, {2, 3});
  const auto shape = call.Ints(1);
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  const bool frozen = call.policy->Freezes(kFreezeNormalizer);
  const Normalizer n = MakeNormalizer(call.Require(0), size, call.Double(4, 1e-5), frozen, ValueOrNone(call, 2));
  const at::DimVector sizes(call.Require(0).value.sizes());
  const at::DimVector statistics(call.outputs[1].value.sizes());
  const int64_t groups = n.inverse.numel();
  RuleResult result;
  result.kind = Kind::kRewrite;
  result.inputs = {call.OperandAt(0)};
  result.exact = !frozen;
  result.constant = ValueOrNone(call, 3);
  result.map = MakeMap(
      call, result.inputs,
      [=](const Rows& rows) -> Rows {
        const at::Tensor flat = rows[0].reshape({rows[0].size(0), groups, size});
        at::DimVector shape_of_statistics = {rows[0].size(0)};
        shape_of_statistics.append(statistics.begin(), statistics.end());
        Rows out = Statistics(n, flat);
        for (at::Tensor& t : out) t = t.reshape(shape_of_statistics);
        out.insert(out.begin(), Apply(n, flat, false).view(rows[0].sizes()));
        return out;
      },
      [=](const Rows& g) -> Rows {
        at::Tensor sum =
            TransposedStatistics(n, g.size() > 1 ? g[1] : at::Tensor(), g.size() > 2 ? g[2] : at::Tensor(), size);
        if (g[0].defined()) {
          const at::Tensor own = Apply(n, g[0].reshape({1, groups, size}), true).view({groups, size});
          sum = sum.defined() ? sum + own : own;
        }
        return {sum.defined() ? sum.view(sizes) : at::zeros(sizes, n.inverse.options())};
      });
  return result;
}

// group_norm(input, num_groups, weight, bias, eps)
RuleResult GroupNorm(const RuleCall& call) {
  RequirePlain(call, {2, 3});
  const at::Tensor& input = call.Require(0).value;
  const int64_t size = std::accumulate(input.sizes().begin() + 2, input.sizes().end(), input.size(1) / call.Int(1, 1),
                                       std::multiplies<int64_t>());
  at::Tensor scale = ValueOrNone(call, 2);
  at::DimVector shape(input.dim(), 1);
  shape[1] = -1;
  if (scale.defined()) scale = scale.view(shape);
  RuleResult result = Normalize(call, size, call.Double(4, 1e-5), at::Tensor(), scale);
  if (const RuleOperand* bias = call.Find(3)) result.constant = bias->value.view(shape);
  return result;
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): in evaluation a fixed scale.
RuleResult BatchNorm(const RuleCall& call) {
  RequirePlain(call, {1, 2, 3, 4});
  const at::Tensor& input = call.Require(0).value;
  at::Tensor scale = at::rsqrt(call.Require(4).value + call.Double(7, 1e-5));
  if (const RuleOperand* weight = call.Find(1)) scale = scale * weight->value;
  at::DimVector shape(input.dim(), 1);
  shape[1] = -1;
  return Elementwise(call, Kind::kAffine, {{call.OperandAt(0), scale.view(shape)}});
}

void RequireEvaluation(const std::vector<c10::IValue>& arguments) {
  if (arguments.size() > 5 && arguments[5].isBool() && arguments[5].toBool()) {
    throw Unimplemented(
        "batch_norm in training mode mixes the batch and updates its buffers; call eval() on the model");
  }
}

}  // namespace

void RegisterNormalization(Registry& registry) {
  registry.Register({"aten::layer_norm", Kind::kRewrite, LayerNorm});
  registry.Register({"aten::native_layer_norm", Kind::kRewrite, NativeLayerNorm});
  registry.Register({"aten::group_norm", Kind::kRewrite, GroupNorm});
  for (const char* name : {"aten::batch_norm", "aten::native_batch_norm"}) {
    Rule rule{name, Kind::kAffine, BatchNorm};
    rule.precondition = RequireEvaluation;
    registry.Register(rule);
  }
}

}  // namespace addend

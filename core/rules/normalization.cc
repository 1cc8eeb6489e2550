// Normalization layers.
//
// Note [Normalization in closed form]
// A layer norm is centre, square, mean, rsqrt and a product; each has a closed path rule, and together they are one
// map:
//   out = weight * (inverse * (c - mean c) + bend * met * mean(m * c))
// with m the middle of the centred value and reference, and bend = 2 * secant slope of rsqrt between both variances
// = -2 rx^2 rb^2 / (rx + rb), a form without cancellation. Content first (Note [Products] in kinds.h), inverse is the
// value's 1/std and met the centred reference; by half inverse is the mean of both 1/std and met is m. Where the
// normalizer is frozen, inverse is the value's 1/std and the second term is gone.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/for_loops.h"
#include "core/rules/kernels.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

struct Normalizer {
  at::Tensor middle;   // [groups, size], undefined where frozen
  at::Tensor met;      // [groups, size], undefined where frozen
  at::Tensor inverse;  // [groups, 1]
  at::Tensor bend;     // [groups, 1], undefined where frozen
  at::Tensor weight;   // [size] or undefined
  double terms = 0;    // see SetInnerTerms(), without the scale
  at::Tensor unread;   // the same where nobody read it yet, a number
};

// How a normalizer and what it normalizes share the move of their product.
enum class Sharing { kHalf, kContentFirst, kFrozen };

Sharing SharingOf(const Policy& policy) {
  if (policy.Freezes(kFreezeNormalizer)) return Sharing::kFrozen;
  return (policy.content_first & kFreezeNormalizer) != 0 ? Sharing::kContentFirst : Sharing::kHalf;
}

template <typename T>
void FillOnCpu(const at::Tensor& value, const at::Tensor& reference, double eps, Sharing sharing, Normalizer* n) {
  const auto options = value.options();
  const int64_t groups = value.size(0);
  n->inverse = at::empty({groups, 1}, options);
  NormalizerEnds<T> ends = {value.data_ptr<T>(), nullptr, groups, value.size(1), static_cast<T>(eps)};
  NormalizerCoefficients<T> found = {nullptr, nullptr, n->inverse.data_ptr<T>(), nullptr};
  if (sharing != Sharing::kFrozen) {
    ends.reference = reference.data_ptr<T>();
    n->middle = at::empty_like(value);
    n->met = sharing == Sharing::kHalf ? n->middle : at::empty_like(value);
    n->bend = at::empty({groups, 1}, options);
    found.middle = n->middle.data_ptr<T>();
    found.met = sharing == Sharing::kHalf ? nullptr : n->met.data_ptr<T>();
    found.bend = n->bend.data_ptr<T>();
  }
  n->terms = static_cast<double>(FindNormalizer(ends, found));
}

// One pass over the memory; false where it is not for that.
bool FillOnCpu(const RuleOperand& input, int64_t size, double eps, Sharing sharing, Normalizer* n) {
  const at::ScalarType dtype = input.value.scalar_type();
  const bool in_graph = c10::GradMode::is_enabled() && (input.value.requires_grad() || input.reference.requires_grad());
  if (!input.value.device().is_cpu() || in_graph || input.value.numel() == 0 || input.value.is_neg() ||
      input.reference.is_neg() || input.reference.scalar_type() != dtype) {
    return false;
  }
  const at::Tensor value = input.value.reshape({-1, size}).contiguous();
  const at::Tensor reference =
      sharing == Sharing::kFrozen ? at::Tensor() : input.reference.reshape({-1, size}).contiguous();
  if (dtype == at::kFloat) {
    FillOnCpu<float>(value, reference, eps, sharing, n);
  } else if (dtype == at::kDouble) {
    FillOnCpu<double>(value, reference, eps, sharing, n);
  } else {
    return false;
  }
  return true;
}

// The largest magnitude along a dimension, which stays; NaN and infinity count.
at::Tensor LargestOf(const at::Tensor& tensor, int64_t dim) {
  return at::linalg_vector_norm(tensor, std::numeric_limits<double>::infinity(), {dim}, /*keepdim=*/true);
}

Normalizer MakeNormalizer(const RuleOperand& input, int64_t size, double eps, Sharing sharing,
                          const at::Tensor& weight) {
  // Off the mean, and 1/std. LibTorch's own kernel finds the two numbers of each group at once.
  const auto ends_of = [&](const at::Tensor& t) -> std::pair<at::Tensor, at::Tensor> {
    const at::Tensor flat = t.reshape({-1, size});
    if (size > 0 && !IsFollowed(flat)) {
      const auto [normalized, mean, inverse] = at::native_layer_norm(flat.contiguous(), {size}, {}, {}, eps);
      return {flat - mean, inverse};
    }
    const at::Tensor centred = flat - flat.mean(-1, /*keepdim=*/true);
    return {centred, at::rsqrt(centred.square().mean(-1, true) + eps)};
  };
  Normalizer n;
  n.weight = weight.defined() ? weight.reshape({-1}).contiguous() : weight;
  if (FillOnCpu(input, size, eps, sharing, &n)) return n;
  const auto [x, rx] = ends_of(input.value);
  const auto largest = [&](const at::Tensor& t) { return LargestOf(t.reshape({-1, size}), 1); };
  const auto at_most = [&](const at::Tensor& terms) { n.unread = terms.max().to(at::kDouble); };
  n.inverse = rx;
  if (sharing == Sharing::kFrozen) return n;
  const auto [b, rb] = ends_of(input.reference);
  n.middle = at::lerp(b, x, 0.5).contiguous();
  const at::Tensor product = rx * rb;
  n.bend = (-2 * product * product / (rx + rb)).contiguous();
  const at::Tensor at_start = largest(input.reference);
  const at::Tensor both = largest(input.value) + at_start;
  if (sharing == Sharing::kContentFirst) {
    n.met = b.contiguous();
    if (both.numel() > 0) at_most(at::addcmul(at_start * rb, both, rx));
  } else {
    n.met = n.middle;
    n.inverse = ((rx + rb) / 2).contiguous();
    if (both.numel() > 0) at_most(both * n.inverse);
  }
  return n;
}

// Sets the largest terms that cancel where means are taken off: they are as large as the input over the deviation,
// however little is left.
void SetInnerTerms(const Normalizer& n, const RuleOperand& input, const at::Tensor& scale, RuleResult* result) {
  if (input.value.numel() == 0) return;
  const bool scaled = scale.defined() && scale.numel() > 0;
  if (n.unread.defined()) {
    result->unread_terms = scaled ? n.unread * LargestOf(scale.detach().reshape({-1}), 0) : n.unread;
    return;
  }
  const double terms = n.terms * (scaled ? LargestMagnitude(scale) : 1);
  result->inner_terms = std::isfinite(terms) ? terms : 0;
}

template <typename T>
at::Tensor ApplyOnCpu(const Normalizer& n, const at::Tensor& rows, bool transposed) {
  const at::Tensor input = rows.contiguous();
  at::Tensor output = at::empty_like(input);
  const int64_t groups = n.inverse.numel();
  const int64_t size = input.size(-1);
  const NormalizerView<T> view = {n.middle.defined() ? n.middle.data_ptr<T>() : nullptr,
                                  n.met.defined() ? n.met.data_ptr<T>() : nullptr,
                                  n.inverse.data_ptr<T>(),
                                  n.bend.defined() ? n.bend.data_ptr<T>() : nullptr,
                                  n.weight.defined() ? n.weight.data_ptr<T>() : nullptr,
                                  groups,
                                  size};
  NormalizeRows<T>(input.data_ptr<T>(), output.data_ptr<T>(), input.size(0), view, transposed);
  return output;
}

// rows: [R, groups, size]. Transposing moves the weight to the input and exchanges the two factors of the second term.
at::Tensor Apply(const Normalizer& n, const at::Tensor& rows, bool transposed) {
  if (rows.device().is_cpu() && rows.scalar_type() == n.inverse.scalar_type()) {
    if (rows.scalar_type() == at::kFloat) return ApplyOnCpu<float>(n, rows, transposed);
    if (rows.scalar_type() == at::kDouble) return ApplyOnCpu<double>(n, rows, transposed);
  }
  const at::Tensor c = transposed && n.weight.defined() ? rows * n.weight : rows;
  at::Tensor out = (c - c.mean(-1, true)) * n.inverse;
  if (n.middle.defined()) {
    const at::Tensor& along = transposed ? n.met : n.middle;
    const at::Tensor& pushes = transposed ? n.middle : n.met;
    out = out + n.bend * pushes * (along * c).mean(-1, true);
  }
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

// The map of a normalizer from the rows of the input, in groups of `size` adjacent elements; `scale`, where defined,
// multiplies the result (broadcast to it).
RuleResult LinearByGroups(const RuleCall& call, const Normalizer& n, int64_t size, const at::Tensor& scale = {}) {
  const at::DimVector sizes(call.Require("input").value.sizes());
  const int64_t groups = n.inverse.numel();
  return LinearIn(
      call, Kind::kRewrite, "input",
      [=](const at::Tensor& rows) {
        const at::Tensor out = Apply(n, rows.reshape({rows.size(0), groups, size}), false).view(rows.sizes());
        return scale.defined() ? out * scale : out;
      },
      [=](const at::Tensor& g) {
        const at::Tensor scaled = scale.defined() ? g * scale : g;
        return Apply(n, scaled.reshape({1, groups, size}), true).view(sizes);
      });
}

// Normalizes groups of `size` adjacent elements; `scale` as above.
RuleResult Normalize(const RuleCall& call, int64_t size, double eps, const at::Tensor& weight,
                     const at::Tensor& scale) {
  const Sharing sharing = SharingOf(*call.policy);
  const Normalizer n = MakeNormalizer(call.Require("input"), size, eps, sharing, weight);
  RuleResult result = LinearByGroups(call, n, size, scale);
  result.exact = sharing != Sharing::kFrozen;
  if (result.exact) SetInnerTerms(n, call.Require("input"), weight.defined() ? weight : scale, &result);
  return result;
}

at::Tensor ValueOrNone(const RuleCall& call, std::string_view argument) {
  const RuleOperand* operand = call.Find(argument);
  return operand == nullptr ? at::Tensor() : operand->value;
}

// How an input falls into groups that are normalized, and what shape scale and shift take to meet it.
struct Layout {
  at::DimVector sizes;
  int64_t groups = 0;
  int64_t size = 0;
  at::DimVector parameter;
  bool by_channel = false;  // a group is a channel of the whole batch, dimension 1

  // [R, *sizes] -> [R, groups, size]
  at::Tensor In(const at::Tensor& rows) const {
    const at::Tensor moved = by_channel ? rows.transpose(1, 2) : rows;
    return moved.reshape({rows.size(0), groups, size});
  }
  at::Tensor Out(const at::Tensor& grouped) const {
    at::DimVector all = WithRows(grouped.size(0), sizes);
    if (!by_channel) return grouped.reshape(all);
    std::swap(all[1], all[2]);
    return grouped.reshape(all).transpose(1, 2);
  }
  // Rows of a parameter, or one, where they meet rows of the input.
  at::Tensor Align(const at::Tensor& rows) const {
    at::DimVector all = WithRows(rows.size(0), parameter);
    return rows.reshape(all);
  }
  at::Tensor AlignOne(const at::Tensor& t) const { return t.reshape(parameter); }
};

Layout LayoutOf(const at::Tensor& input) {
  Layout layout;
  layout.sizes = at::DimVector(input.sizes());
  layout.parameter = at::DimVector(input.dim(), 1);
  return layout;
}

Layout ByTrailing(const at::Tensor& input, const std::vector<int64_t>& shape) {
  Layout layout = LayoutOf(input);
  layout.size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  layout.groups = layout.size == 0 ? 0 : input.numel() / layout.size;
  std::copy(shape.begin(), shape.end(), layout.parameter.end() - static_cast<int64_t>(shape.size()));
  return layout;
}

Layout ByGroups(const at::Tensor& input, int64_t groups) {
  Layout layout = LayoutOf(input);
  layout.groups = input.size(0) * groups;
  layout.size = layout.groups == 0 ? 0 : input.numel() / layout.groups;
  layout.parameter[1] = input.size(1);
  return layout;
}

Layout ByChannel(const at::Tensor& input) {
  Layout layout = LayoutOf(input);
  layout.by_channel = true;
  layout.groups = layout.parameter[1] = input.size(1);
  layout.size = input.numel() / layout.groups;
  return layout;
}

// scale * normalized + shift, any of which may move: a product of two and a sum. Rows, and cotangents, of outputs 1 and
// 2 are those of the mean and 1/std of each group.
struct ScaledNormalizer {
  Normalizer n;
  Layout layout;
  bool input_moves = false;
  bool scale_moves = false;
  bool shift_moves = false;
  at::Tensor factor;                      // what rows of the input meet; undefined: 1
  at::Tensor middle;                      // what rows of the scale meet
  std::vector<at::DimVector> statistics;  // sizes of outputs 1 and 2, where there are any
  std::vector<at::DimVector> sizes;       // of what moves
  at::TensorOptions options;

  Rows Forward(const Rows& rows) const {
    const int64_t count = rows[0].size(0);
    at::Tensor sum;
    const auto add = [&](const at::Tensor& part) { sum = sum.defined() ? sum + part : part; };
    Rows out(1);
    size_t next = 0;
    at::Tensor flat;
    if (input_moves) {
      flat = layout.In(rows[next++]);
      const at::Tensor moved = layout.Out(Apply(n, flat, false));
      add(factor.defined() ? moved * factor : moved);
    }
    if (scale_moves) add(layout.Align(rows[next++]) * middle);
    if (shift_moves) add(layout.Align(rows[next++]));
    at::DimVector all = WithRows(count, layout.sizes);
    out[0] = sum.expand(all);
    if (statistics.size() < 2) return out;
    const Rows own = input_moves ? Statistics(n, flat) : Rows(2, at::zeros({count, layout.groups}, options));
    for (size_t k = 0; k < 2; ++k) {
      at::DimVector shape = WithRows(count, statistics[k]);
      out.push_back(own[k].reshape(shape));
    }
    return out;
  }

  Rows Transpose(const Rows& g) const {
    Rows out;
    if (input_moves) out.push_back(TransposeToInput(g));
    for (size_t k = out.size(); k < sizes.size(); ++k) {
      const bool is_scale = scale_moves && k == (input_moves ? 1u : 0u);
      const at::Tensor own = !g[0].defined() ? at::zeros(sizes[k], options)
                                             : at::sum_to(is_scale ? g[0] * middle : g[0], layout.parameter);
      out.push_back(own.reshape(sizes[k]));
    }
    return out;
  }

  at::Tensor TransposeToInput(const Rows& g) const {
    at::Tensor sum;
    if (statistics.size() == 2) {
      sum =
          TransposedStatistics(n, g.size() > 1 ? g[1] : at::Tensor(), g.size() > 2 ? g[2] : at::Tensor(), layout.size);
    }
    if (g[0].defined()) {
      const at::Tensor met = factor.defined() ? g[0] * factor : g[0];
      const at::Tensor own = Apply(n, layout.In(met.unsqueeze(0)), true).squeeze(0);
      sum = sum.defined() ? sum + own : own;
    }
    return sum.defined() ? layout.Out(sum.unsqueeze(0)).squeeze(0) : at::zeros(layout.sizes, options);
  }
};

// Outputs 1 and 2, where there are any, are the mean and 1/std of each group.
RuleResult NormalizeAndScale(const RuleCall& call, const Layout& layout, double eps) {
  RuleResult result;
  result.kind = Kind::kRewrite;
  const RuleOperand& input = call.Require("input");
  if (input.value.numel() == 0) return result;
  const Sharing sharing = SharingOf(*call.policy);
  RuleOperand grouped = input;
  grouped.value = layout.In(input.value.unsqueeze(0)).squeeze(0);
  grouped.reference = layout.In(input.reference.unsqueeze(0)).squeeze(0);
  ScaledNormalizer map;
  map.n = MakeNormalizer(grouped, layout.size, eps, sharing, at::Tensor());
  map.layout = layout;
  map.options = map.n.inverse.options();
  map.input_moves = input.decomposed;
  map.scale_moves = call.Decomposed("weight");
  map.shift_moves = call.Decomposed("bias");
  const RuleOperand* scale = call.Find("weight");
  if (scale != nullptr) map.factor = layout.AlignOne(Middle(*scale));
  if (map.scale_moves) {
    const auto normalized = [&](const at::Tensor& t) {
      const at::Tensor centred = t - t.mean(-1, true);
      const at::Tensor out = centred * at::rsqrt(centred.square().mean(-1, true) + eps);
      return layout.Out(out.unsqueeze(0)).squeeze(0);
    };
    map.middle = (normalized(grouped.value) + normalized(grouped.reference)) / 2;
  }
  for (const char* argument : {"input", "weight", "bias"}) {
    if (!call.Decomposed(argument)) continue;
    result.inputs.push_back(call.OperandAt(argument));
    map.sizes.emplace_back(call.Require(argument).value.sizes());
  }
  if (result.inputs.empty()) return result;
  result.exact = sharing != Sharing::kFrozen;
  if (result.exact) {
    const at::Tensor largest = scale == nullptr ? at::Tensor() : scale->value.abs() + scale->reference.abs();
    SetInnerTerms(map.n, grouped, largest, &result);
  }
  for (size_t k = 1; k < 3 && k < call.outputs.size(); ++k) {
    const at::Tensor& own = call.outputs[k].value;
    if (own.numel() == layout.groups) map.statistics.emplace_back(own.sizes());
  }
  result.map = MakeMap(
      call, result.inputs, [map](const Rows& rows) { return map.Forward(rows); },
      [map](const Rows& g) { return map.Transpose(g); });
  return result;
}

bool ParametersMove(const RuleCall& call) {
  return call.Decomposed("weight") || call.Decomposed("bias") || !call.Decomposed("input");
}

// layer_norm(input, normalized_shape, weight, bias, eps); native_layer_norm has the same order.
RuleResult LayerNorm(const RuleCall& call) {
  const auto shape = call.Ints("normalized_shape");
  const double eps = call.Double("eps", 1e-5);
  if (ParametersMove(call)) {
    return NormalizeAndScale(call, ByTrailing(call.Require("input").value, shape), eps);
  }
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  RuleResult result = Normalize(call, size, eps, ValueOrNone(call, "weight"), at::Tensor());
  result.constant = ValueOrNone(call, "bias");
  return result;
}

// Linearizes a layer norm that gives the statistics of each group as outputs 1 and 2.
RuleResult NativeLayerNorm(const RuleCall& call) {
  const auto shape = call.Ints("normalized_shape");
  if (ParametersMove(call)) {
    return NormalizeAndScale(call, ByTrailing(call.Require("input").value, shape), call.Double("eps", 1e-5));
  }
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  const Sharing sharing = SharingOf(*call.policy);
  const Normalizer n =
      MakeNormalizer(call.Require("input"), size, call.Double("eps", 1e-5), sharing, ValueOrNone(call, "weight"));
  const at::DimVector sizes(call.Require("input").value.sizes());
  const at::DimVector statistics(call.outputs[1].value.sizes());
  const int64_t groups = n.inverse.numel();
  RuleResult result;
  result.kind = Kind::kRewrite;
  result.inputs = {call.OperandAt("input")};
  result.exact = sharing != Sharing::kFrozen;
  if (result.exact) SetInnerTerms(n, call.Require("input"), n.weight, &result);
  result.constant = ValueOrNone(call, "bias");
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
  const at::Tensor& input = call.Require("input").value;
  if (ParametersMove(call)) {
    return NormalizeAndScale(call, ByGroups(input, call.Int("num_groups", 1)), call.Double("eps", 1e-5));
  }
  const int64_t size = std::accumulate(input.sizes().begin() + 2, input.sizes().end(),
                                       input.size(1) / call.Int("num_groups", 1), std::multiplies<int64_t>());
  at::Tensor scale = ValueOrNone(call, "weight");
  at::DimVector shape(input.dim(), 1);
  shape[1] = -1;
  if (scale.defined()) scale = scale.view(shape);
  RuleResult result = Normalize(call, size, call.Double("eps", 1e-5), at::Tensor(), scale);
  if (const RuleOperand* bias = call.Find("bias")) result.constant = bias->value.view(shape);
  return result;
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
RuleResult NativeGroupNorm(const RuleCall& call) {
  return NormalizeAndScale(call, ByGroups(call.Require("input").value, call.Int("group", 1)), call.Double("eps", 1e-5));
}

// Coefficient of the rows of an argument; undefined: they are not read.
struct ChannelTerm {
  const char* argument;
  at::Tensor coefficient;
};

// The sum of terms with the input's sizes; those of other arguments have one number for each channel, which `shape`
// aligns.
RuleResult SumByChannel(const RuleCall& call, const std::vector<ChannelTerm>& terms, const at::DimVector& shape) {
  RuleResult result;
  result.kind = Kind::kRewrite;
  std::vector<at::Tensor> coefficients;
  std::vector<at::DimVector> aligned;
  std::vector<at::DimVector> own;
  for (const ChannelTerm& term : terms) {
    if (!call.Decomposed(term.argument) || !term.coefficient.defined()) continue;
    result.inputs.push_back(call.OperandAt(term.argument));
    coefficients.push_back(term.coefficient);
    const at::Tensor& value = call.Require(term.argument).value;
    own.emplace_back(value.sizes());
    aligned.emplace_back(call.At(term.argument) == 0 ? value.sizes() : value.view(shape).sizes());
  }
  if (result.inputs.empty()) return result;
  const at::DimVector sizes(call.Require("input").value.sizes());
  result.map = MakeMap(
      call, result.inputs,
      [=](const Rows& rows) -> Rows {
        at::DimVector all = WithRows(rows[0].size(0), sizes);
        at::Tensor sum;
        for (size_t k = 0; k < rows.size(); ++k) {
          at::DimVector met = WithRows(rows[k].size(0), aligned[k]);
          const at::Tensor part = rows[k].reshape(met) * coefficients[k];
          sum = sum.defined() ? sum + part : part;
        }
        return {sum.expand(all)};
      },
      [=](const Rows& g) -> Rows {
        Rows out;
        for (size_t k = 0; k < own.size(); ++k) {
          out.push_back(at::sum_to(g[0] * coefficients[k], aligned[k]).reshape(own[k]));
        }
        return out;
      });
  return result;
}

// scale * (x - mean) * 1/std + shift by channel, with statistics that do not depend on x but may move themselves.
RuleResult BatchNormInEvaluation(const RuleCall& call, double eps) {
  const at::Tensor& input = call.Require("input").value;
  at::DimVector shape(input.dim(), 1);
  shape[1] = -1;
  const RuleOperand& mean = call.Require("running_mean");
  const RuleOperand& variance = call.Require("running_var");
  const Sharing sharing = SharingOf(*call.policy);
  const bool frozen = sharing == Sharing::kFrozen && variance.decomposed;
  const at::Tensor inverse = at::rsqrt(variance.value + eps);
  const RuleOperand* scale = call.Find("weight");
  if (!ParametersMove(call) && !mean.decomposed && !variance.decomposed) {
    const at::Tensor factor = scale == nullptr ? inverse : inverse * scale->value;
    return Elementwise(call, Kind::kAffine, {{call.OperandAt("input"), factor.view(shape)}});
  }
  const at::Tensor inverse_reference = frozen ? inverse : at::rsqrt(variance.reference + eps);
  const at::Tensor one = at::ones_like(inverse);
  const at::Tensor scale_value = scale == nullptr ? one : scale->value;
  const at::Tensor scale_reference = scale == nullptr ? one : scale->reference;
  const at::Tensor scale_middle = (scale_value + scale_reference) / 2;
  // 1/std has this secant slope in the variance.
  const at::Tensor bend = -(inverse * inverse_reference).square() / (inverse + inverse_reference);
  // Tensors that rows of the factors meet: `factor` those of x - mean, `normalized` those of the scale, `met` those of
  // 1/std.
  at::Tensor factor;
  at::Tensor normalized;
  at::Tensor met;
  if (sharing == Sharing::kContentFirst && variance.decomposed) {
    const at::Tensor x = call.Require("input").value - mean.value.view(shape);
    met = call.Require("input").reference - mean.reference.view(shape);
    factor = (inverse * scale_middle).view(shape);
    normalized = (x * inverse.view(shape) + met * inverse_reference.view(shape)) / 2;
  } else {
    met = Middle(call.Require("input")) - Middle(mean).view(shape);
    factor = ((inverse * scale_value + inverse_reference * scale_reference) / 2).view(shape);
    normalized = met * ((inverse + inverse_reference) / 2).view(shape);
  }
  const std::vector<ChannelTerm> parts = {
      {"input", factor},
      {"weight", normalized},
      {"bias", at::ones_like(factor)},
      {"running_mean", -factor},
      {"running_var", frozen ? at::Tensor() : met * (scale_middle * bend).view(shape)}};
  RuleResult result = SumByChannel(call, parts, shape);
  result.exact = !frozen;
  return result;
}

RuleResult BatchNormOfBatch(const RuleCall& call, double eps) {
  const at::Tensor& input = call.Require("input").value;
  // A batch of nothing has no statistics.
  if (input.numel() == 0) {
    RuleResult nothing;
    nothing.kind = Kind::kAffine;
    return nothing;
  }
  return NormalizeAndScale(call, ByChannel(input), eps);
}

// A tensor with one element for each channel, against tensors [N, C, ...].
at::Tensor PerChannel(const at::Tensor& tensor, int64_t rank) {
  if (!tensor.defined()) return tensor;
  at::DimVector sizes(rank, 1);
  sizes[1] = tensor.numel();
  return tensor.view(sizes);
}

// instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled), written
// out: centre, square, mean, rsqrt and products.
std::vector<at::Tensor> InstanceNormInSteps(const RewriteCall& call) {
  const at::Tensor input = call.Tensor("input");
  const int64_t rank = input.dim();
  const double eps = call.Double("eps", 1e-5);
  at::Tensor result;
  if (call.Bool("use_input_stats", true)) {
    const at::Tensor flat = input.reshape({input.size(0) * input.size(1), -1});
    const at::Tensor centred = flat - flat.mean(-1, /*keepdim=*/true);
    result = (centred * at::rsqrt(at::square(centred).mean(-1, true) + eps)).view(input.sizes());
  } else {
    const at::Tensor inverse = at::rsqrt(PerChannel(call.Tensor("running_var"), rank) + eps);
    result = (input - PerChannel(call.Tensor("running_mean"), rank)) * inverse;
  }
  const at::Tensor weight = PerChannel(call.Tensor("weight"), rank);
  const at::Tensor bias = PerChannel(call.Tensor("bias"), rank);
  if (weight.defined()) result = result * weight;
  return {bias.defined() ? result + bias : result};
}

// Channels of single images that are normalized by their own statistics, with weights that do not move.
bool CoversInstanceNorm(const RewriteCall& call, const std::vector<bool>& moves) {
  const at::Tensor input = call.Tensor("input");
  if (!moves[0] || !call.Bool("use_input_stats", true) || !call.IsNone("running_mean") || !call.IsNone("running_var")) {
    return false;
  }
  for (const char* name : {"weight", "bias"}) {
    if (call.IsNone(name)) continue;
    if (moves[call.At(name)] || call.Tensor(name).scalar_type() != input.scalar_type()) return false;
  }
  return input.device().is_cpu() && input.layout() == at::kStrided && input.numel() > 0 &&
         (input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble);
}

// Gives a normalizer other slopes of square and rsqrt than secants. Derivatives at the value: 2 x and -r^3 / 2, with x
// the centred value and r its 1/std. Scaling, value over value: x and r^3. None: zero.
void TakeSlopes(Nonlinearity choice, const at::Tensor& value, double eps, Normalizer* n) {
  if (choice == Nonlinearity::kPath || !n->bend.defined()) return;
  const at::Tensor flat = value.reshape(n->middle.sizes());
  const at::Tensor x = flat - flat.mean(-1, /*keepdim=*/true);
  const at::Tensor r = at::rsqrt(x.square().mean(-1, true) + eps);
  n->middle = x.contiguous();
  switch (choice) {
    case Nonlinearity::kGradient:
      n->bend = -(r * r * r);
      break;
    case Nonlinearity::kScaling:
      n->bend = r * r * r;
      break;
    case Nonlinearity::kNone:
      n->bend = at::zeros_like(r);
      break;
    default:
      throw Internal("a normalization was recorded whole under another policy");
  }
}

// Linearizes calls that CoversInstanceNorm accepts as one operator. A weight multiplies whole groups, so that it joins
// their coefficients.
RuleResult InstanceNorm(const RuleCall& call) {
  const RuleOperand& input = call.Require("input");
  const int64_t channels = input.value.size(1);
  const int64_t groups = input.value.size(0) * channels;
  const at::Tensor scale = ValueOrNone(call, "weight");
  const Sharing sharing = SharingOf(*call.policy);
  const double eps = call.Double("eps", 1e-5);
  const int64_t size = input.value.numel() / groups;
  Normalizer n = MakeNormalizer(input, size, eps, sharing, /*weight=*/at::Tensor());
  TakeSlopes(call.policy->nonlinearity, input.value, eps, &n);
  if (scale.defined()) {
    const at::Tensor by_group = scale.expand({input.value.size(0), channels}).reshape({groups, 1});
    n.inverse = n.inverse * by_group;
    if (n.bend.defined()) n.bend = n.bend * by_group;
  }
  RuleResult result = LinearByGroups(call, n, size);
  result.exact = sharing != Sharing::kFrozen && call.policy->nonlinearity == Nonlinearity::kPath;
  if (sharing != Sharing::kFrozen) SetInnerTerms(n, input, scale, &result);
  return result;
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) and its native forms. Without
// running statistics, those of the batch are used in evaluation, too.
RuleResult BatchNorm(const RuleCall& call) {
  const double eps = call.Double("eps", 1e-5);
  const bool of_batch =
      call.Bool("training", false) || call.Find("running_mean") == nullptr || call.Find("running_var") == nullptr;
  return of_batch ? BatchNormOfBatch(call, eps) : BatchNormInEvaluation(call, eps);
}

}  // namespace

void RegisterNormalization(Registry& registry) {
  Rewrite instance_norm{"aten::instance_norm", InstanceNormInSteps, /*updates=*/{3, 4}};
  instance_norm.fused = FusedRule{Rule{"aten::instance_norm", Kind::kRewrite, InstanceNorm}, CoversInstanceNorm};
  registry.Register(instance_norm);
  registry.Register({"aten::layer_norm", Kind::kRewrite, LayerNorm});
  registry.Register({"aten::native_layer_norm", Kind::kRewrite, NativeLayerNorm});
  registry.Register({"aten::group_norm", Kind::kRewrite, GroupNorm});
  registry.Register(Rule{"aten::native_group_norm", Kind::kRewrite, NativeGroupNorm});
  registry.Register(Rule{"aten::batch_norm", Kind::kAffine, BatchNorm});
  registry.Register(Rule{"aten::native_batch_norm", Kind::kAffine, BatchNorm});
  registry.Register({"aten::_native_batch_norm_legit", Kind::kAffine, BatchNorm});
  registry.Register({"aten::_batch_norm_with_update", Kind::kAffine,
                     [](const RuleCall& c) { return BatchNormOfBatch(c, c.Double("eps", 1e-5)); }});
  registry.Register({"aten::_native_batch_norm_legit_no_training", Kind::kAffine,
                     [](const RuleCall& c) { return BatchNormInEvaluation(c, c.Double("eps", 1e-5)); }});
}

}  // namespace addend

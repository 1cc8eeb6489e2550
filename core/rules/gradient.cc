// Operators that compute gradients: what LibTorch calls where a model differentiates inside, as forces and the flow of
// a Hamiltonian do.
//
// Note [Gradients of elementwise functions]
// Each is the gradient that comes in times the derivative of the function, which is a function of its own: of what was
// saved. So the rule is that of a product whose second factor has the secant slope of any elementwise function. The
// derivative of a piecewise linear function is constant but for steps. A step has a secant slope too: its height goes
// to what moves across it, in proportion. Without that nothing of the forces of a network of relu had parts.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/diagonal_scatter.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/select_scatter.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/slice_scatter.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/rules/families.h"
#include "core/rules/joint.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"
#include "core/rules/steps.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

// ------------------------------------------------------------------------- gradients of elementwise functions

// How the derivative of an elementwise function runs.
enum class Shape {
  kSmooth,
  kPieces,  // linear between steps: hardswish
  kSteps,   // constant between steps: relu
};

// The derivative at both ends, found by the operator itself: its result for a gradient of one.
class Derivative {
 public:
  Derivative(const RuleCall& call, const char* saved, Shape shape) : one_(call) {
    const int gradient = call.OperandAt(call.First());
    saved_ = call.OperandAt(saved);
    const at::Tensor& output = call.outputs[0].value;
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> references;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      RuleOperand& operand = one_.operands[k];
      if (static_cast<int>(k) == gradient) {
        operand.value = operand.reference = at::ones(output.sizes(), output.options());
        operand.decomposed = false;
      }
      if (static_cast<int>(k) == saved_) {
        // Its slope is a factor of the output, whatever dtype was saved.
        operand.value = operand.value.to(output.scalar_type()).expand(output.sizes());
        operand.reference = operand.reference.to(output.scalar_type()).expand(output.sizes());
      }
      // The function's one argument.
      operand.argument = static_cast<int>(k) == saved_ ? 0 : 1;
      values.push_back(operand.value);
      references.push_back(operand.reference);
    }
    one_.outputs[0].value = call.run(call.arguments, values)[0];
    one_.outputs[0].finite = false;  // these are other numbers
    moves_ = saved_ >= 0 && call.operands[saved_].decomposed;
    one_.outputs[0].reference = moves_ ? call.run(call.arguments, references)[0] : one_.outputs[0].value;
    if (moves_ && shape == Shape::kSteps) rule_ = Steps(one_, saved_);
    if (moves_ && shape != Shape::kSteps) {
      rule_ = Pointwise(one_, shape == Shape::kSmooth ? Curve::kSmooth : Curve::kPiecewiseLinear);
    }
    if (!rule_.stand_ins.empty()) one_.outputs[0].reference = rule_.stand_ins[0];
  }

  int saved() const { return saved_; }
  const RuleResult& rule() const { return rule_; }
  // A factor of the product.
  RuleOperand Factor() const {
    RuleOperand factor;
    factor.value = one_.outputs[0].value;
    factor.reference = one_.outputs[0].reference;
    factor.decomposed = moves_;
    return factor;
  }
  // The slope of the output in what was saved.
  at::Tensor Slope() const {
    if (!rule_.map) return at::zeros({}, one_.outputs[0].value.options());
    const at::Tensor* slope = rule_.map->Scale();
    if (slope == nullptr) throw Unimplemented(absl::StrCat(one_.name, " whose arguments are of several dtypes"));
    return *slope;
  }

 private:
  RuleCall one_;
  int saved_ = -1;
  bool moves_ = false;
  RuleResult rule_;
};

// The gradient, which is the first argument, times a function of the argument `saved`.
RuleResult TimesDerivative(const RuleCall& call, const char* saved, Shape shape) {
  const int g = call.OperandAt(call.First());
  const RuleOperand& gradient = call.operands[g];
  const Derivative derivative(call, saved, shape);
  const RuleOperand factor = derivative.Factor();
  if (!factor.decomposed) return Elementwise(call, Kind::kLinear, {{g, factor.value}});
  const Meeting meeting = MeetByElement(*call.policy, gradient, factor);
  std::vector<Term> terms;
  if (meeting.first_moves) terms.push_back({g, meeting.second});
  terms.push_back({derivative.saved(), derivative.Slope() * meeting.first});
  const Kind kind = gradient.decomposed ? Kind::kRewrite : Kind::kPointwise;
  RuleResult result = Elementwise(call, kind, std::move(terms));
  const RuleResult& inner = derivative.rule();
  result.exact = inner.exact;
  if (inner.inner_terms > 0 && meeting.first.numel() > 0) {
    result.inner_terms = inner.inner_terms * ReadNumber(FiniteOrZero(meeting.first).abs().max());
  }
  if (!inner.stand_ins.empty()) {
    result.stand_ins = {gradient.reference * factor.reference};
  }
  if (inner.joint) {
    const int64_t rank = call.outputs[0].value.dim();
    result.joint = [=, joint = inner.joint, gradient_moves = meeting.first_moves](const Rows& rows) -> Rows {
      at::Tensor sum = joint({rows.back()})[0] * meeting.first;
      if (gradient_moves) sum = sum + RightAlign(rows[0], rank) * meeting.second;
      return {sum};
    };
  }
  return result;
}

Rule OfElementwise(const char* name, const char* saved, Shape shape) {
  return {name, Kind::kBilinear, [=](const RuleCall& call) { return TimesDerivative(call, saved, shape); }};
}

// rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result): in training a product
// with the slopes that were drawn.
RuleResult RandomReluBackward(const RuleCall& call) {
  RuleCall plain = call;
  const int noise = call.OperandAt("noise");
  if (noise >= 0) plain.operands[noise].decomposed = false;
  RuleResult result = TimesDerivative(plain, "self", Shape::kSteps);
  if (noise >= 0 && call.operands[noise].decomposed) result.exact = false;
  return result;
}

// `tensor` where `by` is positive, zero elsewhere: a step that moves with `by`.
at::Tensor WherePositive(const at::Tensor& tensor, const at::Tensor& by) {
  return at::threshold_backward(tensor, by, 0);
}

// silu_backward(grad_output, self): of x sigmoid(x). LibTorch does not differentiate this operator,
// mish_backward and logit_backward.
Tensors SiluBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor gate = at::sigmoid(x);
  return {call.Tensor("grad_output") * (gate * (1 + x * (1 - gate)))};
}

// mish_backward(grad_output, self): of x tanh(softplus(x)).
Tensors MishBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor gate = at::tanh(at::softplus(x));
  return {call.Tensor("grad_output") * (gate + x * at::sigmoid(x) * (1 - gate * gate))};
}

// logit_backward(grad_output, self, eps): of log(x / (1 - x)), for x kept within [eps, 1 - eps].
Tensors LogitBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor result = call.Tensor("grad_output") / (x * (1 - x));
  const bool bounded = !call.IsNone("eps");
  const double eps = bounded ? call.Double("eps", 0) : 0;
  at::Tensor outside;
  {
    const TracingPause pause;
    outside = x.lt(eps).logical_or(x.gt(1 - eps));
    if (!ReadFlag(outside.any())) return {result};
  }
  return {result.masked_fill(outside, bounded ? 0 : std::numeric_limits<double>::quiet_NaN())};
}

// glu_backward(grad_output, self, dim): of a sigmoid(b).
Tensors GluBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor x = call.Tensor("self");
  const int64_t dim = call.Int("dim", -1);
  const int64_t half = x.size(dim) / 2;
  const at::Tensor gate = at::sigmoid(x.narrow(dim, half, half));
  const at::Tensor passed = grad * gate;
  return {at::cat({passed, passed * (1 - gate) * x.narrow(dim, 0, half)}, dim)};
}

// prelu_backward(grad_output, self, weight), and _prelu_kernel_backward, whose weight has the rank of self.
Tensors ParametricReluBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor x = call.Tensor("self");
  const at::Tensor given = call.Tensor("weight");
  const bool kernel = call.name == "aten::_prelu_kernel_backward";
  at::Tensor weight = given;
  if (!kernel && weight.numel() > 1) {
    at::DimVector sizes(std::max<int64_t>(x.dim(), 1), 1);
    sizes[x.dim() > 1 ? 1 : 0] = weight.numel();
    weight = weight.reshape(sizes);
  } else if (!kernel) {
    weight = weight.reshape({});
  }
  const at::Tensor positive = WherePositive(grad, x);
  const at::Tensor negative = grad - positive;
  at::Tensor of_weight = negative * x;
  if (!kernel) {
    if (given.numel() == 1) {
      of_weight = of_weight.sum().reshape(given.sizes());
    } else {
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < x.dim(); ++d) {
        if (d != (x.dim() > 1 ? 1 : 0)) dims.push_back(d);
      }
      of_weight = dims.empty() ? of_weight : of_weight.sum(dims);
      of_weight = of_weight.reshape(given.sizes());
    }
  }
  return {positive + negative * weight, of_weight};
}

// --------------------------------------------------------------------------- softmax, normalizations, convolution

// _log_softmax_backward_data(grad_output, output, dim, input_dtype)
Tensors LogSoftmaxBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor sum = grad.sum(call.Int("dim", -1), /*keepdim=*/true);
  return {grad - call.Tensor("output").exp() * sum};
}

// True if the `output_mask` of a normalization's gradient asks for a result.
bool Asks(const RewriteCall& call, size_t result) {
  const c10::IValue& mask = call.Given("output_mask");
  if (!mask.isBoolList()) return true;
  return mask.toBoolList().get(result);
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
// output_mask)
Tensors BatchNormBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_out");
  const at::Tensor x = call.Tensor("input");
  at::DimVector sizes(x.dim(), 1);
  sizes[1] = x.size(1);
  std::vector<int64_t> others;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != 1) others.push_back(d);
  }
  if (call.Bool("train", true)) throw Unimplemented(call.name + " in training");
  const at::Tensor centred = x - call.Tensor("running_mean").reshape(sizes);
  const at::Tensor inverse = at::rsqrt(call.Tensor("running_var").reshape(sizes) + call.Double("eps", 1e-5));
  const at::Tensor normalized = centred * inverse;
  const at::Tensor weight = call.Tensor("weight");
  Tensors results(3);
  if (Asks(call, 0)) {
    const at::Tensor scaled = weight.defined() ? grad * weight.reshape(sizes) : grad;
    results[0] = scaled * inverse;
  }
  if (Asks(call, 1) && weight.defined()) results[1] = (grad * normalized).sum(others);
  if (Asks(call, 2) && weight.defined()) results[2] = grad.sum(others);
  return results;
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask): with n for the
// normalized input and g for the gradient by it, rstd (g - mean(g) - n mean(n g)).
Tensors LayerNormBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_out");
  const at::Tensor x = call.Tensor("input");
  const at::Tensor weight = call.Tensor("weight");
  const at::Tensor inverse = call.Tensor("rstd");
  const at::Tensor normalized = (x - call.Tensor("mean")) * inverse;
  std::vector<int64_t> own;
  std::vector<int64_t> others;
  const int64_t first = x.dim() - static_cast<int64_t>(call.Ints("normalized_shape").size());
  for (int64_t d = 0; d < x.dim(); ++d) (d < first ? others : own).push_back(d);
  const auto sum = [&](const at::Tensor& tensor) { return others.empty() ? tensor : tensor.sum(others); };
  Tensors results(3);
  if (Asks(call, 0)) {
    const at::Tensor g = weight.defined() ? grad * weight : grad;
    const at::Tensor along = (g * normalized).mean(own, /*keepdim=*/true);
    results[0] = (g - g.mean(own, /*keepdim=*/true) - normalized * along) * inverse;
  }
  if (Asks(call, 1) && weight.defined()) results[1] = sum(grad * normalized);
  if (Asks(call, 2) && call.Tensor("bias").defined()) results[2] = sum(grad);
  return results;
}

// One number for each dimension of space.
std::vector<int64_t> ForEachDim(const RewriteCall& call, const char* argument, int64_t spatial) {
  std::vector<int64_t> numbers = call.Ints(argument);
  if (numbers.size() == 1) numbers.assign(spatial, numbers[0]);
  return numbers;
}

// The gradient by the weight of one group of a convolution of `x` that gave results with the gradient `grad`: a
// convolution of x with grad, where samples are summed over as channels are, and steps of the window and of the
// result change places.
at::Tensor WeightGradient(const at::Tensor& x, const at::Tensor& grad, const std::vector<int64_t>& stride,
                          const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation,
                          at::IntArrayRef kernel) {
  const std::vector<int64_t> none(stride.size(), 0);
  at::Tensor product = at::convolution(x.transpose(0, 1), grad.transpose(0, 1), {}, dilation, padding, stride,
                                       /*transposed=*/false, none, 1);
  for (size_t d = 0; d < kernel.size(); ++d) product = product.narrow(static_cast<int64_t>(d) + 2, 0, kernel[d]);
  return product.transpose(0, 1);
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
Tensors ConvolutionBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("input");
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor weight = call.Tensor("weight");
  const int64_t spatial = weight.dim() - 2;
  if (x.dim() != weight.dim()) throw Unimplemented(call.name + " without a batch");
  const std::vector<int64_t> stride = ForEachDim(call, "stride", spatial);
  const std::vector<int64_t> padding = ForEachDim(call, "padding", spatial);
  const std::vector<int64_t> dilation = ForEachDim(call, "dilation", spatial);
  const bool transposed = call.Bool("transposed", false);
  const int64_t groups = call.Int("groups", 1);
  Tensors results(3);
  if (Asks(call, 0)) {
    std::vector<int64_t> rest(spatial, 0);  // what the windows did not reach
    for (int64_t d = 0; d < spatial && !transposed; ++d) {
      const int64_t window = dilation[d] * (weight.size(d + 2) - 1) + 1;
      rest[d] = x.size(d + 2) - ((grad.size(d + 2) - 1) * stride[d] - 2 * padding[d] + window);
    }
    results[0] = at::convolution(grad, weight, {}, stride, padding, dilation, !transposed, rest, groups);
  }
  if (Asks(call, 1)) {
    Tensors parts;
    for (int64_t k = 0; k < groups; ++k) {
      const int64_t in = x.size(1) / groups;
      const int64_t out = grad.size(1) / groups;
      const at::Tensor own = x.narrow(1, k * in, in);
      const at::Tensor own_grad = grad.narrow(1, k * out, out);
      parts.push_back(transposed ? WeightGradient(own_grad, own, stride, padding, dilation, weight.sizes().slice(2))
                                 : WeightGradient(own, own_grad, stride, padding, dilation, weight.sizes().slice(2)));
    }
    results[1] = groups == 1 ? parts[0] : at::cat(parts, 0);
  }
  if (Asks(call, 2)) {
    std::vector<int64_t> dims = {0};
    for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
    results[2] = grad.sum(dims);
  }
  return results;
}

// ------------------------------------------------------------------------------------------------ lookups, distances

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Tensors EmbeddingBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_output");
  const at::Tensor index = call.Tensor("indices").reshape({-1});
  at::Tensor rows = grad.reshape({index.numel(), grad.size(-1)});
  rows = rows.masked_fill(index.eq(call.Int("padding_idx", -1)).unsqueeze(1), 0);
  const int64_t count = call.Int("num_weights", 0);
  if (call.Bool("scale_grad_by_freq", false)) {
    const at::Tensor one = at::ones({index.numel()}, grad.options());
    const at::Tensor times = at::zeros({count}, grad.options()).index_add(0, index, one);
    rows = rows / times.index_select(0, index).unsqueeze(1);
  }
  return {at::zeros({count, grad.size(-1)}, grad.options()).index_add(0, index, rows)};
}

// A difference's part of its p-norm's gradient: sign(d) |d|^(p - 1).
at::Tensor PowerOf(const at::Tensor& difference, const at::Tensor& grad, double p) {
  if (p == 2) return difference * grad;
  if (p == 1) return WherePositive(grad, difference) - WherePositive(grad, difference.neg());
  return difference * difference.abs().pow(p - 2) * grad;
}

// _cdist_backward(grad, x1, x2, p, cdist), whose first argument is called "grad_output" since LibTorch 2.15
Tensors CrossDistancesBackward(const RewriteCall& call) {
  const double p = call.Double("p", 2);
  if (p < 1 || (p > 1 && p < 2) || !std::isfinite(p)) throw Unimplemented(absl::StrCat(call.name, " with p = ", p));
  const at::Tensor distance = call.Tensor("cdist");
  at::Tensor grad = call.Tensor(call.First());
  if (p != 1) grad = (grad / (p == 2 ? distance : distance.pow(p - 1))).masked_fill(distance.eq(0), 0);
  const at::Tensor difference = call.Tensor("x1").unsqueeze(-2) - call.Tensor("x2").unsqueeze(-3);
  return {PowerOf(difference, grad.unsqueeze(-1), p).sum(-2)};
}

// Gradients of views: zeros, and the gradient where the view lies.
at::Tensor ZerosFor(const RewriteCall& call) {
  return at::zeros(call.Ints("input_sizes"), call.Tensor("grad_output").options());
}
Tensors SliceBackward(const RewriteCall& call) {
  return {at::slice_scatter(ZerosFor(call), call.Tensor("grad_output"), call.Int("dim", 0), call.Int("start", 0),
                            call.Int("end", std::numeric_limits<int64_t>::max()), call.Int("step", 1))};
}
Tensors SelectBackward(const RewriteCall& call) {
  return {at::select_scatter(ZerosFor(call), call.Tensor("grad_output"), call.Int("dim", 0), call.Int("index", 0))};
}
Tensors DiagonalBackward(const RewriteCall& call) {
  return {at::diagonal_scatter(ZerosFor(call), call.Tensor("grad_output"), call.Int("offset", 0), call.Int("dim1", 0),
                               call.Int("dim2", 1))};
}

// unfold_backward(grad_in, input_sizes, dim, size, step): windows are in dimension `dim`, their elements last.
Tensors UnfoldBackward(const RewriteCall& call) {
  const at::Tensor grad = call.Tensor("grad_in");
  const std::vector<int64_t> sizes = call.Ints("input_sizes");
  const int64_t rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = (call.Int("dim", 0) + rank) % std::max<int64_t>(rank, 1);
  const int64_t size = call.Int("size", 1);
  const at::Tensor moved = grad.movedim(dim, -2).flatten(-2);  // [..., windows * size]
  const auto options = grad.options().dtype(at::kLong);
  const at::Tensor first = at::arange(grad.size(dim), options).unsqueeze(1) * call.Int("step", 1);
  const at::Tensor place = (first + at::arange(size, options)).reshape({-1});
  return {at::zeros(sizes, grad.options()).index_add(dim, place, moved.movedim(-1, dim))};
}

// ------------------------------------------------------------------------------------------------------------ losses

// The gradient of a loss, spread over its elements: at::Reduction, 1 mean.
at::Tensor SpreadGradient(const RewriteCall& call, const at::Tensor& like) {
  const at::Tensor grad = call.Tensor("grad_output");
  return call.Int("reduction", 1) == 1 ? grad / static_cast<double>(like.numel()) : grad;
}

Tensors SquaredErrorBackward(const RewriteCall& call) {
  const at::Tensor apart = call.Tensor("self") - call.Tensor("target");
  return {apart * SpreadGradient(call, apart) * 2};
}

Tensors SoftMarginBackward(const RewriteCall& call) {
  const at::Tensor target = call.Tensor("target");
  const at::Tensor x = call.Tensor("self");
  return {at::sigmoid((target * x).neg()) * target * SpreadGradient(call, x) * -1.0};
}

// The gradient of a squared error that goes on as a line where it is larger than `bend`.
Tensors BentErrorBackward(const RewriteCall& call, double bend, double scale) {
  const at::Tensor apart = call.Tensor("self") - call.Tensor("target");
  const at::Tensor slope = bend == 0 ? apart.sign() : apart.clamp(-bend, bend) * scale;
  return {slope * SpreadGradient(call, apart)};
}
// smooth_l1_loss_backward(grad_output, self, target, reduction, beta)
Tensors SmoothErrorBackward(const RewriteCall& call) {
  const double beta = call.Double("beta", 1);
  return BentErrorBackward(call, beta, 1 / beta);
}
// huber_loss_backward(grad_output, self, target, reduction, delta)
Tensors HuberBackward(const RewriteCall& call) { return BentErrorBackward(call, call.Double("delta", 1), 1); }

// binary_cross_entropy_backward(grad_output, self, target, weight, reduction)
Tensors BinaryCrossEntropyBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  at::Tensor grad = SpreadGradient(call, x);
  if (!call.IsNone("weight")) grad = grad * call.Tensor("weight");
  return {(x - call.Tensor("target")) / ((1 - x) * x).clamp_min(1e-12) * grad};
}

// nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
Tensors NegativeLikelihoodBackward(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor target = call.Tensor("target");
  const int64_t class_dim = x.dim() == 1 ? 0 : 1;
  const at::Tensor ignored = target.eq(call.Int("ignore_index", -100));
  const at::Tensor classes = target.masked_fill(ignored, 0);
  at::Tensor grad = call.Tensor("grad_output");
  if (call.Int("reduction", 1) == 1) grad = grad / call.Tensor("total_weight");
  grad = grad.expand(classes.sizes());
  if (!call.IsNone("weight")) {
    grad = grad * call.Tensor("weight").index_select(0, classes.reshape({-1})).reshape(classes.sizes());
  }
  grad = grad.neg().masked_fill(ignored, 0).unsqueeze(class_dim);
  return {at::zeros(x.sizes(), grad.options()).scatter_add(class_dim, classes.unsqueeze(class_dim), grad)};
}

// --------------------------------------------------------------------------------------- pooling, padding, resampling

// Linear in the gradient of what has `spatial` dimensions of space, [batch, channels, *spatial] or without a batch:
// rows and batch become one. Of `self` only the sizes are read; others are told them as "input_size".
RuleResult OfPlanes(const RuleCall& call, int64_t spatial) {
  const std::string gradient = call.First();
  if (!call.Decomposed(gradient)) return Opaque(call);
  const int g = call.OperandAt(gradient);
  const int sized = call.OperandAt("self");
  const int size = call.At("input_size");
  const bool batched = call.operands[g].value.dim() == spatial + 2;
  const at::DimVector output_sizes(call.outputs[0].value.sizes());
  std::vector<at::Tensor> operands;
  for (const RuleOperand& operand : call.operands) operands.push_back(operand.value);
  const auto forward = [=, run = call.run, given = call.arguments](const at::Tensor& rows) {
    std::vector<at::Tensor> inputs = operands;
    inputs[g] = (batched ? rows.flatten(0, 1) : rows).contiguous();
    at::DimVector sizes = output_sizes;
    if (batched) {
      sizes[0] = inputs[g].size(0);
    } else {
      sizes.insert(sizes.begin(), rows.size(0));
    }
    std::vector<c10::IValue> arguments = given;
    if (sized >= 0) {
      inputs[sized] = at::zeros({}, operands[sized].options()).expand(sizes);
    } else {
      arguments[size] = std::vector<int64_t>(sizes.begin(), sizes.end());
    }
    return run(arguments, inputs)[0].reshape(WithRows(rows.size(0), output_sizes));
  };
  return LinearIn(call, Kind::kLinear, gradient, forward);
}

}  // namespace

void RegisterGradient(Registry& registry) {
  registry.Register(OfElementwise("aten::tanh_backward", "output", Shape::kSmooth));
  registry.Register(OfElementwise("aten::sigmoid_backward", "output", Shape::kSmooth));
  registry.Register(OfElementwise("aten::softplus_backward", "self", Shape::kSmooth));
  registry.Register(OfElementwise("aten::gelu_backward", "self", Shape::kSmooth));
  registry.Register(OfElementwise("aten::elu_backward", "self_or_result", Shape::kSmooth));
  registry.Register(OfElementwise("aten::hardswish_backward", "self", Shape::kPieces));
  registry.Register(OfElementwise("aten::threshold_backward", "self", Shape::kSteps));
  registry.Register(OfElementwise("aten::leaky_relu_backward", "self", Shape::kSteps));
  registry.Register(OfElementwise("aten::hardtanh_backward", "self", Shape::kSteps));
  registry.Register(OfElementwise("aten::hardsigmoid_backward", "self", Shape::kSteps));
  registry.Register(OfElementwise("aten::softshrink_backward", "self", Shape::kSteps));
  registry.Register(OfElementwise("aten::hardshrink_backward", "self", Shape::kSteps));
  registry.Register({"aten::rrelu_with_noise_backward", Kind::kBilinear, RandomReluBackward});
  registry.Register(Rewrite{"aten::silu_backward", SiluBackward});
  registry.Register(Rewrite{"aten::mish_backward", MishBackward});
  registry.Register(Rewrite{"aten::logit_backward", LogitBackward});
  registry.Register(Rewrite{"aten::glu_backward", GluBackward});
  for (const char* name : {"aten::prelu_backward", "aten::_prelu_kernel_backward"}) {
    registry.Register(Rewrite{name, ParametricReluBackward});
  }

  registry.Register(Rewrite{"aten::_log_softmax_backward_data", LogSoftmaxBackward});
  registry.Register(Rewrite{"aten::native_batch_norm_backward", BatchNormBackward});
  registry.Register(Rewrite{"aten::native_layer_norm_backward", LayerNormBackward});
  registry.Register(Rewrite{"aten::convolution_backward", ConvolutionBackward});
  registry.Register(Rewrite{"aten::embedding_dense_backward", EmbeddingBackward});
  registry.Register(Rewrite{"aten::_cdist_backward", CrossDistancesBackward});
  registry.Register(Rewrite{"aten::unfold_backward", UnfoldBackward});
  registry.Register(Rewrite{"aten::slice_backward", SliceBackward});
  registry.Register(Rewrite{"aten::select_backward", SelectBackward});
  registry.Register(Rewrite{"aten::diagonal_backward", DiagonalBackward});

  registry.Register(Rewrite{"aten::mse_loss_backward", SquaredErrorBackward});
  registry.Register(Rewrite{"aten::smooth_l1_loss_backward", SmoothErrorBackward});
  registry.Register(Rewrite{"aten::huber_loss_backward", HuberBackward});
  registry.Register(Rewrite{"aten::soft_margin_loss_backward", SoftMarginBackward});
  registry.Register(Rewrite{"aten::binary_cross_entropy_backward", BinaryCrossEntropyBackward});
  for (const char* name : {"aten::nll_loss_backward", "aten::nll_loss2d_backward"}) {
    registry.Register(Rewrite{name, NegativeLikelihoodBackward});
  }

  struct Name {
    const char* name;
    int64_t spatial;
  };
  for (const auto& [name, spatial] : std::vector<Name>{{"aten::avg_pool2d_backward", 2},
                                                       {"aten::avg_pool3d_backward", 3},
                                                       {"aten::_adaptive_avg_pool2d_backward", 2},
                                                       {"aten::_adaptive_avg_pool3d_backward", 3},
                                                       {"aten::reflection_pad1d_backward", 1},
                                                       {"aten::reflection_pad2d_backward", 2},
                                                       {"aten::reflection_pad3d_backward", 3},
                                                       {"aten::replication_pad1d_backward", 1},
                                                       {"aten::replication_pad2d_backward", 2},
                                                       {"aten::replication_pad3d_backward", 3},
                                                       {"aten::upsample_nearest1d_backward", 1},
                                                       {"aten::upsample_nearest2d_backward", 2},
                                                       {"aten::upsample_nearest3d_backward", 3},
                                                       {"aten::_upsample_nearest_exact1d_backward", 1},
                                                       {"aten::_upsample_nearest_exact2d_backward", 2},
                                                       {"aten::_upsample_nearest_exact3d_backward", 3},
                                                       {"aten::upsample_linear1d_backward", 1},
                                                       {"aten::upsample_bilinear2d_backward", 2},
                                                       {"aten::upsample_bicubic2d_backward", 2},
                                                       {"aten::upsample_trilinear3d_backward", 3},
                                                       {"aten::_upsample_bilinear2d_aa_backward", 2},
                                                       {"aten::_upsample_bicubic2d_aa_backward", 2}}) {
    registry.Register({name, Kind::kLinear, [spatial = spatial](const RuleCall& c) { return OfPlanes(c, spatial); }});
  }
}

}  // namespace addend

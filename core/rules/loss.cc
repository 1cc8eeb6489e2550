// Losses, written as the operators that they consist of.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/soft_margin_loss.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/intercept/tracing_scope.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

// at::Reduction: 0 none, 1 mean, 2 sum.
at::Tensor Reduced(const at::Tensor& loss, int64_t reduction) {
  return reduction == 0 ? loss : (reduction == 1 ? loss.mean() : loss.sum());
}

Tensors SquaredError(const RewriteCall& call) {
  return {Reduced((call.Tensor("self") - call.Tensor("target")).square(), call.Int("reduction", 1))};
}

// d^2 / 2 up to |d| = beta, from there on straight: `scale` times (m^2 / 2 + beta (|d| - m)) with m = min(|d|, beta).
Tensors BentError(const RewriteCall& call, double beta, double scale) {
  const at::Tensor apart = (call.Tensor("self") - call.Tensor("target")).abs();
  if (beta == 0) return {Reduced(apart, call.Int("reduction", 1))};
  const at::Tensor near = apart.clamp_max(beta);
  return {Reduced(near.square() * (scale / 2) + (apart - near) * (beta * scale), call.Int("reduction", 1))};
}

// log(1 + exp(-y x)), rounded as LibTorch does it: small losses lose the digits that 1 + exp loses.
// Whether this LibTorch keeps losses that are nothing beside 1, as newer versions do.
bool SoftMarginKeepsSmallLosses() {
  static const bool keeps = [] {
    const TracingPause pause;
    return ReadNumber(at::soft_margin_loss(at::full({}, 40.0, at::kDouble), at::ones({}, at::kDouble))) > 0;
  }();
  return keeps;
}

Tensors SoftMargin(const RewriteCall& call) {
  const at::Tensor odds = (call.Tensor("self").neg() * call.Tensor("target")).exp();
  return {Reduced(SoftMarginKeepsSmallLosses() ? at::log1p(odds) : (odds + 1).log(), call.Int("reduction", 1))};
}

// LibTorch takes no logarithm for less than -100. The bound is put below the argument instead of the logarithm, where
// it keeps a reference of zero from having an infinite one; float32 cannot hold it.
at::Tensor BoundedLog(const at::Tensor& x) {
  return x.to(at::kDouble).clamp_min(std::exp(-100.0)).log().to(x.scalar_type());
}

Tensors BinaryCrossEntropy(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor target = call.Tensor("target");
  at::Tensor loss = ((target * BoundedLog(x)) + (1 - target) * BoundedLog(1 - x)).neg();
  if (!call.IsNone("weight")) loss = loss * call.Tensor("weight");
  return {Reduced(loss, call.Int("reduction", 1))};
}

Tensors BinaryCrossEntropyWithLogits(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor target = call.Tensor("target");
  at::Tensor surprise = at::log_sigmoid(x).neg();
  if (!call.IsNone("pos_weight")) surprise = surprise * ((call.Tensor("pos_weight") - 1) * target + 1);
  at::Tensor loss = (1 - target) * x + surprise;
  if (!call.IsNone("weight")) loss = loss * call.Tensor("weight");
  return {Reduced(loss, call.Int("reduction", 1))};
}

// Minus the entry of each target's class, weighted by class. `class_dim`: the dimension of classes.
Tensors NegativeLikelihood(const RewriteCall& call) {
  const at::Tensor x = call.Tensor("self");
  const at::Tensor target = call.Tensor("target");
  const int64_t reduction = call.Int("reduction", 1);
  const int64_t class_dim = x.dim() == 1 ? 0 : 1;
  const at::Tensor ignored = target.eq(call.Int("ignore_index", -100));
  const at::Tensor classes = target.masked_fill(ignored, 0);
  const at::Tensor taken = x.gather(class_dim, classes.unsqueeze(class_dim)).squeeze(class_dim);
  at::Tensor weight;
  if (call.IsNone("weight")) {
    weight = ignored.logical_not().to(x.scalar_type());
  } else {
    weight =
        call.Tensor("weight").index_select(0, classes.reshape({-1})).reshape(classes.sizes()).masked_fill(ignored, 0);
  }
  const at::Tensor loss = (taken.masked_fill(ignored, 0) * weight).neg();
  if (reduction == 0 && x.dim() > 1) return {loss, at::zeros({}, x.options())};
  const at::Tensor total = weight.sum();
  return {reduction == 1 ? loss.sum() / total : loss.sum(), total};
}

// max(0, margin - x[target] + x[j])^p for every other class j: multi_margin_loss(self, target, p, margin, weight,
// reduction).
Tensors MultiMargin(const RewriteCall& call) {
  at::Tensor x = call.Tensor("self");
  const bool batched = x.dim() == 2;
  if (!batched) x = x.reshape({1, -1});
  const at::Tensor target = call.Tensor("target").reshape({-1, 1});
  const int64_t classes = x.size(1);
  at::Tensor loss = (x - x.gather(1, target) + call.Double("margin", 1)).clamp_min(0);
  if (call.Double("p", 1) == 2) loss = loss.square();
  const at::Tensor is_target = at::arange(classes, target.options()).unsqueeze(0).eq(target);
  loss = loss.masked_fill(is_target, 0);
  if (!call.IsNone("weight")) loss = loss * call.Tensor("weight").index_select(0, target.reshape({-1})).unsqueeze(1);
  loss = loss.sum(1) / static_cast<double>(classes);
  const int64_t reduction = call.Int("reduction", 1);
  // Without reduction the shape is that of the target: one sample may have a target of shape [1] or [].
  return {reduction == 0 && call.Tensor("target").dim() == 0 ? loss.reshape({}) : Reduced(loss, reduction)};
}

// max(0, 1 - (x[target] - x[j])) for every target and every class that is none; targets end at the first -1.
Tensors MultilabelMargin(const RewriteCall& call) {
  at::Tensor x = call.Tensor("self");
  const at::Tensor given = call.Tensor("target");
  const bool batched = x.dim() == 2;
  if (!batched) x = x.reshape({1, -1});
  const at::Tensor target = given.reshape(x.sizes());
  const int64_t classes = x.size(1);
  const at::Tensor counts = target.lt(0).cumsum(1).eq(0);
  const at::Tensor safe = target.masked_fill(counts.logical_not(), 0);
  const at::Tensor is_target = at::zeros(x.sizes(), target.options()).scatter_add(1, safe, counts.to(at::kLong)).gt(0);
  at::Tensor loss = (1 - x.gather(1, safe).unsqueeze(2) + x.unsqueeze(1)).clamp_min(0);
  loss = loss.masked_fill(counts.logical_not().unsqueeze(2), 0).masked_fill(is_target.unsqueeze(1), 0);
  loss = loss.sum(at::IntArrayRef{1, 2}) / static_cast<double>(classes);
  const int64_t reduction = call.Int("reduction", 1);
  const at::Tensor result = reduction == 0 && !batched ? loss.reshape({}) : Reduced(loss, reduction);
  return {result, is_target.to(x.scalar_type()).reshape(given.sizes())};
}

// Note [Connectionist temporal classification]
// The loss is minus the logarithm of a sum over alignments of exp(sum of their entries of log_probs). Its derivative by
// an entry is minus the probability that the alignment passes there. LibTorch's own derivative adds exp(log_probs), for
// it takes for granted that those are the result of log_softmax, through which the addition vanishes; here it is taken
// off again. The derivative does not depend on a constant that is added to all classes of one time, and it is taken
// where they are normalized: exp of large log_probs would leave no digits of it. Each sample has one result, so that
// one backward pass gives all derivatives at one point of the line.
class CtcPath {
 public:
  explicit CtcPath(const RuleCall& call) : call_(call), operand_(call.OperandAt("log_probs")) {
    const RuleOperand& input = call.operands[operand_];
    const std::vector<int64_t> listed = call.Ints("input_lengths");
    const at::Tensor lengths = call.Find("input_lengths") != nullptr
                                   ? call.Find("input_lengths")->value.to(input.value.device(), at::kLong)
                                   : at::tensor(listed, at::kLong).to(input.value.device());
    const at::Tensor time = at::arange(input.value.size(0), lengths.options());
    outside_ = time.unsqueeze(1).ge(lengths.unsqueeze(0)).unsqueeze(2);
    move_ = call.Move(operand_);
  }

  at::Tensor Derivative(double t) const {
    c10::InferenceMode no_inference(false);
    c10::AutoGradMode grad(true);
    std::vector<at::Tensor> operands;
    for (const RuleOperand& o : call_.operands) operands.push_back(o.value.is_inference() ? o.value.clone() : o.value);
    const at::Tensor point = (call_.operands[operand_].reference + move_ * t).detach();
    const at::Tensor leaf = at::log_softmax(point, 2).detach().set_requires_grad(true);
    operands[operand_] = leaf;
    const at::Tensor loss = call_.run(call_.arguments, operands)[0];
    const at::Tensor own = torch::autograd::grad({loss}, {leaf}, {at::ones_like(loss)})[0];
    // A sample without alignment is infinite, or zero where that is asked for: nothing passes.
    const at::Tensor hopeless = own.eq(0).all(2).all(0).logical_or(at::isfinite(loss.detach()).logical_not());
    return (own - leaf.detach().exp()).masked_fill(outside_, 0).masked_fill(hopeless.view({1, -1, 1}), 0);
  }

  // The mean derivative by Gauss-Legendre in `pieces` pieces.
  at::Tensor Mean(int pieces) const {
    const Quadrature rule = GaussLegendre(8);
    at::Tensor sum = at::zeros_like(move_);
    for (int p = 0; p < pieces; ++p) {
      for (size_t k = 0; k < rule.nodes.size(); ++k) {
        sum += Derivative((p + rule.nodes[k]) / pieces) * (rule.weights[k] / pieces);
      }
    }
    return sum;
  }

  // The error of the mean derivative, relative to the largest loss.
  double Missed(const at::Tensor& mean) const {
    const RuleOutput& output = call_.outputs[0];
    const at::Tensor rise = output.value - output.reference;
    const at::Tensor missed = (rise - (mean * move_).sum(2).sum(0)).abs();
    const at::Tensor counted = at::isfinite(missed);
    const double size =
        ReadNumber((output.value.abs() + output.reference.abs()).masked_fill(counted.logical_not(), 0).max());
    const double worst = ReadNumber(missed.masked_fill(counted.logical_not(), 0).max());
    return size > 0 ? worst / size : worst;
  }

 private:
  const RuleCall& call_;
  int operand_;
  at::Tensor outside_;  // [T, N, 1]: behind the end of a sample
  at::Tensor move_;
};

// _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
RuleResult CtcLoss(const RuleCall& call) {
  const CtcPath path(call);
  const double enough = call.outputs[0].value.scalar_type() == at::kDouble ? 1e-12 : 1e-6;
  at::Tensor mean;
  double missed = 0;
  for (int pieces = 1; pieces <= 32; pieces *= 2) {
    mean = path.Mean(pieces);
    missed = path.Missed(mean);
    if (missed <= enough) break;
  }
  RuleResult result = LinearIn(
      call, Kind::kPath, "log_probs", [mean](const at::Tensor& rows) { return (rows * mean).sum(3).sum(1); },
      [mean](const at::Tensor& g) {
        return mean * g.view({1, -1, 1});
      });
  result.exact = false;
  result.quadrature = std::max(missed, enough);
  return result;
}

}  // namespace

void RegisterLoss(Registry& registry) {
  registry.Register(Rewrite{"aten::mse_loss", SquaredError});
  registry.Register(Rewrite{"aten::smooth_l1_loss", [](const RewriteCall& c) {
                              const double beta = c.Double("beta", 1);
                              return BentError(c, beta, beta == 0 ? 1 : 1 / beta);
                            }});
  registry.Register(
      Rewrite{"aten::huber_loss", [](const RewriteCall& c) { return BentError(c, c.Double("delta", 1), 1); }});
  registry.Register(Rewrite{"aten::soft_margin_loss", SoftMargin});
  registry.Register(Rewrite{"aten::binary_cross_entropy", BinaryCrossEntropy});
  registry.Register(Rewrite{"aten::binary_cross_entropy_with_logits", BinaryCrossEntropyWithLogits});
  for (const char* name : {"aten::nll_loss_forward", "aten::nll_loss2d_forward"}) {
    registry.Register(Rewrite{name, NegativeLikelihood});
  }
  registry.Register(Rule{"aten::_ctc_loss", Kind::kPath, CtcLoss}.Carries(1));
  registry.Register(Rewrite{"aten::multi_margin_loss", MultiMargin});
  registry.Register(Rewrite{"aten::multilabel_margin_loss_forward", MultilabelMargin});
}

}  // namespace addend

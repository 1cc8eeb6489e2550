#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/intervals.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"

namespace addend {
namespace {

// Points that are evaluated at once, and in one round of halvings.
constexpr int64_t kPointsAtOnce = int64_t{1} << 18;
constexpr int64_t kMostPoints = int64_t{1} << 24;

class ElementwisePath {
 public:
  explicit ElementwisePath(const RuleCall& call)
      : call_(call), output_(call.outputs[0].value), tolerance_(QuadratureTolerance(output_)) {
    if (!output_.is_floating_point()) throw Unimplemented(absl::StrCat(NameOf(call), " with complex numbers"));
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const RuleOperand& operand = call.operands[k];
      // The buffer of an out= form is not read; its size is that of an earlier result, or none.
      const bool only_written = operand.written && operand.value.defined() && operand.value.sizes() != output_.sizes();
      const bool read = operand.value.defined() && !only_written;
      if (read && operand.decomposed && operand.value.is_floating_point()) inputs_.push_back(static_cast<int>(k));
      flat_.push_back(read ? Savable(Flat(operand.value)) : operand.value);
      references_.push_back(read && operand.decomposed ? Savable(Flat(operand.reference)) : flat_.back());
      moves_.push_back(read && operand.decomposed ? Flat(call.Move(static_cast<int>(k))) : at::Tensor());
      read_.push_back(read);
    }
  }

  RuleResult Build() {
    c10::InferenceMode no_inference(false);
    value_ = output_.reshape({-1});
    reference_ = call_.outputs[0].reference.reshape({-1});
    counted_ = at::isfinite(value_);
    broken_ = at::isfinite(reference_).logical_not_().logical_and_(counted_);
    peaks_ = at::zeros_like(value_);
    for (size_t j = 0; j < inputs_.size(); ++j) sums_.push_back(at::zeros_like(value_));
    const at::Tensor all = counted_.logical_and(broken_.logical_not()).nonzero().squeeze(1);
    differentiable_ = true;
    if (all.numel() > 0) Integrate(all);
    if (!differentiable_) return Opaque(call_);
    LinearizeBroken();
    return Finish();
  }

 private:
  // Intervals side by side, one entry for each: the element that it belongs to, its ends, what is known.
  struct Intervals {
    at::Tensor element, from, to;
    Found found;

    int64_t size() const { return element.numel(); }
    Intervals Where(const at::Tensor& mask) const {
      const at::Tensor at = mask.nonzero().squeeze(1);
      const auto some = [&](const at::Tensor& t) { return t.index_select(-1, at); };
      return {some(element), some(from), some(to), {some(found.errors), some(found.shared), some(found.ends)}};
    }
    Intervals Part(int64_t start, int64_t length) const {
      const auto part = [&](const at::Tensor& t) { return t.narrow(-1, start, length); };
      return {part(element), part(from), part(to), {part(found.errors), part(found.shared), part(found.ends)}};
    }
    static Intervals Join(const std::vector<Intervals>& all) {
      const auto join = [&](const auto& member) {
        std::vector<at::Tensor> parts;
        for (const Intervals& part : all) parts.push_back(member(part));
        return at::cat(parts, -1);
      };
      return {join([](const Intervals& i) { return i.element; }),
              join([](const Intervals& i) { return i.from; }),
              join([](const Intervals& i) { return i.to; }),
              {join([](const Intervals& i) { return i.found.errors; }),
               join([](const Intervals& i) { return i.found.shared; }),
               join([](const Intervals& i) { return i.found.ends; })}};
    }
    // Both halves of each, next to each other.
    Intervals Halves() const {
      const at::Tensor middle = (from + to) / 2;
      const auto beside = [](const at::Tensor& a, const at::Tensor& b) { return at::stack({a, b}, 1).reshape({-1}); };
      const at::Tensor errors = at::stack({found.errors, found.errors}, 2).reshape({found.errors.size(0), -1});
      return {beside(element, element),
              beside(from, middle),
              beside(middle, to),
              {errors, beside(found.shared, found.shared), beside(found.ends, found.ends)}};
    }
  };

  struct Evaluated {
    at::Tensor f;      // [points, intervals]
    Rows derivatives;  // by input: the same; undefined: zeros
  };

  at::Tensor Flat(const at::Tensor& t) const { return t.expand(output_.sizes()).reshape({-1}); }

  // The function at several points of the lines of some elements; t: [points, elements].
  Evaluated Evaluate(const at::Tensor& element, const at::Tensor& t) {
    c10::AutoGradMode grad(true);
    std::vector<at::Tensor> point = flat_;
    for (size_t k = 0; k < point.size(); ++k) {
      if (!read_[k]) continue;
      at::Tensor own = flat_[k].index_select(0, element).unsqueeze(0).expand(t.sizes());
      if (moves_[k].defined()) {
        const at::Tensor line =
            references_[k].index_select(0, element) + moves_[k].index_select(0, element) * t.to(own.scalar_type());
        own = at::where(t.eq(1), own, line);
      }
      point[k] = own.contiguous().detach();
    }
    std::vector<at::Tensor> leaves;
    for (const int k : inputs_) leaves.push_back(point[k].set_requires_grad(true));
    const at::Tensor y = call_.run(call_.arguments, point)[0];
    if (y.sizes() != t.sizes()) {
      throw Unimplemented(absl::StrCat(NameOf(call_), " with these arguments is not elementwise"));
    }
    Evaluated out;
    out.f = y.detach().to(value_.scalar_type());
    out.derivatives.resize(inputs_.size());
    differentiable_ = Differentiable(y);
    if (!differentiable_) return out;
    const auto gradients =
        torch::autograd::grad({y}, leaves, {at::ones_like(y)}, {}, /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t j = 0; j < gradients.size(); ++j) {
      if (gradients[j].defined()) out.derivatives[j] = gradients[j].detach().to(value_.scalar_type());
    }
    return out;
  }

  // Every interval is measured with `count` nodes. Returns those that are to be halved; the others are added up.
  // `halved`: they are pairs of halves. `last`: none is halved again.
  Intervals Round(const Intervals& intervals, int count, bool halved, bool last) {
    std::vector<Intervals> pending;
    const int64_t length = std::max<int64_t>(1, kPointsAtOnce / (count + 2) / 2) * 2;
    for (int64_t start = 0; start < intervals.size(); start += length) {
      const int64_t rest = std::min(length, intervals.size() - start);
      pending.push_back(RoundOfPart(intervals.Part(start, rest), count, halved, last));
      if (!differentiable_) return intervals;
    }
    return Intervals::Join(pending);
  }

  Intervals RoundOfPart(Intervals own, int count, bool halved, bool last) {
    const Quadrature rule = GaussLegendre(count);
    std::vector<double> nodes = rule.nodes;
    nodes.push_back(0);
    nodes.push_back(1);
    const at::Tensor length = own.to - own.from;
    const at::Tensor t = own.from + length * at::tensor(nodes, own.from.options()).unsqueeze(1);
    t.select(0, count + 1).copy_(own.to);  // exactly
    const Evaluated at_nodes = Evaluate(own.element, t);
    if (!differentiable_) return own;
    const at::Tensor weights = at::tensor(rule.weights, value_.options()).unsqueeze(1);
    const at::Tensor scaled = length.to(value_.scalar_type());
    at::Tensor passed = at::zeros_like(scaled);
    at::Tensor reach = at::zeros_like(scaled);
    Rows integrals(inputs_.size());
    for (size_t j = 0; j < inputs_.size(); ++j) {
      if (!at_nodes.derivatives[j].defined()) continue;
      integrals[j] = (at_nodes.derivatives[j].narrow(0, 0, count) * weights).sum(0) * scaled;
      const at::Tensor move = moves_[inputs_[j]].index_select(0, own.element).to(value_.scalar_type());
      passed = passed + integrals[j] * move;
      reach = reach + (integrals[j] * move).abs();
    }
    const at::Tensor f_from = at_nodes.f.select(0, count);
    const at::Tensor f_to = at_nodes.f.select(0, count + 1);
    const at::Tensor rise = MoveOf(f_to, f_from);
    const at::Tensor error = NanIsInfinite((rise - passed).abs());
    const at::Tensor finite = FiniteOrZero(at_nodes.f).abs();
    const at::Tensor ends = at::maximum(finite.select(0, count), finite.select(0, count + 1));
    if (halved) {
      const at::Tensor least = error.view({-1, 2}).amin(1, true).expand({error.numel() / 2, 2}).reshape({-1});
      own.found = Found::OfHalf(own.found, error, least, ends);
    } else {
      own.found = Found::First(error, ends);
      const at::Tensor seen = at::maximum(peaks_.index_select(0, own.element), finite.amax(0));
      peaks_.index_copy_(0, own.element, seen);
    }
    // Small elements are judged by their own size, though not below what the largest ones lose anyway.
    const at::Tensor size =
        value_.index_select(0, own.element).abs() + FiniteOrZero(f_from).abs() + FiniteOrZero(reach);
    largest_ = std::max(largest_, Largest(size));
    const Verdict verdict =
        Judge(own.found, peaks_.index_select(0, own.element), size + 1e-9 * largest_, tolerance_, last);
    const at::Tensor is_broken = verdict.pole.logical_or(at::isfinite(at_nodes.f).logical_not_().any(0));
    broken_.index_fill_(0, own.element.index_select(0, is_broken.nonzero().squeeze(1)), true);
    const at::Tensor settled = verdict.halve.logical_or(is_broken).logical_not_().nonzero().squeeze(1);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      if (!integrals[j].defined()) continue;
      sums_[j].index_add_(0, own.element.index_select(0, settled), integrals[j].index_select(0, settled));
    }
    return own.Where(verdict.halve.logical_and(is_broken.logical_not()));
  }

  // See Note [Adaptive nodes].
  void Integrate(const at::Tensor& elements) {
    const at::Tensor from = at::zeros(elements.sizes(), value_.options().dtype(at::kDouble));
    const at::Tensor none = at::zeros(elements.sizes(), value_.options());
    Intervals intervals{elements, from, from + 1, Found::First(none, none)};
    // Most functions need no cut: they are tried with more nodes first.
    for (const int count : {8, 20}) {
      intervals = Round(intervals, count, /*halved=*/false, /*last=*/false);
      if (!differentiable_ || intervals.size() == 0) return;
    }
    constexpr int kNodes = 12;
    int64_t points = 0;
    for (int halvings = 1; intervals.size() > 0; ++halvings) {
      const Intervals halves = intervals.Where(broken_.index_select(0, intervals.element).logical_not_()).Halves();
      if (halves.size() == 0) break;
      points += halves.size() * (kNodes + 2);
      intervals = Round(halves, kNodes, /*halved=*/true, halvings >= kMostHalvings || points > kMostPoints);
    }
  }

  void LinearizeBroken() {
    const at::Tensor elements = broken_.nonzero().squeeze(1);
    if (elements.numel() == 0) return;
    const at::Tensor t = at::full({1, elements.numel()}, 1.0, value_.options().dtype(at::kDouble));
    const Evaluated tangent = Evaluate(elements, t);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const at::Tensor slope = tangent.derivatives[j].defined() ? tangent.derivatives[j].select(0, 0)
                                                                : at::zeros({elements.numel()}, value_.options());
      sums_[j].index_copy_(0, elements, FiniteOrZero(slope));
    }
  }

  RuleResult Finish() {
    std::vector<Term> terms;
    at::Tensor passed = at::zeros_like(value_);
    for (size_t j = 0; j < inputs_.size(); ++j) {
      // An infinite derivative times a row of zero is NaN, so nothing passes there.
      sums_[j] = FiniteOrZero(sums_[j]).masked_fill_(counted_.logical_not(), 0);
      passed = passed + sums_[j] * FiniteOrZero(moves_[inputs_[j]]).to(value_.scalar_type());
      terms.push_back({inputs_[j], sums_[j].view(output_.sizes())});
    }
    RuleResult result = Elementwise(call_, Kind::kPath, std::move(terms));
    at::Tensor reference = reference_;
    if (Any(broken_)) {
      reference = at::where(broken_, value_ - passed, reference_);
      result.stand_ins = {reference.view(output_.sizes())};
    }
    const at::Tensor rise =
        (value_ - reference).masked_fill_(value_.eq(reference).logical_or_(counted_.logical_not()), 0);
    const double error = Largest((rise - passed).abs());
    const double scale =
        std::max({Largest(FiniteOrZero(value_).abs()), Largest(FiniteOrZero(reference).abs()), Largest(passed.abs())});
    result.exact = false;
    result.quadrature = std::max(tolerance_, scale > 0 ? error / scale : error);
    return result;
  }

  const RuleCall& call_;
  const at::Tensor& output_;
  const double tolerance_;
  std::vector<int> inputs_;  // operands that are decomposed
  // Tensors by operand, expanded to the output and flattened; those that are not read stay as they are.
  std::vector<at::Tensor> flat_, references_, moves_;
  std::vector<bool> read_;
  at::Tensor value_, reference_;  // of the output, flattened
  at::Tensor counted_, broken_;   // by element: the value is finite; linearized at the value
  at::Tensor peaks_;              // by element: the largest magnitude seen on the line
  Rows sums_;                     // by input: the mean derivative of each element
  double largest_ = 0;
  bool differentiable_ = true;
};

}  // namespace

RuleResult PathElementwise(const RuleCall& call) { return ElementwisePath(call).Build(); }

}  // namespace addend

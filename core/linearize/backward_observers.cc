#include "core/linearize/backward_observers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/host_read.h"
#include "core/linearize/row_sums.h"

namespace addend {
namespace {

double TermsOf(const TargetProducts& products, const at::Tensor& cotangents, const Operand& operand) {
  return ReadNumber(MagnitudeOfEach(RealProduct(cotangents, products.Move(operand))).sum());
}

}  // namespace

void RelevanceObserver::AfterNode(const TargetProducts& products, const BackwardStep& step) {
  const Call& call = products.CallOf(step.node);
  bool first = true;
  std::vector<NodeRelevance> own;
  for (size_t k = 0; k < step.behind.size(); ++k) {
    if (!step.behind[k].defined()) continue;
    NodeRelevance relevance;
    relevance.call = step.node.call;
    relevance.output = static_cast<int>(k);
    relevance.passed = products.OfMove(step.behind[k], call.outputs[k]);
    relevance.leftover = first && step.left.defined() ? step.left : products.Zeros();
    first = false;
    own.push_back(std::move(relevance));
  }
  for (auto one = own.rbegin(); one != own.rend(); ++one) nodes_.push_back(std::move(*one));
}

std::vector<NodeRelevance> RelevanceObserver::Take() {
  std::reverse(nodes_.begin(), nodes_.end());
  return std::move(nodes_);
}

void GrowthObserver::AfterSeed(const TargetProducts& products, const at::Tensor& cotangents, const Operand& operand) {
  terms_met_ += TermsOf(products, cotangents, operand);
}

void GrowthObserver::AfterNode(const TargetProducts& products, const BackwardStep& step) {
  const Call& call = products.CallOf(step.node);
  const double before = terms_met_;
  for (size_t k = 0; k < step.behind.size(); ++k) {
    if (step.behind[k].defined()) terms_met_ -= TermsOf(products, step.behind[k], call.outputs[k]);
  }
  terms_met_ = std::max(terms_met_, 0.0);
  for (size_t j = 0; j < step.back.size(); ++j) {
    terms_met_ += TermsOf(products, step.back[j], call.operands[step.node.inputs[j]]);
  }
  const double factor = before > 0 ? terms_met_ / before : 1;
  if (factor > growth_.factor) growth_ = {step.node.call, factor};
}

void TermsObserver::AfterNode(const TargetProducts& products, const BackwardStep& step) {
  const Call& call = products.CallOf(step.node);
  at::Tensor terms = products.Zeros();
  const auto add = [&](const at::Tensor& g, const Operand& operand) {
    at::Tensor size = products.Value(operand).abs() + products.Reference(operand).abs() + step.node.inner_terms;
    size = size.masked_fill(at::isfinite(size).logical_not_(), 0);
    terms += SumOfEach(products.OfLeftover(g).abs() * size);
  };
  for (size_t k = 0; k < step.behind.size(); ++k) {
    if (step.behind[k].defined()) add(step.behind[k], call.outputs[k]);
  }
  for (size_t j = 0; j < step.back.size(); ++j) add(step.back[j], call.operands[step.node.inputs[j]]);
  largest_terms_ = largest_terms_.defined() ? largest_terms_.maximum(terms) : terms;
  at::Tensor apart = products.OfOutputs(step.node, step.behind) - products.OfInputs(step.node, step.back);
  if (step.left.defined()) apart = apart - step.left;
  const double error = ReadNumber((apart.abs() / terms.clamp_min(std::numeric_limits<double>::min())).max());
  if (worst_ && !std::isnan(error) && error <= worst_->recovery_error) return;
  if (worst_ && std::isnan(worst_->recovery_error) && !std::isnan(error)) return;
  worst_.emplace();
  worst_->call = step.node.call;
  worst_->kind = step.node.kind;
  worst_->recovery_error = error;
  worst_->recovered = false;
}

}  // namespace addend

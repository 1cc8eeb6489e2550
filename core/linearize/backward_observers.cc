#include "core/linearize/backward_observers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/host_read.h"
#include "core/run/row_sums.h"

namespace addend {
namespace {

// The terms of all targets together, a number of one element.
at::Tensor TermsOf(const TargetProducts& products, const at::Tensor& cotangents, const Operand& operand) {
  return MagnitudeOfEach(RealProduct(cotangents, products.Move(operand))).sum();
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
  std::vector<at::Tensor> rows;
  for (const NodeRelevance& node : nodes_) rows.insert(rows.end(), {node.passed, node.leftover});
  if (rows.empty()) return {};
  const std::vector<at::Tensor> read = ReadNumbers(at::stack(rows)).unbind();
  for (size_t k = 0; k < nodes_.size(); ++k) {
    nodes_[k].passed = read[2 * k];
    nodes_[k].leftover = read[2 * k + 1];
  }
  return std::move(nodes_);
}

void GrowthObserver::AfterSeed(const TargetProducts& products, const at::Tensor& cotangents, const Operand& operand) {
  met_.push_back({-1, {}, {TermsOf(products, cotangents, operand)}});
}

void GrowthObserver::AfterNode(const TargetProducts& products, const BackwardStep& step) {
  const Call& call = products.CallOf(step.node);
  Met met;
  met.call = step.node.call;
  for (size_t k = 0; k < step.behind.size(); ++k) {
    if (step.behind[k].defined()) met.gone.push_back(TermsOf(products, step.behind[k], call.outputs[k]));
  }
  for (size_t j = 0; j < step.back.size(); ++j) {
    met.come.push_back(TermsOf(products, step.back[j], call.operands[step.node.inputs[j]]));
  }
  met_.push_back(std::move(met));
}

Growth GrowthObserver::Find() const {
  std::vector<at::Tensor> all;
  for (const Met& met : met_) {
    all.insert(all.end(), met.gone.begin(), met.gone.end());
    all.insert(all.end(), met.come.begin(), met.come.end());
  }
  Growth growth;
  if (all.empty()) return growth;
  const std::vector<double> numbers = Doubles(at::stack(all));
  auto number = numbers.begin();
  double terms = 0;
  for (const Met& met : met_) {
    const double before = terms;
    for (size_t k = 0; k < met.gone.size(); ++k) terms -= *number++;
    if (met.call >= 0) terms = std::max(terms, 0.0);
    for (size_t j = 0; j < met.come.size(); ++j) terms += *number++;
    const double factor = met.call >= 0 && before > 0 ? terms / before : 1;
    if (factor > growth.factor) growth = {met.call, factor};
  }
  return growth;
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

// Observers of the backward sweep: what can be found beside the components, which is the relevance of operators, where
// terms grow, and which node fits its own transpose worst.
#ifndef ADDEND_CORE_LINEARIZE_BACKWARD_OBSERVERS_H_
#define ADDEND_CORE_LINEARIZE_BACKWARD_OBSERVERS_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "core/linearize/adjoint.h"
#include "core/linearize/operator_check.h"
#include "core/linearize/target_products.h"

namespace addend {

class BackwardObserver {
 public:
  virtual ~BackwardObserver() = default;
  // Called when the cotangents of a probe are added to those of its operand.
  virtual void AfterSeed(const TargetProducts&, const at::Tensor& /*cotangents*/, const Operand&) {}
  virtual void AfterNode(const TargetProducts& products, const BackwardStep& step) = 0;
  // Called after a node at which rows begin; it passes nothing back.
  virtual void AfterStart(const TargetProducts&, const BackwardStep&) {}
};

// Finds what passes through each operator's outputs.
class RelevanceObserver : public BackwardObserver {
 public:
  void AfterNode(const TargetProducts& products, const BackwardStep& step) override;
  void AfterStart(const TargetProducts& products, const BackwardStep& step) override { AfterNode(products, step); }
  // In the order of the calls.
  std::vector<NodeRelevance> Take();

 private:
  std::vector<NodeRelevance> nodes_;  // latest call first
};

// Finds where the terms grow most; see Growth.
class GrowthObserver : public BackwardObserver {
 public:
  void AfterSeed(const TargetProducts& products, const at::Tensor& cotangents, const Operand& operand) override;
  void AfterNode(const TargetProducts& products, const BackwardStep& step) override;
  // Reads what was met, at once.
  Growth Find() const;

 private:
  // A node's terms: those that it took away and those that it added, tensors of one number; call -1: of a probe.
  struct Met {
    int64_t call = -1;
    std::vector<at::Tensor> gone;
    std::vector<at::Tensor> come;
  };
  std::vector<Met> met_;
};

// Finds how large the terms are on both sides of each node, and how far the two sides differ for that. Values are
// rounded, so a cotangent times the rounding of a value is no failure. It is used only where recovery fails.
class TermsObserver : public BackwardObserver {
 public:
  void AfterNode(const TargetProducts& products, const BackwardStep& step) override;
  // The largest terms at any one node, [targets]; undefined: no node was met.
  const at::Tensor& largest_terms() const { return largest_terms_; }
  // The node whose two sides differ most in relation to its terms.
  const std::optional<OperatorCheck>& worst() const { return worst_; }

 private:
  at::Tensor largest_terms_;
  std::optional<OperatorCheck> worst_;
};

}  // namespace addend

#endif  // ADDEND_CORE_LINEARIZE_BACKWARD_OBSERVERS_H_

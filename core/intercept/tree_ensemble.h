// The tensors of addend::tree_ensemble, checked, and the sums that they stand for.
//
// Note [Tree ensembles]
// A branch compares one feature of a row with a threshold, and one of its two children goes on. A leaf adds its weights
// to targets. The trees of an ensemble share one list of branches and one of leaves. Children, and the roots, are
// numbers of branches, or -1 - k for leaf k. A child's number is greater than its parent's, so that each path ends. A
// branch may be the child of several: a choice by many values of one feature is a chain of comparisons.
//
// Numbers are compared as they are stored: those of single precision in single precision. Weights are added in double
// precision, so that the order of the trees does not matter.
#ifndef ADDEND_CORE_INTERCEPT_TREE_ENSEMBLE_H_
#define ADDEND_CORE_INTERCEPT_TREE_ENSEMBLE_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace addend {

// The arguments of the operator behind its input. Of integers all are int64.
struct TreeTensors {
  at::Tensor roots;         // [trees]
  at::Tensor features;      // [branches]
  at::Tensor modes;         // [branches]: BranchMode
  at::Tensor thresholds;    // [branches], floating-point
  at::Tensor children;      // [branches, 2]: where the comparison holds, and where it does not
  at::Tensor missing_true;  // [branches], bool: whether NaN counts as if the comparison held
  at::Tensor leaf_starts;   // [leaves + 1]: of each leaf its first weight; the last is how many there are
  at::Tensor targets;       // [weights]
  at::Tensor weights;       // [weights], floating-point
};

enum class BranchMode : int64_t { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual };
inline constexpr int64_t kNumBranchModes = 6;

class TreeEnsemble {
 public:
  struct Branch {
    int64_t feature = 0;
    double threshold = 0;
    std::array<int64_t, 2> children = {};
    BranchMode mode = BranchMode::kLessOrEqual;
    bool missing_true = false;

    // The child that goes on for a value of the feature.
    int64_t Next(double x) const { return children[Holds(x) || (missing_true && std::isnan(x)) ? 0 : 1]; }

   private:
    bool Holds(double x) const;
  };
  struct Weight {
    int64_t target = 0;
    double weight = 0;
  };

  // Throws InvalidArgument where the tensors are no ensemble for rows of so many features and results of so many
  // targets.
  TreeEnsemble(const TreeTensors& tensors, int64_t num_features, int64_t num_targets);

  const std::vector<int64_t>& roots() const { return roots_; }
  // Node is not negative.
  const Branch& BranchAt(int64_t node) const { return branches_[static_cast<size_t>(node)]; }
  // The weights of a leaf, whose node is negative.
  const Weight* WeightsBegin(int64_t node) const { return weights_.data() + starts_[static_cast<size_t>(-1 - node)]; }
  const Weight* WeightsEnd(int64_t node) const { return weights_.data() + starts_[static_cast<size_t>(-node)]; }

  // Adds the weights of the leaves that a row reaches. `sums`: one for each target.
  void AddTo(const double* row, double* sums) const;

 private:
  std::vector<int64_t> roots_;
  std::vector<Branch> branches_;
  std::vector<int64_t> starts_;
  std::vector<Weight> weights_;
};

inline bool TreeEnsemble::Branch::Holds(double x) const {
  switch (mode) {
    case BranchMode::kLessOrEqual:
      return x <= threshold;
    case BranchMode::kLess:
      return x < threshold;
    case BranchMode::kGreaterOrEqual:
      return x >= threshold;
    case BranchMode::kGreater:
      return x > threshold;
    case BranchMode::kEqual:
      return x == threshold;
    case BranchMode::kNotEqual:
      return x != threshold;
  }
  return false;
}

// Rows of an input [rows, features] as numbers on the CPU. Throws InvalidArgument where it has other dimensions.
at::Tensor RowsForTrees(const at::Tensor& input);

// The kernel of the operator: [rows, num_targets] in the dtype of the weights.
at::Tensor SumOfTrees(const at::Tensor& input, const at::Tensor& roots, const at::Tensor& features,
                      const at::Tensor& modes, const at::Tensor& thresholds, const at::Tensor& children,
                      const at::Tensor& missing_true, const at::Tensor& leaf_starts, const at::Tensor& targets,
                      const at::Tensor& weights, int64_t num_targets);

}  // namespace addend

#endif  // ADDEND_CORE_INTERCEPT_TREE_ENSEMBLE_H_

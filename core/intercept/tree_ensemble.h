// The tensors of addend::tree_ensemble, read as trees, and the sums that they stand for.
//
// Note [Tree ensembles]
// A branch compares one feature of a row with a threshold, and one of its two children goes on. A leaf adds its weights
// to targets. The trees of an ensemble share one list of branches and one of leaves. Children, and the roots, are
// numbers of branches, or -1 - k for leaf k. A child's number is greater than its parent's, so that each path ends. A
// branch may be the child of several: a choice by many values of one feature is a chain of comparisons.
//
// Trees are walked in the tensors themselves, of which nothing is copied: a model of many trees answers for one row
// without reading all of them. Each node is therefore checked when a path comes to it.
//
// Numbers are compared as they are stored: those of single precision in single precision. Weights are added in double
// precision, so that the order of the trees does not matter.
#ifndef ADDEND_CORE_INTERCEPT_TREE_ENSEMBLE_H_
#define ADDEND_CORE_INTERCEPT_TREE_ENSEMBLE_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cmath>
#include <cstdint>

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

  // Reads rows of so many features, for results of so many targets. Throws InvalidArgument where the tensors have other
  // types or sizes than those of an ensemble.
  TreeEnsemble(const TreeTensors& tensors, int64_t num_features, int64_t num_targets);

  // Each throws InvalidArgument where what it gives is none of an ensemble's.
  int64_t num_trees() const { return roots_.size; }
  int64_t RootAt(int64_t tree) const { return Checked(roots_.data[tree], /*parent=*/-1); }
  // Node is not negative.
  Branch BranchAt(int64_t node) const;
  // Calls `use` with each weight of a leaf, whose node is negative.
  template <typename Use>
  void ForEachWeight(int64_t node, const Use& use) const;

  // Adds the weights of the leaves that a row reaches. `sums`: one for each target.
  void AddTo(const double* row, double* sums) const;

 private:
  template <typename T>
  struct List {
    at::Tensor tensor;  // holds the memory
    const T* data = nullptr;
    int64_t size = 0;
  };
  // Numbers in single or in double precision.
  struct Reals {
    List<float> singles;
    List<double> doubles;
    int64_t size = 0;
    double operator[](int64_t k) const { return singles.data != nullptr ? singles.data[k] : doubles.data[k]; }
  };

  template <typename T>
  static List<T> ListOf(const at::Tensor& tensor, int64_t dim, at::ScalarType type, const char* name);
  static Reals RealsOf(const at::Tensor& tensor, const char* name);

  // The node itself, which has to be a leaf or a branch behind its parent.
  int64_t Checked(int64_t node, int64_t parent) const {
    const bool is_there = node < 0 ? -1 - node < num_leaves_ : node < features_.size && node > parent;
    if (!is_there) FailAt(node, parent);
    return node;
  }
  [[noreturn]] void FailAt(int64_t node, int64_t parent) const;
  [[noreturn]] static void FailBelow(const char* name, int64_t number, int64_t count);
  static int64_t Below(const char* name, int64_t number, int64_t count) {
    if (number < 0 || number >= count) FailBelow(name, number, count);
    return number;
  }
  [[noreturn]] static void FailOfWeights();

  const int64_t num_features_;
  const int64_t num_targets_;
  int64_t num_leaves_ = 0;
  List<int64_t> roots_, features_, modes_, children_, starts_, targets_;
  List<bool> missing_true_;
  Reals thresholds_, weights_;
};

inline TreeEnsemble::Branch TreeEnsemble::BranchAt(int64_t node) const {
  Branch branch;
  branch.feature = Below("feature", features_.data[node], num_features_);
  branch.threshold = thresholds_[node];
  branch.children = {Checked(children_.data[2 * node], node), Checked(children_.data[2 * node + 1], node)};
  branch.mode = static_cast<BranchMode>(Below("mode", modes_.data[node], kNumBranchModes));
  branch.missing_true = missing_true_.data[node];
  return branch;
}

template <typename Use>
void TreeEnsemble::ForEachWeight(int64_t node, const Use& use) const {
  const int64_t first = starts_.data[-1 - node], last = starts_.data[-node];
  if (first < 0 || first > last || last > weights_.size) FailOfWeights();
  for (int64_t k = first; k < last; ++k) use(Weight{Below("target", targets_.data[k], num_targets_), weights_[k]});
}

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

#include "core/intercept/tree_ensemble.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/in_parallel.h"
#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

// About what so many steps through a tree cost is less than to start a thread.
constexpr int64_t kStepsForThreads = 10000;

[[noreturn]] void Fail(const std::string& what) { throw InvalidArgument(absl::StrCat("a tree ensemble ", what)); }

template <typename T>
std::vector<T> Numbers(const at::Tensor& tensor, int64_t dim, at::ScalarType type, const char* name) {
  const bool fits = type == at::kDouble ? tensor.is_floating_point() : tensor.scalar_type() == type;
  if (tensor.dim() != dim || !fits) Fail(absl::StrCat("has ", name, " of another type or rank than it needs"));
  const at::Tensor flat = tensor.to(at::kCPU, type).contiguous();
  const T* data = flat.data_ptr<T>();
  return std::vector<T>(data, data + flat.numel());
}

std::vector<int64_t> Integers(const at::Tensor& tensor, const char* name, int64_t dim = 1) {
  return Numbers<int64_t>(tensor, dim, at::kLong, name);
}

// Throws where a number is not one of 0 ... count - 1.
void RequireBelow(int64_t number, int64_t count, const char* name) {
  if (number < 0 || number >= count) Fail(absl::StrCat("has the ", name, " ", number, " of ", count));
}

}  // namespace

TreeEnsemble::TreeEnsemble(const TreeTensors& tensors, int64_t num_features, int64_t num_targets)
    : roots_(Integers(tensors.roots, "roots")), starts_(Integers(tensors.leaf_starts, "leaf_starts")) {
  const std::vector<int64_t> features = Integers(tensors.features, "features");
  const std::vector<int64_t> modes = Integers(tensors.modes, "modes");
  const auto thresholds = Numbers<double>(tensors.thresholds, 1, at::kDouble, "thresholds");
  const std::vector<int64_t> children = Integers(tensors.children, "children", 2);
  const auto missing_true = Numbers<bool>(tensors.missing_true, 1, at::kBool, "missing_true");
  const std::vector<int64_t> targets = Integers(tensors.targets, "targets");
  const auto weights = Numbers<double>(tensors.weights, 1, at::kDouble, "weights");
  const size_t count = features.size();
  if (modes.size() != count || thresholds.size() != count || children.size() != 2 * count ||
      missing_true.size() != count || targets.size() != weights.size()) {
    Fail("has lists of different lengths");
  }
  const auto num_weights = static_cast<int64_t>(weights.size());
  if (starts_.empty() || starts_.front() != 0 || starts_.back() != num_weights) Fail("has leaves of other weights");
  for (size_t k = 0; k + 1 < starts_.size(); ++k) {
    if (starts_[k] > starts_[k + 1]) Fail("has leaves of other weights");
  }
  const auto num_branches = static_cast<int64_t>(count);
  const auto num_leaves = static_cast<int64_t>(starts_.size()) - 1;
  const auto check = [&](int64_t node, int64_t parent) {
    if (node < 0) return RequireBelow(-1 - node, num_leaves, "leaf");
    RequireBelow(node, num_branches, "branch");
    if (node <= parent) Fail(absl::StrCat("has branch ", node, " below branch ", parent));
  };
  for (const int64_t root : roots_) check(root, -1);
  branches_.resize(count);
  for (size_t k = 0; k < count; ++k) {
    RequireBelow(features[k], num_features, "feature");
    RequireBelow(modes[k], kNumBranchModes, "mode");
    Branch& branch = branches_[k];
    branch.feature = features[k];
    branch.threshold = thresholds[k];
    branch.children = {children[2 * k], children[2 * k + 1]};
    branch.mode = static_cast<BranchMode>(modes[k]);
    branch.missing_true = missing_true[k];
    for (const int64_t child : branch.children) check(child, static_cast<int64_t>(k));
  }
  weights_.reserve(weights.size());
  for (size_t k = 0; k < weights.size(); ++k) {
    RequireBelow(targets[k], num_targets, "target");
    weights_.push_back({targets[k], weights[k]});
  }
}

void TreeEnsemble::AddTo(const double* row, double* sums) const {
  for (int64_t node : roots_) {
    while (node >= 0) {
      const Branch& branch = BranchAt(node);
      node = branch.Next(row[branch.feature]);
    }
    for (const Weight* w = WeightsBegin(node); w != WeightsEnd(node); ++w) sums[w->target] += w->weight;
  }
}

at::Tensor RowsForTrees(const at::Tensor& input) {
  if (input.dim() != 2 || !input.is_floating_point()) Fail("reads floating-point numbers [rows, features]");
  return input.to(at::kCPU, at::kDouble).contiguous();
}

at::Tensor SumOfTrees(const at::Tensor& input, const at::Tensor& roots, const at::Tensor& features,
                      const at::Tensor& modes, const at::Tensor& thresholds, const at::Tensor& children,
                      const at::Tensor& missing_true, const at::Tensor& leaf_starts, const at::Tensor& targets,
                      const at::Tensor& weights, int64_t num_targets) {
  if (num_targets < 0) Fail(absl::StrCat("has ", num_targets, " targets"));
  if (input.is_meta()) return at::empty({input.size(0), num_targets}, input.options().dtype(weights.scalar_type()));
  const TracingPause pause;
  const c10::AutoGradMode no_grad(false);
  const at::Tensor rows = RowsForTrees(input);
  const TreeEnsemble ensemble(
      {roots, features, modes, thresholds, children, missing_true, leaf_starts, targets, weights}, rows.size(1),
      num_targets);
  const at::Tensor sums = at::zeros({rows.size(0), num_targets}, rows.options());
  const double* row = rows.data_ptr<double>();
  double* sum = sums.data_ptr<double>();
  const int64_t width = rows.size(1);
  const bool pays = rows.size(0) * roots.numel() > kStepsForThreads;
  InParallelIf(pays, rows.size(0), [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) ensemble.AddTo(row + n * width, sum + n * num_targets);
  });
  return sums.to(input.device(), weights.scalar_type());
}

}  // namespace addend

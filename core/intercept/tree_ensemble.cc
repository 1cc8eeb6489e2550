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

}  // namespace

template <typename T>
TreeEnsemble::List<T> TreeEnsemble::ListOf(const at::Tensor& tensor, int64_t dim, at::ScalarType type,
                                           const char* name) {
  if (tensor.dim() != dim || tensor.scalar_type() != type) {
    Fail(absl::StrCat("has ", name, " of another type or rank than it needs"));
  }
  const at::Tensor own = tensor.to(at::kCPU).contiguous();
  return {own, own.data_ptr<T>(), own.numel()};
}

TreeEnsemble::Reals TreeEnsemble::RealsOf(const at::Tensor& tensor, const char* name) {
  Reals reals;
  if (tensor.scalar_type() == at::kFloat && tensor.numel() > 0) {
    reals.singles = ListOf<float>(tensor, 1, at::kFloat, name);
  } else {
    const at::Tensor wide = tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor;
    reals.doubles = ListOf<double>(wide, 1, at::kDouble, name);
  }
  reals.size = tensor.numel();
  return reals;
}

TreeEnsemble::TreeEnsemble(const TreeTensors& tensors, int64_t num_features, int64_t num_targets)
    : num_features_(num_features),
      num_targets_(num_targets),
      roots_(ListOf<int64_t>(tensors.roots, 1, at::kLong, "roots")),
      features_(ListOf<int64_t>(tensors.features, 1, at::kLong, "features")),
      modes_(ListOf<int64_t>(tensors.modes, 1, at::kLong, "modes")),
      children_(ListOf<int64_t>(tensors.children, 2, at::kLong, "children")),
      starts_(ListOf<int64_t>(tensors.leaf_starts, 1, at::kLong, "leaf_starts")),
      targets_(ListOf<int64_t>(tensors.targets, 1, at::kLong, "targets")),
      missing_true_(ListOf<bool>(tensors.missing_true, 1, at::kBool, "missing_true")),
      thresholds_(RealsOf(tensors.thresholds, "thresholds")),
      weights_(RealsOf(tensors.weights, "weights")) {
  const int64_t count = features_.size;
  if (modes_.size != count || thresholds_.size != count || children_.size != 2 * count || missing_true_.size != count ||
      targets_.size != weights_.size) {
    Fail("has lists of different lengths");
  }
  if (starts_.size == 0 || starts_.data[0] != 0 || starts_.data[starts_.size - 1] != weights_.size) FailOfWeights();
  num_leaves_ = starts_.size - 1;
}

void TreeEnsemble::FailAt(int64_t node, int64_t parent) const {
  if (node < 0) FailBelow("leaf", -1 - node, num_leaves_);
  if (node >= features_.size) FailBelow("branch", node, features_.size);
  Fail(absl::StrCat("has branch ", node, " below branch ", parent));
}

void TreeEnsemble::FailBelow(const char* name, int64_t number, int64_t count) {
  Fail(absl::StrCat("has the ", name, " ", number, " of ", count));
}

void TreeEnsemble::FailOfWeights() { Fail("has leaves of other weights"); }

void TreeEnsemble::AddTo(const double* row, double* sums) const {
  for (int64_t tree = 0; tree < num_trees(); ++tree) {
    int64_t node = RootAt(tree);
    while (node >= 0) {
      const Branch branch = BranchAt(node);
      node = branch.Next(row[branch.feature]);
    }
    ForEachWeight(node, [&](const Weight& w) { sums[w.target] += w.weight; });
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

// Shares of features in ensembles of trees, against the sums over all coalitions that define them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

// A tree as it is drawn, which shares nothing with the operator's tensors.
struct Tree {
  int64_t feature = -1;  // -1: a leaf
  int64_t mode = 0;
  std::vector<double> thresholds;  // the comparison holds for any of them
  bool missing_true = false;
  std::unique_ptr<Tree> yes;
  std::unique_ptr<Tree> no;
  std::vector<std::pair<int64_t, double>> weights;
};

bool Compare(int64_t mode, double x, double threshold) {
  switch (mode) {
    case 0:
      return x <= threshold;
    case 1:
      return x < threshold;
    case 2:
      return x >= threshold;
    case 3:
      return x > threshold;
    case 4:
      return x == threshold;
    default:
      return x != threshold;
  }
}

void Evaluate(const Tree& tree, const std::vector<double>& row, std::vector<double>* sums) {
  if (tree.feature < 0) {
    for (const auto& [target, weight] : tree.weights) (*sums)[static_cast<size_t>(target)] += weight;
    return;
  }
  const double x = row[static_cast<size_t>(tree.feature)];
  bool holds = tree.missing_true && std::isnan(x);
  for (const double threshold : tree.thresholds) holds = holds || Compare(tree.mode, x, threshold);
  Evaluate(holds ? *tree.yes : *tree.no, row, sums);
}

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  // A number of few digits, so that comparisons for equality meet some, exact in both precisions.
  double Number() { return static_cast<double>(Below(9) - 4) / 2; }
  double Weight() { return static_cast<double>(Below(2001) - 1000) / 128; }

  std::unique_ptr<Tree> TreeOf(int64_t features, int64_t targets, int64_t depth) {
    auto tree = std::make_unique<Tree>();
    if (depth == 0 || Below(6) == 0) {
      for (int64_t t = 0; t < targets; ++t) {
        if (targets == 1 || Below(3) > 0) tree->weights.emplace_back(t, Weight());
      }
      return tree;
    }
    tree->feature = Below(features);
    tree->mode = Below(6);
    tree->thresholds = {Number()};
    if (tree->mode == 4) {
      for (int64_t k = Below(3); k > 0; --k) tree->thresholds.push_back(Number());
    }
    tree->missing_true = Below(2) == 1;
    tree->yes = TreeOf(features, targets, depth - 1);
    tree->no = TreeOf(features, targets, depth - 1);
    return tree;
  }

 private:
  std::mt19937_64 engine_;
};

// The lists that the operator reads, in the order in which branches may stand.
struct Lists {
  std::vector<int64_t> roots, features, modes, children, starts = {0}, targets;
  std::vector<double> thresholds, weights;
  std::vector<int64_t> missing;

  // Adds a tree; returns its node.
  int64_t Add(const Tree& tree) {
    if (tree.feature < 0) {
      for (const auto& [target, weight] : tree.weights) {
        targets.push_back(target);
        weights.push_back(weight);
      }
      starts.push_back(static_cast<int64_t>(weights.size()));
      return -static_cast<int64_t>(starts.size()) + 1;
    }
    const size_t first = features.size();
    for (const double threshold : tree.thresholds) {
      features.push_back(tree.feature);
      modes.push_back(tree.mode);
      thresholds.push_back(threshold);
      missing.push_back(tree.missing_true ? 1 : 0);
      children.resize(children.size() + 2);
    }
    const int64_t yes = Add(*tree.yes), no = Add(*tree.no);
    const size_t count = tree.thresholds.size();
    for (size_t k = 0; k < count; ++k) {
      children[2 * (first + k)] = yes;
      children[2 * (first + k) + 1] = k + 1 < count ? static_cast<int64_t>(first + k) + 1 : no;
    }
    return static_cast<int64_t>(first);
  }

  std::vector<GivenArgument> Arguments(const GivenArgument& input, at::ScalarType dtype, int64_t num_targets) const {
    const auto integers = [](const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); };
    return {input,
            integers(roots),
            integers(features),
            integers(modes),
            at::tensor(thresholds, at::kDouble).to(dtype),
            integers(children).reshape({-1, 2}),
            integers(missing).to(at::kBool),
            integers(starts),
            integers(targets),
            at::tensor(weights, at::kDouble).to(dtype),
            num_targets};
  }
};

struct Ensemble {
  std::vector<std::unique_ptr<Tree>> trees;
  Lists lists;
  int64_t num_targets = 1;

  std::vector<double> Values(const std::vector<double>& row) const {
    std::vector<double> sums(static_cast<size_t>(num_targets), 0);
    for (const auto& tree : trees) Evaluate(*tree, row, &sums);
    return sums;
  }
};

Ensemble Draw(Drawer& drawer, int64_t features) {
  Ensemble own;
  own.num_targets = 1 + drawer.Below(3);
  for (int64_t k = 1 + drawer.Below(5); k > 0; --k) {
    own.trees.push_back(drawer.TreeOf(features, own.num_targets, 1 + drawer.Below(6)));
    own.lists.roots.push_back(own.lists.Add(*own.trees.back()));
  }
  return own;
}

double Factorial(int64_t n) { return n < 2 ? 1 : static_cast<double>(n) * Factorial(n - 1); }

// The mean of v(S + j) - v(S) over all orders, by the sum over all sets. [targets][features]
std::vector<std::vector<double>> SharesByCoalitions(const Ensemble& ensemble, const std::vector<double>& x,
                                                    const std::vector<double>& b) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::vector<double>> worth;
  for (int64_t set = 0; set < int64_t{1} << n; ++set) {
    std::vector<double> row = b;
    for (int64_t j = 0; j < n; ++j) {
      if ((set >> j & 1) != 0) row[static_cast<size_t>(j)] = x[static_cast<size_t>(j)];
    }
    worth.push_back(ensemble.Values(row));
  }
  std::vector<std::vector<double>> shares(static_cast<size_t>(ensemble.num_targets), std::vector<double>(x.size(), 0));
  for (int64_t set = 0; set < int64_t{1} << n; ++set) {
    int64_t size = 0;
    for (int64_t j = 0; j < n; ++j) size += set >> j & 1;
    for (int64_t j = 0; j < n; ++j) {
      if ((set >> j & 1) != 0) continue;
      const double weight = Factorial(size) * Factorial(n - size - 1) / Factorial(n);
      for (size_t t = 0; t < shares.size(); ++t) {
        const double gain = worth[static_cast<size_t>(set | int64_t{1} << j)][t] - worth[static_cast<size_t>(set)][t];
        shares[t][static_cast<size_t>(j)] += weight * gain;
      }
    }
  }
  return shares;
}

at::Tensor Row(const std::vector<double>& numbers) { return at::tensor(numbers, at::kDouble); }

void CompareWithCoalitions(at::ScalarType dtype, double tolerance) {
  Drawer drawer(5);
  int64_t parted = 0;
  for (int k = 0; k < 100; ++k) {
    SCOPED_TRACE(testing::Message() << "ensemble " << k);
    const int64_t features = 1 + k / 10;
    const Ensemble ensemble = Draw(drawer, features);
    std::vector<std::vector<double>> x(3), b(3);
    std::vector<at::Tensor> values, references;
    for (size_t r = 0; r < x.size(); ++r) {
      for (int64_t j = 0; j < features; ++j) {
        const bool missing = drawer.Below(12) == 0;
        x[r].push_back(missing ? kNan : drawer.Number());
        b[r].push_back(missing ? kNan : drawer.Number());
      }
      values.push_back(Row(x[r]).to(dtype));
      references.push_back(Row(b[r]).to(dtype));
    }
    const OperatorCall op("addend::tree_ensemble", ensemble.lists.Arguments({at::stack(values), at::stack(references)},
                                                                            dtype, ensemble.num_targets));
    const RuleCall call = op.Describe(Faithful());
    const RuleResult rule = BuildRule(call);
    EXPECT_TRUE(rule.exact);
    // Each feature alone as a part, and all cotangents.
    const at::Tensor move = at::where(at::stack(values).isnan(), at::zeros({}, dtype), call.Move(0));
    std::vector<at::Tensor> parts;
    for (int64_t j = 0; j < features; ++j) {
      at::Tensor part = at::zeros_like(move);
      part.select(1, j).copy_(move.select(1, j));
      parts.push_back(part);
    }
    const at::Tensor shares = rule.map->Forward({at::stack(parts)})[0].to(at::kDouble);
    for (size_t r = 0; r < x.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      const std::vector<double> expected = ensemble.Values(x[r]);
      const auto by_coalitions = SharesByCoalitions(ensemble, x[r], b[r]);
      for (int64_t t = 0; t < ensemble.num_targets; ++t) {
        EXPECT_EQ(call.outputs[0].value[row][t].item<double>(), expected[static_cast<size_t>(t)]);
        at::Tensor cotangent = at::zeros_like(call.outputs[0].value);
        cotangent[row][t] = 1;
        const at::Tensor back = (rule.map->Transpose({cotangent})[0] * move).to(at::kDouble);
        for (int64_t j = 0; j < features; ++j) {
          const double share = by_coalitions[static_cast<size_t>(t)][static_cast<size_t>(j)];
          EXPECT_NEAR(shares[j][row][t].item<double>(), share, tolerance);
          EXPECT_NEAR(back[row][j].item<double>(), share, tolerance);
          parted += share != 0;
        }
      }
    }
  }
  EXPECT_GT(parted, 500);
}

TEST(TreesTest, SharesAreThoseOfAllCoalitions) { CompareWithCoalitions(at::kDouble, 1e-12); }

TEST(TreesTest, SharesAreThoseOfAllCoalitionsInSinglePrecision) { CompareWithCoalitions(at::kFloat, 2e-5); }

// A comparison of two features, of which one decides wherever the other does not.
Lists Both() {
  Tree tree, inner;
  inner.feature = 1;
  inner.thresholds = {0};
  inner.yes = std::make_unique<Tree>();
  inner.no = std::make_unique<Tree>();
  inner.no->weights = {{0, 3.0}};
  tree.feature = 0;
  tree.thresholds = {0};
  tree.yes = std::make_unique<Tree>();
  tree.no = std::make_unique<Tree>(std::move(inner));
  Lists lists;
  lists.roots = {lists.Add(tree)};
  return lists;
}

TEST(TreesTest, ComparesAsNumbersAreStored) {
  Lists lists = Both();
  const double third = 1.0 / 3;
  lists.thresholds = {third, 0};
  const auto value = [&](double x, at::ScalarType input, at::ScalarType stored) {
    const OperatorCall op("addend::tree_ensemble", lists.Arguments(Row({x, 1}).reshape({1, 2}).to(input), stored, 1));
    return op.Describe(Faithful()).outputs[0].value.item<double>();
  };
  // A third in single precision is larger than in double precision.
  EXPECT_EQ(value(third, at::kFloat, at::kFloat), 0);
  EXPECT_EQ(value(third, at::kDouble, at::kDouble), 0);
  EXPECT_EQ(value(third, at::kFloat, at::kDouble), 3);
}

// A share whose feature does not move, but for rounding, is left over.
TEST(TreesTest, AMoveThatIsRoundingHasNoShare) {
  Lists lists = Both();
  const double one = 1, next = std::nextafter(1.0, 2);
  lists.thresholds = {one, 0};
  const auto input = [&](double x) { return Row({x, 1}).reshape({1, 2}); };
  const OperatorCall op("addend::tree_ensemble", lists.Arguments({input(next), input(one)}, at::kDouble, 1));
  const RuleCall call = op.Describe(Faithful());
  const RuleResult rule = BuildRule(call);
  EXPECT_EQ(call.outputs[0].value.item<double>() - call.outputs[0].reference.item<double>(), 3);
  EXPECT_FALSE(rule.exact);
  EXPECT_TRUE(rule.map->Forward({call.Move(0).unsqueeze(0)})[0].eq(0).all().item<bool>());
}

TEST(TreesTest, RefusesTensorsThatAreNoEnsemble) {
  const GivenArgument input = Row({1, 1}).reshape({1, 2});
  const auto expect = [&](const char* what, void (*spoil)(Lists*)) {
    Lists lists = Both();
    spoil(&lists);
    ExpectError(absl::StatusCode::kInvalidArgument, {"a tree ensemble", what}, [&] {
      OperatorCall("addend::tree_ensemble", lists.Arguments(input, at::kDouble, 1)).Describe(Faithful());
    });
  };
  expect("has branch 0 below branch 1", [](Lists* lists) { lists->children[2] = 0; });
  expect("the branch 7 of 2", [](Lists* lists) { lists->children[2] = 7; });
  expect("the leaf 5 of 3", [](Lists* lists) { lists->children[2] = -6; });
  expect("the feature 2 of 2", [](Lists* lists) { lists->features[0] = 2; });
  expect("the mode 6 of 6", [](Lists* lists) { lists->modes[0] = 6; });
  expect("the target 1 of 1", [](Lists* lists) { lists->targets[0] = 1; });
  expect("other weights", [](Lists* lists) { lists->starts.back() = 2; });
  expect("other weights", [](Lists* lists) { lists->starts[2] = 2; });
  expect("different lengths", [](Lists* lists) { lists->features.push_back(0); });
}

}  // namespace
}  // namespace addend

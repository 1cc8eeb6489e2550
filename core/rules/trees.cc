// Ensembles of decision trees.
//
// Note [Games of trees]
// A row x and a baseline b make a game: its players are the features, and what a set of them is worth is the sum of the
// trees on a row that has these features from x and the others from b. A feature's share is its Shapley value. On the
// way down, x and b part at some branches. Behind such a branch the leaf is reached only by rows that have the feature
// from x, or only by those that have it from b. A leaf of weight w that needs n features from x and m from b is worth
// w to all sets with these n and without those m. Its shares are w (n - 1)! m! / (n + m)! for each of the n features,
// and -w n! (m - 1)! / (n + m)! for each of the m. So the shares are exact, and a path is walked only where x or b or a
// mixture of both goes. They sum to the difference of both results.
//
// A share over its feature's move is the coefficient by which parts of the feature pass, as the height of a step over
// the move is that of a step (see Note [Steps at rest] in steps.h). So a feature that is scaled first, or computed from
// several inputs, hands its share on.
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/in_parallel.h"
#include "core/intercept/own_operators.h"
#include "core/intercept/tree_ensemble.h"
#include "core/rules/families.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

// (n - 1)! m! / (n + m)!, for n of 1 and more.
double ShareOfOne(int64_t n, int64_t m) {
  // Products of few factors round less than differences of logarithms.
  constexpr int64_t kMostFactors = 32;
  const auto a = static_cast<double>(n);
  const auto b = static_cast<double>(m);
  if (std::min(n, m) > kMostFactors) return std::exp(std::lgamma(a) + std::lgamma(b + 1) - std::lgamma(a + b + 1));
  // n (n + 1) ... (n + m) over m!, or (m + 1) ... (m + n) over (n - 1)!.
  double inverse = n > m ? a : b + 1;
  if (n > m) {
    for (int64_t k = 1; k <= m; ++k) inverse *= (a + static_cast<double>(k)) / static_cast<double>(k);
  } else {
    for (int64_t k = 1; k < n; ++k) inverse *= (b + 1 + static_cast<double>(k)) / static_cast<double>(k);
  }
  return 1 / inverse;
}

// The shares of features in what separates a row from a baseline; see Note [Games of trees].
class Game {
 public:
  Game(const TreeEnsemble& ensemble, int64_t num_features)
      : ensemble_(ensemble), num_features_(num_features), sides_(static_cast<size_t>(num_features), Side::kBoth) {}

  // Adds to `shares`, [targets, features].
  void Play(const double* x, const double* b, double* shares) {
    for (int64_t tree = 0; tree < ensemble_.num_trees(); ++tree) {
      ahead_.push_back({ensemble_.RootAt(tree), 0, 0, Side::kBoth});
      while (!ahead_.empty()) {
        const Turn turn = ahead_.back();
        ahead_.pop_back();
        GoBackTo(turn.depth);
        if (turn.side != Side::kBoth) Take(turn.feature, turn.side);
        Share(Leaf(turn.node, x, b), shares);
      }
      GoBackTo(0);
    }
  }

 private:
  // Whose value of a feature a path needs.
  enum class Side : char { kBoth, kRow, kBaseline };
  // A path that is still to be walked: from which node on, with how many features taken before this one.
  struct Turn {
    int64_t node;
    size_t depth;
    int64_t feature;
    Side side;
  };

  Side& SideOf(int64_t feature) { return sides_[static_cast<size_t>(feature)]; }

  void Take(int64_t feature, Side side) {
    SideOf(feature) = side;
    taken_.push_back(feature);
    (side == Side::kRow ? from_row_ : from_baseline_) += 1;
  }

  void GoBackTo(size_t depth) {
    for (; taken_.size() > depth; taken_.pop_back()) {
      Side& side = SideOf(taken_.back());
      (side == Side::kRow ? from_row_ : from_baseline_) -= 1;
      side = Side::kBoth;
    }
  }

  // The node behind a branch and all that follow it on the same feature. Two numbers of one set go the same way,
  // although they part on the chain of its members.
  int64_t Behind(int64_t node, double value) const {
    const int64_t feature = ensemble_.BranchAt(node).feature;
    while (node >= 0) {
      const TreeEnsemble::Branch branch = ensemble_.BranchAt(node);
      if (branch.feature != feature) break;
      node = branch.Next(value);
    }
    return node;
  }

  // Walks down to a leaf, with the row where both part.
  int64_t Leaf(int64_t node, const double* x, const double* b) {
    while (node >= 0) {
      const int64_t feature = ensemble_.BranchAt(node).feature;
      const Side side = SideOf(feature);
      if (side != Side::kBoth) {
        node = Behind(node, side == Side::kRow ? x[feature] : b[feature]);
        continue;
      }
      const int64_t other = Behind(node, b[feature]);
      node = Behind(node, x[feature]);
      if (other == node) continue;
      ahead_.push_back({other, taken_.size(), feature, Side::kBaseline});
      Take(feature, Side::kRow);
    }
    return node;
  }

  void Share(int64_t leaf, double* shares) const {
    if (taken_.empty()) return;
    const double of_row = from_row_ > 0 ? ShareOfOne(from_row_, from_baseline_) : 0;
    const double of_baseline = from_baseline_ > 0 ? -ShareOfOne(from_baseline_, from_row_) : 0;
    ensemble_.ForEachWeight(leaf, [&](const TreeEnsemble::Weight& w) {
      double* own = shares + w.target * num_features_;
      for (const int64_t feature : taken_) {
        const bool by_row = sides_[static_cast<size_t>(feature)] == Side::kRow;
        own[feature] += w.weight * (by_row ? of_row : of_baseline);
      }
    });
  }

  const TreeEnsemble& ensemble_;
  const int64_t num_features_;
  std::vector<Side> sides_;     // by feature
  std::vector<int64_t> taken_;  // features that the path needs from one of both
  int64_t from_row_ = 0;        // how many of them
  int64_t from_baseline_ = 0;
  std::vector<Turn> ahead_;
};

// Rows [R, N, features] times coefficients [N, targets, features].
class TreesMap : public LinearMap {
 public:
  TreesMap(at::Tensor coefficients, at::ScalarType input_dtype)
      : coefficients_(std::move(coefficients)), input_dtype_(input_dtype) {}

  Rows Forward(const Rows& rows) const override {
    const at::Tensor columns = rows[0].to(coefficients_.scalar_type()).permute({1, 2, 0});
    return {at::matmul(coefficients_, columns).permute({2, 0, 1})};
  }
  Rows Transpose(const Rows& cotangents) const override { return TransposeByRows(*this, cotangents); }
  Rows TransposeRows(const Rows& cotangents) const override {
    const at::Tensor back = at::matmul(cotangents[0].transpose(0, 1), coefficients_);
    return {back.transpose(0, 1).to(input_dtype_)};
  }

 private:
  at::Tensor coefficients_;
  at::ScalarType input_dtype_;
};

struct Coefficients {
  at::Tensor tensor;  // [N, targets, features], on the CPU
  bool exact = true;  // each feature that has a share has a move
  double terms = 0;   // the largest sum of magnitudes of shares
};

// Shares over moves. `T`: of the input.
template <typename T>
Coefficients SharesOverMoves(const TreeEnsemble& ensemble, const at::Tensor& x, const at::Tensor& b,
                             int64_t num_targets) {
  constexpr double kRest = 4 * std::numeric_limits<T>::epsilon();  // a move that is rounding is none
  const int64_t num_features = x.size(1);
  const int64_t size = num_targets * num_features;
  Coefficients result;
  result.tensor = at::zeros({x.size(0), num_targets, num_features}, x.options());
  const double* row = x.data_ptr<double>();
  const double* baseline = b.data_ptr<double>();
  double* coefficients = result.tensor.data_ptr<double>();
  std::atomic<bool> exact{true};
  std::vector<double> terms(static_cast<size_t>(x.size(0)), 0);
  InParallel(x.size(0), 1, [&](int64_t first, int64_t last) {
    Game game(ensemble, num_features);
    for (int64_t n = first; n < last; ++n) {
      const double* own = row + n * num_features;
      const double* other = baseline + n * num_features;
      double* shares = coefficients + n * size;
      game.Play(own, other, shares);
      for (int64_t k = 0; k < num_targets; ++k) {
        double sum = 0;
        for (int64_t j = 0; j < num_features; ++j) {
          double& share = shares[k * num_features + j];
          if (share == 0) continue;
          sum += std::abs(share);
          const auto move = static_cast<double>(static_cast<T>(own[j]) - static_cast<T>(other[j]));
          const bool rests = !(std::abs(move) > kRest * std::max(std::abs(own[j]), std::abs(other[j])));
          const double slope = rests ? 0 : share / move;
          const bool passes = !rests && std::isfinite(static_cast<T>(slope)) && std::isfinite(move);
          if (!passes) exact = false;
          share = passes ? slope : 0;
        }
        terms[static_cast<size_t>(n)] = std::max(terms[static_cast<size_t>(n)], sum);
      }
    }
  });
  for (const double sum : terms) result.terms = std::max(result.terms, std::isfinite(sum) ? sum : 0);
  result.exact = exact;
  return result;
}

RuleResult Trees(const RuleCall& call) {
  for (const RuleOperand& operand : call.operands) {
    if (operand.decomposed && call.NameOf(operand.argument) != "input") {
      throw Unimplemented(absl::StrCat("rule of ", call.name, " covers a decomposed argument input only"));
    }
  }
  const RuleOperand& input = call.Require("input");
  const auto value = [&](const char* name) { return call.Require(name).value; };
  const int64_t num_targets = call.Int("num_targets", 0);
  const TreeEnsemble ensemble(
      {value("roots"), value("features"), value("modes"), value("thresholds"), value("children"), value("missing_true"),
       value("leaf_starts"), value("targets"), value("weights")},
      input.value.size(1), num_targets);
  const at::Tensor x = RowsForTrees(input.value);
  const at::Tensor b = RowsForTrees(input.reference);
  const Coefficients own = DispatchReal(input.value.scalar_type(), [&](auto zero) {
    return SharesOverMoves<decltype(zero)>(ensemble, x, b, num_targets);
  });
  RuleResult result;
  result.kind = Kind::kSelection;
  result.inputs = {call.OperandAt("input")};
  result.exact = own.exact;
  result.inner_terms = own.terms;
  result.map = std::make_shared<TreesMap>(own.tensor.to(call.outputs[0].value.options()), input.value.scalar_type());
  return result;
}

}  // namespace

void RegisterTrees(Registry& registry) { registry.Register({kTreeEnsemble, Kind::kSelection, Trees}); }

}  // namespace addend

// Softmax and its kin: the path rule by quadrature.
//
// Note [Softmax path]
// L = integral of J(b + t X) over t in 0..1 with J = diag p - p p^T. A softmax ignores shifts, so what bends it in a
// row is half the range of the move X. From that half range and the dtype the number of Gauss-Legendre nodes is taken,
// row by row, from tables of the largest half range h at which the error stays under 1e-6 in float32 and 1e-12 in
// float64. They hold for the worst row: two candidates that change places, wherever on the line. No other row has poles
// nearer to the line than theirs, pi / (2 h): the exponents of a softmax differ by 2 h at most. Longer moves are cut
// into pieces. The bracket is the exact error that remains; it is leftover and reported.
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"
#include "core/rules/path_nodes.h"
#include "core/rules/softmax_kernel.h"

namespace addend {
namespace {

struct NodeTable {
  double error;
  std::vector<int> nodes;
  std::vector<double> half_range;
};

const NodeTable& TableFor(at::ScalarType dtype) {
  static const auto& single = *new NodeTable{
      1e-6, {1, 2, 3, 4, 8, 12, 16, 24, 32, 64, 96, 128}, {0.025, 0.2, 0.5, 0.9, 2.5, 4, 5.4, 8.3, 11, 22, 33, 44}};
  static const auto& twice = *new NodeTable{
      1e-12, {3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 128}, {0.07, 0.19, 0.55, 0.95, 1.85, 2.7, 4.4, 6, 12.3, 18.5, 24.7}};
  return dtype == at::kDouble ? twice : single;
}

Quadrature Repeated(const Quadrature& rule, int pieces) {
  Quadrature all;
  for (int p = 0; p < pieces; ++p) {
    for (size_t k = 0; k < rule.nodes.size(); ++k) {
      all.nodes.push_back((p + rule.nodes[k]) / pieces);
      all.weights.push_back(rule.weights[k] / pieces);
    }
  }
  return all;
}

// A softmax call: its dimension moved last and all others flattened to [G, T].
struct SoftmaxPath {
  int64_t dim = -1;
  int64_t width = 0;
  at::Tensor value;               // [G, T]
  at::Tensor reference;           // [G, T]
  at::Tensor choice;              // [G], int64 on the CPU: the quadrature that each row takes; undefined without rows
  std::vector<Quadrature> rules;  // empty where no row takes it
};

// Rows of one call that share a quadrature.
struct NodeGroup {
  at::Tensor index;      // positions among the softmax rows; undefined where it is all of them
  at::Tensor reference;  // [n, T]
  at::Tensor move;       // [n, T]
  const Quadrature* rule;
  bool far = false;  // so long that the short form of ApplyGroup would lose digits
};

bool Fused(const SoftmaxPath& path) { return ForFlatLoops(path.value, path.reference); }

template <typename T>
SoftmaxEnds<T> EndsOf(const SoftmaxPath& path) {
  return {path.value.data_ptr<T>(), path.reference.data_ptr<T>(), path.reference.size(0), path.width};
}

// Half the range of each row's move; undefined where a move is not finite.
at::Tensor HalfRangesOf(const SoftmaxPath& path) {
  if (Fused(path)) {
    at::Tensor half_range = at::empty({path.reference.size(0)}, path.reference.options());
    const bool finite = DispatchReal(path.reference.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      return HalfRanges(EndsOf<T>(path), half_range.data_ptr<T>());
    });
    return finite ? half_range : at::Tensor();
  }
  const at::Tensor move = MoveOf(path.value, path.reference);
  if (!move.isfinite().all().item<bool>()) return {};
  return (move.amax(1) - move.amin(1)) / 2;
}

// A softmax ignores shifts. Where a whole row lies far from zero (all of it masked by -1e4), the points between its
// reference and its value would be rounded to few digits: it is moved to zero.
void MoveToZero(SoftmaxPath& path) {
  constexpr double kFar = 64;
  if (path.width == 0) return;
  const at::Tensor top = path.reference.amax(1, /*keepdim=*/true);
  const at::Tensor far = top.abs().ge(kFar).logical_and_(top.isfinite());
  if (!far.any().item<bool>()) return;
  const at::Tensor together = (path.value.amax(1, /*keepdim=*/true) - top).abs().le(top.abs() / 2);
  const at::Tensor shift = top.masked_fill(far.logical_and_(together).logical_not_(), 0);
  path.reference = path.reference - shift;
  path.value = path.value - shift;
}

// value, reference: [G, T]
SoftmaxPath MakePath(const RuleCall& call, const at::Tensor& value, const at::Tensor& reference) {
  SoftmaxPath path;
  path.width = reference.size(1);
  path.value = value;
  path.reference = reference;
  if (reference.numel() == 0) return path;
  MoveToZero(path);
  at::Tensor half_range = HalfRangesOf(path);
  if (!half_range.defined()) {
    throw Unimplemented(call.name + " where an entry is infinite in the value or in the reference only");
  }
  half_range = half_range.detach().to(at::kCPU, at::kDouble);
  const NodeTable& table = TableFor(reference.scalar_type());
  path.choice = at::empty({half_range.size(0)}, at::kLong);
  path.rules.resize(table.nodes.size() + 1);
  double longest = 0;
  for (int64_t g = 0; g < half_range.size(0); ++g) {
    const double own = half_range.data_ptr<double>()[g];
    longest = std::max(longest, own);
    const auto row = std::lower_bound(table.half_range.begin(), table.half_range.end(), own);
    const int64_t c = row - table.half_range.begin();
    path.choice.data_ptr<int64_t>()[g] = c;
    if (c < static_cast<int64_t>(table.nodes.size()) && path.rules[c].nodes.empty()) {
      path.rules[c] = GaussLegendre(table.nodes[c]);
    }
  }
  if (longest > table.half_range.back()) {
    path.rules.back() = PathNodes(longest, reference.scalar_type());
    if (path.rules.back().nodes.empty()) {
      throw Unimplemented(call.name +
                          " where scores move farther from the reference to the value than can be followed, as those "
                          "do that are masked by -1e9 in one of them only; keep the value's masks (policy "
                          "conditions=value), and do not split them");
    }
  }
  return path;
}

std::vector<NodeGroup> GroupsOf(const SoftmaxPath& path) {
  std::vector<NodeGroup> groups;
  if (!path.choice.defined()) return groups;
  const at::Tensor move = MoveOf(path.value, path.reference);
  const NodeTable& table = TableFor(path.reference.scalar_type());
  const double eps = path.reference.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                                 : std::numeric_limits<float>::epsilon();
  const auto far = [&](size_t c) {
    return c == table.half_range.size() || 2 * table.half_range[c] * eps > 4 * table.error;
  };
  for (size_t c = 0; c < path.rules.size(); ++c) {
    if (path.rules[c].nodes.empty()) continue;
    const at::Tensor index = path.choice.eq(static_cast<int64_t>(c)).nonzero().squeeze(1).to(move.device());
    const bool all = index.numel() == path.choice.numel();
    groups.push_back({all ? at::Tensor() : index, all ? path.reference : path.reference.index_select(0, index),
                      all ? move : move.index_select(0, index), &path.rules[c], far(c)});
  }
  return groups;
}

// What the loops need to know about each row's quadrature; holds the views that it points to.
class RowRules {
 public:
  explicit RowRules(const SoftmaxPath& path) {
    for (const Quadrature& rule : path.rules) {
      views_.push_back({rule.nodes.data(), rule.weights.data(), static_cast<int64_t>(rule.nodes.size())});
    }
    const int64_t* choice = path.choice.data_ptr<int64_t>();
    for (int64_t g = 0; g < path.choice.numel(); ++g) by_row_.push_back(&views_[choice[g]]);
  }
  const NodesView* const* data() const { return by_row_.data(); }

 private:
  std::vector<NodesView> views_;
  std::vector<const NodesView*> by_row_;
};

// A dtype may be asked for: then the operator computes in it.
at::ScalarType DtypeOf(const RuleCall& call) { return call.outputs[0].value.scalar_type(); }

SoftmaxPath MakePath(const RuleCall& call, int64_t dim) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  const int64_t own = rank == 0 ? 0 : (dim < 0 ? dim + rank : dim);
  const int64_t width = rank == 0 ? 1 : input.value.size(own);
  const auto flat = [&](const at::Tensor& t) {
    const at::Tensor last = rank == 0 ? t : t.movedim(own, -1);
    return last.reshape({width == 0 ? 0 : t.numel() / width, width}).to(DtypeOf(call)).contiguous();
  };
  SoftmaxPath path = MakePath(call, flat(input.value), flat(input.reference));
  path.dim = own;
  return path;
}

// rows [R, n, T]. With p the softmax at a node, the sum of w p (c - <p, c>) over the nodes is c times that of w p, less
// a product of the <p, c> with the p: two products for all rows and nodes, of width times nodes each. Where scores move
// far, the two nearly cancel, and the terms are summed one by one.
at::Tensor ApplyGroup(const NodeGroup& group, const at::Tensor& rows) {
  const int64_t n = group.move.size(0);
  const int64_t width = group.move.size(1);
  const int64_t nodes = static_cast<int64_t>(group.rule->nodes.size());
  at::Tensor out = at::zeros({n, rows.size(0), width}, rows.options());
  // In pieces, so that the probabilities take a bounded amount of memory.
  constexpr int64_t kMost = int64_t{1} << 22;
  const int64_t one_node = std::max<int64_t>(1, group.far ? width * rows.size(0) : width);
  const int64_t at_once = std::max<int64_t>(1, std::min(nodes, kMost / one_node));
  const int64_t piece = std::max<int64_t>(1, kMost / (one_node * at_once));
  const at::Tensor all_nodes = at::tensor(group.rule->nodes, group.move.options()).view({1, -1, 1});
  const at::Tensor all_weights = at::tensor(group.rule->weights, group.move.options()).view({1, -1, 1});
  for (int64_t first = 0; first < n; first += piece) {
    const int64_t length = std::min(piece, n - first);
    const at::Tensor reference = group.reference.narrow(0, first, length).unsqueeze(1);
    const at::Tensor move = group.move.narrow(0, first, length).unsqueeze(1);
    const at::Tensor c = rows.narrow(1, first, length).transpose(0, 1);  // [length, R, T]
    const at::Tensor own = out.narrow(0, first, length);
    for (int64_t k = 0; k < nodes; k += at_once) {
      const int64_t count = std::min(at_once, nodes - k);
      const at::Tensor p = at::softmax(reference + all_nodes.narrow(1, k, count) * move, -1);  // [length, count, T]
      const at::Tensor weighted = p * all_weights.narrow(1, k, count);
      const at::Tensor along = at::bmm(c, p.transpose(1, 2));  // [length, R, count]
      if (group.far) {
        own.add_(((c.unsqueeze(2) - along.unsqueeze(3)) * weighted.unsqueeze(1)).sum(2));
        continue;
      }
      // A softmax ignores shifts of a row: so nothing large cancels.
      const at::Tensor shift = along.narrow(2, 0, 1);
      own.add_((c - shift) * weighted.sum(1, /*keepdim=*/true) - at::bmm(along - shift, weighted));
    }
  }
  return out.transpose(0, 1);
}

at::Tensor ApplyFused(const SoftmaxPath& path, const at::Tensor& given) {
  const at::Tensor rows = given.contiguous();
  at::Tensor out = at::empty(rows.sizes(), rows.options());
  const RowRules rules(path);
  DispatchReal(rows.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    SoftmaxAlongPath(EndsOf<T>(path), rules.data(), rows.data_ptr<T>(), rows.size(0), out.data_ptr<T>());
  });
  return out;
}

// rows: [R, G, T]
at::Tensor ApplyFlat(const SoftmaxPath& path, const at::Tensor& rows) {
  if (!path.choice.defined()) return at::empty(rows.sizes(), rows.options());
  if (!IsFollowed(rows) && Fused(path) && rows.scalar_type() == path.reference.scalar_type()) {
    return ApplyFused(path, rows.resolve_neg());
  }
  const std::vector<NodeGroup> groups = GroupsOf(path);
  if (groups.size() == 1) return ApplyGroup(groups[0], rows);
  at::Tensor out = at::empty(rows.sizes(), rows.options());
  for (const NodeGroup& group : groups) {
    out.index_copy_(1, group.index, ApplyGroup(group, rows.index_select(1, group.index)));
  }
  return out;
}

// Brings rows [R, *sizes] to [R, G, T] and back.
at::Tensor OnFlat(const SoftmaxPath& path, const at::Tensor& rows,
                  const std::function<at::Tensor(const at::Tensor&)>& f) {
  const at::Tensor moved = rows.dim() == 1 ? rows.unsqueeze(-1) : rows.movedim(path.dim + 1, -1);
  const at::Tensor result = f(moved.reshape({rows.size(0), path.reference.size(0), path.width})).reshape(moved.sizes());
  return rows.dim() == 1 ? result.squeeze(-1) : result.movedim(-1, path.dim + 1);
}

RuleResult Softmax(const RuleCall& call) {
  const SoftmaxPath path = MakePath(call, call.Int("dim", -1));
  const auto apply = [path, dtype = DtypeOf(call)](const at::Tensor& rows) {
    return OnFlat(path, rows.to(dtype), [&](const at::Tensor& flat) { return ApplyFlat(path, flat); });
  };
  const at::ScalarType input_dtype = call.Require("self").value.scalar_type();
  RuleResult result = LinearIn(call, Kind::kPath, "self", apply, [apply, input_dtype](const at::Tensor& g) {
    return apply(g.unsqueeze(0)).squeeze(0).to(input_dtype);  // every J is symmetric
  });
  result.exact = false;
  result.quadrature = TableFor(DtypeOf(call)).error;
  return result;
}

// The mean of p over the path: what log_softmax subtracts and logsumexp gives. Undefined where there are no rows.
at::Tensor MeanProbabilities(const SoftmaxPath& path) {
  if (!path.choice.defined()) return at::Tensor();
  at::Tensor mean = at::empty(path.reference.sizes(), path.reference.options());
  if (Fused(path)) {
    const RowRules rules(path);
    DispatchReal(mean.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      MeanSoftmaxAlongPath(EndsOf<T>(path), rules.data(), mean.data_ptr<T>());
    });
    return mean;
  }
  for (const NodeGroup& group : GroupsOf(path)) {
    at::Tensor own = at::zeros_like(group.move);
    for (size_t k = 0; k < group.rule->nodes.size(); ++k) {
      own.add_(at::softmax(group.reference + group.move * group.rule->nodes[k], -1), group.rule->weights[k]);
    }
    if (!group.index.defined()) return own;
    mean.index_copy_(0, group.index, own);
  }
  return mean;
}

// What stays infinite has no parts: rows there would be leftover of nothing.
at::Tensor Stays(const RuleCall& call) {
  const RuleOutput& output = call.outputs[0];
  return output.value.isinf().logical_and_(output.value.eq(output.reference));
}

RuleResult LogSoftmax(const RuleCall& call) {
  const SoftmaxPath path = MakePath(call, call.Int("dim", -1));
  const at::Tensor mean = MeanProbabilities(path);
  const at::Tensor stays = Stays(call);
  const bool some_stay = stays.any().item<bool>();
  const at::ScalarType dtype = DtypeOf(call);
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    const at::Tensor out = OnFlat(path, rows.to(dtype), [&](const at::Tensor& flat) {
      if (path.width == 1) return at::zeros_like(flat);  // one alone is a sure thing
      return mean.defined() ? flat - (mean * flat).sum(-1, true) : flat;
    });
    return some_stay ? out.masked_fill(stays, 0) : out;
  });
  result.exact = false;
  result.quadrature = TableFor(dtype).error;
  // The logarithm of what is almost sure is almost zero: the score less almost itself.
  const at::Tensor scores = call.Require("self").value;
  if (scores.numel() > 0) {
    const at::Tensor infinite = at::isfinite(scores).logical_not_();
    result.inner_terms = scores.abs().masked_fill(infinite, 0).max().item<double>();
  }
  return result;
}

// logsumexp(self, dim, keepdim)
RuleResult LogSumExp(const RuleCall& call) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  // The reduced dimensions come last, as one; the row axis comes first.
  std::vector<int64_t> dims = call.Ints("dim");
  for (int64_t& d : dims) d = d < 0 ? d + rank : d;
  std::sort(dims.begin(), dims.end());
  std::vector<int64_t> order = {0};
  int64_t groups = 1;
  int64_t width = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    order.push_back(d + 1);
    groups *= input.value.size(d);
  }
  for (int64_t k = 0; rank > 0 && k < static_cast<int64_t>(dims.size()); ++k) {
    order.push_back(dims[k] + 1);
    width *= input.value.size(dims[k]);
  }
  const auto flat = [=](const at::Tensor& rows) { return rows.permute(order).reshape({rows.size(0), groups, width}); };
  const auto one = [&](const at::Tensor& t) { return flat(t.unsqueeze(0)).select(0, 0).contiguous(); };
  const SoftmaxPath path = MakePath(call, one(input.value), one(input.reference));
  at::Tensor mean = MeanProbabilities(path);
  if (mean.defined()) mean = mean.masked_fill(Stays(call).reshape({groups, 1}), 0);
  const at::DimVector sizes(call.outputs[0].value.sizes());
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    at::DimVector all = WithRows(rows.size(0), sizes);
    const at::Tensor moved = flat(rows);
    return (mean.defined() ? moved * mean : moved).sum(-1).view(all);
  });
  result.exact = false;
  result.quadrature = TableFor(DtypeOf(call)).error;
  return result;
}

// logcumsumexp(self, dim): element k is the logsumexp of elements 0..k.
RuleResult LogCumulativeSumExp(const RuleCall& call) {
  const RuleOperand& input = call.Require("self");
  const int64_t rank = input.value.dim();
  const int64_t dim = rank == 0 ? 0 : (call.Int("dim", 0) + rank) % rank;
  const int64_t n = rank == 0 ? 1 : input.value.size(dim);
  const int64_t groups = n == 0 ? 0 : input.value.numel() / n;
  constexpr int64_t kMostElements = int64_t{1} << 26;
  if (input.value.numel() > kMostElements / std::max<int64_t>(n, 1)) {
    throw Unimplemented(call.name + " of so many elements: its derivative is too large");
  }
  const auto last = [=](const at::Tensor& rows) {
    return (rank == 0 ? rows : rows.movedim(dim + 1, -1)).reshape({rows.size(0), groups, n});
  };
  const at::Tensor index = at::arange(n, input.value.options().dtype(at::kLong));
  const at::Tensor later = index.unsqueeze(0).gt(index.unsqueeze(1));
  // Elements that come later are infinitely low. [groups * n, n]
  const auto prefixes = [&](const at::Tensor& t) {
    return last(t.unsqueeze(0))
        .reshape({groups, 1, n})
        .expand({groups, n, n})
        .masked_fill(later, -std::numeric_limits<double>::infinity())
        .reshape({groups * n, n});
  };
  const SoftmaxPath path = MakePath(call, prefixes(input.value), prefixes(input.reference));
  at::Tensor mean = MeanProbabilities(path);
  if (mean.defined()) {
    mean = mean.masked_fill(last(Stays(call).unsqueeze(0)).reshape({groups * n, 1}), 0).view({groups, n, n});
  }
  RuleResult result = LinearIn(call, Kind::kPath, "self", [=](const at::Tensor& rows) {
    if (!mean.defined()) return rows;
    const at::Tensor moved = rank == 0 ? rows.unsqueeze(-1) : rows.movedim(dim + 1, -1);
    const at::Tensor sums = at::bmm(mean, last(rows).permute({1, 2, 0})).permute({2, 0, 1}).reshape(moved.sizes());
    return rank == 0 ? sums.squeeze(-1) : sums.movedim(-1, dim + 1);
  });
  result.exact = false;
  result.quadrature = TableFor(DtypeOf(call)).error;
  return result;
}

}  // namespace

Quadrature PathNodes(double half_range, at::ScalarType dtype) {
  const NodeTable& table = TableFor(dtype);
  const double longest = table.half_range.back();
  const auto row = std::lower_bound(table.half_range.begin(), table.half_range.end(), half_range);
  if (row != table.half_range.end()) return GaussLegendre(table.nodes[row - table.half_range.begin()]);
  // Beyond that many the points of the line are nearer to each other than its ends have digits.
  const double most_pieces = dtype == at::kDouble ? 32768 : 4096;
  if (!(half_range <= most_pieces * longest)) return {};
  return Repeated(GaussLegendre(table.nodes.back()), static_cast<int>(std::ceil(half_range / longest)));
}

void RegisterAttention(Registry& registry) {
  registry.Register(Rule{"aten::softmax", Kind::kPath, Softmax}.Marks(kFreezeAttention));
  registry.Register(Rule{"aten::_softmax", Kind::kPath, Softmax}.Marks(kFreezeAttention));
  registry.Register({"aten::log_softmax", Kind::kPath, LogSoftmax});
  registry.Register({"aten::_log_softmax", Kind::kPath, LogSoftmax});
  registry.Register({"aten::logsumexp", Kind::kPath, LogSumExp});
  registry.Register({"aten::logcumsumexp", Kind::kPath, LogCumulativeSumExp});
}

}  // namespace addend

#include "core/rules/softmax_path.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/for_loops.h"
#include "core/rules/rows.h"
#include "core/rules/rule.h"
#include "core/rules/softmax_kernel.h"

namespace addend {
namespace {

struct NodeTable {
  NodeTable(double own_error, double pieces, const std::vector<int>& nodes, std::vector<double> ranges)
      : error(own_error), most_pieces(pieces), half_range(std::move(ranges)) {
    for (const int count : nodes) rules.push_back(std::make_shared<const Quadrature>(GaussLegendre(count)));
  }
  double error;
  double most_pieces;  // beyond that many the points of the line are nearer to each other than its ends have digits
  std::vector<double> half_range;
  std::vector<std::shared_ptr<const Quadrature>> rules;
};

const NodeTable& TableFor(at::ScalarType dtype) {
  static const auto& single = *new NodeTable{1e-6,
                                             4096,
                                             {1, 2, 3, 4, 8, 12, 16, 24, 32, 64, 96, 128},
                                             {0.025, 0.2, 0.5, 0.9, 2.5, 4, 5.4, 8.3, 11, 22, 33, 44}};
  static const auto& twice = *new NodeTable{1e-12,
                                            32768,
                                            {3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 128},
                                            {0.07, 0.19, 0.55, 0.95, 1.85, 2.7, 4.4, 6, 12.3, 18.5, 24.7}};
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

// Rows of one call that share a quadrature.
struct NodeGroup {
  at::Tensor index;      // positions among the softmax rows; undefined where it is all of them
  at::Tensor reference;  // [n, T]
  at::Tensor move;       // [n, T]
  const Quadrature* rule;
  bool far;          // so long that the short form of ApplyGroup would lose digits
  at::Tensor nodes;  // [2, nodes]: the rule's nodes, and their weights
};

at::Tensor NodesOn(const Quadrature& rule, const at::TensorOptions& options) {
  std::vector<double> all = rule.nodes;
  all.insert(all.end(), rule.weights.begin(), rule.weights.end());
  return at::tensor(all, at::kDouble).view({2, -1}).to(options);
}

double EpsilonOf(const SoftmaxPath& path) {
  return path.reference.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                     : std::numeric_limits<float>::epsilon();
}

// Rows whose largest number lies farther from zero are looked at more closely.
constexpr double kFarFromZero = 64;

bool Fused(const SoftmaxPath& path) { return ForFlatLoops(path.value, path.reference); }

template <typename T>
SoftmaxEnds<T> EndsOf(const SoftmaxPath& path) {
  return {path.value.data_ptr<T>(), path.reference.data_ptr<T>(), path.reference.size(0), path.width};
}

// Half the range of each row's move; undefined where a move is not finite.
at::Tensor HalfRangesByLoop(const SoftmaxPath& path) {
  at::Tensor half_range = at::empty({path.reference.size(0)}, path.reference.options());
  const bool finite = DispatchReal(path.reference.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    return HalfRanges(EndsOf<T>(path), half_range.data_ptr<T>());
  });
  return finite ? half_range.to(at::kDouble) : at::Tensor();
}

// Whether the largest number of some row of the reference lies that far from zero, which is finite.
bool IsFar(const SoftmaxPath& path, double least) {
  return DispatchReal(path.reference.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const SoftmaxEnds<T> ends = EndsOf<T>(path);
    for (int64_t g = 0; g < ends.groups; ++g) {
      const T* row = ends.reference + g * ends.width;
      const double top = *std::max_element(row, row + ends.width);
      if (std::abs(top) >= least && std::isfinite(top)) return true;
    }
    return false;
  });
}

// A softmax ignores shifts. Where a whole row lies far from zero (all of it masked by -1e4), the points between its
// reference and its value would be rounded to few digits: it is moved to zero. tops: f64[2, G] on the CPU, the largest
// numbers of each row at the reference and at the value.
void MoveToZero(const at::Tensor& tops, SoftmaxPath& path) {
  const at::Tensor top = tops[0];
  const at::Tensor far = top.abs().ge(kFarFromZero).logical_and_(top.isfinite());
  const at::Tensor together = (tops[1] - top).abs().le(top.abs() / 2);
  const at::Tensor moves = far.logical_and_(together);
  if (!ReadFlag(moves.any())) return;
  const at::Tensor shift = top.masked_fill(moves.logical_not(), 0).to(path.reference.options()).unsqueeze(1);
  path.reference = path.reference - shift;
  path.value = path.value - shift;
}

// Moves rows to zero and gives half the range of each row's move, f64 on the CPU; undefined where a move is not finite.
at::Tensor LookAtRows(SoftmaxPath& path, bool finite) {
  if (Fused(path)) {
    // Look through few numbers by a loop first: if none is far from zero, the calls are saved.
    constexpr int64_t kFew = int64_t{1} << 16;
    if (path.reference.numel() > kFew || IsFar(path, kFarFromZero)) {
      MoveToZero(at::stack({path.reference.amax(1), path.value.amax(1)}).to(at::kDouble), path);
    }
    return HalfRangesByLoop(path);
  }
  // One read of all that is decided by: Note [Host reads].
  const at::Tensor read = ReadNumbers([&] {
    const at::Tensor move = MoveOf(path.value, path.reference, finite);
    return at::stack({path.reference.amax(1), path.value.amax(1), move.amax(1), move.amin(1)});
  });
  const at::Tensor half_range = (read[2] - read[3]) / 2;
  if (!AllFinite(half_range)) return {};
  MoveToZero(read, path);
  return half_range.contiguous();
}

std::vector<NodeGroup> GroupsOf(const SoftmaxPath& path) {
  std::vector<NodeGroup> groups;
  if (!path.choice.defined()) return groups;
  const at::Tensor move = path.move.defined() ? path.move : MoveOf(path.value, path.reference);
  const NodeTable& table = TableFor(path.reference.scalar_type());
  const double eps = EpsilonOf(path);
  const auto far = [&](size_t c) {
    return c == table.half_range.size() || 2 * table.half_range[c] * eps > 4 * table.error;
  };
  for (size_t c = 0; c < path.rules.size(); ++c) {
    if (path.rules[c] == nullptr) continue;
    const at::Tensor index = path.choice.eq(static_cast<int64_t>(c)).nonzero().squeeze(1).to(move.device());
    const bool all = index.numel() == path.choice.numel();
    groups.push_back({all ? at::Tensor() : index, all ? path.reference : path.reference.index_select(0, index),
                      all ? move : move.index_select(0, index), path.rules[c].get(), far(c),
                      path.nodes.empty() ? NodesOn(*path.rules[c], move.options()) : path.nodes[c]});
  }
  return groups;
}

// Quadrature of each row, as the loops take it; holds the views that it points to.
class RowRules {
 public:
  explicit RowRules(const SoftmaxPath& path) {
    for (const auto& rule : path.rules) {
      if (rule == nullptr) {
        views_.push_back({nullptr, nullptr, 0});
      } else {
        views_.push_back({rule->nodes.data(), rule->weights.data(), static_cast<int64_t>(rule->nodes.size())});
      }
    }
    const int64_t* choice = path.choice.data_ptr<int64_t>();
    for (int64_t g = 0; g < path.choice.numel(); ++g) by_row_.push_back(&views_[choice[g]]);
  }
  const NodesView* const* data() const { return by_row_.data(); }

 private:
  std::vector<NodesView> views_;
  std::vector<const NodesView*> by_row_;
};

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
  const at::Tensor all_nodes = group.nodes.select(0, 0).view({1, -1, 1});
  const at::Tensor all_weights = group.nodes.select(0, 1).view({1, -1, 1});
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
      own.add_(at::baddbmm((c - shift) * weighted.sum(1, /*keepdim=*/true), along - shift, weighted, 1, -1));
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

// Below this a candidate's share is nothing beside the error of the quadrature.
constexpr double kNegligible = 48;
// A mask this low has long made its candidates vanish; float64 still tells scores apart beside it.
constexpr double kLowest = 1e10;

// Whether all numbers that lie below that at an end are one mask, so that they meet the others where they did if all
// are made larger in proportion.
bool AreOneMask(const at::Tensor& begin, const at::Tensor& end) {
  const at::Tensor both = at::stack({begin, end});
  const at::Tensor low = both.masked_select(both.lt(-kLowest).logical_and_(both.isinf().logical_not_()));
  if (low.numel() == 0) return true;
  return ReadNumber(low.max()) <= ReadNumber(low.min()) * (1 - 1e-6) &&
         ReadNumber(both.masked_select(both.ge(-kLowest)).abs().max()) <= kLowest / 1e4;
}

// Cuts the line of one row where too many candidates change places; see Note [Far scores].
class Cutter {
 public:
  Cutter(const double* start, const double* move, int64_t width) : start_(start), move_(move), width_(width) {}

  // False if some piece is too short for float64 to cut.
  bool Cut(Quadrature* nodes) const { return Cut(0, 1, nodes); }

 private:
  double At(int64_t i, double t) const { return start_[i] + t * move_[i]; }
  int64_t Leader(double t) const {
    int64_t best = 0;
    for (int64_t i = 1; i < width_; ++i) best = At(i, t) > At(best, t) ? i : best;
    return best;
  }

  // Half the range of the moves of what comes near the top between two points.
  double HalfRange(double from, double to) const {
    const int64_t a = Leader(from);
    const int64_t b = Leader(to);
    // The higher one of both leaders is lowest over any candidate at an end or where they cross.
    const double apart = move_[b] - move_[a];
    const double crossing = apart == 0 ? from : (start_[a] - start_[b]) / apart;
    const double points[] = {from, to, std::min(std::max(crossing, from), to)};
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (int64_t i = 0; i < width_; ++i) {
      double gap = std::numeric_limits<double>::infinity();
      for (const double t : points) gap = std::min(gap, std::max(At(a, t), At(b, t)) - At(i, t));
      if (gap > kNegligible) continue;
      low = std::min(low, move_[i]);
      high = std::max(high, move_[i]);
    }
    return (high - low) / 2 * (to - from);
  }

  bool Cut(double from, double to, Quadrature* nodes) const {
    const std::shared_ptr<const Quadrature> own = NodesFor(HalfRange(from, to));
    if (own != nullptr) {
      for (size_t k = 0; k < own->nodes.size(); ++k) {
        nodes->nodes.push_back(from + (to - from) * own->nodes[k]);
        nodes->weights.push_back((to - from) * own->weights[k]);
      }
      return true;
    }
    const double middle = from + (to - from) / 2;
    if (middle <= from || middle >= to) return false;
    return Cut(from, middle, nodes) && Cut(middle, to, nodes);
  }

  static std::shared_ptr<const Quadrature> NodesFor(double half_range) {
    const NodeTable& table = TableFor(at::kDouble);
    const auto row = std::lower_bound(table.half_range.begin(), table.half_range.end(), half_range);
    return row == table.half_range.end() ? nullptr : table.rules[row - table.half_range.begin()];
  }

  const double* start_;
  const double* move_;
  int64_t width_;
};

// Follows a far row in float64; none if that cannot follow it. value, reference: [T], finite.
std::optional<FarRow> FollowFar(const at::Tensor& value, const at::Tensor& reference) {
  FarRow far;
  const at::Tensor x = ReadNumbers(value);
  const at::Tensor b = ReadNumbers(reference);
  const at::Tensor hidden = x.eq(b).logical_and_(x.isinf());  // at both ends
  const at::Tensor end = x - x.max();
  const at::Tensor begin = b - b.max();
  if (!AllFinite(end.masked_fill(hidden, 0)) || !AllFinite(begin.masked_fill(hidden, 0))) return std::nullopt;
  if (!AreOneMask(begin, end)) return std::nullopt;
  far.start = begin.clamp_min(-kLowest);
  far.move = end.clamp_min(-kLowest) - far.start;
  // The candidate that is masked least, at the end where it is lower.
  far.anchor = ReadInteger(at::minimum(end, begin).argmax());
  if (ReadNumber(begin.min()) < -kLowest || ReadNumber(end.min()) < -kLowest) {
    const at::Tensor whole = (end - begin).masked_fill(hidden, 0);
    const at::Tensor own = whole - whole[far.anchor];
    const at::Tensor clamped = far.move - far.move[far.anchor];
    far.scale = (clamped / own).masked_fill(own.eq(0), 1);
    if (!AllFinite(own) || !AllFinite(far.scale)) return std::nullopt;
    far.shifts = ReadNumber(at::minimum(end, begin)[far.anchor]) >= -kLowest;
  }
  const Cutter cutter(far.start.data_ptr<double>(), far.move.data_ptr<double>(), x.numel());
  if (!cutter.Cut(&far.nodes)) return std::nullopt;
  return far;
}

struct FarNodes {
  at::Tensor p;        // [nodes, T]
  at::Tensor weights;  // [nodes, 1]
  at::Tensor leaders;  // [nodes]
};

FarNodes NodesOf(const FarRow& far, size_t first, size_t count, const at::Device& device) {
  const auto column = [&](const std::vector<double>& all) {
    const std::vector<double> some(all.begin() + static_cast<int64_t>(first),
                                   all.begin() + static_cast<int64_t>(first + count));
    return at::tensor(some, far.start.options()).unsqueeze(1);
  };
  const at::Tensor points = far.start + column(far.nodes.nodes) * far.move;
  return {at::softmax(points, -1).to(device), column(far.nodes.weights).to(device), points.argmax(1)};
}

// rows [R, T] through the softmax of a far row. Nodes that share a leader are taken together.
at::Tensor ApplyFar(const FarRow& far, const at::Tensor& rows, bool transposed) {
  at::Tensor c = rows.to(at::kDouble);
  const at::Tensor scale = far.scale.defined() ? far.scale.to(c.device()) : far.scale;
  if (scale.defined() && !transposed) c = (c - c.narrow(1, far.anchor, 1)) * scale;
  at::Tensor out = at::zeros_like(c);
  constexpr int64_t kMost = int64_t{1} << 22;
  const size_t at_once = static_cast<size_t>(std::max<int64_t>(1, kMost / std::max<int64_t>(c.size(1), 1)));
  for (size_t first = 0; first < far.nodes.nodes.size(); first += at_once) {
    const FarNodes all = NodesOf(far, first, std::min(at_once, far.nodes.nodes.size() - first), c.device());
    at::Tensor left = all.leaders;
    while (left.numel() > 0) {
      const int64_t leader = ReadInteger(left[0]);
      left = left.index_select(0, left.ne(leader).nonzero().squeeze(1));
      const at::Tensor index = all.leaders.eq(leader).nonzero().squeeze(1).to(c.device());
      const at::Tensor p = all.p.index_select(0, index);
      const at::Tensor weighted = p * all.weights.index_select(0, index);
      const at::Tensor apart = c - c.narrow(1, leader, 1);
      out = out + apart * weighted.sum(0) - at::mm(at::mm(apart, p.t()), weighted);
    }
  }
  if (scale.defined() && transposed) {
    out = out * scale;
    const at::Tensor place = at::zeros({out.size(1)}, out.options());
    place[far.anchor] = 1;
    out = out - out.sum(1, /*keepdim=*/true) * place;
  }
  return out.to(rows.scalar_type());
}

at::Tensor FarIndex(const SoftmaxPath& path, const at::Device& device) {
  std::vector<int64_t> index;
  for (const FarRow& far : path.far) index.push_back(far.row);
  return at::tensor(index, at::kLong).to(device);
}

// Takes the rows that move farther than equal pieces follow out of the path; false if one cannot be followed.
bool TakeFar(const std::vector<int64_t>& rows, const at::Tensor& value, const at::Tensor& reference,
             SoftmaxPath* path) {
  for (const int64_t g : rows) {
    std::optional<FarRow> far = FollowFar(value[g], reference[g]);
    if (!far) return false;
    far->row = g;
    path->choice.data_ptr<int64_t>()[g] = 0;
    path->far.push_back(std::move(*far));
  }
  path->rules[0] = TableFor(reference.scalar_type()).rules[0];
  const at::Tensor index = FarIndex(*path, reference.device());
  path->value = path->value.index_fill(0, index, 0);
  path->reference = path->reference.index_fill(0, index, 0);
  return true;
}

// Half the range of the longest move that a row takes in equal pieces. In single precision, rounding of what is masked
// by -1e4 at one end only is more than the quadrature may miss: such rows are followed in float64, as far ones.
double LongestNear(at::ScalarType dtype) {
  constexpr double kSingle = 1000;
  return dtype == at::kDouble ? LongestHalfRange(dtype) : std::min(kSingle, LongestHalfRange(dtype));
}

// Sets the move and the nodes that calls of LibTorch's operators take. Few rows all take the rule with the most nodes:
// more numbers, and fewer calls.
void PrepareForOperators(SoftmaxPath& path, bool finite) {
  constexpr int64_t kFew = int64_t{1} << 22;
  const auto last =
      std::find_if(path.rules.rbegin(), path.rules.rend(), [](const auto& rule) { return rule != nullptr; });
  if (last == path.rules.rend()) return;
  const auto nodes = static_cast<int64_t>((*last)->nodes.size());
  if (path.reference.numel() * nodes <= kFew) {
    const int64_t longest = path.rules.rend() - last - 1;
    for (int64_t c = 0; c < longest; ++c) path.rules[static_cast<size_t>(c)] = nullptr;
    path.choice.fill_(longest);
  }
  path.move = MoveOf(path.value, path.reference, finite);
  for (const auto& rule : path.rules) {
    path.nodes.push_back(rule == nullptr ? at::Tensor() : NodesOn(*rule, path.move.options()));
  }
}

}  // namespace

SoftmaxPath MakeSoftmaxPath(const std::string& op, const at::Tensor& value, const at::Tensor& reference, bool finite) {
  SoftmaxPath path;
  path.width = reference.size(1);
  path.value = value;
  path.reference = reference;
  path.error = SoftmaxPathError(reference.scalar_type());
  if (reference.numel() == 0) return path;
  const at::Tensor half_range = LookAtRows(path, finite);
  if (!half_range.defined()) {
    throw Unimplemented(op + " where an entry is infinite in the value or in the reference only");
  }
  const NodeTable& table = TableFor(reference.scalar_type());
  path.choice = at::empty({half_range.size(0)}, at::kLong);
  path.rules.resize(table.rules.size() + 1);
  const double longest_near = LongestNear(reference.scalar_type());
  double longest = 0;
  double farthest = 0;
  std::vector<int64_t> far;
  for (int64_t g = 0; g < half_range.size(0); ++g) {
    const double own = half_range.data_ptr<double>()[g];
    if (!(own <= longest_near)) {
      far.push_back(g);
      farthest = std::max(farthest, own);
      continue;
    }
    longest = std::max(longest, own);
    const auto row = std::lower_bound(table.half_range.begin(), table.half_range.end(), own);
    const int64_t c = row - table.half_range.begin();
    path.choice.data_ptr<int64_t>()[g] = c;
    if (c < static_cast<int64_t>(table.rules.size())) path.rules[c] = table.rules[c];
  }
  if (longest > table.half_range.back()) path.rules.back() = PathNodes(longest, reference.scalar_type());
  if (far.empty()) {
    if (!Fused(path)) PrepareForOperators(path, finite);
    return path;
  }
  if (!TakeFar(far, value, reference, &path)) {
    throw Unimplemented(op +
                        " where scores move farther from the reference to the value than can be followed, as those do "
                        "that are masked by several numbers below -1e10 in one of them only; mask by -1e9, or keep "
                        "the value's masks (policy conditions=value) and do not split them");
  }
  path.longest_near = longest;
  path.far_error = std::min(1.0, 8 * EpsilonOf(path) * farthest);
  return path;
}

double ErrorToClaim(const SoftmaxPath& path, const at::Tensor& value, const at::Tensor& reference,
                    const at::Tensor& moved) {
  if (path.far.empty()) return path.error;
  const at::Tensor finite = at::isfinite(value).logical_and_(at::isfinite(reference));
  const auto wide = [&](const at::Tensor& t) { return t.detach().to(at::kDouble); };
  const at::Tensor missed = (wide(value) - wide(reference) - wide(moved)).abs();
  // Measure against the magnitude of live scores: exp sees their absolute error.
  const auto top = [](const at::Tensor& scores) { return scores.detach().to(at::kDouble).amax(1, true).abs(); };
  const at::Tensor live = top(path.value).maximum(top(path.reference)) + 2 * path.longest_near;
  const at::Tensor size = 1 + live + wide(value).abs() + wide(reference).abs();
  const at::Tensor wrong =
      missed.le(size * (4 * path.error + 16 * EpsilonOf(path))).logical_not_().logical_and_(finite);
  const bool near_fail = ReadFlag(wrong.index_fill(0, FarIndex(path, wrong.device()), false).any());
  return near_fail ? path.error : path.error + path.far_error;
}

std::shared_ptr<const Quadrature> FarNodesOf(const at::Tensor& start, const at::Tensor& move) {
  const at::Tensor begin = ReadNumbers(start);
  const at::Tensor own = ReadNumbers(move);
  if (!AllFinite(own) || ReadNumber(own.abs().max()) > 2 * kLowest + LongestHalfRange(at::kDouble)) return nullptr;
  auto nodes = std::make_shared<Quadrature>();
  const Cutter cutter(begin.data_ptr<double>(), own.data_ptr<double>(), begin.numel());
  return cutter.Cut(nodes.get()) ? nodes : nullptr;
}

std::shared_ptr<const Quadrature> PathNodes(double half_range, at::ScalarType dtype) {
  const NodeTable& table = TableFor(dtype);
  const auto row = std::lower_bound(table.half_range.begin(), table.half_range.end(), half_range);
  if (row != table.half_range.end()) return table.rules[row - table.half_range.begin()];
  if (!(half_range <= LongestHalfRange(dtype))) return nullptr;
  const int pieces = static_cast<int>(std::ceil(half_range / table.half_range.back()));
  return std::make_shared<const Quadrature>(Repeated(*table.rules.back(), pieces));
}

namespace {

at::Tensor AlongNear(const SoftmaxPath& path, const at::Tensor& rows) {
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

at::Tensor MeanOfNear(const SoftmaxPath& path) {
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

}  // namespace

at::Tensor AlongSoftmaxPath(const SoftmaxPath& path, const at::Tensor& rows, bool transposed) {
  if (!path.choice.defined()) return at::empty(rows.sizes(), rows.options());
  if (path.far.empty()) return AlongNear(path, rows);
  const at::Tensor index = FarIndex(path, rows.device());
  // Put far rows in place afterwards: their large numbers would be infinite in float32.
  const at::Tensor near = AlongNear(path, rows.index_fill(1, index, 0));
  std::vector<at::Tensor> through;
  for (const FarRow& far : path.far) through.push_back(ApplyFar(far, rows.select(1, far.row), transposed));
  return near.index_copy(1, index, at::stack(through, 1));
}

at::Tensor MeanProbabilities(const SoftmaxPath& path) {
  if (!path.choice.defined()) return at::Tensor();
  if (path.far.empty()) return MeanOfNear(path);
  // In float64: one less a share of 1e-9 is none in float32.
  at::Tensor mean = MeanOfNear(path).to(at::kDouble);
  for (const FarRow& far : path.far) {
    if (!far.shifts) {
      throw Unimplemented(
          "the logarithm of a softmax whose every candidate is masked by less than -1e10 in the reference or in the "
          "value only; mask by -1e9, or keep the value's masks (policy conditions=value)");
    }
    at::Tensor own = at::zeros_like(far.start);
    for (size_t k = 0; k < far.nodes.nodes.size(); ++k) {
      own.add_(at::softmax(far.start + far.move * far.nodes.nodes[k], -1), far.nodes.weights[k]);
    }
    if (far.scale.defined()) {
      own.mul_(far.scale);
      own[far.anchor] = 0;
      own[far.anchor] = 1 - own.sum();
    }
    mean.select(0, far.row).copy_(own);
  }
  return mean;
}

double SoftmaxPathError(at::ScalarType dtype) { return TableFor(dtype).error; }

double LongestHalfRange(at::ScalarType dtype) {
  const NodeTable& table = TableFor(dtype);
  return table.most_pieces * table.half_range.back();
}

}  // namespace addend

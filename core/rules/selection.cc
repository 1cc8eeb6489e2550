// Operators that choose among elements: by size (maximum, clamp), by rank (sort, topk, kthvalue, median), among all
// elements so far (cummax), by frequency (mode).
//
// Note [Shares of a rank]
// Where elements move along lines, the k-th smallest of them is now this one, now that one. Its mean derivative is the
// share of the line for which each of them holds rank k; all ranks together are a doubly stochastic matrix. The shares
// are exact (order.h) where elements are few; among thousands, the order is taken at equally spaced points of the line
// instead, and what that misses is left over and reported. Under the preset fast the order at the value is taken.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/kinds.h"
#include "core/rules/order.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ------------------------------------------------------------------------------- elementwise choice among operands

// How much of the output comes from each operand at one point: weights that sum to 1.
using Chooser = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// The choice changes only where two of the lines cross. Between two neighbouring crossings it is that at their middle.
RuleResult Choice(const RuleCall& call, const std::vector<std::string>& arguments, const Chooser& choose) {
  const at::Tensor& output = call.outputs[0].value;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> starts;
  std::vector<at::Tensor> moves;
  for (const std::string& argument : arguments) {
    const int k = call.OperandAt(argument);
    const RuleOperand& operand = call.operands[k];
    values.push_back(operand.value.to(output.scalar_type()).expand_as(output));
    starts.push_back(operand.reference.to(output.scalar_type()).expand_as(output));
    moves.push_back(call.Move(k).to(output.scalar_type()).expand_as(output));
  }
  const bool fast = call.policy->preset == Preset::kFast;
  std::vector<at::Tensor> shares;
  if (fast) {
    shares = choose(values);
  } else {
    std::vector<at::Tensor> cuts = {at::zeros_like(output), at::zeros_like(output) + 1};
    for (size_t i = 0; i < starts.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const at::Tensor crossing = (starts[i] - starts[j]) / (moves[j] - moves[i]);
        cuts.push_back(crossing.masked_fill(at::isfinite(crossing).logical_not_(), 0).clamp(0, 1));
      }
    }
    const at::Tensor times = std::get<0>(at::stack(cuts).sort(0));
    for (int64_t piece = 0; piece + 1 < times.size(0); ++piece) {
      const at::Tensor length = times[piece + 1] - times[piece];
      const at::Tensor middle = (times[piece + 1] + times[piece]) / 2;
      std::vector<at::Tensor> points;
      for (size_t i = 0; i < starts.size(); ++i) points.push_back(starts[i] + middle * moves[i]);
      const std::vector<at::Tensor> weights = choose(points);
      for (size_t i = 0; i < weights.size(); ++i) {
        if (piece == 0) shares.push_back(at::zeros_like(output));
        shares[i] = shares[i] + weights[i] * length;
      }
    }
  }
  std::vector<Term> terms;
  for (size_t i = 0; i < arguments.size(); ++i) terms.push_back({call.OperandAt(arguments[i]), shares[i]});
  RuleResult result = Elementwise(call, Kind::kSelection, std::move(terms));
  result.exact = !fast;
  return result;
}

// The larger (sign 1) or smaller (-1) of two. NaN wins, or loses where numbers are preferred (fmax, fmin).
RuleResult LargerOfTwo(const RuleCall& call, double sign, bool prefer_numbers) {
  return Choice(call, {"self", "other"}, [=](const std::vector<at::Tensor>& at_point) -> std::vector<at::Tensor> {
    const at::Tensor lead = (at_point[0] - at_point[1]) * sign;
    // Ties are shared; equal infinities have no difference.
    at::Tensor first = (lead.sign() + 1) / 2;
    first = first.masked_fill(at_point[0].eq(at_point[1]), 0.5);
    const at::Tensor nan0 = at::isnan(at_point[0]);
    const at::Tensor nan1 = at::isnan(at_point[1]);
    first = first.masked_fill(nan1, prefer_numbers ? 1 : 0).masked_fill(nan0, prefer_numbers ? 0 : 1);
    return {first, 1 - first};
  });
}

// min(max(x, low), high), either of which may be missing.
RuleResult ClampToTensors(const RuleCall& call) {
  std::vector<std::string> arguments = {"self"};
  const bool has_low = call.OperandAt("min") >= 0;
  const bool has_high = call.OperandAt("max") >= 0;
  if (has_low) arguments.push_back("min");
  if (has_high) arguments.push_back("max");
  return Choice(call, arguments, [=](const std::vector<at::Tensor>& at_point) {
    const at::ScalarType dtype = at_point[0].scalar_type();
    std::vector<at::Tensor> weights = {at::zeros_like(at_point[0]) + 1};
    at::Tensor so_far = at_point[0];
    size_t next = 1;
    for (const bool is_low : {true, false}) {
      if (!(is_low ? has_low : has_high)) continue;
      const at::Tensor& bound = at_point[next++];
      const at::Tensor taken = is_low ? so_far.lt(bound) : so_far.gt(bound);
      for (at::Tensor& weight : weights) weight = weight.masked_fill(taken, 0);
      weights.push_back(taken.to(dtype));
      so_far = at::where(taken, bound, so_far);
    }
    return weights;
  });
}

// ------------------------------------------------------------------------------------------- choice along a dimension

// Rows of [G, n] elements become rows of [G, k]: `weight` of element `from` goes to result `to`, both counted over all
// groups.
struct Weights {
  int64_t groups = 0, n = 0, k = 0;
  at::Tensor to, from, weight;
  at::Tensor matrices;  // [G, k, n] instead, where that takes less

  at::Tensor Apply(const at::Tensor& rows) const {
    const int64_t count = rows.size(0);
    if (matrices.defined()) {
      return at::bmm(matrices, rows.permute({1, 2, 0})).permute({2, 0, 1});
    }
    const at::Tensor moved = rows.reshape({count, groups * n}).index_select(1, from) * weight;
    return at::zeros({count, groups * k}, rows.options()).index_add(1, to, moved).view({count, groups, k});
  }

  at::Tensor ApplyTransposed(const at::Tensor& rows) const {
    const int64_t count = rows.size(0);
    if (matrices.defined()) {
      return at::bmm(matrices.transpose(1, 2), rows.permute({1, 2, 0})).permute({2, 0, 1});
    }
    const at::Tensor moved = rows.reshape({count, groups * k}).index_select(1, to) * weight;
    return at::zeros({count, groups * n}, rows.options()).index_add(1, from, moved).view({count, groups, n});
  }

  // Dense where the matrices are not much larger than the list of their elements.
  void Settle() {
    if (matrices.defined() || groups * k * n > std::max<int64_t>(int64_t{1} << 20, 8 * weight.numel())) return;
    const at::Tensor flat = at::zeros({groups * k * n}, weight.options());
    const at::Tensor group = to.div(std::max<int64_t>(k, 1), "floor");
    flat.index_add_(0, to * n + (from - group * n), weight);
    matrices = flat.view({groups, k, n});
  }
};

// The dimension that a call works on, moved behind all others.
struct Along {
  int64_t dim = 0;
  int64_t rank = 0;
  int64_t n = 1;
  bool everything = false;  // all elements as one dimension

  int64_t groups = 1;

  at::Tensor Flat(const at::Tensor& t) const {
    return (everything || rank == 0 ? t : t.movedim(dim, -1)).reshape({groups, n}).contiguous();
  }
  at::Tensor FlatRows(const at::Tensor& rows) const {
    return (everything || rank == 0 ? rows : rows.movedim(dim + 1, -1)).reshape({rows.size(0), groups, n});
  }
  // Rows [R, G, k] of a result whose dimension `dim` has k elements, or which lacks it.
  at::Tensor Unflat(const at::Tensor& rows, at::IntArrayRef sizes) const {
    at::DimVector moved = WithRows(rows.size(0), sizes);
    if (everything || rank == 0 || static_cast<int64_t>(sizes.size()) < rank) return rows.reshape(moved);
    moved.erase(moved.begin() + dim + 1);
    moved.push_back(rows.size(2));
    return rows.reshape(moved).movedim(-1, dim + 1);
  }
};

Along AlongDim(const RuleCall& call, int64_t dim) {
  const at::Tensor& input = call.Require("self").value;
  Along along;
  along.rank = input.dim();
  along.dim = along.rank == 0 ? 0 : (dim < 0 ? dim + along.rank : dim);
  along.n = along.rank == 0 ? 1 : input.size(along.dim);
  for (int64_t d = 0; d < along.rank; ++d) along.groups *= d == along.dim ? 1 : input.size(d);
  return along;
}

Along AlongEverything(const RuleCall& call) {
  Along along;
  along.everything = true;
  along.rank = call.Require("self").value.dim();
  along.n = call.Require("self").value.numel();
  return along;
}

RuleResult Select(const RuleCall& call, const Along& along, Weights weights, bool exact) {
  weights.Settle();
  const at::DimVector out(call.outputs[0].value.sizes());
  const at::DimVector in(call.Require("self").value.sizes());
  RuleResult result = LinearIn(
      call, Kind::kSelection, "self",
      [=](const at::Tensor& rows) { return along.Unflat(weights.Apply(along.FlatRows(rows)), out); },
      [=](const at::Tensor& g) {
        const at::Tensor flat = along.rank > 0 && !along.everything && static_cast<int64_t>(out.size()) == along.rank
                                    ? g.movedim(along.dim, -1)
                                    : g;
        const at::Tensor back = weights.ApplyTransposed(flat.reshape({1, weights.groups, weights.k}));
        return along.Unflat(back, in).squeeze(0);
      });
  result.exact = exact;
  return result;
}

// Weights of the elements that LibTorch chose, [G, k].
Weights Chosen(const at::Tensor& index, int64_t n, const at::TensorOptions& options) {
  Weights weights;
  weights.groups = index.size(0);
  weights.n = n;
  weights.k = index.size(1);
  weights.to = at::arange(index.numel(), index.options());
  weights.from = (index + at::arange(index.size(0), index.options()).unsqueeze(1) * n).reshape({-1});
  weights.weight = at::zeros({index.numel()}, options) + 1;
  return weights;
}

// Positions of the results of a call that gives indices, [G, k].
at::Tensor IndicesOf(const RuleCall& call, const Along& along) {
  const at::Tensor& index = call.outputs[1].value;
  if (along.rank == 0 || index.dim() < along.rank) return index.reshape({along.groups, 1});
  return index.movedim(along.dim, -1).reshape({along.groups, index.size(along.dim)});
}

// Weights of the choice, sampled at many points of the line; see Note [Shares of a rank].
Weights Sampled(const at::Tensor& value, const at::Tensor& reference,
                const std::function<at::Tensor(const at::Tensor&)>& choose) {
  constexpr int kPoints = 64;
  Weights all;
  std::vector<at::Tensor> to;
  std::vector<at::Tensor> from;
  const at::Tensor move = (value - reference).masked_fill_(value.eq(reference), 0);
  for (int p = 0; p < kPoints; ++p) {
    all = Chosen(choose(reference + move * ((p + 0.5) / kPoints)), value.size(1), value.options());
    to.push_back(all.to);
    from.push_back(all.from);
  }
  all.to = at::cat(to);
  all.from = at::cat(from);
  all.weight = at::zeros({all.to.numel()}, value.options()) + 1.0 / kPoints;
  return all;
}

// Selects by sampled weights. The largest error of the choice, relative to the largest element, becomes the
// quadrature's.
RuleResult SelectSampled(const RuleCall& call, const Along& along, const Weights& weights) {
  RuleResult result = Select(call, along, weights, false);
  result.kind = Kind::kPath;
  const RuleOutput& output = call.outputs[0];
  const at::Tensor passed = result.map->Forward({call.Move(result.inputs[0]).unsqueeze(0)})[0].select(0, 0);
  const at::Tensor rise = (output.value - output.reference).masked_fill(output.value.eq(output.reference), 0);
  const double missed = ReadNumber((rise - passed).abs().max());
  const double largest = ReadNumber(at::maximum(output.value.abs(), output.reference.abs()).max());
  result.quadrature = std::max(1e-12, missed / std::max(largest, std::numeric_limits<double>::min()));
  return result;
}

// Steps that exact shares may take before the order is sampled instead.
constexpr int64_t kMostPairs = int64_t{1} << 28;

template <typename T>
void AddGroups(const at::Tensor& value, const at::Tensor& reference, int64_t first, int64_t last,
               std::vector<std::vector<RankShare>>* shares) {
  const int64_t n = value.size(1);
  for (int64_t g = 0; g < value.size(0); ++g) {
    shares->emplace_back();
    AddRankShares<T>(value.data_ptr<T>() + g * n, reference.data_ptr<T>() + g * n, n, first, last, &shares->back());
  }
}

// Shares of the ranks first..last-1; those from the largest down where `descending`.
Weights RankWeights(const at::Tensor& value, const at::Tensor& reference, int64_t first, int64_t last,
                    bool descending) {
  const int64_t n = value.size(1);
  const int64_t k = last - first;
  const bool single = value.scalar_type() == at::kFloat;
  const at::Tensor x = ReadNumbers(value).to(single ? at::kFloat : at::kDouble);
  const at::Tensor b = ReadNumbers(reference).to(x.scalar_type());
  std::vector<std::vector<RankShare>> shares;
  if (single) {
    AddGroups<float>(x, b, first, last, &shares);
  } else {
    AddGroups<double>(x, b, first, last, &shares);
  }
  std::vector<int64_t> to;
  std::vector<int64_t> from;
  std::vector<double> weight;
  for (size_t g = 0; g < shares.size(); ++g) {
    for (const RankShare& share : shares[g]) {
      const int64_t place = descending ? last - 1 - share.rank : share.rank - first;
      to.push_back(static_cast<int64_t>(g) * k + place);
      from.push_back(static_cast<int64_t>(g) * n + share.candidate);
      weight.push_back(share.share);
    }
  }
  Weights weights;
  weights.groups = value.size(0);
  weights.n = n;
  weights.k = k;
  weights.to = at::tensor(to, at::kLong).to(value.device());
  weights.from = at::tensor(from, at::kLong).to(value.device());
  weights.weight = at::tensor(weight, at::kDouble).to(value.options());
  return weights;
}

// Ranks first..last-1 of a dimension, in ascending or descending order.
RuleResult Ranks(const RuleCall& call, const Along& along, int64_t first, int64_t last, bool descending,
                 bool in_order = true) {
  const RuleOperand& input = call.Require("self");
  const at::Tensor value = along.Flat(input.value);
  if (value.numel() == 0)
    return Select(call, along, Chosen(at::zeros({value.size(0), 0}, at::kLong), along.n, value.options()), true);
  const bool fast = call.policy->preset == Preset::kFast;
  if (fast || !in_order) {
    if (call.outputs.size() > 1) {
      return Select(call, along, Chosen(IndicesOf(call, along), along.n, value.options()), false);
    }
    const at::Tensor order = at::argsort(value, int64_t{-1}, false).narrow(1, first, last - first);
    return Select(call, along, Chosen(order, along.n, value.options()), false);
  }
  const at::Tensor reference = along.Flat(input.reference);
  if (value.size(0) * along.n > kMostPairs / along.n) {
    return SelectSampled(call, along, Sampled(value, reference, [=](const at::Tensor& at_point) {
                           const at::Tensor order =
                               at::argsort(at_point, int64_t{-1}, false).narrow(1, first, last - first);
                           return descending ? order.flip({1}) : order;
                         }));
  }
  // A number that is NaN at one end only has no line.
  const bool whole = ReadEqual(at::isnan(value), at::isnan(reference));
  return Select(call, along, RankWeights(value, reference, first, last, descending), whole);
}

// sort(self, dim, descending) or sort.stable(self, stable, dim, descending)
RuleResult Sort(const RuleCall& call) {
  const Along along = AlongDim(call, call.Int("dim", -1));
  return Ranks(call, along, 0, along.n, call.Bool("descending", false));
}

// topk(self, k, dim, largest, sorted)
RuleResult TopK(const RuleCall& call) {
  const Along along = AlongDim(call, call.Int("dim", -1));
  const int64_t k = call.Int("k", 1);
  const bool largest = call.Bool("largest", true);
  return Ranks(call, along, largest ? along.n - k : 0, largest ? along.n : k, largest, call.Bool("sorted", true));
}

RuleResult KthValue(const RuleCall& call) {
  const Along along = AlongDim(call, call.Int("dim", -1));
  const int64_t k = call.Int("k", 1);
  return Ranks(call, along, k - 1, k, false);
}

// The lower one of two medians. Where there is a NaN, median gives NaN and nothing passes; nanmedian leaves it out.
RuleResult Median(const RuleCall& call, bool skip_nan) {
  const bool everything = !call.Given("dim").isInt();
  const Along along = everything ? AlongEverything(call) : AlongDim(call, call.Int("dim", -1));
  const RuleOperand& input = call.Require("self");
  const at::Tensor value = along.Flat(input.value);
  const at::Tensor nans = at::isnan(value).sum(1);
  if (!ReadFlag(nans.any()) || value.numel() == 0)
    return Ranks(call, along, (along.n - 1) / 2, (along.n - 1) / 2 + 1, false);
  // Each group has a rank of its own.
  const at::Tensor numbers = along.n - nans;
  const bool fast = call.policy->preset == Preset::kFast;
  const at::Tensor reference = along.Flat(input.reference);
  const at::Tensor rank = at::maximum(numbers - 1, at::zeros_like(numbers)).div(2, "floor").unsqueeze(1);
  Weights weights;
  if (fast || value.size(0) * along.n > kMostPairs / along.n) {
    weights = Chosen(at::argsort(value, int64_t{-1}, false).gather(1, rank), along.n, value.options());
  } else {
    const Weights all = RankWeights(value, reference, 0, along.n, false);
    const at::Tensor group = all.to.div(along.n, "floor");
    const at::Tensor own = (all.to - group * along.n).eq(rank.squeeze(1).index_select(0, group)).nonzero().squeeze(1);
    weights.groups = all.groups;
    weights.n = all.n;
    weights.k = 1;
    weights.to = group.index_select(0, own);
    weights.from = all.from.index_select(0, own);
    weights.weight = all.weight.index_select(0, own);
  }
  const at::Tensor counted = skip_nan ? numbers.gt(0) : nans.eq(0);
  weights.weight = weights.weight.masked_fill(counted.index_select(0, weights.to).logical_not(), 0);
  const bool exact = !fast && ReadEqual(at::isnan(value), at::isnan(reference));
  return Select(call, along, weights, exact);
}

// The largest (sign 1) or smallest (-1) of all elements up to each one: the upper envelope of ever more lines.
RuleResult CumulativeExtremum(const RuleCall& call, double sign) {
  const Along along = AlongDim(call, call.Int("dim", 0));
  const RuleOperand& input = call.Require("self");
  const at::Tensor value = along.Flat(input.value);
  const int64_t n = along.n;
  if (call.policy->preset == Preset::kFast || value.numel() == 0) {
    return Select(call, along, Chosen(IndicesOf(call, along), n, value.options()), value.numel() == 0);
  }
  const at::Tensor reference = along.Flat(input.reference);
  if (value.numel() > (int64_t{1} << 24) / n) {
    return SelectSampled(call, along, Sampled(value, reference, [=](const at::Tensor& at_point) {
                           return std::get<1>(at::cummax(at_point * sign, 1));
                         }));
  }
  // Element k sees candidates 0..k; the others are infinitely low.
  const at::Tensor index = at::arange(n, value.options().dtype(at::kLong));
  const at::Tensor hidden = index.unsqueeze(1).lt(index.unsqueeze(0));
  const auto candidates = [&](const at::Tensor& t) {
    return (t * sign).unsqueeze(1).expand({t.size(0), n, n}).masked_fill(hidden, -kInfinity);
  };
  Weights weights;
  weights.groups = value.size(0);
  weights.n = n;
  weights.k = n;
  weights.matrices = EnvelopeShares(candidates(value), candidates(reference));
  return Select(call, along, weights, true);
}

// The most frequent element. On a line, elements are equal only where they move together: the mode is the smallest one
// of those that most others move with. At the ends more may be equal, by chance or because all are zero; what jumps
// there is left over.
RuleResult Mode(const RuleCall& call) {
  const Along along = AlongDim(call, call.Int("dim", -1));
  const RuleOperand& input = call.Require("self");
  const at::Tensor value = along.Flat(input.value);
  const at::Tensor reference = along.Flat(input.reference);
  if (call.policy->preset == Preset::kFast || value.numel() == 0 || value.numel() > (int64_t{1} << 24) / along.n) {
    return Select(call, along, Chosen(IndicesOf(call, along), along.n, value.options()), value.numel() == 0);
  }
  const auto equals = [](const at::Tensor& t) { return t.unsqueeze(1).eq(t.unsqueeze(2)); };
  const at::Tensor together = equals(value).logical_and(equals(reference)).sum(2);
  const at::Tensor most = together.amax(1, /*keepdim=*/true);
  const auto candidates = [&](const at::Tensor& t) { return t.neg().masked_fill(together.ne(most), -kInfinity); };
  const bool chance = ReadFlag(equals(value).sum(2).amax(1, true).ne(most).any()) ||
                      ReadFlag(equals(reference).sum(2).amax(1, true).ne(most).any());
  Weights weights;
  weights.groups = value.size(0);
  weights.n = along.n;
  weights.k = 1;
  weights.matrices = EnvelopeShares(candidates(value), candidates(reference)).unsqueeze(1);
  return Select(call, along, weights, !chance);
}

}  // namespace

void RegisterSelection(Registry& registry) {
  const auto maximum = [](const RuleCall& c) { return LargerOfTwo(c, 1, false); };
  registry.Register(Rule{"aten::maximum", Kind::kSelection, maximum}.KeepsMarks());
  registry.Register(Rule{"aten::max.other", Kind::kSelection, maximum});
  const auto minimum = [](const RuleCall& c) { return LargerOfTwo(c, -1, false); };
  registry.Register(Rule{"aten::minimum", Kind::kSelection, minimum}.KeepsMarks());
  registry.Register(Rule{"aten::min.other", Kind::kSelection, minimum});
  registry.Register(Rule{"aten::fmax", Kind::kSelection, [](const RuleCall& c) { return LargerOfTwo(c, 1, true); }});
  registry.Register(Rule{"aten::fmin", Kind::kSelection, [](const RuleCall& c) { return LargerOfTwo(c, -1, true); }});
  for (const char* name : {"aten::clamp.Tensor", "aten::clamp_min.Tensor", "aten::clamp_max.Tensor"}) {
    registry.Register(Rule{name, Kind::kSelection, ClampToTensors}.KeepsMarks());
  }

  registry.Register(Rule{"aten::sort", Kind::kSelection, Sort});
  registry.Register(Rule{"aten::topk", Kind::kSelection, TopK});
  registry.Register(Rule{"aten::kthvalue", Kind::kSelection, KthValue});
  registry.Register(Rule{"aten::median", Kind::kSelection, [](const RuleCall& c) { return Median(c, false); }});
  registry.Register(Rule{"aten::nanmedian", Kind::kSelection, [](const RuleCall& c) { return Median(c, true); }});
  registry.Register(Rule{"aten::mode", Kind::kSelection, Mode});
  registry.Register(Rule{"aten::cummax", Kind::kSelection, [](const RuleCall& c) { return CumulativeExtremum(c, 1); }});
  registry.Register(
      Rule{"aten::cummin", Kind::kSelection, [](const RuleCall& c) { return CumulativeExtremum(c, -1); }});
}

}  // namespace addend

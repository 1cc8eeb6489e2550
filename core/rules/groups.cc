#include "core/rules/groups.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/element_map.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

at::Tensor JoinedElements(const RuleCall& call, const Groups& groups, bool reference, double padding) {
  const auto options = call.outputs[0].value.options();
  std::vector<at::Tensor> flat;
  for (const int k : groups.operands) {
    const RuleOperand& operand = call.operands[k];
    flat.push_back((reference ? operand.reference : operand.value).reshape({-1}));
  }
  flat.push_back(at::full({1}, groups.constant, options));
  flat.push_back(at::full({1}, padding, options));
  return at::cat(flat, 0);
}

at::Tensor Counts(const Groups& groups) { return at::bincount(groups.target, {}, groups.outputs); }

// [outputs, members of the largest group].
at::Tensor Table(const Groups& groups) {
  const at::Tensor counts = Counts(groups);
  const int64_t width = groups.outputs == 0 ? 1 : std::max<int64_t>(ReadInteger(counts.max()), 1);
  at::Tensor table = at::full({groups.outputs * width}, kNoElement, groups.target.options());
  const auto sorted = at::sort(groups.target, /*stable=*/true, 0, false);
  const at::Tensor target = std::get<0>(sorted);
  const at::Tensor start = counts.cumsum(0) - counts;
  const at::Tensor place = at::arange(target.size(0), target.options()) - start.index_select(0, target);
  table.index_copy_(0, target * width + place, groups.source.index_select(0, std::get<1>(sorted)));
  return table.view({groups.outputs, width});
}

RuleResult Sum(const RuleCall& call, const Groups& groups, bool mean) {
  at::Tensor weight;
  if (mean) {
    weight = Counts(groups).to(call.outputs[0].value.scalar_type()).reciprocal().index_select(0, groups.target);
  }
  const Kind kind = groups.operands.size() > 1 ? Kind::kAffine : Kind::kLinear;
  return WeightedScatter(call, kind, groups.operands, groups.source, groups.target, weight);
}

// The largest (sign 1) or smallest (-1) of each group.
RuleResult Extremum(const RuleCall& call, const Groups& groups, double sign) {
  at::Tensor table = Table(groups);
  const double never = -sign * std::numeric_limits<double>::infinity();
  const auto candidates = [&](bool reference) {
    const at::Tensor elements = JoinedElements(call, groups, reference, never);
    const at::Tensor number = table.masked_fill(table.eq(kNoElement), groups.elements + 1);
    return elements.index_select(0, number.reshape({-1})).view(table.sizes()) * sign;
  };
  const bool fast = call.policy->preset == Preset::kFast;
  at::Tensor shares = fast ? WinnerShares(candidates(false)) : EnvelopeShares(candidates(false), candidates(true));
  KeepShares(&table, &shares);
  RuleResult result = WeightedGather(call, Kind::kSelection, groups.operands, table, shares);
  result.exact = !fast;
  return result;
}

// The product of each group by the path rule: the derivative by one factor is the product of all others, a polynomial
// along the line that Gauss-Legendre nodes integrate exactly.
RuleResult Product(const RuleCall& call, const Groups& groups) {
  const at::Tensor table = Table(groups);
  const auto factors = [&](bool reference) {
    const at::Tensor elements = JoinedElements(call, groups, reference, 1);
    const at::Tensor number = table.masked_fill(table.eq(kNoElement), groups.elements + 1);
    return elements.index_select(0, number.reshape({-1})).view(table.sizes());
  };
  const at::Tensor end = factors(false);
  const at::Tensor begin = factors(true);
  const at::Tensor move = MoveOf(end, begin);
  const at::Tensor one = at::ones_like(end.narrow(1, 0, 1));
  const int64_t width = table.size(1);
  at::Tensor weight = at::zeros_like(end);
  const Quadrature rule = GaussLegendre(static_cast<int>((width + 1) / 2));
  for (size_t q = 0; q < rule.nodes.size(); ++q) {
    const at::Tensor point = begin + rule.nodes[q] * move;
    const at::Tensor before = at::cat({one, point.narrow(1, 0, width - 1)}, 1).cumprod(1);
    const at::Tensor behind = at::cat({one, point.flip({1}).narrow(1, 0, width - 1)}, 1).cumprod(1).flip({1});
    weight += rule.weights[q] * before * behind;
  }
  return WeightedGather(call, Kind::kBilinear, groups.operands, table, weight);
}

}  // namespace

RuleResult ReduceGroups(const RuleCall& call, const Groups& groups, const std::string& how) {
  if (how == "sum" || how == "add") return Sum(call, groups, false);
  if (how == "mean") return Sum(call, groups, true);
  if (how == "amax" || how == "max") return Extremum(call, groups, 1);
  if (how == "amin" || how == "min") return Extremum(call, groups, -1);
  if (how == "prod" || how == "multiply") return Product(call, groups);
  throw Unimplemented(absl::StrCat(call.name, " with reduce=", how));
}

}  // namespace addend

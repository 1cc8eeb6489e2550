// Tables read by ids. Ids are plain; those of a labelled input start rows at aten::embedding (the linearizer does
// that), what remains is a decomposed table.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/rules/bags.h"
#include "core/rules/element_map.h"
#include "core/rules/families.h"
#include "core/rules/groups.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

RuleResult Embedding(const RuleCall& call) {
  const at::Tensor index = call.Require("indices").value;
  return LinearIn(call, Kind::kLinear, "weight", [=](const at::Tensor& rows) {
    at::DimVector sizes = WithRows(rows.size(0), index.sizes());
    sizes.push_back(rows.size(-1));
    return at::index_select(rows, 1, index.reshape({-1})).view(sizes);
  });
}

// embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
// padding_idx): every bag is the sum, the mean or the largest of the table's rows that its ids name.
RuleResult EmbeddingBag(const RuleCall& call) {
  const int table = call.OperandAt("weight");
  const int samples = call.OperandAt("per_sample_weights");
  const RuleOperand& w = call.operands[table];
  const at::Tensor& output = call.outputs[0].value;
  const int64_t bags = output.size(0);
  const int64_t width = output.size(1);
  const at::Tensor ids = call.Require("indices").value.to(at::kLong);
  // Ids of padding are in none.
  const at::Tensor all_bags = BagsOf(call.Require("offsets").value, ids.size(0), bags);
  const int64_t padding = call.Int("padding_idx", -1);
  const at::Tensor kept = ids.ne(padding).logical_and_(all_bags.ge(0)).nonzero().squeeze(1);
  const at::Tensor bag = all_bags.index_select(0, kept);
  const at::Tensor id = ids.index_select(0, kept);

  const auto mode = static_cast<BagMode>(call.Int("mode", 0));
  if (mode == BagMode::kMax) {
    const at::Tensor column = at::arange(width, ids.options());
    Groups groups;
    groups.operands = {table};
    groups.outputs = output.numel();
    groups.elements = w.value.numel();
    groups.source = (id.unsqueeze(1) * width + column).reshape({-1});
    groups.target = (bag.unsqueeze(1) * width + column).reshape({-1});
    return ReduceGroups(call, groups, "amax");
  }

  // The weight of each id in its bag: its own, or one part of the bag's ids.
  const bool weighted = samples >= 0;
  Meeting meeting;
  meeting.second_moves = w.decomposed;
  at::Tensor weight;
  if (weighted) {
    meeting = Meet(*call.policy, call.operands[samples], w);
    weight = meeting.first.index_select(0, kept).unsqueeze(1);
  } else if (mode == BagMode::kMean) {
    const at::Tensor counts =
        at::zeros({bags}, output.options()).index_add_(0, bag, at::ones(bag.sizes(), output.options()));
    weight = counts.reciprocal().index_select(0, bag).unsqueeze(1);
  }
  const bool table_moves = meeting.second_moves;
  const bool weights_move = meeting.first_moves;
  const at::Tensor vectors = weights_move ? meeting.second.index_select(0, id) : at::Tensor();
  RuleResult result;
  result.kind = w.decomposed && call.Decomposed("per_sample_weights") ? Kind::kBilinear : Kind::kLinear;
  if (table_moves) result.inputs.push_back(table);
  if (weights_move) result.inputs.push_back(samples);
  if (result.inputs.empty()) return result;
  result.map = MakeMap(call, result.inputs, [=](const Rows& rows) -> Rows {
    at::Tensor sum;
    if (table_moves) {
      sum = rows[0].index_select(1, id);
      if (weight.defined()) sum = sum * weight;
    }
    if (weights_move) {
      const at::Tensor passed = rows[table_moves ? 1 : 0].index_select(1, kept).unsqueeze(2) * vectors;
      sum = sum.defined() ? sum + passed : passed;
    }
    return {at::zeros({sum.size(0), bags, width}, sum.options()).index_add(1, bag, sum)};
  });
  return result;
}

// embedding_renorm_(self, indices, max_norm, norm_type): each vector w that is read is multiplied by a scale s of its
// norm n, s(n) = max_norm / (n + 1e-7) where n > max_norm, else 1. A product of w and s, each by its own path rule: s
// by secants of s(n), of n = (sum of |w|^p)^(1/p) and of |w|^p.
RuleResult Renormalize(const RuleCall& call) {
  constexpr double kEpsilon = 1e-7;  // LibTorch's
  const RuleOperand& w = call.Require("self");
  const double most = call.Double("max_norm", 0);
  const double p = call.Double("norm_type", 2);
  if (!(p >= 1) || std::isinf(p)) throw Unimplemented(absl::StrCat(call.name, " with norm_type=", p));
  if (!w.decomposed) return Opaque(call);
  const at::Tensor ids = std::get<0>(at::_unique(call.Require("indices").value.reshape({-1}).to(at::kLong)));
  const at::Tensor x = w.value.index_select(0, ids);
  const at::Tensor b = w.reference.index_select(0, ids);
  const auto power = [p](const at::Tensor& t) { return t.abs().pow(p); };
  const auto root = [p](const at::Tensor& t) { return t.pow(1 / p); };
  const auto scale = [most](const at::Tensor& n) {
    return at::where(n.gt(most), most / (n + kEpsilon), at::ones_like(n));
  };
  const at::Tensor of_power = SecantSlope(x, b, power(x), power(b), p == 1 ? Curve::kPiecewiseLinear : Curve::kPower,
                                          [p](const at::Tensor& t) { return p * t.abs().pow(p - 1) * t.sign(); });
  const at::Tensor sum_x = power(x).sum(1, true);
  const at::Tensor sum_b = power(b).sum(1, true);
  const at::Tensor norm_x = root(sum_x);
  const at::Tensor norm_b = root(sum_b);
  at::Tensor of_root = SecantSlope(sum_x, sum_b, norm_x, norm_b, Curve::kPower,
                                   [p](const at::Tensor& t) { return t.pow(1 / p - 1) / p; });
  const at::Tensor of_scale =
      SecantSlope(norm_x, norm_b, scale(norm_x), scale(norm_b), Curve::kPower, [most](const at::Tensor& n) {
        return at::where(n.gt(most), -most / (n + kEpsilon).square(), at::zeros_like(n));
      });
  // A vector of zeros is not scaled, whatever its norm's derivative.
  of_root = of_root.masked_fill(of_scale.eq(0), 0);
  const bool content_first = (call.policy->content_first & kFreezeNormalizer) != 0;
  const at::Tensor met_scale = content_first ? scale(norm_x) : (scale(norm_x) + scale(norm_b)) / 2;
  const at::Tensor met = (content_first ? b : (x + b) / 2) * of_scale * of_root;
  return LinearIn(call, Kind::kRewrite, "self", [=](const at::Tensor& rows) {
    const at::Tensor read = rows.index_select(1, ids);
    return rows.index_copy(1, ids, read * met_scale + met * (read * of_power).sum(-1, true));
  });
}

}  // namespace

at::Tensor BagsOf(const at::Tensor& offsets, int64_t count, int64_t bags) {
  const at::Tensor begins = offsets.to(at::kLong).narrow(0, 0, bags).contiguous();
  return at::searchsorted(begins, at::arange(count, begins.options()), false, /*right=*/true) - 1;
}

void RegisterEmbedding(Registry& registry) {
  registry.Register({"aten::embedding", Kind::kLinear, Embedding});
  registry.Register({"aten::embedding_renorm", Kind::kRewrite, Renormalize});
  for (const char* name : {"aten::_embedding_bag", "aten::_embedding_bag_forward_only"}) {
    registry.Register({name, Kind::kLinear, EmbeddingBag});
  }
}

}  // namespace addend

// The rule that stands in for rewritten attention: which calls it covers, and the coefficients that the rewrite's
// operators would have. Note [Attention in tiles] in attention_tiles.h has the formulas.
#include "core/rules/fused_attention.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/base/views.h"
#include "core/intercept/operator.h"
#include "core/intercept/own_operators.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"
#include "core/rules/rows.h"
#include "core/rules/softmax_path.h"

namespace addend {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Operators call the mask by one of two names.
template <typename Call>
const char* MaskName(const Call& call) {
  return call.Has("attn_mask") ? "attn_mask" : "attn_bias";
}

template <typename Call>
double ScaleOf(const Call& call, const at::Tensor& query) {
  return call.Double("scale", 1 / std::sqrt(static_cast<double>(query.size(-1))));
}

// ---- what the rule covers

bool IsPlain(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() && t.device().is_cpu() && t.layout() == at::kStrided && t.scalar_type() == like.scalar_type() &&
         t.dim() == like.dim() && t.numel() > 0 && AllFinite(t);
}

// The sizes of all scores.
at::DimVector SizesOfScores(const at::Tensor& query, const at::Tensor& key) {
  at::DimVector sizes(query.sizes());
  sizes.back() = key.size(-2);
  return sizes;
}

// The largest entry of each row, as a number. mask: of at least one dimension.
at::Tensor LargestOf(const at::Tensor& mask) {
  if (mask.scalar_type() == at::kBool) return mask.any(-1);
  return mask.amax(-1);
}

bool CoversMask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  if (!mask.device().is_cpu() || mask.layout() != at::kStrided || mask.dim() == 0) return false;
  if (mask.scalar_type() != at::kBool && !mask.is_floating_point()) return false;
  const at::DimVector sizes = SizesOfScores(query, key);
  if (!at::is_expandable_to(mask.sizes(), sizes)) return false;
  const at::Tensor largest = LargestOf(mask);
  if (mask.scalar_type() == at::kBool) return MaskedRowsAreZero() || ReadFlag(largest.all());
  const at::Tensor fine = largest.abs().lt(kInfinity);
  return ReadFlag((MaskedRowsAreZero() ? fine.logical_or(largest.eq(-kInfinity)) : fine).all());
}

bool Covers(const RewriteCall& call, const std::vector<bool>& moves) {
  if (call.Double("dropout_p", 0) != 0) return false;
  const at::Tensor query = call.Tensor("query");
  if (!query.defined() || !query.is_floating_point()) return false;
  const at::Tensor key = call.Tensor("key");
  const at::Tensor value = call.Tensor("value");
  for (const at::Tensor& t : {query, key, value}) {
    if (!IsPlain(t, query)) return false;
  }
  if (!AttentionShapesFit(query.sizes(), key.sizes(), value.sizes())) return false;
  const int position = call.At(MaskName(call));
  const at::Tensor mask = position < 0 ? at::Tensor() : call.Tensor(MaskName(call));
  if (!mask.defined()) return true;
  return !moves[position] && !call.Bool("is_causal", false) && CoversMask(mask, query, key);
}

// The form that gives weights as well. Newer versions of it add the 0 and 1 of boolean masks, and take the draws of a
// dropout.
bool CoversWithWeights(const RewriteCall& call, const std::vector<bool>& moves) {
  if (!Covers(call, moves) || !call.IsNone("dropout_mask")) return false;
  const at::Tensor mask = call.Tensor(MaskName(call));
  return call.Has("need_attn_weights") || !mask.defined() || mask.scalar_type() != at::kBool;
}

// ---- the rule

// The largest sum of squares along the last dimension, which lies in one piece; NaN counts.
template <typename T>
double LargestSquare(const T* numbers, const at::Tensor& t) {
  const int64_t rank = t.dim() - 1;
  const int64_t width = t.size(-1);
  at::DimVector index(rank, 0);
  double largest = 0;
  for (int64_t left = t.numel() / width; left > 0; --left) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
    largest = std::isnan(sum) || sum > largest ? sum : largest;
    for (int64_t d = rank - 1; d >= 0; --d) {
      numbers += t.stride(d);
      if (++index[d] < t.size(d)) break;
      numbers -= t.stride(d) * t.size(d);
      index[d] = 0;
    }
  }
  return largest;
}

double LargestNorm(const RuleOperand& operand) {
  const double value = addend::LargestNorm(operand.value);
  return operand.decomposed ? std::max(value, addend::LargestNorm(operand.reference)) : value;
}

double Largest(const RuleOperand& operand) {
  const double value = LargestMagnitude(operand.value);
  return operand.decomposed ? std::max(value, LargestMagnitude(operand.reference)) : value;
}

// How far a mask moves whole rows from zero.
double ShiftOf(const at::Tensor& mask) {
  if (!mask.defined() || mask.scalar_type() == at::kBool) return 0;
  const at::Tensor largest = LargestOf(mask).abs();
  return ReadNumber(largest.masked_fill(largest.eq(kInfinity), 0).max());
}

at::Tensor ValueOf(const RuleCall& call, const char* argument) {
  const RuleOperand* operand = call.Find(argument);
  return operand == nullptr ? at::Tensor() : operand->value;
}

// One mask for all: true or a summand takes part.
at::Tensor Together(const at::Tensor& summand, const at::Tensor& shown, const at::Tensor& hidden) {
  at::Tensor stays = shown;
  if (hidden.defined()) stays = stays.defined() ? stays.logical_and(hidden.logical_not()) : hidden.logical_not();
  if (!summand.defined() || !stays.defined()) return summand.defined() ? summand : stays;
  return at::where(stays, summand, at::full({}, -kInfinity, summand.options()));
}

at::Tensor MaskOf(const RuleCall& call) {
  return Together(ValueOf(call, MaskName(call)), ValueOf(call, "shown"), ValueOf(call, "hidden"));
}

// The rows of matrices lie in one piece, so that products need no copies of them.
RuleOperand Flat(RuleOperand operand) {
  if (operand.value.stride(-1) != 1) operand.value = operand.value.contiguous();
  if (operand.reference.stride(-1) != 1) operand.reference = operand.reference.contiguous();
  return operand;
}

RuleOperand Scaled(RuleOperand operand, double scale) {
  operand.value = operand.value * scale;
  operand.reference = operand.decomposed ? operand.reference * scale : operand.value;
  return operand;
}

RuleResult Build(const RuleCall& call, BesideAttention beside) {
  if (!AllowsFused(*call.policy)) throw Internal(call.name + " was recorded whole under another policy");
  const c10::AutoGradMode no_grad(false);
  const Policy& policy = *call.policy;
  AttentionCall own;
  own.name = call.name;
  own.scale = ScaleOf(call, call.Require("query").value);
  const RuleOperand query = Flat(Scaled(call.Require("query"), own.scale));
  const RuleOperand key = Flat(call.Require("key"));
  const RuleOperand value = Flat(call.Require("value"));
  own.query = query.value;
  own.query_at_start = query.reference;
  own.key = key.value;
  own.key_at_start = key.reference;
  own.causal = call.Bool("is_causal", false);
  const at::Tensor mask = MaskOf(call);
  const double shift = ShiftOf(mask);
  if (mask.defined()) own.mask = mask.expand(SizesOfScores(own.query, own.key));
  own.reach = LargestNorm(query) * LargestNorm(key);
  own.scores_move = query.decomposed || key.decomposed;
  // Weights that nobody asked for may be missing.
  if (call.outputs.size() > 1 && call.outputs[1].value.defined()) own.beside = beside;

  const MeetingPoints scores = PointsOf(policy, query, key);
  own.query_moves = scores.first_moves;
  own.key_moves = scores.second_moves;
  // The weights have the mark of a softmax; see Note [Provenance].
  RuleOperand weights;
  weights.decomposed = own.scores_move;
  weights.marks = policy.FrozenKinds() & kFreezeAttention;
  weights.content_first = policy.content_first & kFreezeAttention & ~policy.FrozenKinds();
  weights.by_magnitude = weights.content_first & policy.by_magnitude;
  const MeetingPoints product = PointsOf(policy, weights, value);
  own.weights_move = product.first_moves;
  own.value_moves = product.second_moves;
  if (own.key_moves) own.query_meets = At(query, scores.first);
  if (own.query_moves) own.key_meets = At(key, scores.second);
  own.weights_meet = product.first;
  own.value_meets = At(value, product.second);
  // A value, query or key that is itself a coefficient leaves all to its content: its shares would need whole columns
  // of what strips make row by row.
  if (product.weights != nullptr && product.first == Point::kValue) {
    const auto size = [](const at::Tensor& t) { return at::linalg_vector_norm(t, 2, {-1}); };
    // The shares of attention are the same where a weight grows and where it shrinks.
    const at::Tensor rest = RestOfContent(product.weights->opens, size(value.value), size(value.reference));
    own.rest = Unsqueezed(rest, rest.dim() - 1);
    own.value_meets = at::lerp(value.reference, value.value, Unsqueezed(rest, rest.dim()));
  }

  RuleResult result;
  result.kind = Kind::kRewrite;
  if (own.query_moves && ReadsScores(own)) result.inputs.push_back(call.OperandAt("query"));
  if (own.key_moves && ReadsScores(own)) result.inputs.push_back(call.OperandAt("key"));
  if (own.value_moves) result.inputs.push_back(call.OperandAt("value"));
  // LibTorch's own scores round otherwise than those that the coefficients are made of; that is leftover, within
  // bounds. Rows of weights sum to one, so that the largest value bounds what an output sums.
  result.exact = false;
  result.inner_terms = std::max(Largest(value), own.beside == BesideAttention::kNothing ? 0.0 : 1.0);
  const bool complete = own.query_moves == query.decomposed && own.key_moves == key.decomposed &&
                        own.weights_move == own.scores_move && own.value_moves == value.decomposed;
  const double eps = own.query.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                            : std::numeric_limits<float>::epsilon();
  const double claim = SoftmaxPathError(own.query.scalar_type()) + 4 * eps * (1 + own.reach + shift);
  if (complete && std::isfinite(claim)) result.quadrature = claim;
  result.map = AttentionInTiles(std::move(own));
  return result;
}

}  // namespace

bool MaskedRowsAreZero() {
  static const bool zero = Operator::Find("aten::_safe_softmax", "").has_value();
  return zero;
}

bool AttentionShapesFit(at::IntArrayRef query, at::IntArrayRef key, at::IntArrayRef value) {
  const size_t rank = query.size();
  if (rank < 2 || key.size() != rank || value.size() != rank) return false;
  if (query[rank - 1] != key[rank - 1] || key[rank - 2] != value[rank - 2]) return false;
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (key[d] != value[d]) return false;
    const bool heads = d + 3 == rank;
    if (heads ? query[d] % key[d] != 0 : query[d] != key[d]) return false;
  }
  return true;
}

double LargestNorm(const at::Tensor& t) {
  // Leave many numbers to LibTorch, whose threads are then worth more than the calls that a loop saves.
  constexpr int64_t kFew = int64_t{1} << 16;
  if (!ForLoops(t) || t.numel() == 0 || t.numel() > kFew || t.stride(-1) != 1) {
    return ReadNumber(t.norm(2, -1).max());
  }
  return DispatchReal(t.scalar_type(),
                      [&](auto zero) { return std::sqrt(LargestSquare(t.data_ptr<decltype(zero)>(), t)); });
}

bool LeavesAllRows(const at::Tensor& summand, const at::Tensor& shown, const at::Tensor& hidden,
                   at::IntArrayRef scores) {
  constexpr double kNear = 1e3;
  const at::Tensor mask = Together(summand, shown, hidden);
  if (!mask.defined()) return true;
  if (mask.dim() == 0 || !at::is_expandable_to(mask.sizes(), scores)) return false;
  const at::Tensor largest = LargestOf(mask);
  if (mask.scalar_type() == at::kBool) return ReadFlag(largest.all());
  return ReadFlag(largest.abs().le(kNear).all());
}

const Rule& AttentionRule() {
  static const auto& rule = *new Rule{kAttention, Kind::kRewrite,
                                      [](const RuleCall& call) { return Build(call, BesideAttention::kNothing); }};
  return rule;
}

Rewrite FusedAttention(const char* name, RewriteFunction steps, BesideAttention beside) {
  Rewrite rewrite{name, std::move(steps)};
  Rule rule{name, Kind::kRewrite, [beside](const RuleCall& call) { return Build(call, beside); }};
  const bool weights = beside == BesideAttention::kWeights;
  if (weights) rule.second_mark = kFreezeAttention;
  rewrite.fused = FusedRule{std::move(rule), weights ? CoversWithWeights : Covers};
  rewrite.products = Products::kMatmul;
  return rewrite;
}

}  // namespace addend

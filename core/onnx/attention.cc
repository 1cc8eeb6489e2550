// Attention of the standard: softmax attention with caches, rotary positions, linear attention, causal convolutions.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/heads.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// ------------------------------------------------------------------------------------------------------------
// Attention

// The tensors of a node: batch x heads x length x size.
struct Heads {
  Tensor query;
  Tensor key;    // with those of the past
  Tensor value;  // with those of the past
  int64_t past = 0;
  bool is_packed = false;  // the query is batch x length x heads * size
};

Tensor AfterPast(const Context& context, size_t k, const Tensor& present) {
  return context.Has(k) ? at::cat({context.Tensor(k), present}, 2) : present;
}

Heads HeadsOf(const Context& context) {
  Heads heads;
  Tensor query = context.Tensor(0), key = context.Tensor(1), value = context.Tensor(2);
  heads.is_packed = query.dim() == 3;
  if (heads.is_packed) {
    query = SplitHeads(context, query, context.IntAttribute("q_num_heads"));
    key = SplitHeads(context, key, context.IntAttribute("kv_num_heads"));
    value = SplitHeads(context, value, context.IntAttribute("kv_num_heads"));
  }
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) {
    throw context.Invalid("query, key and value have neither three nor four dimensions");
  }
  if (context.Has(4) != context.Has(5)) throw context.Invalid("a past key needs a past value, and the reverse");
  if (context.Has(4) && context.Has(6))
    throw context.Invalid("nonpad_kv_seqlen and a past key are given; only one of them may be");
  heads.query = query;
  heads.past = context.Has(4) ? context.Tensor(4).size(2) : 0;
  heads.key = AfterPast(context, 4, key);
  heads.value = AfterPast(context, 5, value);
  return heads;
}

// The mask of input 3. Keys behind its end are not looked at.
void AddMask(const Context& context, int64_t keys, AttentionMask* mask) {
  if (!context.Has(3)) return;
  Tensor given = context.Tensor(3);
  if (given.dim() == 0) throw context.Invalid("the mask has no dimension");
  const int64_t missing = keys - given.size(-1);
  if (missing > 0 && given.size(-1) == 1) {
    throw context.Refused(
        "a mask of one key for several is read in two ways: repeat it, or make it as wide as the keys");
  }
  const bool is_boolean = given.scalar_type() == at::kBool;
  if (missing > 0) {
    const at::Scalar fill = is_boolean ? at::Scalar(false) : at::Scalar(-std::numeric_limits<double>::infinity());
    given = at::constant_pad_nd(given, {0, missing}, fill);
  }
  mask->may_be_empty = true;
  if (is_boolean) {
    mask->Allow(given);
  } else {
    mask->bias = given;
  }
}

// Keys by their places: causal, within a window, within lengths of a cache that is filled elsewhere.
void AddPlaces(const Context& context, int64_t queries, int64_t keys, int64_t past, AttentionMask* mask) {
  const bool causal = context.FlagAttribute("is_causal", false);
  const int64_t left = context.IntAttribute("left_window_size", -1);
  const int64_t right = context.IntAttribute("right_window_size", -1);
  if (left < -1 || right < -1) throw context.Invalid("a window has a negative size");
  if (left >= 0 || right >= 0) mask->may_be_empty = true;
  if (!context.Has(6)) {
    if (causal) mask->Allow(UpTo(context, queries, keys, past));
    if (left >= 0) mask->Allow(From(context, queries, keys, past - left));
    if (right >= 0) mask->Allow(UpTo(context, queries, keys, past + right));
    return;
  }
  // Each sequence of the batch has its own end.
  mask->may_be_empty = true;
  const Tensor lengths = at::reshape(context.Tensor(6), {-1, 1, 1, 1});
  const at::TensorOptions options = context.Options(at::kLong);
  const Tensor key = at::arange(keys, options);
  const Tensor query = at::add(at::unsqueeze(at::arange(queries, options), 1), at::sub(lengths, queries));
  mask->Allow(at::lt(key, lengths));
  if (causal) mask->Allow(at::le(key, query));
  if (left >= 0) mask->Allow(at::ge(key, at::sub(query, left)));
  if (right >= 0) mask->Allow(at::le(key, at::add(query, right)));
}

// The fourth result. Runtimes give several numbers for some modes where there is a mask or a soft cap: those are
// refused.
Tensor ScoresOf(const Context& context, const AttentionScores& scores, const AttentionMask& mask, double softcap) {
  const int64_t mode = context.IntAttribute("qk_matmul_output_mode", 0);
  if (mode == 3) return scores.weights;
  const bool is_raw = !mask.IsThere() && softcap == 0;
  if (is_raw || (mode == 0 && softcap == 0)) return scores.raw;
  throw context.Refused(absl::StrCat("runtimes do not agree on the scores of qk_matmul_output_mode ", mode,
                                     " beside a mask or a soft cap; write the model without this output"));
}

Results Attention(const Context& context) {
  const Heads heads = HeadsOf(context);
  const double softcap = context.FloatAttribute("softcap", 0);
  const double scale = context.FloatAttribute("scale", 1 / std::sqrt(static_cast<double>(heads.query.size(3))));
  AttentionMask mask;
  AddMask(context, heads.key.size(2), &mask);
  AddPlaces(context, heads.query.size(2), heads.key.size(2), heads.past, &mask);
  c10::optional<c10::ScalarType> type;
  if (context.HasAttribute("softmax_precision")) type = context.TypeAttribute("softmax_precision");
  const int64_t count = heads.query.size(1);
  const AttentionScores scores = Attend(heads.query, RepeatHeads(context, heads.key, count),
                                        RepeatHeads(context, heads.value, count), scale, softcap, mask, type);
  const Tensor result = heads.is_packed ? JoinHeads(scores.result) : scores.result;
  return {result, heads.key, heads.value, context.Wants(3) ? ScoresOf(context, scores, mask, softcap) : Tensor()};
}

// ---------------------------------------------------------------------------------------------------------
// FlexAttention

// The one result of a graph that an attribute may hold, for one tensor.
Datum Changed(const Context& context, const char* attribute, const Datum& given) {
  if (!context.HasAttribute(attribute)) return given;
  const std::vector<Datum> results = context.RunGraph(context.GraphAttribute(attribute), {given});
  if (results.size() != 1) throw context.Invalid(absl::StrCat("the graph ", attribute, " has not one output"));
  return results[0];
}

// Attention with graphs for the scores and for their softmax.
Results FlexAttention(const Context& context) {
  const Tensor query = context.Tensor(0);
  if (query.dim() != 4) throw context.Invalid("the query has not four dimensions");
  const int64_t count = query.size(1);
  const Tensor key = RepeatHeads(context, context.Tensor(1), count);
  const Tensor value = RepeatHeads(context, context.Tensor(2), count);
  const double scale = context.FloatAttribute("scale", 1 / std::sqrt(static_cast<double>(query.size(3))));
  const bool is_narrow = c10::elementSize(query.scalar_type()) < 4;
  const c10::ScalarType type = context.HasAttribute("softmax_precision") ? context.TypeAttribute("softmax_precision")
                               : is_narrow                               ? at::kFloat
                                                                         : query.scalar_type();
  Descent descent = Descent::kConstants;
  for (size_t k = 0; k < 3; ++k) descent = std::max(descent, context.Input(k).descent);
  const Tensor raw = at::mul(at::matmul(query, at::transpose(key, 2, 3)), scale);
  const Datum scores = Changed(context, "score_mod", Datum::Of(InType(raw, type), descent));
  const Tensor softmax = at::softmax(InType(context.TensorOf(scores), type), -1);
  const Datum weights = Changed(context, "prob_mod", Datum::Of(softmax, scores.descent));
  const Tensor result = at::matmul(InType(context.TensorOf(weights), type), InType(value, type));
  return Datum::Of(InType(result, value.scalar_type()), std::max(descent, weights.descent));
}

// -------------------------------------------------------------------------------------------------------
// RotaryEmbedding

// Rows of cosines or sines: of the positions of input 3, or as they are.
Tensor AtPositions(const Context& context, size_t k) {
  const Tensor rows = context.Tensor(k);
  return context.Has(3) ? at::embedding(rows, context.Tensor(3)) : rows;
}

Results RotaryEmbedding(const Context& context) {
  const Tensor x = context.Tensor(0);
  const bool is_packed = x.dim() == 3;
  const Tensor heads = is_packed ? SplitHeads(context, x, context.IntAttribute("num_heads")) : x;
  if (heads.dim() != 4) throw context.Invalid("the input has neither three nor four dimensions");
  const Tensor rotated =
      Rotated(context, heads, AtPositions(context, 1), AtPositions(context, 2),
              context.IntAttribute("rotary_embedding_dim", 0), context.FlagAttribute("interleaved", false));
  return is_packed ? JoinHeads(rotated) : rotated;
}

// -------------------------------------------------------------------------------------------------------
// LinearAttention

// Attention without a softmax: a state of size x value size for each head, which a token changes and a query reads.
struct Recurrence {
  Tensor query, key, value;  // batch x heads x length x size
  Tensor decay;              // batch x heads x length x 1 or size; undefined: none
  Tensor rate;               // batch x heads or 1 x length x 1; undefined: the state is only added to
  Tensor state;              // batch x heads x size x value size

  // Changes the state by token t and returns it.
  const Tensor& Step(int64_t t) {
    const auto row = [&](const Tensor& x) { return at::narrow(x, 2, t, 1); };
    const Tensor k = at::transpose(row(key), 2, 3);
    Tensor v = row(value);
    if (decay.defined()) state = at::mul(state, at::exp(at::transpose(row(decay), 2, 3)));
    if (rate.defined()) v = at::mul(row(rate), at::sub(v, at::matmul(row(key), state)));
    state = at::add(state, at::matmul(k, v));
    return state;
  }
};

// Throws InvalidArgument where an input is there that the rule has no use for, or is missing.
bool Takes(const Context& context, size_t k, const std::string& rule, bool takes) {
  if (context.Has(k) != takes) {
    throw context.Invalid(absl::StrCat("input ", k, takes ? " is missing for " : " has no use for ", rule));
  }
  return takes;
}

Results LinearAttention(const Context& context) {
  const int64_t heads = context.IntAttribute("q_num_heads"), kv_heads = context.IntAttribute("kv_num_heads");
  const std::string rule = context.TextAttribute("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    throw context.Invalid("the update_rule is none of linear, gated, delta and gated_delta");
  }
  const c10::ScalarType own = context.Tensor(0).scalar_type();
  const c10::ScalarType type = c10::elementSize(own) < 4 ? at::kFloat : own;
  const auto split = [&](size_t k, int64_t count) {
    return SplitHeads(context, InType(context.Tensor(k), type), count);
  };
  Recurrence run;
  run.query = split(0, heads);
  run.key = split(1, kv_heads);
  run.value = split(2, kv_heads);
  const int64_t size = run.query.size(3);
  if (Takes(context, 4, rule, rule == "gated" || rule == "gated_delta")) run.decay = split(4, kv_heads);
  if (Takes(context, 5, rule, rule == "delta" || rule == "gated_delta")) {
    run.rate = split(5, context.Tensor(5).size(-1) == 1 ? 1 : kv_heads);
  }
  const c10::ScalarType state_type = context.Has(3) ? context.Tensor(3).scalar_type() : own;
  run.state = context.Has(3) ? InType(context.Tensor(3), type)
                             : at::zeros({run.query.size(0), kv_heads, size, run.value.size(3)}, run.key.options());
  const double given = context.FloatAttribute("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(size)) : given;
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < run.query.size(2); ++t) {
    const Tensor state = RepeatHeads(context, run.Step(t), heads);
    rows.push_back(at::matmul(at::narrow(run.query, 2, t, 1), state));
  }
  if (rows.empty()) throw context.Invalid("there is no token");
  const Tensor result = JoinHeads(at::mul(at::cat(rows, 2), scale));
  return {InType(result, own), InType(run.state, state_type)};
}

// --------------------------------------------------------------------------------------------------
// CausalConvWithState

Results CausalConvWithState(const Context& context) {
  const Tensor x = context.Tensor(0), weight = context.Tensor(1), bias = context.OptionalTensor(2);
  if (x.dim() != 3 || weight.dim() != 3) throw context.Invalid("the input or the weight has not three dimensions");
  const int64_t before = weight.size(2) - 1;
  const Tensor padded = context.Has(3) ? at::cat({context.Tensor(3), x}, 2) : at::constant_pad_nd(x, {before, 0}, 0);
  const Tensor result = at::conv1d(padded, weight, bias, /*stride=*/{1}, /*padding=*/at::IntArrayRef(0),
                                   /*dilation=*/{1}, x.size(1));
  const std::string activation = context.TextAttribute("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    throw context.Invalid("the activation is none of silu, swish and none");
  }
  const Tensor state = at::narrow(padded, 2, padded.size(2) - before, before);
  return {activation == "none" ? result : at::silu(result), state};
}

}  // namespace

void RegisterAttention(OperatorTable& table) {
  const std::vector<std::string> attributes{"is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
                                            "scale",     "softcap",      "softmax_precision"};
  std::vector<std::string> newer = attributes;
  newer.insert(newer.end(), {"left_window_size", "right_window_size"});
  table.Add("Attention", 23, Attention).Inputs(3, 6).Attributes(attributes);
  table.Add("Attention", 24, Attention).Inputs(3, 7).Attributes(attributes);
  table.Add("Attention", 25, Attention).Inputs(3, 7).Attributes(newer);
  table.AddTo(kPreviewDomain, "FlexAttention", 1, FlexAttention)
      .Inputs(3)
      .Attributes({"prob_mod", "scale", "score_mod", "softmax_precision"})
      .Known(KnownIf::kNever);
  table.Add("RotaryEmbedding", 23, RotaryEmbedding)
      .Inputs(3, 4)
      .Attributes({"interleaved", "num_heads", "rotary_embedding_dim"});
  table.Add("LinearAttention", 27, LinearAttention)
      .Inputs(3, 6)
      .Attributes({"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"});
  table.Add("CausalConvWithState", 27, CausalConvWithState).Inputs(2, 4).Attributes({"activation"});
}

}  // namespace addend::onnx

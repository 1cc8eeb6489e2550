// Operators that ONNX Runtime writes when it saves a model that it has optimised: of com.microsoft, and some that it
// puts into the default domain.
#include "core/onnx/microsoft.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/heads.h"
#include "core/onnx/operands.h"
#include "core/onnx/plain_convolution.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// ----------------------------------------------------------------------------------------------------------
// activations

Results Gelu(const Context& context) { return at::gelu(context.Tensor(0)); }

Results BiasGelu(const Context& context) { return at::gelu(at::add(context.Tensor(0), context.Tensor(1))); }

Results FastGelu(const Context& context) {
  const Tensor x = context.Has(1) ? at::add(context.Tensor(0), context.Tensor(1)) : context.Tensor(0);
  return at::gelu(x, "tanh");
}

Results QuickGelu(const Context& context) {
  const Tensor x = context.Tensor(0);
  return at::mul(x, at::sigmoid(at::mul(x, context.FloatAttribute("alpha", 1.702))));
}

// The activation that is fused into a node. `parameters`: those it has in the file, in order.
Tensor Activated(const Context& context, const Tensor& x, const std::string& name,
                 const std::vector<double>& parameters) {
  const auto need = [&](size_t k) {
    if (k < parameters.size()) return parameters[k];
    throw context.Invalid(absl::StrCat("the activation ", name, " lacks a parameter"));
  };
  if (name.empty()) return x;
  if (name == "Relu") return at::relu(x);
  if (name == "Sigmoid") return at::sigmoid(x);
  if (name == "Tanh") return at::tanh(x);
  if (name == "LeakyRelu") return at::leaky_relu(x, need(0));
  if (name == "Clip") return at::clamp(x, need(0), need(1));
  if (name == "HardSigmoid") return at::clamp(at::add(at::mul(x, need(0)), need(1)), 0, 1);
  if (name == "Elu") return at::elu(x, need(0));
  if (name == "Selu") return at::elu(x, need(0), need(1));
  if (name == "ThresholdedRelu") return at::threshold(x, need(0), 0);
  if (name == "Softplus") return at::softplus(x);
  if (name == "Softsign") return at::div(x, at::add(at::abs(x), 1));
  throw context.Refused(absl::StrCat("the fused activation ", name, " is not supported"));
}

// ------------------------------------------------------------------------------------------------ products,
// convolutions

// The last two dimensions exchanged, where an attribute says so. A vector stays.
Tensor Side(const Context& context, size_t k, const char* transposed) {
  const Tensor x = context.Tensor(k);
  return context.FlagAttribute(transposed, false) && x.dim() > 1 ? at::transpose(x, -2, -1) : x;
}

Tensor Scaled(const Tensor& x, double factor) { return factor == 1 ? x : at::mul(x, factor); }

Results FusedMatMul(const Context& context) {
  if (context.FlagAttribute("transBatchA", false) || context.FlagAttribute("transBatchB", false)) {
    throw context.Refused("transBatchA and transBatchB are not supported");
  }
  const Tensor product = at::matmul(Side(context, 0, "transA"), Side(context, 1, "transB"));
  return Scaled(product, context.FloatAttribute("alpha", 1));
}

Results FusedGemm(const Context& context) {
  Tensor y =
      Scaled(at::matmul(Side(context, 0, "transA"), Side(context, 1, "transB")), context.FloatAttribute("alpha", 1));
  if (context.Has(2)) y = at::add(y, Scaled(context.Tensor(2), context.FloatAttribute("beta", 1)));
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (context.HasAttribute(name)) parameters.push_back(context.FloatAttribute(name));
  }
  return Activated(context, y, context.TextAttribute("activation", ""), parameters);
}

// Input 3 is added before the activation.
Results FusedConv(const Context& context) {
  Tensor y = PlainConvolution(context, context.Tensor(0), context.Tensor(1), BiasOf(context, 2));
  if (context.Has(3)) y = at::add(y, context.Tensor(3));
  return Activated(context, y, context.TextAttribute("activation", ""), context.FloatsAttribute("activation_params"));
}

// --------------------------------------------------------------------------------------------------------
// normalizations

// Half types are normalised in float32.
c10::ScalarType WideType(const Tensor& x) {
  return c10::elementSize(x.scalar_type()) < 4 ? at::kFloat : x.scalar_type();
}

// A normalised tensor, the mean (or nothing) and the inverse of the deviation.
struct Normalized {
  Tensor result, mean, inverse;
};

// Divides by the deviation from the mean, over the dimensions from `axis` on. Weight and bias may be undefined.
Normalized LayerNormalized(const Context& context, const Tensor& x, int64_t axis, const Tensor& weight,
                           const Tensor& bias, double epsilon, bool wants_moments) {
  const at::IntArrayRef sizes = x.sizes().slice(static_cast<size_t>(context.Axis(axis, x.dim())));
  const c10::ScalarType type = WideType(x);
  const Tensor wide = InType(x, type);
  const auto shaped = [&](const Tensor& t) { return t.defined() ? at::reshape(InType(t, type), sizes) : t; };
  if (!wants_moments) {
    return {InType(at::layer_norm(wide, sizes, shaped(weight), shaped(bias), epsilon), x.scalar_type()), {}, {}};
  }
  auto [result, mean, inverse] = at::native_layer_norm(wide, sizes, shaped(weight), shaped(bias), epsilon);
  return {InType(result, x.scalar_type()), mean, inverse};
}

// Divides by the root of the mean square.
Normalized RootNormalized(const Context& context, const Tensor& x, int64_t axis, const Tensor& weight, double epsilon) {
  std::vector<int64_t> dims;
  for (int64_t dim = context.Axis(axis, x.dim()); dim < x.dim(); ++dim) dims.push_back(dim);
  const Tensor wide = InType(x, WideType(x));
  const Tensor inverse = at::rsqrt(at::add(at::mean(at::square(wide), dims, /*keepdim=*/true), epsilon));
  const Tensor result = InType(at::mul(wide, inverse), x.scalar_type());
  return {at::mul(result, weight), {}, inverse};
}

Results SimplifiedLayerNormalization(const Context& context) {
  const Normalized y = RootNormalized(context, context.Tensor(0), context.IntAttribute("axis", -1), context.Tensor(1),
                                      context.FloatAttribute("epsilon", 1e-5));
  return {y.result, y.inverse};
}

Tensor AddIfThere(const Context& context, const Tensor& x, size_t k) {
  return context.Has(k) ? at::add(x, context.Tensor(k)) : x;
}

// Input, skip, weight, bias of the norm, bias of the sum. The fourth result is the sum.
Results SkipLayerNormalization(const Context& context) {
  const Tensor sum = AddIfThere(context, at::add(context.Tensor(0), context.Tensor(1)), 4);
  const bool wants_moments = context.Wants(1) || context.Wants(2);
  const Normalized y = LayerNormalized(context, sum, -1, context.Tensor(2), context.OptionalTensor(3),
                                       context.FloatAttribute("epsilon", 1e-12), wants_moments);
  return {y.result, y.mean, y.inverse, sum};
}

// Input, skip, weight, bias of the sum. It has no mean.
Results SkipSimplifiedLayerNormalization(const Context& context) {
  if (context.Wants(1)) throw context.Refused("its mean is not computed; write the model without output 1");
  const Tensor sum = AddIfThere(context, at::add(context.Tensor(0), context.Tensor(1)), 3);
  const Normalized y = RootNormalized(context, sum, -1, context.Tensor(2), context.FloatAttribute("epsilon", 1e-5));
  return {y.result, Tensor(), y.inverse, sum};
}

// Inputs: ids of words and of segments, tables of words, positions and segments, weight and bias of the norm, mask, ids
// of positions.
Results EmbedLayerNormalization(const Context& context) {
  if (context.IntAttribute("mask_index_type", 1) != 1 && context.Wants(1)) {
    throw context.Refused("mask_index_type other than 1 is not supported");
  }
  return EmbeddingsOf(
      context, [&](size_t k) { return context.Tensor(k); }, context.OptionalTensor(8));
}

// -------------------------------------------------------------------------------------------------------------
// attention

// Keys by a mask of integers: lengths for each sequence of the batch, or ends and then starts, or one number for each
// key, or for each query and key. Keys that are masked get a large negative number, so that a row of them is a plain
// softmax.
void AddIntegerMask(const Context& context, size_t k, const Tensor& query, int64_t keys, AttentionMask* mask) {
  if (!context.Has(k)) return;
  const Tensor given = context.Tensor(k);
  const int64_t batch = query.size(0);
  Tensor allowed;
  if (given.dim() == 1 && (given.numel() == batch || given.numel() == 2 * batch)) {
    const Tensor places = at::arange(keys, context.Options(at::kLong));
    allowed = at::lt(places, at::unsqueeze(at::narrow(given, 0, 0, batch), 1));
    if (given.numel() == 2 * batch) {
      allowed = at::logical_and(allowed, at::ge(places, at::unsqueeze(at::narrow(given, 0, batch, batch), 1)));
    }
  } else if ((given.dim() == 2 || given.dim() == 3) && given.size(0) == batch && given.size(-1) == keys) {
    allowed = at::gt(given, 0);
  } else {
    throw context.Refused("a mask of these sizes is not supported");
  }
  allowed = at::unsqueeze(allowed.dim() == 2 ? at::unsqueeze(allowed, 1) : allowed, 1);
  mask->bias =
      at::mul(at::logical_not(allowed).to(query.scalar_type()), context.FloatAttribute("mask_filter_value", -10000));
}

void AddBias(const Context& context, size_t k, AttentionMask* mask) {
  if (!context.Has(k)) return;
  mask->bias = mask->bias.defined() ? at::add(mask->bias, context.Tensor(k)) : context.Tensor(k);
}

void RefuseInputs(const Context& context, std::initializer_list<size_t> inputs) {
  for (const size_t k : inputs) {
    if (context.Has(k)) throw context.Refused(absl::StrCat("input ", k, " is not supported"));
  }
}

double ScaleOf(const Context& context, const Tensor& query) {
  const double given = context.FloatAttribute("scale", 0);
  return given == 0 ? 1 / std::sqrt(static_cast<double>(query.size(3))) : given;
}

// Inputs: numbers, weights and biases of query, key and value, mask, past, bias of the scores.
Results Attention(const Context& context) {
  RefuseInputs(context, {6});
  const Tensor all = AddIfThere(context, at::matmul(context.Tensor(0), context.Tensor(1)), 2);
  return AttentionOf(context, all, 3, 4, 5);
}

// Query, key and value as batch x heads x length x size, before a past.
std::vector<Tensor> SeparateHeads(const Context& context, int64_t heads) {
  Tensor query = context.Tensor(0);
  if (query.dim() != 3 || !context.Has(1) || !context.Has(2)) {
    throw context.Refused("query, key and value in one tensor are not supported");
  }
  Tensor key = context.Tensor(1), value = context.Tensor(2);
  const bool has_heads = key.dim() == 4;
  if (context.Has(3)) {
    const Tensor bias = context.Tensor(3);
    const auto part = [&](int64_t first, int64_t count) { return at::narrow(bias, 0, first, count); };
    query = at::add(query, part(0, query.size(2)));
    if (has_heads) throw context.Refused("a bias for keys that come by heads is not supported");
    key = at::add(key, part(query.size(2), key.size(2)));
    value = at::add(value, part(query.size(2) + key.size(2), value.size(2)));
  }
  return {SplitHeads(context, query, heads), has_heads ? key : SplitHeads(context, key, heads),
          has_heads ? value : SplitHeads(context, value, heads)};
}

// Inputs: query, key, value, bias, mask of keys, bias of the scores, past key, past value.
Results MultiHeadAttention(const Context& context) {
  RefuseInputs(context, {8, 9});
  const std::vector<Tensor> parts = SeparateHeads(context, context.IntAttribute("num_heads"));
  const Tensor& query = parts[0];
  if (context.Has(6) != context.Has(7)) throw context.Invalid("a past key needs a past value, and the reverse");
  const int64_t past = context.Has(6) ? context.Tensor(6).size(2) : 0;
  const Tensor key = context.Has(6) ? at::cat({context.Tensor(6), parts[1]}, 2) : parts[1];
  const Tensor value = context.Has(7) ? at::cat({context.Tensor(7), parts[2]}, 2) : parts[2];
  AttentionMask mask;
  AddIntegerMask(context, 4, query, key.size(2), &mask);
  AddBias(context, 5, &mask);
  if (context.FlagAttribute("unidirectional", false)) mask.Allow(UpTo(context, query.size(2), key.size(2), past));
  const AttentionScores scores = Attend(query, key, value, ScaleOf(context, query), /*softcap=*/0, mask);
  return {JoinHeads(scores.result), key, value};
}

// Query, key and value, of which the query may hold all three.
std::vector<Tensor> GroupedHeads(const Context& context, int64_t heads, int64_t kv_heads) {
  Tensor query = context.Tensor(0);
  if (context.Has(1)) {
    return {SplitHeads(context, query, heads), SplitHeads(context, context.Tensor(1), kv_heads),
            SplitHeads(context, context.Tensor(2), kv_heads)};
  }
  return at::split_with_sizes(SplitHeads(context, query, heads + 2 * kv_heads), {heads, kv_heads, kv_heads}, 1);
}

// Inputs: query, key, value, past key, past value, places of the last keys, count of keys, cosines, sines, positions,
// bias of the scores.
Results GroupQueryAttention(const Context& context) {
  RefuseInputs(context, {11, 12, 13});
  if (context.IntAttribute("smooth_softmax", 0) > 0) throw context.Refused("smooth_softmax is not supported");
  const int64_t heads = context.IntAttribute("num_heads"), kv_heads = context.IntAttribute("kv_num_heads");
  std::vector<Tensor> parts = GroupedHeads(context, heads, kv_heads);
  const int64_t length = parts[0].size(2);
  const int64_t past = context.Has(3) ? context.Tensor(3).size(2) : 0;
  const std::vector<int64_t> last = context.Integers(5);
  const auto is_last = [&](int64_t place) { return place == past + length - 1; };
  if (!std::all_of(last.begin(), last.end(), is_last) || context.Integer(6) != past + length) {
    throw context.Refused("a cache that is longer than its keys, and sequences of several lengths, are not supported");
  }
  if (context.FlagAttribute("do_rotary", false)) {
    const auto rows = [&](size_t k) {
      const Tensor table = context.Tensor(k);
      if (context.Has(9)) return at::embedding(table, context.Tensor(9));
      return at::unsqueeze(at::narrow(table, 0, past, length), 0);
    };
    const Tensor cosines = rows(7), sines = rows(8);
    const bool interleaved = context.FlagAttribute("rotary_interleaved", false);
    for (const size_t k : {0, 1}) {
      parts[k] = Rotated(context, parts[k], cosines, sines, 2 * cosines.size(-1), interleaved);
    }
  }
  const Tensor key = context.Has(3) ? at::cat({context.Tensor(3), parts[1]}, 2) : parts[1];
  const Tensor value = context.Has(4) ? at::cat({context.Tensor(4), parts[2]}, 2) : parts[2];
  AttentionMask mask;
  AddBias(context, 10, &mask);
  mask.Allow(UpTo(context, length, key.size(2), past));
  const int64_t window = context.IntAttribute("local_window_size", -1);
  if (window > 0) mask.Allow(From(context, length, key.size(2), past - window + 1));
  const AttentionScores scores = Attend(parts[0], RepeatHeads(context, key, heads), RepeatHeads(context, value, heads),
                                        ScaleOf(context, parts[0]), context.FloatAttribute("softcap", 0), mask);
  return {JoinHeads(scores.result), key, value};
}

// Inputs: numbers, positions (each, or the first), cosines, sines.
Results RotaryEmbedding(const Context& context) {
  if (context.FlagAttribute("is_packed_batching", false)) throw context.Refused("packed batches are not supported");
  if (context.FloatAttribute("scale", 1) != 1) throw context.Refused("a scale is not supported");
  const Tensor x = context.Tensor(0);
  Tensor cosines = context.Tensor(2), sines = context.Tensor(3);
  int64_t heads = context.IntAttribute("num_heads", 0);
  const int64_t size = context.IntAttribute("rotary_embedding_dim", 0);
  if (heads == 0 && x.dim() == 3) {
    if (size != 0) throw context.Invalid("num_heads is missing");
    heads = x.size(2) / (2 * cosines.size(1));
  }
  const Tensor apart = x.dim() == 3 ? SplitHeads(context, x, heads) : x;
  if (apart.dim() != 4) throw context.Invalid("the input has neither three nor four dimensions");
  Tensor positions = context.Tensor(1);
  if (positions.dim() == 1) {
    positions = at::unsqueeze(at::add(at::arange(apart.size(2), context.Options(at::kLong)), positions), 0);
  }
  const Tensor rotated = Rotated(context, apart, at::embedding(cosines, positions), at::embedding(sines, positions),
                                 size, context.FlagAttribute("interleaved", false));
  return x.dim() == 3 ? JoinHeads(rotated) : rotated;
}

}  // namespace

Results EmbeddingsOf(const Context& context, const std::function<Tensor(size_t)>& table, const Tensor& places) {
  const Tensor ids = context.Tensor(0);
  if (ids.dim() != 2) throw context.Invalid("the ids have not the sizes of a batch and a length");
  const Tensor positions = table(3);
  Tensor sum = at::embedding(table(2), ids);
  sum = at::add(sum, places.defined() ? at::embedding(positions, places) : at::narrow(positions, 0, 0, ids.size(1)));
  if (context.Has(4)) {
    if (!context.Has(1)) throw context.Invalid("it has a table of segments and no ids of them");
    sum = at::add(sum, at::embedding(table(4), context.Tensor(1)));
  }
  const Normalized y = LayerNormalized(context, sum, -1, table(5), table(6), context.FloatAttribute("epsilon", 1e-12),
                                       /*wants_moments=*/false);
  Tensor lengths;
  if (context.Wants(1)) {
    lengths = context.Has(7) ? at::sum(context.Tensor(7), {1}).to(at::kInt)
                             : at::zeros({ids.size(0)}, context.Options(at::kInt));
  }
  return {y.result, lengths, sum};
}

Results AttentionOf(const Context& context, const Tensor& all, size_t mask, size_t past, std::optional<size_t> bias) {
  if (context.FlagAttribute("do_rotary", false)) throw context.Refused("do_rotary is not supported");
  const int64_t heads = context.IntAttribute("num_heads");
  const int64_t third = all.size(-1) / 3;
  const std::vector<int64_t> sizes = context.IntsAttribute("qkv_hidden_sizes", {third, third, third});
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != all.size(-1)) {
    throw context.Invalid("the weights do not divide into query, key and value");
  }
  const std::vector<Tensor> parts = at::split_with_sizes(all, sizes, -1);
  const Tensor query = SplitHeads(context, parts[0], heads);
  Tensor key = SplitHeads(context, parts[1], heads), value = SplitHeads(context, parts[2], heads);
  int64_t before = 0;
  if (context.Has(past)) {
    before = context.Tensor(past).size(3);
    key = at::cat({at::select(context.Tensor(past), 0, 0), key}, 2);
    value = at::cat({at::select(context.Tensor(past), 0, 1), value}, 2);
  }
  AttentionMask shown;
  AddIntegerMask(context, mask, query, key.size(2), &shown);
  if (bias) AddBias(context, *bias, &shown);
  if (context.FlagAttribute("unidirectional", false)) shown.Allow(UpTo(context, query.size(2), key.size(2), before));
  const AttentionScores scores = Attend(query, key, value, ScaleOf(context, query), /*softcap=*/0, shown);
  return {JoinHeads(scores.result), context.Wants(1) ? at::stack({key, value}, 0) : Tensor()};
}

void RegisterMicrosoft(OperatorTable& table) {
  const auto add = [&](const char* name, OperatorFunction function) -> OperatorRow& {
    return table.AddTo(kMicrosoftDomain, name, 1, function);
  };
  add("Gelu", Gelu);
  add("BiasGelu", BiasGelu).Inputs(2);
  add("FastGelu", FastGelu).Inputs(1, 2);
  add("QuickGelu", QuickGelu).Attributes({"alpha"});
  add("FusedMatMul", FusedMatMul).Inputs(2).Attributes({"alpha", "transA", "transB", "transBatchA", "transBatchB"});
  add("FusedGemm", FusedGemm)
      .Inputs(2, 3)
      .Attributes({"activation", "activation_alpha", "activation_beta", "activation_gamma", "alpha", "beta", "transA",
                   "transB"});
  add("FusedConv", FusedConv).Inputs(2, 4).Attributes(ConvolutionAttributes({"activation", "activation_params"}));
  add("SkipLayerNormalization", SkipLayerNormalization).Inputs(3, 5).Attributes({"epsilon"});
  add("SkipSimplifiedLayerNormalization", SkipSimplifiedLayerNormalization).Inputs(3, 4).Attributes({"epsilon"});
  add("EmbedLayerNormalization", EmbedLayerNormalization).Inputs(7, 9).Attributes({"epsilon", "mask_index_type"});
  add("Attention", Attention)
      .Inputs(2, 7)
      .Attributes({"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "qkv_hidden_sizes",
                   "rotary_embedding_dim", "scale", "unidirectional"});
  add("MultiHeadAttention", MultiHeadAttention)
      .Inputs(1, 10)
      .Attributes({"mask_filter_value", "num_heads", "scale", "unidirectional"});
  add("GroupQueryAttention", GroupQueryAttention)
      .Inputs(7, 14)
      .Attributes({"do_rotary", "kv_num_heads", "local_window_size", "num_heads", "rotary_interleaved", "scale",
                   "smooth_softmax", "softcap"});
  add("RotaryEmbedding", RotaryEmbedding)
      .Inputs(4)
      .Attributes({"interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"});

  // The runtime writes it into the default domain as well, like LayerNormalization before the standard has that.
  const std::vector<std::string> attributes{"axis", "epsilon", "stash_type"};
  table.Add("SimplifiedLayerNormalization", 1, SimplifiedLayerNormalization).Inputs(2).Attributes(attributes);
  add("SimplifiedLayerNormalization", SimplifiedLayerNormalization).Inputs(2).Attributes(attributes);
}

}  // namespace addend::onnx

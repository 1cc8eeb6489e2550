// Attention and transformer layers as LibTorch fuses them, rewritten into products and softmax.
//
// Note [Masks]
// A masked score becomes -inf, in the value and in the reference alike: softmax then gives it no share and passes
// nothing from it. Masks of large negative numbers come as sums and need nothing special. Where a row is masked out as
// a whole, softmax gives NaN in old versions of LibTorch, and newer ones replace it by zero, fused or not.
#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/rules/families.h"
#include "core/rules/fused_attention.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- scaled_dot_product_attention

struct Attention {
  at::Tensor output;
  at::Tensor weights;
  at::Tensor scores;
  at::Tensor empty;  // rows of which everything is masked and which give zero; undefined: none
};

// Keys and values of fewer heads than the query has: each serves several.
at::Tensor RepeatHeads(const at::Tensor& tensor, int64_t heads) {
  const int64_t own = tensor.size(-3);
  if (own == heads) return tensor;
  at::DimVector spread(tensor.sizes());
  spread.insert(spread.end() - 2, heads / own);
  at::DimVector together(tensor.sizes());
  together[together.size() - 3] = heads;
  return tensor.unsqueeze(-3).expand(spread).reshape(together);
}

// A softmax that gives zero in the rows `empty` (undefined: none). There the scores rest at zero on the way: with their
// infinities the coefficients of the softmax would be NaN.
at::Tensor WeightsOf(const at::Tensor& scores, const at::Tensor& empty, int64_t dim) {
  if (!empty.defined()) return at::softmax(scores, dim);
  return at::softmax(scores.masked_fill(empty, 0), dim).masked_fill(empty, 0);
}

// `mask`: undefined, boolean (true takes part) or a summand.
Attention Attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                 bool causal, double scale) {
  Attention result;
  at::Tensor scores = at::matmul(query * scale, key.transpose(-2, -1));
  at::Tensor hidden;  // true where a score is masked
  if (causal) {
    hidden = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).triu(1);
  } else if (mask.defined() && mask.scalar_type() == at::kBool) {
    hidden = mask.logical_not();
  } else if (mask.defined()) {
    scores = scores + mask;
  }
  if (hidden.defined()) scores = scores.masked_fill(hidden, -kInfinity);
  result.scores = scores;
  if (mask.defined() && MaskedRowsAreZero()) {
    const at::Tensor empty = (hidden.defined() ? hidden : mask.eq(-kInfinity)).all(-1, /*keepdim=*/true);
    if (ReadFlag(empty.any())) result.empty = empty;
  }
  result.weights = WeightsOf(scores, result.empty, -1);
  result.output = at::matmul(result.weights, value);
  return result;
}

// The arguments by name: their order changed with the versions.
Attention AttendOf(const RewriteCall& call) {
  if (call.Double("dropout_p", 0) != 0) {
    throw Unimplemented(call.name + " with dropout draws random numbers; call eval() on the model");
  }
  const at::Tensor query = call.Tensor("query");
  at::Tensor mask = call.Tensor("attn_mask");
  if (!mask.defined()) mask = call.Tensor("attn_bias");
  const double scale = call.Double("scale", 1 / std::sqrt(static_cast<double>(query.size(-1))));
  at::Tensor key = call.Tensor("key");
  at::Tensor value = call.Tensor("value");
  if (query.dim() > 2 && key.dim() > 2) {
    key = RepeatHeads(key, query.size(-3));
    value = RepeatHeads(value, query.size(-3));
  }
  return Attend(query, key, value, mask, call.Bool("is_causal", false), scale);
}

// scaled_dot_product_attention, which newer versions of LibTorch give without weights
Tensors OutputOnly(const RewriteCall& call) { return {AttendOf(call).output}; }

// _scaled_dot_product_attention and _scaled_dot_product_attention_math
Tensors OutputAndWeights(const RewriteCall& call) {
  const Attention attention = AttendOf(call);
  return {attention.output, attention.weights};
}

// _scaled_dot_product_flash_attention_for_cpu, which gives the logarithm of each row's denominator as well; zero where
// everything is masked.
Tensors OutputAndDenominators(const RewriteCall& call) {
  const Attention attention = AttendOf(call);
  if (!attention.empty.defined()) return {attention.output, at::logsumexp(attention.scores, -1)};
  const at::Tensor sums = at::logsumexp(attention.scores.masked_fill(attention.empty, 0), -1);
  return {attention.output, sums.masked_fill(attention.empty.squeeze(-1), 0)};
}

// _safe_softmax(input, dim, dtype): zero where everything is masked
Tensors SafeSoftmax(const RewriteCall& call) {
  const int64_t dim = call.Int("dim", -1);
  const at::Tensor input =
      call.IsNone("dtype") ? call.Tensor("self") : call.Tensor("self").to(call.Given("dtype").toScalarType());
  const at::Tensor empty = input.eq(-kInfinity).all(dim, /*keepdim=*/true);
  return {WeightsOf(input, empty, dim)};
}

// _masked_softmax(input, mask, dim, mask_type): true hides; types: 0 [L, L], 1 [batch, L] of [batch, heads, L, L], 2 as
// the input
// A mask of numbers hides where it is not zero: what PyTorch's modules make of a boolean one has -inf there.
at::Tensor SpreadMask(const at::Tensor& given, const at::Tensor& scores, int64_t type) {
  const at::Tensor mask = given.to(at::kBool);
  return mask.dim() == 2 && type == 1 ? mask.view({mask.size(0), 1, 1, mask.size(1)}).expand_as(scores) : mask;
}

Tensors MaskedSoftmax(const RewriteCall& call) {
  const at::Tensor input = call.Tensor("self");
  const at::Tensor mask = SpreadMask(call.Tensor("mask"), input, call.Int("mask_type", 2));
  const int64_t dim = call.Int("dim", -1);
  return {at::softmax(input.masked_fill(mask, -kInfinity), dim)};
}

// ---- multi-head attention

// [batch, T, heads * width] -> [batch, heads, T, width]
at::Tensor SplitHeads(const at::Tensor& tensor, int64_t heads) {
  return tensor.view({tensor.size(0), tensor.size(1), heads, tensor.size(2) / heads}).transpose(1, 2);
}

struct MultiHead {
  at::Tensor qkv_weight;
  at::Tensor qkv_bias;
  at::Tensor output_weight;
  at::Tensor output_bias;
  int64_t heads = 1;
};

// `mask`: true hides. Gives the output and the weights of all heads.
Tensors AttendWithHeads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const MultiHead& parameters, const at::Tensor& mask, int64_t mask_type) {
  Tensors inputs;
  if (query.is_same(key) && key.is_same(value)) {
    inputs = at::linear(query, parameters.qkv_weight, parameters.qkv_bias).chunk(3, -1);
  } else {
    const Tensors weights = parameters.qkv_weight.chunk(3);
    const Tensors biases = parameters.qkv_bias.chunk(3);
    inputs = {at::linear(query, weights[0], biases[0]), at::linear(key, weights[1], biases[1]),
              at::linear(value, weights[2], biases[2])};
  }
  const int64_t width = inputs[0].size(-1);
  for (at::Tensor& input : inputs) input = SplitHeads(input, parameters.heads);
  const double scale = 1 / std::sqrt(static_cast<double>(width / parameters.heads));
  at::Tensor scores = at::matmul(inputs[0] * scale, inputs[1].transpose(-2, -1));
  if (mask.defined()) scores = scores.masked_fill(SpreadMask(mask, scores, mask_type), -kInfinity);
  const at::Tensor weights = at::softmax(scores, -1);
  const at::Tensor context = at::matmul(weights, inputs[2]).transpose(1, 2).reshape({query.size(0), -1, width});
  return {at::linear(context, parameters.output_weight, parameters.output_bias), weights};
}

// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
// mask, need_weights, average_attn_weights, mask_type) -> (output, weights)
Tensors NativeMultiHeadAttention(const RewriteCall& call) {
  const MultiHead parameters = {call.Tensor("qkv_weight"), call.Tensor("qkv_bias"), call.Tensor("proj_weight"),
                                call.Tensor("proj_bias"), call.Int("num_head", 1)};
  const Tensors both = AttendWithHeads(call.Tensor("query"), call.Tensor("key"), call.Tensor("value"), parameters,
                                       call.Tensor("mask"), call.Int("mask_type", -1));
  if (!call.Bool("need_weights", true)) return {both[0], at::Tensor()};
  return {both[0], call.Bool("average_attn_weights", true) ? both[1].mean(1) : both[1]};
}

// _transform_bias_rescale_qkv(qkv, qkv_bias, num_heads) -> (query, key, value) of each head, the query scaled
Tensors SplitQueryKeyValue(const RewriteCall& call) {
  const int64_t heads = call.Int("num_heads", 1);
  Tensors parts = (call.Tensor("qkv") + call.Tensor("qkv_bias")).chunk(3, -1);
  for (at::Tensor& part : parts) part = SplitHeads(part, heads);
  parts[0] = parts[0] / std::sqrt(static_cast<double>(parts[0].size(-1)));
  return parts;
}

// ---- transformer layers

// The fused kernel of GPUs approximates the function.
at::Tensor Activate(const at::Tensor& inner, bool use_gelu) {
  return use_gelu ? at::gelu(inner, inner.is_cuda() ? "tanh" : "none") : at::relu(inner);
}

// _addmm_activation(self, mat1, mat2, beta, alpha, use_gelu)
Tensors AddMmActivation(const RewriteCall& call) {
  const at::Tensor product = at::addmm(call.Tensor("self"), call.Tensor("mat1"), call.Tensor("mat2"),
                                       call.Double("beta", 1), call.Double("alpha", 1));
  return {Activate(product, call.Bool("use_gelu", false))};
}

// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
// norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
// ffn_bias_2, mask, mask_type)
Tensors EncoderLayer(const RewriteCall& call) {
  const at::Tensor source = call.Tensor("src");
  const int64_t width = call.Int("embed_dim", 1);
  const MultiHead parameters = {call.Tensor("qkv_weight"), call.Tensor("qkv_bias"), call.Tensor("proj_weight"),
                                call.Tensor("proj_bias"), call.Int("num_heads", 1)};
  const bool norm_first = call.Bool("norm_first", false);
  const double eps = call.Double("eps", 1e-5);
  const auto norm = [&](const at::Tensor& tensor, const std::string& which) {
    return at::layer_norm(tensor, {width}, call.Tensor("norm_weight_" + which), call.Tensor("norm_bias_" + which), eps);
  };
  at::Tensor x = norm_first ? norm(source, "1") : source;
  x = source + AttendWithHeads(x, x, x, parameters, call.Tensor("mask"), call.Int("mask_type", -1))[0];
  if (!norm_first) x = norm(x, "1");
  const at::Tensor inner =
      Activate(at::linear(norm_first ? norm(x, "2") : x, call.Tensor("ffn_weight_1"), call.Tensor("ffn_bias_1")),
               call.Bool("use_gelu", false));
  x = x + at::linear(inner, call.Tensor("ffn_weight_2"), call.Tensor("ffn_bias_2"));
  return {norm_first ? x : norm(x, "2")};
}

}  // namespace

void RegisterTransformer(Registry& registry) {
  using Beside = BesideAttention;
  registry.Register(FusedAttention("aten::scaled_dot_product_attention", OutputOnly, Beside::kNothing));
  registry.Register(FusedAttention("aten::_scaled_dot_product_attention", OutputAndWeights, Beside::kWeights));
  registry.Register(FusedAttention("aten::_scaled_dot_product_attention_math", OutputAndWeights, Beside::kWeights));
  registry.Register(
      FusedAttention("aten::_scaled_dot_product_flash_attention_for_cpu", OutputAndDenominators, Beside::kSums));
  registry.Register(Rewrite{"aten::_safe_softmax", SafeSoftmax});
  registry.Register(Rewrite{"aten::_masked_softmax", MaskedSoftmax});
  registry.Register(Rewrite{"aten::_native_multi_head_attention", NativeMultiHeadAttention});
  registry.Register(Rewrite{"aten::_transform_bias_rescale_qkv", SplitQueryKeyValue});
  registry.Register(Rewrite{"aten::_addmm_activation", AddMmActivation});
  registry.Register(Rewrite{"aten::_transformer_encoder_layer_fwd", EncoderLayer});
}

}  // namespace addend

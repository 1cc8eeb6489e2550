// Operators of ONNX Runtime, held to their formulas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

NodeModel Microsoft(const std::string& op) { return NodeModel(op, "com.microsoft"); }

Tensor Normalized(const Tensor& x, double epsilon) {
  const Tensor centered = x - x.mean(-1, /*keepdim=*/true);
  return centered / (centered.square().mean(-1, /*keepdim=*/true) + epsilon).sqrt();
}

TEST(Microsoft, NormsAddWhatTheySkip) {
  const Tensor x = at::randn({2, 3, 8}), skip = at::randn({2, 3, 8});
  const Tensor weight = at::randn({8}), bias = at::randn({8}), more = at::randn({8});
  const Tensor sum = x + skip + more;
  const auto y = Microsoft("SkipLayerNormalization")
                     .Input(x)
                     .Input(skip)
                     .Constant(weight)
                     .Constant(bias)
                     .Constant(more)
                     .Attribute(FloatAttribute("epsilon", 0.01F))
                     .Run(1);
  EXPECT_TRUE(at::allclose(y[0], Normalized(sum, 0.01) * weight + bias, 1e-4, 1e-5));
  const auto root =
      Microsoft("SkipSimplifiedLayerNormalization").Input(x).Input(skip).Constant(weight).Constant(more).Run(1);
  EXPECT_TRUE(at::allclose(root[0], sum / (sum.square().mean(-1, true) + 1e-5).sqrt() * weight, 1e-4, 1e-5));
}

// The runtime writes it at versions before the standard has it.
TEST(Microsoft, LayerNormalizationIsOlderThanTheStandard) {
  const Tensor x = at::randn({2, 3, 8}), weight = at::randn({8}), bias = at::randn({8});
  for (const int64_t version : {9, 13, 16}) {
    const auto y = NodeModel("LayerNormalization", "", version).Input(x).Constant(weight).Constant(bias).Run(3);
    EXPECT_TRUE(at::allclose(y[0], Normalized(x, 1e-5) * weight + bias, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(y[1], x.mean(-1, true), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(y[2], (x.var(-1, false, true) + 1e-5).rsqrt(), 1e-4, 1e-5));
  }
}

// Softmax attention of 2 heads of 4 numbers; `bias` is added to the scores.
Tensor Attended(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias) {
  const auto apart = [](const Tensor& t) { return t.reshape({t.size(0), t.size(1), 2, -1}).transpose(1, 2); };
  const Tensor scores = apart(query).matmul(apart(key).transpose(2, 3)) / 2 + bias;
  return scores.softmax(-1).matmul(apart(value)).transpose(1, 2).reshape(query.sizes());
}

// A mask of keys is finite, so that a row in which all are masked is a plain softmax; a causal one is not.
TEST(Microsoft, AttentionMasksByALargeNumber) {
  const Tensor x = at::randn({2, 3, 8}), w = at::randn({8, 24}), b = at::randn({24});
  const Tensor mask = at::tensor({0, 0, 0, 1, 0, 1}, at::kInt).reshape({2, 3});
  const auto parts = (x.matmul(w) + b).chunk(3, -1);
  Tensor bias = (1 - mask.to(at::kFloat)).reshape({2, 1, 1, 3}) * -10000;
  for (const bool causal : {false, true}) {
    if (causal) {
      bias = bias.expand({2, 1, 3, 3}).masked_fill(at::ones({3, 3}, at::kBool).tril().logical_not(), -INFINITY);
    }
    const auto y = Microsoft("Attention")
                       .Input(x)
                       .Constant(w)
                       .Constant(b)
                       .Input(mask)
                       .Attribute(IntAttribute("num_heads", 2))
                       .Attribute(IntAttribute("unidirectional", causal ? 1 : 0))
                       .Run();
    EXPECT_TRUE(at::allclose(y[0], Attended(parts[0], parts[1], parts[2], bias), 1e-3, 1e-4)) << causal;
  }
}

TEST(Microsoft, MultiHeadAttentionAddsItsBiases) {
  const Tensor q = at::randn({2, 3, 8}), k = at::randn({2, 5, 8}), v = at::randn({2, 5, 8}), b = at::randn({24});
  const auto biases = b.chunk(3);
  const Tensor lengths = at::tensor({2, 4}, at::kInt);
  const Tensor shown = at::arange(5).lt(lengths.unsqueeze(1)).reshape({2, 1, 1, 5});
  const auto y = Microsoft("MultiHeadAttention")
                     .Input(q)
                     .Input(k)
                     .Input(v)
                     .Constant(b)
                     .Input(lengths)
                     .Attribute(IntAttribute("num_heads", 2))
                     .Run();
  const Tensor expected = Attended(q + biases[0], k + biases[1], v + biases[2], (1 - shown.to(at::kFloat)) * -10000);
  EXPECT_TRUE(at::allclose(y[0], expected, 1e-3, 1e-4));
}

// Two heads of keys for four of queries, behind two keys of the past; a query sees the last two keys.
TEST(Microsoft, GroupQueryAttentionLooksBack) {
  const Tensor q = at::randn({1, 4, 3, 8}), k = at::randn({1, 2, 5, 8}), v = at::randn({1, 2, 5, 8});
  const auto packed = [](const Tensor& t) { return t.transpose(1, 2).reshape({1, t.size(2), -1}); };
  const auto model = [&](int64_t keys) {
    return Microsoft("GroupQueryAttention")
        .Input(packed(q))
        .Input(packed(k.narrow(2, 2, 3)))
        .Input(packed(v.narrow(2, 2, 3)))
        .Input(k.narrow(2, 0, 2).contiguous())
        .Input(v.narrow(2, 0, 2).contiguous())
        .Input(at::full({1}, keys - 1, at::kInt))
        .Constant(at::full({1}, keys, at::kInt))
        .Attribute(IntAttribute("num_heads", 4))
        .Attribute(IntAttribute("kv_num_heads", 2))
        .Attribute(IntAttribute("local_window_size", 2))
        .Run(3);
  };
  const Tensor shown = at::ones({3, 5}, at::kBool).tril(2).triu(1);
  const Tensor scores = q.matmul(k.repeat_interleave(2, 1).transpose(2, 3)) / std::sqrt(8.0);
  const Tensor weights = scores.masked_fill(shown.logical_not(), -INFINITY).softmax(-1);
  const auto y = model(5);
  EXPECT_TRUE(at::allclose(y[0], packed(weights.matmul(v.repeat_interleave(2, 1))), 1e-4, 1e-5));
  EXPECT_TRUE(at::equal(y[1], k));
  ExpectError(absl::StatusCode::kUnimplemented, {"sequences of several lengths"}, [&] { model(4); });
}

TEST(Microsoft, FusedActivationsTakeTheirParameters) {
  const Tensor x = at::randn({1, 2, 5, 5}), w = at::randn({3, 2, 3, 3}), z = at::randn({1, 3, 3, 3});
  const auto y = Microsoft("FusedConv")
                     .Input(x)
                     .Constant(w)
                     .None()
                     .Input(z)
                     .Attribute(TextAttribute("activation", "Clip"))
                     .Attribute(FloatsAttribute("activation_params", {-0.5F, 0.75F}))
                     .Run();
  EXPECT_TRUE(at::allclose(y[0], (at::conv2d(x, w) + z).clamp(-0.5, 0.75), 1e-4, 1e-5));
  ExpectError(absl::StatusCode::kUnimplemented, {"node (com.microsoft.FusedConv)", "the fused activation Cube"}, [&] {
    Microsoft("FusedConv").Input(x).Constant(w).Attribute(TextAttribute("activation", "Cube")).Run();
  });
}

// Activations that ONNX Runtime puts into a product, with parameters that are no defaults.
TEST(Microsoft, ProductsEndInActivations) {
  const Tensor x = at::randn({4, 3}), w = at::randn({3, 5});
  const Tensor product = x.mm(w), zero = at::zeros({});
  const auto expect = [&](const std::string& name, const Tensor& expected) {
    const auto y = Microsoft("FusedGemm")
                       .Input(x)
                       .Constant(w)
                       .Attribute(TextAttribute("activation", name))
                       .Attribute(FloatAttribute("activation_alpha", 0.7F))
                       .Attribute(FloatAttribute("activation_gamma", 1.5F))
                       .Run();
    EXPECT_TRUE(at::allclose(y[0], expected, 1e-4, 1e-5)) << name;
  };
  const Tensor below = 0.7 * (at::minimum(product, zero).exp() - 1);
  expect("Elu", at::where(product > 0, product, below));
  expect("Selu", 1.5 * at::where(product > 0, product, below));
  expect("ThresholdedRelu", at::where(product > 0.7, product, zero));
  expect("Softplus", (product.exp() + 1).log());
  expect("Softsign", product / (product.abs() + 1));
}

// One position is that of the first token.
TEST(Microsoft, RotaryEmbeddingBeginsAtAPosition) {
  const Tensor x = at::randn({2, 3, 8}), angles = at::randn({9, 2});
  const auto y = Microsoft("RotaryEmbedding")
                     .Input(x)
                     .Input(at::tensor({4}, at::kLong))
                     .Constant(angles.cos())
                     .Constant(angles.sin())
                     .Run();
  // Halves of each head as complex numbers.
  const Tensor heads = x.reshape({2, 3, 2, 2, 2});
  const Tensor turned = at::complex(heads.select(3, 0), heads.select(3, 1)) *
                        at::polar(at::ones({3, 1, 2}), angles.narrow(0, 4, 3).unsqueeze(1).contiguous());
  const Tensor expected = at::stack({at::real(turned), at::imag(turned)}, 3).reshape(x.sizes());
  EXPECT_TRUE(at::allclose(y[0], expected, 1e-4, 1e-5));
}

}  // namespace
}  // namespace addend::onnx

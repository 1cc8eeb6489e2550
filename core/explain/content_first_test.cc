// Products of a coefficient and content: the coefficient moves first (Policy::content_first). What is fused and what is
// written out give the same parts, the parts of an attention are those that its formula says, and what comes of it from
// nothing: twelve layers whose parts are of the size of what they sum to.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using Function = std::function<Tensor(const Tensor&)>;

constexpr double kEps = 1e-5;

Policy With(const std::string& content_first, const std::string& by_magnitude = "gate+activation") {
  Policy policy;
  SetPolicyField(policy, "content_first", content_first);
  SetPolicyField(policy, "by_magnitude", by_magnitude);
  return policy;
}

// Content takes a share of what it moved together with attention weights.
Policy ByMagnitude() { return With("attention+normalizer+denominator", "attention"); }

Composition PartsOf(const Function& model, const Tensor& value, const Tensor& baseline, const Policy& policy = {}) {
  DecomposeOptions options;
  options.policy = policy;
  options.everything = true;
  return ModelOf(model).Decompose({SplitInput(value, {0}, baseline)}, options).outputs[0].composition;
}

double Apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }
double Largest(const Tensor& t) { return t.abs().max().item<double>(); }

// ---- fused and written out

Tensor Centred(const Tensor& x, int64_t dim = -1) { return x - x.mean(dim, true); }
Tensor Normalized(const Tensor& x) {
  const Tensor c = Centred(x);
  return c * (at::square(c).mean(-1, true) + kEps).rsqrt();
}
// [T, 6] -> [2, T, 3]
Tensor Heads(const Tensor& x) { return x.view({x.size(0), 2, 3}).transpose(0, 1); }
Tensor Projection(uint64_t seed) { return Random({6, 6}, seed); }

Tensor WrittenAttention(const Tensor& x) {
  const Tensor q = Heads(at::linear(x, Projection(1)));
  const Tensor k = Heads(at::linear(x, Projection(2)));
  const Tensor v = Heads(at::linear(x, Projection(3)));
  const Tensor weights = at::softmax(q.matmul(k.transpose(1, 2)) / std::sqrt(3.0), -1);
  return at::linear(weights.bmm(v).transpose(0, 1).reshape({x.size(0), 6}), Projection(4));
}

// Lengths of columns, in which all components meet.
Tensor InverseLength(const Tensor& x) { return at::square(x).sum(0, true).sqrt().reciprocal(); }
Tensor OfUnitLength(const Tensor& x) { return x * InverseLength(x); }
Tensor Bound(const Tensor& x) { return at::full({}, 1e12, x.options()); }

struct Pair {
  std::string name;
  Function one;
  Function other;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

std::vector<Pair> Pairs() {
  return {
      {"layer_norm", [](const Tensor& x) { return at::layer_norm(x, {6}); }, Normalized},
      {"group_norm", [](const Tensor& x) { return at::group_norm(x, 2); },
       [](const Tensor& x) {
         return Normalized(x.view({-1, 2, 3})).view({-1, 6});
       }},
      {"instance_norm",
       [](const Tensor& x) {
         return at::instance_norm(x.view({-1, 2, 3}), {}, {}, {}, {}, true, 0.1, kEps, false).view({-1, 6});
       },
       [](const Tensor& x) {
         return Normalized(x.view({-1, 2, 3})).view({-1, 6});
       }},
      {"batch_norm", [](const Tensor& x) { return at::batch_norm(x, {}, {}, {}, {}, true, 0.1, kEps, false); },
       [](const Tensor& x) { return Normalized(x.t()).t(); }},
      {"root_mean_square", [](const Tensor& x) { return x * at::rsqrt(x.pow(2).mean(-1, true) + kEps); },
       [](const Tensor& x) { return x / at::sqrt(at::square(x).mean(-1, true) + kEps); }},
      {"power", [](const Tensor& x) { return x * (at::square(x).mean(-1, true) + kEps).pow(-0.5); },
       [](const Tensor& x) { return x * at::rsqrt(at::square(x).mean(-1, true) + kEps); }},
      {"unit_length", [](const Tensor& x) { return x / x.norm(2, {1}, true).clamp_min(1e-12).expand_as(x); },
       [](const Tensor& x) { return x * at::square(x).sum(1, true).sqrt().clamp_min(1e-12).reciprocal(); }},
      // Keras's UnitNormalization bounds the inverse of the length.
      {"bounded_inverse", [](const Tensor& x) { return x * InverseLength(x).clamp_max(1e12); }, OfUnitLength},
      {"smaller_inverse", [](const Tensor& x) { return x * at::minimum(InverseLength(x), Bound(x)); }, OfUnitLength},
      {"inverse_within_tensor", [](const Tensor& x) { return x * InverseLength(x).clamp_max(Bound(x)); }, OfUnitLength},
      {"standardized", [](const Tensor& x) { return Centred(x) / (x.std(-1, false, true) + kEps); },
       [](const Tensor& x) {
         const Tensor c = Centred(x);
         return c / (at::sqrt(at::square(c).mean(-1, true)) + kEps);
       }},
      {"cosine_similarity",
       [](const Tensor& x) { return at::cosine_similarity(x, at::linear(x, Projection(1)), 1, 1e-8); },
       [](const Tensor& x) {
         const auto unit = [](const Tensor& t) { return t / at::square(t).sum(1, true).sqrt().clamp_min(1e-8); };
         return (unit(x) * unit(at::linear(x, Projection(1)))).sum(1);
       }},
      {"attention",
       [](const Tensor& x) {
         const Tensor weight = at::cat({Projection(1), Projection(2), Projection(3)});
         const Tensor batch = x.unsqueeze(0);
         const Tensor none = at::zeros({18}, x.options());
         return std::get<0>(at::_native_multi_head_attention(batch, batch, batch, 6, 2, weight, none, Projection(4),
                                                             at::zeros({6}, x.options())))
             .squeeze(0);
       },
       WrittenAttention},
      {"gates",
       [](const Tensor& x) {
         const auto c = x.chunk(2, 1);
         return at::sigmoid(c[1]) * c[0];
       },
       [](const Tensor& x) { return at::glu(x, 1); }},
      {"activations",
       [](const Tensor& x) {
         const auto c = x.chunk(2, 1);
         return at::silu(c[1]) * c[0];
       },
       [](const Tensor& x) {
         const auto c = x.chunk(2, 1);
         return c[0] * (at::sigmoid(c[1]) * c[1]);
       }},
  };
}

class FusedAndWritten : public testing::TestWithParam<Pair> {};

TEST_P(FusedAndWritten, GiveTheSameParts) {
  const Tensor value = Random({5, 6}, 21);
  for (const std::string content_first :
       {"attention+normalizer+denominator+gate", "none", "gate", "activation", "denominator"}) {
    for (const double scale : {1.0, 1e-3}) {
      SCOPED_TRACE(testing::Message() << content_first << " from " << scale);
      const Tensor baseline = Random({5, 6}, 22) * scale;
      const Composition one = PartsOf(GetParam().one, value, baseline, With(content_first));
      const Composition other = PartsOf(GetParam().other, value, baseline, With(content_first));
      const double size = std::max(Largest(one.components()), 1.0);
      EXPECT_LE(Apart(one.recovery(), GetParam().one(value)), 1e-11 * size);
      EXPECT_LE(Largest(one.leftover()), 1e-10 * size);
      // The softmax of either way has the error of its quadrature. Under "denominator" alone a normalizer is one
      // only where it divides.
      const bool differs = content_first == "denominator";
      if (!differs) {
        EXPECT_LE(Apart(one.components(), other.components()), 1e-9 * size);
      }
    }
  }
}

// A kind of its own: a factor of SwiGLU or GEGLU shares by half unless it is named, and a gate by magnitude.
TEST(Activations, ShareByHalfWhereGatesShareByMagnitude) {
  const Tensor value = Random({6, 5}, 25);
  const Tensor baseline = Random({6, 5}, 26);
  const auto parts = [&](const Function& model, const Policy& policy) {
    return PartsOf(model, value, baseline, policy).components();
  };
  for (Tensor (*const function)(const Tensor&) : {&at::silu, &at::hardswish, &at::mish}) {
    const Function product = [=](const Tensor& x) { return function(x.narrow(0, 0, 3)) * x.narrow(0, 3, 3); };
    const Tensor by_half = parts(product, With("none"));
    EXPECT_EQ(Apart(parts(product, {}), by_half), 0);
    EXPECT_GT(Apart(parts(product, With("activation")), by_half), 1e-3);
  }
  const Function gated = [](const Tensor& x) { return at::sigmoid(x.narrow(0, 0, 3)) * x.narrow(0, 3, 3); };
  EXPECT_EQ(Apart(parts(gated, {}), parts(gated, With("gate"))), 0);
  EXPECT_GT(Apart(parts(gated, {}), parts(gated, With("none"))), 1e-3);
}

// Contributions to one number, transposed, are the parts that went forward.
TEST_P(FusedAndWritten, GoBackAsTheyWentForward) {
  const Tensor value = Random({5, 6}, 23);
  const Tensor baseline = Random({5, 6}, 24);
  for (const Function& run : {GetParam().one, GetParam().other}) {
    AttributeOptions options;
    Target target;
    target.top1 = false;
    target.index = run(value).dim() == 1 ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 1};
    options.targets = {target};
    const Attribution found = Attribute(ModelOf(run), {SplitInput(value, {0}, baseline)}, options);
    const Tensor components = PartsOf(run, value, baseline).components();
    const Tensor expected = components.select(1, 2).reshape({5, -1}).select(1, components.dim() == 2 ? 0 : 1);
    EXPECT_LE(Apart(at::tensor(found.targets[0].contributions, at::kDouble), expected), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FusedAndWritten, testing::ValuesIn(Pairs()),
                         [](const auto& info) { return info.param.name; });

// ---- what the parts are

Tensor Weights(const Tensor& x) { return at::softmax(at::linear(x, Projection(5)).matmul(x.t()), -1); }
Tensor Content(const Tensor& x) { return at::linear(x, Projection(6)); }

// The weights move while the content is the reference's, then the content moves at the weights' value. Parts of the
// weights and of the content are found each for itself.
TEST(ContentFirst, AttentionIsItsFormula) {
  const Tensor value = Random({4, 6}, 25);
  const Tensor baseline = Random({4, 6}, 26);
  const auto attention = [](const Tensor& x) { return Weights(x).matmul(Content(x)); };
  const Tensor of_weights = PartsOf(Weights, value, baseline).components();
  const Tensor of_content = PartsOf(Content, value, baseline).components();
  const Tensor expected = of_weights.matmul(Content(baseline)) + Weights(value).matmul(of_content);
  EXPECT_LE(Apart(PartsOf(attention, value, baseline).components(), expected), 1e-12);
  const Tensor half = of_weights.matmul(Content(baseline) + Content(value)) / 2 +
                      (Weights(value) + Weights(baseline)).matmul(of_content) / 2;
  EXPECT_LE(Apart(PartsOf(attention, value, baseline, With("none")).components(), half), 1e-12);
  EXPECT_GT(Apart(half, expected), 0.01);
  // The share S of what both moved together goes to the content by magnitude; |.| is the norm of its rows.
  const auto norms = [](const Tensor& content) { return content.norm(2, {-1}).unsqueeze(0); };
  const Tensor weighed = 1.5 * norms(Content(value));
  const Tensor share = weighed / (weighed + norms(Content(baseline)));
  const Tensor shared = of_weights.matmul(Content(baseline)) +
                        ((1 - share) * of_weights).matmul(Content(value) - Content(baseline)) +
                        (share * Weights(value) + (1 - share) * Weights(baseline)).matmul(of_content);
  EXPECT_LE(Apart(PartsOf(attention, value, baseline, ByMagnitude()).components(), shared), 1e-12);
  EXPECT_GT(Apart(shared, expected), 0.01);
  EXPECT_GT(Apart(shared, half), 0.01);
}

// Queries and keys are contents, and so are two halves of a product that nothing marks.
TEST(ContentFirst, ContentsShareByHalf) {
  const Tensor value = Random({4, 6}, 27);
  const Tensor baseline = Random({4, 6}, 28);
  const auto scores = [](const Tensor& x) { return at::linear(x, Projection(5)).matmul(Content(x).t()); };
  EXPECT_EQ(
      Apart(PartsOf(scores, value, baseline).components(), PartsOf(scores, value, baseline, With("none")).components()),
      0);
}

// Two coefficients share by half as well: attention weights that are multiplied by a normalizer.
TEST(ContentFirst, CoefficientsShareByHalf) {
  const Tensor value = Random({4, 6}, 29);
  const Tensor baseline = Random({4, 6}, 30);
  const auto both = [](const Tensor& x) { return at::softmax(x, 1) * at::sqrt(at::square(x) + 1); };
  EXPECT_EQ(
      Apart(PartsOf(both, value, baseline).components(), PartsOf(both, value, baseline, With("none")).components()), 0);
}

// Whose content comes first is settled by the operator that makes the coefficient.
TEST(ContentFirst, OverridesSpeakOfTheCoefficient) {
  const Tensor value = Random({4, 6}, 31);
  const Tensor baseline = Random({4, 6}, 32);
  const auto attention = [](const Tensor& x) { return Weights(x).matmul(Content(x)); };
  const Tensor half = PartsOf(attention, value, baseline, With("none")).components();
  const Tensor first = PartsOf(attention, value, baseline).components();
  Policy policy;
  SetPolicyField(policy, "content_first@aten::softmax", "none");
  EXPECT_EQ(Apart(PartsOf(attention, value, baseline, policy).components(), half), 0);
  policy = With("none");
  SetPolicyField(policy, "content_first@aten::softmax", "attention");
  EXPECT_EQ(Apart(PartsOf(attention, value, baseline, policy).components(), first), 0);
}

// A frozen coefficient does not move at all, whatever comes first.
TEST(ContentFirst, FrozenCoefficientsStayFrozen) {
  const Tensor value = Random({4, 6}, 33);
  const Tensor baseline = Random({4, 6}, 34);
  const auto model = [](const Tensor& x) { return Weights(x).matmul(at::layer_norm(Content(x), {6})) / at::exp(x); };
  Policy fast;
  fast.preset = Preset::kFast;
  Policy by_half = fast;
  by_half.content_first = kFreezeNothing;
  EXPECT_EQ(
      Apart(PartsOf(model, value, baseline, fast).components(), PartsOf(model, value, baseline, by_half).components()),
      0);
}

// Cut into more and more pieces, each with ends of its own, content first and by half become the same integral: the one
// with an error of first order, the other of second. Every number of pieces recovers.
TEST(ContentFirst, SegmentsLeadToWhereHalfLeads) {
  const Tensor value = Random({4, 6}, 35);
  const Tensor baseline = Random({4, 6}, 36);
  const auto model = [](const Tensor& x) { return Weights(x).matmul(at::layer_norm(Content(x), {6})); };
  double before = 0;
  for (const int64_t segments : {1, 4, 16, 64}) {
    Policy first;
    first.segments = segments;
    Policy half = With("none");
    half.segments = segments;
    const Composition parts = PartsOf(model, value, baseline, first);
    EXPECT_LE(Apart(parts.recovery(), model(value)), 1e-10) << segments;
    EXPECT_LE(Largest(parts.leftover()), 1e-9) << segments;
    const double apart = Apart(parts.components(), PartsOf(model, value, baseline, half).components());
    if (segments == 1) {
      EXPECT_GT(apart, 0.05);
    } else {
      EXPECT_LE(apart, before / 2.5) << segments;
    }
    before = apart;
  }
}

// ---- from nothing

constexpr int64_t kLength = 10;
constexpr int64_t kWidth = 32;
constexpr int64_t kHeads = 4;
constexpr int64_t kLayers = 12;

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  Tensor Matrix(int64_t out, int64_t in) {
    return Random({out, in}, seed_++, at::kFloat) / std::sqrt(static_cast<double>(in));
  }
  Tensor Vector(int64_t size, double scale, double centre = 0) {
    return Random({size}, seed_++, at::kFloat) * scale + centre;
  }

 private:
  uint64_t seed_;
};

// [T, kWidth] -> [kHeads, T, kWidth / kHeads]
Tensor SplitHeads(const Tensor& x) { return x.view({x.size(0), kHeads, kWidth / kHeads}).transpose(0, 1); }
Tensor JoinHeads(const Tensor& x) { return x.transpose(0, 1).reshape({x.size(1), kWidth}); }

struct EncoderLayer {
  Tensor qkv, qkv_bias, out, out_bias, norm1, norm1_bias, norm2, norm2_bias, up, up_bias, down, down_bias;
};

// An encoder as nn.TransformerEncoder computes it, with biases that nothing hides behind.
Function Encoder(bool norm_first, double biases) {
  Draws draws(100);
  std::vector<EncoderLayer> layers;
  for (int64_t k = 0; k < kLayers; ++k) {
    layers.push_back({draws.Matrix(3 * kWidth, kWidth), draws.Vector(3 * kWidth, biases), draws.Matrix(kWidth, kWidth),
                      draws.Vector(kWidth, biases), draws.Vector(kWidth, 0.1, 1), draws.Vector(kWidth, biases),
                      draws.Vector(kWidth, 0.1, 1), draws.Vector(kWidth, biases), draws.Matrix(2 * kWidth, kWidth),
                      draws.Vector(2 * kWidth, biases), draws.Matrix(kWidth, 2 * kWidth),
                      draws.Vector(kWidth, biases)});
  }
  const Tensor head = draws.Matrix(8, kWidth);
  return [=](const Tensor& input) {
    Tensor x = input;
    for (const EncoderLayer& l : layers) {
      const auto attend = [&](const Tensor& t) {
        const auto parts = at::linear(t, l.qkv, l.qkv_bias).chunk(3, -1);
        const Tensor scores = SplitHeads(parts[0]).matmul(SplitHeads(parts[1]).transpose(1, 2));
        const Tensor weights = at::softmax(scores / std::sqrt(static_cast<double>(kWidth / kHeads)), -1);
        return at::linear(JoinHeads(weights.bmm(SplitHeads(parts[2]))), l.out, l.out_bias);
      };
      const auto feed = [&](const Tensor& t) {
        return at::linear(at::gelu(at::linear(t, l.up, l.up_bias)), l.down, l.down_bias);
      };
      const auto norm1 = [&](const Tensor& t) { return at::layer_norm(t, {kWidth}, l.norm1, l.norm1_bias); };
      const auto norm2 = [&](const Tensor& t) { return at::layer_norm(t, {kWidth}, l.norm2, l.norm2_bias); };
      if (norm_first) {
        x = x + attend(norm1(x));
        x = x + feed(norm2(x));
      } else {
        x = norm1(x + attend(x));
        x = norm2(x + feed(x));
      }
    }
    return at::linear(norm_first ? at::layer_norm(x, {kWidth}) : x, head).mean(0);
  };
}

struct DecoderLayer {
  Tensor q, k, v, out, norm1, norm2, gate, up, down;
};

Tensor RootMeanSquare(const Tensor& x, const Tensor& weight) {
  return weight * (x * at::rsqrt(at::square(x).mean(-1, true) + kEps));
}

// A decoder as Llama computes it: RMS norms, rotary positions, causal attention and a gated feed-forward, without
// biases.
Function Decoder() {
  Draws draws(300);
  std::vector<DecoderLayer> layers;
  for (int64_t k = 0; k < kLayers; ++k) {
    layers.push_back({draws.Matrix(kWidth, kWidth), draws.Matrix(kWidth, kWidth), draws.Matrix(kWidth, kWidth),
                      draws.Matrix(kWidth, kWidth), draws.Vector(kWidth, 0.1, 1), draws.Vector(kWidth, 0.1, 1),
                      draws.Matrix(2 * kWidth, kWidth), draws.Matrix(2 * kWidth, kWidth),
                      draws.Matrix(kWidth, 2 * kWidth)});
  }
  const Tensor norm = draws.Vector(kWidth, 0.1, 1);
  const Tensor head = draws.Matrix(8, kWidth);
  const int64_t width = kWidth / kHeads;
  const Tensor frequency = at::pow(100.0, at::arange(0, width, 2, at::kFloat) / -static_cast<double>(width));
  const Tensor angle = at::outer(at::arange(kLength, at::kFloat), frequency).repeat({1, 2});
  const Tensor hidden = at::ones({kLength, kLength}, at::kBool).triu(1);
  const auto turn = [=](const Tensor& x) {
    const auto halves = x.chunk(2, -1);
    return x * angle.cos() + at::cat({-halves[1], halves[0]}, -1) * angle.sin();
  };
  return [=](const Tensor& input) {
    Tensor x = input;
    for (const DecoderLayer& l : layers) {
      const Tensor y = RootMeanSquare(x, l.norm1);
      const Tensor q = turn(SplitHeads(at::linear(y, l.q)));
      const Tensor k = turn(SplitHeads(at::linear(y, l.k)));
      const Tensor scores = q.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(width));
      const Tensor weights = at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
      x = x + at::linear(JoinHeads(weights.matmul(SplitHeads(at::linear(y, l.v)))), l.out);
      const Tensor z = RootMeanSquare(x, l.norm2);
      x = x + at::linear(at::silu(at::linear(z, l.gate)) * at::linear(z, l.up), l.down);
    }
    return at::linear(RootMeanSquare(x[kLength - 1], norm), head);
  };
}

struct FromNothing {
  std::string name;
  Function model;
};
void PrintTo(const FromNothing& one, std::ostream* out) { *out << one.name; }

class ZeroBaseline : public testing::TestWithParam<FromNothing> {};

TEST_P(ZeroBaseline, PartsAreOfTheSizeOfWhatTheySumTo) {
  const Function& model = GetParam().model;
  const Tensor value = Random({kLength, kWidth}, 40, at::kFloat);
  const Tensor zero = at::zeros_like(value);
  const Tensor output = model(value);
  const Tensor move = output - model(zero);
  const Composition parts = PartsOf(model, value, zero);
  const double scale = Largest(output);
  EXPECT_LE(Apart(parts.recovery(), output), 1e-5 * scale);
  EXPECT_LE(Largest(parts.leftover()), 1e-4 * scale);
  const int64_t largest = move.abs().argmax().item<int64_t>();
  const double mass = parts.components().select(1, largest).abs().sum().item<double>();
  EXPECT_LE(mass / std::abs(move[largest].item<double>()), 100);
  // Attribute backward, too.
  AttributeOptions options;
  Target target;
  target.top1 = false;
  target.index = {largest};
  options.targets = {target};
  const Attribution found = Attribute(ModelOf(model), {SplitInput(value, {0}, zero)}, options);
  EXPECT_LE(found.targets[0].conditioning, 100);
  EXPECT_NEAR(found.targets[0].recovery, output[largest].item<double>(), 1e-5 * scale);
  EXPECT_LE(Apart(at::tensor(found.targets[0].contributions, at::kDouble), parts.components().select(1, largest)),
            1e-4 * scale);
}

INSTANTIATE_TEST_SUITE_P(TwelveLayers, ZeroBaseline,
                         testing::Values(FromNothing{"norm_first", Encoder(true, 0)},
                                         FromNothing{"norm_last", Encoder(false, 0)},
                                         FromNothing{"norm_first_with_biases", Encoder(true, 0.1)},
                                         FromNothing{"norm_last_with_biases", Encoder(false, 0.1)},
                                         FromNothing{"decoder", Decoder()}),
                         [](const auto& info) { return info.param.name; });

// Without biases, which would give the reference a deviation that by half lives with.
class ZeroBaselineByHalf : public testing::TestWithParam<FromNothing> {};

// With products shared by half, the parts are more than a thousand times what they sum to, or no float32 holds them.
TEST_P(ZeroBaselineByHalf, PartsAreFarLargerThanWhatTheySumTo) {
  const Function& model = GetParam().model;
  const Tensor value = Random({kLength, kWidth}, 40, at::kFloat);
  const Tensor zero = at::zeros_like(value);
  const Tensor move = model(value) - model(zero);
  const int64_t largest = move.abs().argmax().item<int64_t>();
  Policy by_half = With("none");
  by_half.on_failure = OnFailure::kIgnore;
  const Composition parts = PartsOf(model, value, zero, by_half);
  const double mass = parts.components().select(1, largest).abs().sum().item<double>();
  EXPECT_FALSE(mass / std::abs(move[largest].item<double>()) <= 1000);
}

INSTANTIATE_TEST_SUITE_P(TwelveLayers, ZeroBaselineByHalf,
                         testing::Values(FromNothing{"norm_first", Encoder(true, 0)},
                                         FromNothing{"norm_last", Encoder(false, 0)},
                                         FromNothing{"decoder", Decoder()}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace addend

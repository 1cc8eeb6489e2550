// Every field of the policy on whole models, against formulas written out here, autograd and models that spell out what
// others fuse. Whatever the policy, recovery equals the value.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/base/policy_testing.h"
#include "core/explain/decompose.h"
#include "core/program/random_testing.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

double Largest(const Tensor& t) { return t.abs().max().item<double>(); }
double Distance(const Tensor& a, const Tensor& b) { return Largest(a - b); }

using Function = std::function<Tensor(const Tensor&)>;

Decomposition Decomposed(const Function& f, const Composition& x, const PolicyFields& fields) {
  DecomposeOptions options;
  options.policy = PolicyOf(fields);
  const auto model = FromFunction([f](const std::vector<Tensor>& inputs) { return f(inputs[0]); });
  Decomposition result = TracedModel(model).Decompose({Input::Of(x)}, options);
  const Tensor value = f(x.recovery());
  EXPECT_LT(Distance(result.outputs[0].composition.recovery(), value), 1e-11 * (1 + Largest(value)));
  return result;
}

Composition Parts(const Function& f, const Composition& x, const PolicyFields& fields) {
  return Decomposed(f, x, fields).outputs[0].composition;
}

Composition RandomComposition(int64_t numc, at::IntArrayRef sizes, uint64_t seed) {
  at::DimVector all = {numc};
  all.append(sizes.begin(), sizes.end());
  return Composition(Random(all, seed), Random(sizes, seed + 1));
}

const Tensor& Weight() {
  static const Tensor& weight = *new Tensor(Random({5, 5}, 90) / 2);
  return weight;
}
const Tensor& BiasVector() {
  static const Tensor& bias = *new Tensor(Random({5}, 91));
  return bias;
}

// A model in which every choice matters: [3, 5] -> [3, 5].
Tensor Network(const Tensor& x) {
  const Tensor h = at::gelu(at::linear(x, Weight(), BiasVector()));
  const Tensor a = at::softmax(at::matmul(h, h.transpose(0, 1)) / 2, -1);
  const Tensor n = at::layer_norm(at::matmul(a, x) + h, {5}, BiasVector().abs(), BiasVector());
  return at::tanh(at::linear(n, Weight().t(), BiasVector())) / (1.5 + at::sigmoid(x)) + at::relu(n);
}

// ---- nonlinearity

TEST(Policies, ElementwiseFunctionsFollowTheirFormulas) {
  const Composition x = RandomComposition(3, {4, 5}, 1);
  const Tensor& c = x.components();
  const Tensor v = x.recovery();
  const Tensor b = x.reference();
  const Tensor total = c.abs().sum(0);
  struct Case {
    std::string name;
    Function f;
    Function derivative;
  };
  const std::vector<Case> cases = {
      {"tanh", [](const Tensor& t) { return at::tanh(t); }, [](const Tensor& t) { return 1 - at::tanh(t).square(); }},
      {"sigmoid", [](const Tensor& t) { return at::sigmoid(t); },
       [](const Tensor& t) { return at::sigmoid(t) * (1 - at::sigmoid(t)); }},
      {"relu", [](const Tensor& t) { return at::relu(t); }, [](const Tensor& t) { return t.gt(0).to(at::kDouble); }},
      {"exp", [](const Tensor& t) { return at::exp(t); }, [](const Tensor& t) { return at::exp(t); }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const Tensor change = one.f(v) - one.f(b);
    const auto check = [&](const std::string& rule, const Tensor& expected) {
      const Composition parts = Parts(one.f, x, {{"nonlinearity", rule}});
      EXPECT_LT(Distance(parts.components(), expected), 1e-10) << rule;
      EXPECT_TRUE(at::equal(parts.reference(), one.f(b))) << rule;
    };
    check("path", c * change / (v - b));
    check("abs_affine", c.abs() * change / total);
    check("scaling", c * one.f(v) / v);
    check("gradient", c * one.derivative(v));
    check("none", at::zeros_like(c));
    for (const double threshold : {0.05, 0.3, 0.9}) {
      const Tensor h = at::where((v - b).abs().lt(total * threshold), c.abs(), c);
      check("hybrid_affine(" + std::to_string(threshold) + ")", h * change / h.sum(0));
    }
    check("hybrid_affine(0)", c * change / (v - b));
  }
}

// The reciprocal of a decomposed divisor is an elementwise function like others: a / d is a * reciprocal(d).
TEST(Policies, QuotientsAreProductsWithTheReciprocal) {
  const Composition x(Random({3, 6}, 5) / 4, at::linspace(1, 2, 6, at::kDouble));
  for (const char* anchor : {"baseline", "residual"}) {
    for (const char* rule : {"path", "abs_affine", "hybrid_affine(0.4)", "scaling", "gradient", "none"}) {
      const PolicyFields fields = {{"nonlinearity", rule}, {"anchor", anchor}};
      const auto fused = Parts([](const Tensor& t) { return t.narrow(0, 0, 3) / t.narrow(0, 3, 3); }, x, fields);
      const auto spelled_out =
          Parts([](const Tensor& t) { return t.narrow(0, 0, 3) * t.narrow(0, 3, 3).reciprocal(); }, x, fields);
      EXPECT_LT(Distance(fused.components(), spelled_out.components()), 1e-12) << rule << " " << anchor;
      const auto inverse = Parts([](const Tensor& t) { return 2.0 / t; }, x, fields);
      const auto reciprocal = Parts([](const Tensor& t) { return t.reciprocal() * 2; }, x, fields);
      EXPECT_LT(Distance(inverse.components(), reciprocal.components()), 1e-12) << rule << " " << anchor;
    }
  }
}

TEST(Policies, NothingIsAttributedWhereSharesAreZeroOverZero) {
  // Every component is zero in column 0; they cancel in column 1; the value is zero in column 2.
  const Tensor c = at::tensor({0.0, 1.0, 2.0, 0.0, -1.0, -3.0}).view({2, 3});
  const Composition x(c, at::tensor({0.5, 0.5, 1.0}));
  const auto f = [](const Tensor& t) { return at::sigmoid(t); };
  for (const char* rule : {"path", "abs_affine", "hybrid_affine", "scaling", "gradient", "none"}) {
    for (const char* anchor : {"baseline", "residual"}) {
      const Composition parts = Parts(f, x, {{"nonlinearity", rule}, {"anchor", anchor}});
      EXPECT_TRUE(at::isfinite(parts.components()).all().item<bool>()) << rule;
      EXPECT_EQ(Largest(parts.components().select(1, 0)), 0) << rule;
      EXPECT_NEAR(parts.residual()[0].item<double>(), at::sigmoid(at::tensor(0.5, at::kDouble)).item<double>(), 1e-15);
    }
  }
  // scaling at a value of zero: sigmoid(0) = 1/2 cannot be scaled from 0, so all of it stays in the residual.
  const Composition scaled = Parts(f, x, {{"nonlinearity", "scaling"}});
  EXPECT_EQ(Largest(scaled.components().select(1, 2)), 0);
  EXPECT_EQ(scaled.residual()[2].item<double>(), 0.5);
  // abs_affine where components cancel: nothing has changed, nothing is spread.
  EXPECT_EQ(Largest(Parts(f, x, {{"nonlinearity", "abs_affine"}}).components().select(1, 1)), 0);
}

TEST(Policies, RecoveryHoldsUnderEveryChoice) {
  const Composition x = RandomComposition(4, {3, 5}, 20);
  for (const char* rule : {"path", "abs_affine", "hybrid_affine(0.2)", "scaling", "gradient", "none"}) {
    for (const char* bias : {"residual", "abs", "hybrid", "hybrid_threshold", "sign", "sign_threshold", "norm"}) {
      for (const char* anchor : {"baseline", "residual"}) {
        for (const char* segments : {"1", "3"}) {
          SCOPED_TRACE(std::string(rule) + " " + bias + " " + anchor + " " + segments);
          const Composition parts =
              Parts(Network, x, {{"nonlinearity", rule}, {"bias", bias}, {"anchor", anchor}, {"segments", segments}});
          EXPECT_TRUE(at::isfinite(parts.components()).all().item<bool>());
          if (anchor == std::string("baseline")) {
            EXPECT_LT(Distance(parts.reference(), Network(x.reference())), 1e-13);
          }
        }
      }
    }
  }
}

// Rows of one dtype, values of another; and an operator that works in place.
TEST(Policies, ChoicesHoldInPlaceAndForHalfTypes) {
  const Composition x = RandomComposition(3, {4, 5}, 30);
  const auto fresh = [](const Tensor& t) { return at::sigmoid(at::relu(t * 2) + 0.5); };
  const auto in_place = [](const Tensor& t) { return (t * 2).relu_().add_(0.5).sigmoid_(); };
  for (const char* rule : {"abs_affine", "hybrid_affine(0.2)", "scaling", "gradient", "none"}) {
    for (const char* anchor : {"baseline", "residual"}) {
      const PolicyFields fields = {{"nonlinearity", rule}, {"bias", "abs"}, {"anchor", anchor}};
      EXPECT_LT(Distance(Parts(fresh, x, fields).components(), Parts(in_place, x, fields).components()), 1e-13) << rule;
      DecomposeOptions options;
      options.policy = PolicyOf(fields);
      options.policy.check = Check::kOff;
      Input half;
      half.value = x.recovery().to(at::kBFloat16);
      half.split = Split::AlongDims({1});
      half.baseline = Baseline::Of(0.25);
      const auto model = FromFunction([&](const std::vector<Tensor>& t) { return fresh(t[0]); });
      const Decomposition result = TracedModel(model).Decompose({half}, options);
      // The model rounds each result to eight bits.
      EXPECT_LT(Distance(result.outputs[0].composition.recovery(), result.outputs[0].value.to(at::kFloat)), 0.02);
    }
  }
}

// ---- bias

// Payments of `b` to each component, from the formulas of docs/policies.md written out once more, element by element.
Tensor Payments(const Tensor& components, const Tensor& constant, const std::string& rule, double parameter) {
  const Tensor c = components.flatten(1);
  const Tensor b = constant.expand(components.sizes().slice(1)).flatten();
  const int64_t width = components.size(-1);
  Tensor paid = at::zeros_like(c);
  for (int64_t j = 0; j < c.size(1); ++j) {
    const double sum = c.select(1, j).sum().item<double>();
    const double total = c.select(1, j).abs().sum().item<double>();
    double norms = 0;
    const auto norm = [&](int64_t i) {
      const Tensor row = c[i].narrow(0, j / width * width, width);
      return std::isinf(parameter) ? Largest(row) : row.abs().pow(parameter).sum().pow(1 / parameter).item<double>();
    };
    for (int64_t i = 0; i < c.size(0); ++i) norms += norm(i);
    for (int64_t i = 0; i < c.size(0); ++i) {
      const double own = c[i][j].item<double>();
      const double by_size = total > 0 ? std::abs(own) / total : 0;
      const double by_part = sum != 0 ? own / sum : 0;
      double share = 0;
      if (rule == "abs") share = by_size;
      if (rule == "hybrid") share = std::abs(sum) < parameter * total ? by_size : by_part;
      if (rule == "hybrid_threshold") share = std::abs(sum) > parameter ? by_part : by_size;
      if (rule == "sign") share = std::abs(sum) < parameter * total ? 0 : by_part;
      if (rule == "sign_threshold") share = std::abs(sum) > parameter ? by_part : 0;
      if (rule == "norm") share = norms > 0 ? norm(i) / norms : 0;
      paid[i][j] = share * b[j];
    }
  }
  return paid.view(components.sizes());
}

struct Affine {
  std::string name;
  Function f;
  Function linear;  // on rows, without the constant
  Tensor constant;  // broadcasts to the output
};

std::vector<Affine> AffineOperators() {
  const Tensor image_weight = Random({2, 1, 2, 2}, 60);
  const Tensor image_bias = Random({2}, 61);
  const Tensor mean = Random({5}, 62);
  const Tensor variance = Random({5}, 63).abs() + 0.5;
  const Tensor scale = Random({5}, 64);
  const Tensor image_constant = image_bias.view({2, 1, 1});
  return {
      {"linear", [](const Tensor& t) { return at::linear(t, Weight(), BiasVector()); },
       [](const Tensor& t) { return at::matmul(t, Weight().t()); }, BiasVector()},
      {"addmm", [](const Tensor& t) { return at::addmm(BiasVector(), t, Weight(), 2, 0.5); },
       [](const Tensor& t) { return at::matmul(t, Weight()) * 0.5; }, BiasVector() * 2},
      {"add", [](const Tensor& t) { return at::add(t, BiasVector(), 3); }, [](const Tensor& t) { return t; },
       BiasVector() * 3},
      {"add_number", [](const Tensor& t) { return t + 2; }, [](const Tensor& t) { return t; },
       at::tensor(2.0, at::kDouble)},
      {"sub_in_place", [](const Tensor& t) { return t.clone().sub_(BiasVector()); }, [](const Tensor& t) { return t; },
       -BiasVector()},
      {"rsub", [](const Tensor& t) { return 1 - t; }, [](const Tensor& t) { return -t; }, at::tensor(1.0, at::kDouble)},
      {"conv2d",
       [=](const Tensor& t) {
         return at::conv2d(t.view({1, 1, 4, 5}), image_weight, image_bias);
       },
       [=](const Tensor& t) {
         return at::conv2d(t.reshape({-1, 1, 4, 5}), image_weight).unsqueeze(1);
       },
       image_constant},
      {"batch_norm",
       [=](const Tensor& t) { return at::batch_norm(t, scale, BiasVector(), mean, variance, false, 0.1, 1e-5, false); },
       [=](const Tensor& t) { return t * scale * at::rsqrt(variance + 1e-5); },
       BiasVector() - mean * scale * at::rsqrt(variance + 1e-5)},
  };
}

TEST(Policies, ConstantsArePaidByTheirFormulas) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::tuple<std::string, std::string, double>> rules = {
      {"abs", "abs", 0},
      {"hybrid", "hybrid", 0.15},
      {"hybrid(0.6)", "hybrid", 0.6},
      {"hybrid_threshold(0.8)", "hybrid_threshold", 0.8},
      {"sign", "sign", 0.4},
      {"sign_threshold(0.7)", "sign_threshold", 0.7},
      {"norm", "norm", infinity},
      {"norm(2)", "norm", 2},
  };
  const Composition x = RandomComposition(3, {4, 5}, 40);
  for (const Affine& op : AffineOperators()) {
    const Tensor moved = op.linear(x.components());
    for (const auto& [text, rule, parameter] : rules) {
      const Composition parts = Parts(op.f, x, {{"bias", text}});
      const Tensor paid = Payments(moved, op.constant, rule, parameter);
      EXPECT_LT(Distance(parts.components(), moved + paid), 1e-10) << op.name << " " << text;
      EXPECT_TRUE(at::equal(parts.reference(), op.f(x.reference()))) << op.name << " " << text;
      EXPECT_LT(Distance(parts.leftover(), -paid.sum(0)), 1e-10) << op.name << " " << text;
    }
    EXPECT_EQ(Largest(Parts(op.f, x, {}).leftover()), 0) << op.name;
  }
}

TEST(Policies, NormalizationLayersPayTheirBias) {
  const Composition x = RandomComposition(3, {4, 6}, 50);
  const Tensor weight = Random({6}, 51);
  const Tensor bias = Random({6}, 52);
  const auto with = [&](const Tensor& t) { return at::layer_norm(t, {6}, weight, bias); };
  const auto apart = [&](const Tensor& t) { return at::layer_norm(t, {6}, weight) + bias; };
  const auto groups = [&](const Tensor& t) { return at::group_norm(t.view({4, 6, 1}), 2, weight, bias); };
  const auto groups_apart = [&](const Tensor& t) {
    return at::group_norm(t.view({4, 6, 1}), 2, weight) + bias.view({6, 1});
  };
  for (const char* rule : {"abs", "hybrid", "sign"}) {
    EXPECT_LT(Distance(Parts(with, x, {{"bias", rule}}).components(), Parts(apart, x, {{"bias", rule}}).components()),
              1e-12);
    EXPECT_LT(Distance(Parts(groups, x, {{"bias", rule}}).components(),
                       Parts(groups_apart, x, {{"bias", rule}}).components()),
              1e-12);
  }
}

TEST(Policies, ABiasThatNobodyCanBePaidStaysInTheResidual) {
  // Every component is zero in column 0; they cancel in column 1.
  const Composition x(at::tensor({0.0, 1.5, 0.0, -1.5}).view({2, 2}), at::tensor({0.25, 0.5}));
  const Tensor bias = at::tensor({3.0, 7.0});
  for (const char* rule : {"abs", "hybrid", "hybrid_threshold", "sign", "sign_threshold", "norm"}) {
    const Composition parts = Parts(
        [&](const Tensor& t) {
          return t.view({2, 1}) + bias.view({2, 1});
        },
        x, {{"bias", rule}});
    EXPECT_EQ(Largest(parts.components().select(1, 0)), 0) << rule;
    EXPECT_EQ(parts.residual()[0].item<double>(), 3.25) << rule;
  }
  // Components that cancel can be paid by their sizes only.
  const auto add = [&](const Tensor& t) { return t + bias; };
  EXPECT_EQ(Parts(add, x, {{"bias", "abs"}}).component(0)[1].item<double>(), 1.5 + 3.5);
  EXPECT_EQ(Parts(add, x, {{"bias", "hybrid"}}).component(1)[1].item<double>(), -1.5 + 3.5);
  EXPECT_EQ(Parts(add, x, {{"bias", "sign"}}).component(0)[1].item<double>(), 1.5);
}

// ---- segments

// Integrated gradients by autograd: midpoints of `steps` pieces; [numc, *output].
Tensor IntegratedGradients(const Function& f, const Composition& x, int64_t steps) {
  Tensor sum = at::zeros({x.numc()}, at::kDouble);
  const Tensor move = x.recovery() - x.reference();
  for (int64_t k = 0; k < steps; ++k) {
    const Tensor point = (x.reference() + move * ((k + 0.5) / static_cast<double>(steps))).set_requires_grad(true);
    const Tensor gradient = torch::autograd::grad({f(point)}, {point})[0];
    sum += (x.components() * gradient).flatten(1).sum(1);
  }
  return sum / static_cast<double>(steps);
}

TEST(Policies, ManySegmentsAreIntegratedGradients) {
  const Composition x = RandomComposition(4, {3, 5}, 70);
  const auto f = [](const Tensor& t) { return Network(t).square().sum(); };
  const Tensor expected = IntegratedGradients(f, x, 4000);
  EXPECT_LT(Distance(expected.sum(), f(x.recovery()) - f(x.reference())), 1e-4 * (1 + Largest(expected)));
  // The error is of second order in the length of a piece by half, and of first order with content first.
  for (const bool by_half : {true, false}) {
    std::vector<double> errors;
    for (const char* segments : {"1", "4", "16", "64"}) {
      PolicyFields fields = {{"segments", segments}};
      if (by_half) fields.emplace_back("content_first", "none");
      const Composition parts = Parts(f, x, fields);
      errors.push_back(Distance(parts.components(), expected));
      EXPECT_LT(Largest(parts.leftover()), 1e-9) << segments;
    }
    EXPECT_GT(errors[0], 1e-2);
    EXPECT_LT(errors[2], errors[1] / (by_half ? 4 : 2));
    EXPECT_LT(errors[3], errors[2] / (by_half ? 4 : 3));
    EXPECT_LT(errors[3], (by_half ? 2e-3 : 2e-2) * Largest(expected));
  }
}

TEST(Policies, SegmentsOfALinearModelChangeNothing) {
  const Composition x = RandomComposition(4, {3, 5}, 75);
  const auto f = [](const Tensor& t) { return at::linear(t, Weight(), BiasVector()); };
  const Composition whole = Parts(f, x, {{"bias", "abs"}});
  const Composition pieces = Parts(f, x, {{"bias", "abs"}, {"segments", "5"}});
  EXPECT_LT(Distance(whole.components(), pieces.components()), 1e-12);
  EXPECT_TRUE(at::equal(whole.reference(), pieces.reference()));
}

// Ids have nothing between them: the line is cut behind the embedding.
TEST(Policies, SegmentsBeginAtEmbeddings) {
  const Tensor table = Random({10, 5}, 80);
  const Tensor ids = at::tensor({3, 1, 4}, at::kLong);
  const auto tail = [](const Tensor& rows) { return Network(rows).square().sum(); };
  Input input;
  input.value = ids;
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Token(0);
  DecomposeOptions options;
  options.policy = PolicyOf({{"segments", "8"}});
  const auto model = FromFunction([&](const std::vector<Tensor>& t) { return tail(at::embedding(table, t[0])); });
  const Composition by_ids = TracedModel(model).Decompose({input}, options).outputs[0].composition;
  const Composition rows = Composition::Diagonal(at::embedding(table, ids), {0}, table[0].expand({3, 5}));
  const Composition by_rows = Parts(tail, rows, {{"segments", "8"}});
  EXPECT_LT(Distance(by_ids.components(), by_rows.components()), 1e-12);
  EXPECT_LT(Largest(by_ids.leftover()), 1e-9);
}

TEST(Policies, SegmentsHoldWhatTheRunDecided) {
  const Composition x = RandomComposition(3, {8}, 85);
  // A branch, a mask and dropout: all are the recorded run's on every piece.
  const auto f = [](const Tensor& t) {
    Tensor y = t.sum().item<double>() > 0 ? at::tanh(t) : at::sigmoid(t);
    y = y.masked_fill(t.gt(0.3), -2.0);
    Tensor z = at::zeros_like(y);
    z.narrow(0, 0, 4).copy_(y.narrow(0, 4, 4));
    return z.mul_(y).exp();
  };
  Parts(f, x, {{"segments", "7"}});
  at::manual_seed(3);
  const auto model = FromFunction(
      [](const std::vector<Tensor>& t) { return at::gelu(std::get<0>(at::native_dropout(t[0], 0.5, true))); });
  DecomposeOptions options;
  options.policy = PolicyOf({{"segments", "7"}});
  const Decomposition dropped = TracedModel(model).Decompose({Input::Of(x)}, options);
  EXPECT_LT(Distance(dropped.outputs[0].composition.recovery(), dropped.outputs[0].value), 1e-12);
  EXPECT_LT(Largest(dropped.outputs[0].composition.leftover()), 1e-12);
}

// ---- anchor

// The residual's way, step by step: (components, residual) through linear -> gelu -> product with itself -> tanh.
TEST(Policies, ResidualsAsAnchorsTakeTheLeftoverAlong) {
  const Composition x = RandomComposition(3, {4, 5}, 100);
  const auto f = [](const Tensor& t) {
    const Tensor h = at::gelu(at::linear(t, Weight(), BiasVector()));
    return at::tanh(h * at::sigmoid(h));
  };
  Tensor c = at::matmul(x.components(), Weight().t());
  Tensor r = at::matmul(x.reference(), Weight().t()) + BiasVector();
  Tensor v = c.sum(0) + r;
  const Tensor factor = at::gelu(v) / v;  // scaling: what f leaves over joins the residual
  c = c * factor;
  r = r * factor;
  v = at::gelu(v);
  const Tensor slope = (at::sigmoid(v) - at::sigmoid(r)) / (v - r);  // path
  const Tensor gate = c * slope;
  const Tensor gate_r = at::sigmoid(r);
  const Tensor gate_v = at::sigmoid(v);
  c = c * (gate_v + gate_r) / 2 + gate * (v + r) / 2;
  r = r * gate_r;
  v = v * gate_v;
  c = c * (at::tanh(v) - at::tanh(r)) / (v - r);
  r = at::tanh(r);

  const PolicyFields fields = {{"anchor", "residual"}, {"nonlinearity@aten::gelu", "scaling"}};
  const Composition parts = Parts(f, x, fields);
  EXPECT_LT(Distance(parts.components(), c), 1e-11);
  EXPECT_LT(Distance(parts.reference(), r), 1e-11);
  EXPECT_EQ(Largest(parts.leftover()), 0) << "the reference has it all";
  // With the baseline as anchor the reference is the model's, and components differ.
  const Composition other = Parts(f, x, {{"nonlinearity@aten::gelu", "scaling"}});
  EXPECT_LT(Distance(other.reference(), f(x.reference())), 1e-13);
  EXPECT_GT(Distance(other.components(), parts.components()), 1e-3);
}

TEST(Policies, AnchorsAreTheSameWhereNothingIsLeftOver) {
  const Composition x = RandomComposition(3, {3, 5}, 110);
  const Composition baseline = Parts(Network, x, {});
  const Composition residual = Parts(Network, x, {{"anchor", "residual"}});
  EXPECT_LT(Distance(baseline.components(), residual.components()), 1e-9);
}

TEST(Policies, ResidualsAsAnchorsFollowWritesIntoParts) {
  const Composition x = RandomComposition(3, {6}, 120);
  const auto written = [](const Tensor& t) {
    Tensor buffer = at::ones({6}, t.options());
    buffer.narrow(0, 0, 3).copy_(at::exp(t.narrow(0, 0, 3)));
    buffer.narrow(0, 3, 3).copy_(t.narrow(0, 3, 3));
    buffer.narrow(0, 3, 3).sigmoid_();
    return at::tanh(buffer);
  };
  const auto joined = [](const Tensor& t) {
    return at::tanh(at::cat({at::exp(t.narrow(0, 0, 3)), at::sigmoid(t.narrow(0, 3, 3))}));
  };
  const PolicyFields fields = {
      {"anchor", "residual"}, {"nonlinearity@aten::exp", "gradient"}, {"nonlinearity@aten::sigmoid", "none"}};
  EXPECT_LT(Distance(Parts(written, x, fields).components(), Parts(joined, x, fields).components()), 1e-13);
  EXPECT_LT(Distance(Parts(written, x, fields).reference(), Parts(joined, x, fields).reference()), 1e-13);
}

// ---- freeze

TEST(Policies, FrozenNormalizersAreTheSameHoweverTheLayerIsWritten) {
  const Composition x = RandomComposition(3, {4, 6}, 130);
  const Tensor weight = Random({6}, 131);
  const PolicyFields frozen = {{"freeze", "normalizer"}};
  const Tensor c = x.components();
  const Tensor v = x.recovery();
  const Tensor centred = c - c.mean(-1, true);
  const Tensor inverse = at::rsqrt((v - v.mean(-1, true)).square().mean(-1, true) + 1e-5);
  const std::vector<std::pair<std::string, Function>> layers = {
      {"fused", [&](const Tensor& t) { return at::layer_norm(t, {6}, weight); }},
      {"rsqrt",
       [&](const Tensor& t) {
         const Tensor d = t - t.mean(-1, true);
         return weight * (d * at::rsqrt((d * d).mean(-1, true) + 1e-5));
       }},
      {"sqrt",
       [&](const Tensor& t) {
         const Tensor d = t - t.mean(-1, true);
         return weight * d / at::sqrt(d.pow(2).mean(-1, true) + 1e-5);
       }},
      {"pow",
       [&](const Tensor& t) {
         const Tensor d = t - t.mean(-1, true);
         return weight * d * (d.pow(2).mean(-1, true) + 1e-5).pow(-0.5);
       }},
      {"one_over",
       [&](const Tensor& t) {
         const Tensor d = t - t.mean(-1, true);
         return weight * d * (1 / (d.pow(2).mean(-1, true) + 1e-5).sqrt()).expand_as(d).clone();
       }},
  };
  for (const auto& [name, layer] : layers) {
    const Composition parts = Parts(layer, x, frozen);
    EXPECT_LT(Distance(parts.components(), centred * inverse * weight), 1e-12) << name;
    const Composition moving = Parts(layer, x, {});
    EXPECT_GT(Distance(moving.components(), parts.components()), 1e-3) << name;
    EXPECT_LT(Largest(moving.leftover()), 1e-11) << name;
  }
  // RMSNorm, and an epsilon beside the standard deviation.
  const Tensor root = at::rsqrt(v.square().mean(-1, true) + 1e-6);
  const auto rms = [&](const Tensor& t) { return t * at::rsqrt(t.pow(2).mean(-1, true) + 1e-6) * weight; };
  EXPECT_LT(Distance(Parts(rms, x, frozen).components(), c * root * weight), 1e-12);
  const auto outside = [](const Tensor& t) { return t / (t.pow(2).mean(-1, true).sqrt() + 0.1).clamp_min(1e-3); };
  EXPECT_LT(Distance(Parts(outside, x, frozen).components(), c / (v.square().mean(-1, true).sqrt() + 0.1)), 1e-12);
}

TEST(Policies, FrozenAttentionIsTheSameHoweverItIsWritten) {
  const Composition x = RandomComposition(3, {2, 4, 5}, 140);
  const Tensor mask = at::triu(at::ones({4, 4}, at::kBool), 1);
  const Tensor q = Random({5, 5}, 141);
  const auto scores = [&](const Tensor& t) {
    return at::matmul(at::matmul(t, q), t.transpose(1, 2)).masked_fill(mask, -INFINITY);
  };
  const Tensor weights = at::softmax(scores(x.recovery()), -1);
  const Tensor expected = at::matmul(weights, x.components());
  const std::vector<std::pair<std::string, Function>> writings = {
      {"matmul", [&](const Tensor& t) { return at::matmul(at::softmax(scores(t), -1), t); }},
      {"bmm", [&](const Tensor& t) { return at::bmm(at::softmax(scores(t), -1), t); }},
      {"dropout in evaluation",
       [&](const Tensor& t) { return at::matmul(at::dropout(at::softmax(scores(t), -1), 0.1, false), t); }},
      {"masked again", [&](const Tensor& t) { return at::matmul(at::softmax(scores(t), -1).masked_fill(mask, 0), t); }},
      {"two heads joined and scaled",
       [&](const Tensor& t) {
         const Tensor a = at::softmax(scores(t), -1);
         const Tensor both = at::cat({a * 0.5, a * 0.5}, -1).clone();
         return at::matmul(both, at::cat({t, t}, 1));
       }},
      {"one by one",
       [&](const Tensor& t) {
         const Tensor a = at::softmax(scores(t), -1);
         return (a.unsqueeze(-1) * t.unsqueeze(1)).sum(2);
       }},
  };
  for (const auto& [name, attention] : writings) {
    const Composition parts = Parts(attention, x, {{"freeze", "attention"}});
    EXPECT_LT(Distance(parts.components(), expected), 1e-12) << name;
    EXPECT_GT(Distance(Parts(attention, x, {}).components(), expected), 1e-3) << name;
  }
}

TEST(Policies, FrozenGatesAreTheSameHoweverTheyAreWritten) {
  const Composition x = RandomComposition(3, {4, 6}, 150);
  const Tensor c = x.components();
  const Tensor v = x.recovery();
  const PolicyFields frozen = {{"freeze", "gate"}};
  const auto halves = [](const Tensor& t) { return std::make_pair(t.narrow(-1, 0, 3), t.narrow(-1, 3, 3)); };
  const auto glu = [&](const Tensor& t) { return halves(t).first * at::sigmoid(halves(t).second); };
  EXPECT_LT(Distance(Parts(glu, x, frozen).components(), halves(c).first * at::sigmoid(halves(v).second)), 1e-12);
  const Tensor swiglu = halves(c).first * at::silu(halves(v).second);
  const auto fused = [&](const Tensor& t) { return halves(t).first * at::silu(halves(t).second); };
  const auto spelled_out = [&](const Tensor& t) {
    const Tensor g = halves(t).second;
    return (g * at::sigmoid(g)) * halves(t).first;
  };
  for (const Function& f : std::vector<Function>{fused, spelled_out}) {
    EXPECT_LT(Distance(Parts(f, x, {{"freeze", "gate+activation"}}).components(), swiglu), 1e-12);
    EXPECT_LT(Distance(Parts(f, x, {{"freeze", "activation"}}).components(), swiglu), 1e-12);
    EXPECT_GT(Distance(Parts(f, x, frozen).components(), swiglu), 1e-3);  // silu(g) moves with its factor g
  }
  // silu alone: its factor x moves, its gate does not.
  const auto silu = [](const Tensor& t) { return at::silu(t); };
  const auto by_hand = [](const Tensor& t) { return t * at::sigmoid(t); };
  EXPECT_LT(Distance(Parts(silu, x, frozen).components(), c * at::sigmoid(v)), 1e-12);
  EXPECT_LT(Distance(Parts(by_hand, x, frozen).components(), c * at::sigmoid(v)), 1e-12);
  // A gated sum: z * a + (1 - z) * b.
  const auto mix = [&](const Tensor& t) {
    const Tensor z = at::sigmoid(halves(t).first);
    return z * halves(t).second + (1 - z) * halves(t).first;
  };
  const Tensor z = at::sigmoid(halves(v).first);
  EXPECT_LT(Distance(Parts(mix, x, frozen).components(), z * halves(c).second + (1 - z) * halves(c).first), 1e-12);
}

TEST(Policies, FrozenDenominatorsAreTheSameHoweverTheyAreWritten) {
  const Composition x(Random({3, 6}, 160) / 4, at::linspace(1, 2, 6, at::kDouble));
  const Tensor d = x.recovery().narrow(0, 3, 3);
  const Tensor expected = x.components().narrow(1, 0, 3) / d;
  for (const Function& f :
       std::vector<Function>{[](const Tensor& t) { return t.narrow(0, 0, 3) / t.narrow(0, 3, 3); },
                             [](const Tensor& t) { return t.narrow(0, 0, 3) * t.narrow(0, 3, 3).reciprocal(); },
                             [](const Tensor& t) { return t.narrow(0, 0, 3) * (1 / t.narrow(0, 3, 3)); }}) {
    EXPECT_LT(Distance(Parts(f, x, {{"freeze", "denominator"}}).components(), expected), 1e-12);
  }
}

// ---- overrides

TEST(Policies, OperatorsAndModulesMayHaveChoicesOfTheirOwn) {
  const Composition x = RandomComposition(3, {4, 5}, 170);
  const Tensor first = Weight();
  const Tensor second = Weight().t().contiguous();
  const auto f = [&](const Tensor& t) {
    return at::tanh(at::linear(at::tanh(at::linear(t, first)), second, BiasVector()));
  };
  DecomposeOptions options;
  const auto model =
      FromFunction([&](const std::vector<Tensor>& t) { return f(t[0]); },
                   {{"layers.0.fc.weight", first}, {"layers.1.fc.weight", second}, {"layers.1.fc.bias", BiasVector()}},
                   {"layers.0", "layers.0.fc", "layers.1", "layers.1.fc"});
  options.policy = PolicyOf({{"bias@layers.1", "abs"}});
  const Composition parts = TracedModel(model).Decompose({Input::Of(x)}, options).outputs[0].composition;
  const Composition hidden = Parts([&](const Tensor& t) { return at::tanh(at::linear(t, first)); }, x, {});
  const Composition expected =
      Parts([&](const Tensor& t) { return at::tanh(at::linear(t, second, BiasVector())); }, hidden, {{"bias", "abs"}});
  EXPECT_LT(Distance(parts.components(), expected.components()), 1e-11);

  options.policy = PolicyOf({{"nonlinearity@aten::tanh", "none"}});
  const Decomposition none = TracedModel(model).Decompose({Input::Of(x)}, options);
  EXPECT_EQ(Largest(none.outputs[0].composition.components()), 0);
  EXPECT_THAT(testing::PrintToString(none.report.notes), testing::Not(HasSubstr("the policy names")));

  options.policy = PolicyOf({{"bias@layers.7", "abs"}, {"bias@aten::conv2d", "abs"}, {"freeze@layers.7", "gate"}});
  const Decomposition unknown = TracedModel(model).Decompose({Input::Of(x)}, options);
  EXPECT_THAT(unknown.report.notes,
              testing::Contains("the policy names layers.7, but no module or operator of that name ran"));
  EXPECT_THAT(unknown.report.notes,
              testing::Contains("the policy names aten::conv2d, but no module or operator of that name ran"));
  EXPECT_EQ(unknown.report.notes.size(), 2u);
}

// Coefficients are frozen where they are made, whoever multiplies by them.
TEST(Policies, FreezingCanBeAskedOfOneOperator) {
  const Composition x = RandomComposition(3, {4, 5}, 180);
  const auto f = [](const Tensor& t) { return at::matmul(at::softmax(at::matmul(t, t.t()), -1), t) * at::sigmoid(t); };
  const auto parts = [&](const PolicyFields& fields) { return Parts(f, x, fields).components(); };
  const Tensor all_frozen = parts({{"freeze", "attention+gate"}});
  EXPECT_LT(Distance(parts({{"freeze@aten::softmax", "attention"}, {"freeze@aten::sigmoid", "gate"}}), all_frozen),
            1e-13);
  EXPECT_LT(Distance(parts({{"freeze", "attention+gate"}, {"freeze@aten::sigmoid", "none"}}),
                     parts({{"freeze", "attention"}})),
            1e-13);
  EXPECT_GT(Distance(parts({{"freeze", "attention"}}), all_frozen), 1e-3);
  EXPECT_LT(Distance(parts({{"freeze@aten::matmul", "attention"}}), parts({})), 1e-13);
}

TEST(Policies, PresetsMayDiffer) {
  const Composition x = RandomComposition(3, {4, 5}, 190);
  const auto f = [](const Tensor& t) {
    return std::get<0>(at::max(at::layer_norm(t, {5}), 1)) + std::get<0>(at::max(t, 1));
  };
  const Composition mixed = Parts(f, x, {{"preset@aten::max", "fast"}});
  const Tensor won = at::layer_norm(x.recovery(), {5}).argmax(1, true);
  const Composition normalized = Parts([](const Tensor& t) { return at::layer_norm(t, {5}); }, x, {});
  const Tensor expected = normalized.components().gather(2, won.expand({3, 4, 1})).squeeze(2) +
                          x.components().gather(2, x.recovery().argmax(1, true).expand({3, 4, 1})).squeeze(2);
  EXPECT_LT(Distance(mixed.components(), expected), 1e-12);
}

}  // namespace
}  // namespace addend

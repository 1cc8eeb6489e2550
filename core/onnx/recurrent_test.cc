// Recurrent networks: LibTorch's layers and the way step by step, held to the formulas of ONNX written out.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr int64_t kSteps = 4, kBatch = 3, kInputs = 2, kHidden = 5;

// A network of random numbers, in float64 for the formula; a model takes them in float32.
struct Drawn {
  explicit Drawn(int64_t gates) {
    const auto draw = [](at::IntArrayRef sizes) {
      return at::randn(sizes, at::kDouble).to(at::kFloat).to(at::kDouble);
    };
    at::manual_seed(7);
    x = draw({kSteps, kBatch, kInputs});
    w = draw({gates * kHidden, kInputs});
    r = draw({gates * kHidden, kHidden});
    b = draw({2 * gates * kHidden});
    h = draw({kBatch, kHidden});
    c = draw({kBatch, kHidden});
    p = draw({3 * kHidden});
  }
  // Rows of gate k, of the biases for inputs or for the hidden state.
  Tensor W(int64_t k) const { return w.narrow(0, k * kHidden, kHidden).t(); }
  Tensor R(int64_t k) const { return r.narrow(0, k * kHidden, kHidden).t(); }
  Tensor Wb(int64_t k) const { return b.narrow(0, k * kHidden, kHidden); }
  Tensor Rb(int64_t k) const { return b.narrow(0, b.size(0) / 2 + k * kHidden, kHidden); }
  Tensor P(int64_t k) const { return p.narrow(0, k * kHidden, kHidden); }

  NodeModel Model(const std::string& op) const {
    NodeModel model(op);
    model.Input(F(x)).Constant(F(w).unsqueeze(0)).Constant(F(r).unsqueeze(0)).Constant(F(b).unsqueeze(0));
    return model;
  }
  static Tensor F(const Tensor& t) { return t.to(at::kFloat); }

  Tensor x, w, r, b, h, c, p;
};

double Off(const Tensor& found, const Tensor& expected) {
  return (found.to(at::kDouble) - expected).abs().max().item<double>();
}

using Step = std::function<std::vector<Tensor>(const Tensor& x, const std::vector<Tensor>& state)>;

// The states of all steps, and the last: `length` of them, then zeros.
std::pair<Tensor, Tensor> Walk(const Drawn& net, std::vector<Tensor> state, const Step& step, int64_t length = kSteps) {
  std::vector<Tensor> all;
  for (int64_t t = 0; t < kSteps; ++t) {
    if (t < length) state = step(net.x[t], state);
    all.push_back(t < length ? state[0] : at::zeros_like(state[0]));
  }
  return {at::stack(all).unsqueeze(1), state[0].unsqueeze(0)};
}

Step Gru(const Drawn& net, bool late) {
  return [&net, late](const Tensor& x, const std::vector<Tensor>& s) -> std::vector<Tensor> {
    const Tensor& h = s[0];
    const Tensor z = at::sigmoid(x.mm(net.W(0)) + h.mm(net.R(0)) + net.Wb(0) + net.Rb(0));
    const Tensor r = at::sigmoid(x.mm(net.W(1)) + h.mm(net.R(1)) + net.Wb(1) + net.Rb(1));
    const Tensor reset = late ? r * (h.mm(net.R(2)) + net.Rb(2)) : (r * h).mm(net.R(2)) + net.Rb(2);
    return {(1 - z) * at::tanh(x.mm(net.W(2)) + reset + net.Wb(2)) + z * h};
  };
}

// Before its product, or behind it, which alone is LibTorch's.
TEST(Recurrent, GruResetsWhereTheFileSays) {
  const Drawn net(3);
  for (const bool late : {false, true}) {
    const auto [all, last] = Walk(net, {net.h}, Gru(net, late));
    const auto found = net.Model("GRU")
                           .None()
                           .Input(Drawn::F(net.h).unsqueeze(0))
                           .Attribute(IntAttribute("linear_before_reset", late ? 1 : 0))
                           .Attribute(IntAttribute("hidden_size", kHidden))
                           .Run(2);
    EXPECT_LE(Off(found[0], all), 1e-5) << late;
    EXPECT_LE(Off(found[1], last), 1e-5) << late;
  }
}

struct Gates {
  double clip = 0;
  bool holes = false, couple = false;
};

Step Lstm(const Drawn& net, Gates how) {
  return [&net, how](const Tensor& x, const std::vector<Tensor>& s) -> std::vector<Tensor> {
    const auto gate = [&](int64_t k, const Tensor& more) {
      const Tensor sum = x.mm(net.W(k)) + s[0].mm(net.R(k)) + net.Wb(k) + net.Rb(k) + more;
      return how.clip > 0 ? sum.clamp(-how.clip, how.clip) : sum;
    };
    const Tensor none = at::zeros({}, at::kDouble);
    const auto hole = [&](int64_t k, const Tensor& c) { return how.holes ? net.P(k) * c : none; };
    const Tensor i = at::sigmoid(gate(0, hole(0, s[1])));
    const Tensor f = how.couple ? 1 - i : at::sigmoid(gate(2, hole(2, s[1])));
    const Tensor c = f * s[1] + i * at::tanh(gate(3, none));
    return {at::sigmoid(gate(1, hole(1, c))) * at::tanh(c), c};
  };
}

TEST(Recurrent, LstmHasItsGatesInOrder) {
  const Drawn net(4);
  for (const Gates how : {Gates{}, Gates{0.25}, Gates{0, true}, Gates{0, false, true}, Gates{0.5, true, true}}) {
    const auto [all, last] = Walk(net, {net.h, net.c}, Lstm(net, how));
    NodeModel model = net.Model("LSTM");
    model.None().Input(Drawn::F(net.h).unsqueeze(0)).Input(Drawn::F(net.c).unsqueeze(0));
    if (how.holes) model.Constant(Drawn::F(net.p).unsqueeze(0));
    if (how.clip > 0) model.Attribute(FloatAttribute("clip", static_cast<float>(how.clip)));
    if (how.couple) model.Attribute(IntAttribute("input_forget", 1));
    const auto found = model.Run(3);
    EXPECT_LE(Off(found[0], all), 1e-5);
    EXPECT_LE(Off(found[1], last), 1e-5);
  }
}

// The last state is that of a sequence's own end, and what stands behind it is zero; backward it begins there.
TEST(Recurrent, SequencesEndWhereTheirLengthsSay) {
  Drawn net(3);
  const auto [all, last] = Walk(net, {net.h}, Gru(net, false), /*length=*/2);
  const Tensor lengths = at::full({kBatch}, 2, at::kInt);
  const auto model = [&](const Tensor& x, const char* direction) {
    return NodeModel("GRU")
        .Input(Drawn::F(x))
        .Constant(Drawn::F(net.w).unsqueeze(0))
        .Constant(Drawn::F(net.r).unsqueeze(0))
        .Constant(Drawn::F(net.b).unsqueeze(0))
        .Input(lengths)
        .Input(Drawn::F(net.h).unsqueeze(0))
        .Attribute(TextAttribute("direction", direction))
        .Run(2);
  };
  const auto found = model(net.x, "forward");
  EXPECT_LE(Off(found[0], all), 1e-5);
  EXPECT_LE(Off(found[1], last), 1e-5);
  const Tensor turned = at::cat({net.x.narrow(0, 0, 2).flip({0}), net.x.narrow(0, 2, 2)});
  const auto backward = model(turned, "reverse");
  EXPECT_LE(Off(backward[0], at::cat({all.narrow(0, 0, 2).flip({0}), all.narrow(0, 2, 2)})), 1e-5);
  EXPECT_LE(Off(backward[1], last), 1e-5);
}

TEST(Recurrent, ActivationsTakeTheirNumbersInOrder) {
  const Drawn net(1);
  const Step step = [&](const Tensor& x, const std::vector<Tensor>& s) -> std::vector<Tensor> {
    return {0.75 * at::tanh(0.5 * (x.mm(net.W(0)) + s[0].mm(net.R(0)) + net.Wb(0) + net.Rb(0)))};
  };
  const auto [all, last] = Walk(net, {at::zeros_like(net.h)}, step);
  const auto rnn = [&](const std::vector<float>& alphas, const std::vector<float>& betas) {
    return net.Model("RNN")
        .Attribute(TextsAttribute("activations", {"ScaledTanh"}))
        .Attribute(FloatsAttribute("activation_alpha", alphas))
        .Attribute(FloatsAttribute("activation_beta", betas))
        .Run(2);
  };
  EXPECT_LE(Off(rnn({0.75F}, {0.5F})[0], all), 1e-5);
  ExpectError(absl::StatusCode::kUnimplemented, {"node (RNN)", "activation_alpha has more values"}, [&] {
    rnn({0.75F, 1}, {0.5F});
  });
  ExpectError(absl::StatusCode::kInvalidArgument, {"needs a value of activation_beta"}, [&] { rnn({0.75F}, {}); });
}

}  // namespace
}  // namespace addend::onnx

// Sequence models: what is masked takes no part, and recurrent networks give attribution, not leftover.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/model/nn_module.h"
#include "core/program/random_testing.h"

namespace addend {
namespace {

using at::Tensor;
using Function = std::function<Tensor(const Tensor&)>;

Decomposition Decompose(std::shared_ptr<Model> model, const Tensor& value, const Tensor& baseline, int64_t dim,
                        Preset preset, uint32_t freeze = kFreezeNothing,
                        uint32_t content_first = kDefaultContentFirst) {
  Input input;
  input.value = value;
  input.split = Split::AlongDims({dim});
  input.baseline = Baseline::Of(baseline);
  DecomposeOptions options;
  options.policy.preset = preset;
  if (freeze != kFreezeNothing) options.policy.freeze = freeze;
  options.policy.content_first = content_first;
  options.everything = true;
  return TracedModel(std::move(model)).Decompose({input}, options);
}

std::shared_ptr<Model> Of(Function function) {
  return FromFunction([function](const std::vector<Tensor>& in) { return function(in[0]); });
}

double Largest(const Tensor& t) { return t.abs().max().item<double>(); }

// Recovery and reference, in every finite element, and no NaN where the model has none.
void CheckTruths(const Decomposition& result, const Tensor& value, const Tensor& reference) {
  const Composition& parts = result.outputs[0].composition;
  const Tensor finite = value.isfinite();
  const auto at_finite = [&](const Tensor& t) { return t.masked_select(finite); };
  EXPECT_TRUE(at::equal(at_finite(result.outputs[0].value), at_finite(value)));
  EXPECT_TRUE(at::equal(at_finite(parts.reference()), at_finite(reference)));
  const double scale = std::max(Largest(at_finite(value)), 1.0);
  EXPECT_LE(Largest(at_finite(parts.recovery() - value)), 1e-12 * scale);
  EXPECT_TRUE(parts.components().masked_select(finite).isfinite().all().item<bool>());
  EXPECT_TRUE(at_finite(parts.leftover()).isfinite().all().item<bool>());
  EXPECT_TRUE(result.report.failures.empty());
}

// ---- causal masks

constexpr int64_t kSteps = 5;
constexpr int64_t kWidth = 8;

Tensor Future() { return at::ones({kSteps, kSteps}, at::kBool).triu(1); }

// Scores with the future masked.
using Masking = std::function<Tensor(const Tensor&)>;

std::vector<std::pair<std::string, Masking>> Maskings() {
  return {
      {"minus_infinity_added",
       [](const Tensor& scores) {
         return scores + at::full({kSteps, kSteps}, -INFINITY, scores.options()).triu(1);
       }},
      {"minus_infinity_filled", [](const Tensor& scores) { return scores.masked_fill(Future(), -INFINITY); }},
      {"filled_in_place",
       [](const Tensor& scores) {
         Tensor own = scores * 1;
         return own.masked_fill_(Future(), -INFINITY);
       }},
      {"where",
       [](const Tensor& scores) {
         return at::where(Future(), at::full({kSteps, kSteps}, -INFINITY, scores.options()), scores);
       }},
      {"large_number_added", [](const Tensor& scores) { return scores + Future().to(at::kDouble) * -1e9; }},
      {"large_number_filled", [](const Tensor& scores) { return scores.masked_fill(Future(), -1e9); }},
  };
}

// Two heads over [kSteps, kWidth].
Tensor SelfAttention(const Tensor& x, uint64_t seed, const Masking& masking) {
  const auto heads = [&](int which) {
    const Tensor weight = Random({kWidth, kWidth}, seed + which) * 0.4;
    return at::linear(x, weight).view({kSteps, 2, kWidth / 2}).transpose(0, 1);
  };
  const Tensor scores = heads(0).matmul(heads(1).transpose(1, 2)) / std::sqrt(kWidth / 2.0);
  const Tensor context = at::softmax(masking(scores), -1).matmul(heads(2));
  return at::linear(context.transpose(0, 1).reshape({kSteps, kWidth}), Random({kWidth, kWidth}, seed + 3) * 0.4);
}

// Two layers with normalization, feed-forward parts and attention to a plain memory.
Tensor Decoder(const Tensor& input, const Masking& masking) {
  const Tensor memory = Random({4, kWidth}, 90);
  Tensor x = input;
  for (uint64_t layer = 0; layer < 2; ++layer) {
    const uint64_t seed = 100 + 10 * layer;
    x = at::layer_norm(x + SelfAttention(x, seed, masking), {kWidth});
    const Tensor scores = x.matmul(memory.t()) / std::sqrt(kWidth);
    x = at::layer_norm(x + at::softmax(scores, -1).matmul(memory), {kWidth});
    const Tensor inner = at::gelu(at::linear(x, Random({12, kWidth}, seed + 4) * 0.4, Random({12}, seed + 5)));
    x = at::layer_norm(x + at::linear(inner, Random({kWidth, 12}, seed + 6) * 0.4), {kWidth});
  }
  return x;
}

// Components of later positions: exactly zero, at every earlier one.
void ExpectCausal(const Composition& parts) {
  ASSERT_EQ(parts.numc(), kSteps);
  for (int64_t from = 0; from < kSteps; ++from) {
    EXPECT_EQ(at::count_nonzero(parts.component(from).narrow(0, 0, from)).item<int64_t>(), 0) << from;
    EXPECT_GT(Largest(parts.component(from).narrow(0, from, kSteps - from)), 1e-6) << from;
  }
}

class CausalMasks : public testing::TestWithParam<std::tuple<int, Preset>> {};

TEST_P(CausalMasks, KeepFutureTokensOut) {
  const Masking masking = Maskings()[std::get<0>(GetParam())].second;
  const auto model = [&](const Tensor& x) { return Decoder(x, masking); };
  const Tensor value = Random({kSteps, kWidth}, 1);
  for (const Tensor& baseline : {Random({kSteps, kWidth}, 2), at::zeros({kSteps, kWidth}, at::kDouble)}) {
    const Decomposition result = Decompose(Of(model), value, baseline, 0, std::get<1>(GetParam()));
    CheckTruths(result, model(value), model(baseline));
    ExpectCausal(result.outputs[0].composition);
    if (std::get<1>(GetParam()) == Preset::kFaithful) {
      EXPECT_LE(Largest(result.outputs[0].composition.leftover()), 1e-9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CausalMasks,
                         testing::Combine(testing::Range(0, 6), testing::Values(Preset::kFaithful, Preset::kFast)),
                         [](const auto& info) {
                           return Maskings()[std::get<0>(info.param)].first +
                                  (std::get<1>(info.param) == Preset::kFast ? "_fast" : "_faithful");
                         });

TEST(CausalMask, OfFusedAttentionKeepsFutureTokensOut) {
  const Tensor memory = Random({kWidth, kWidth}, 3) * 0.4;
  const auto model = [&](const Tensor& x) {
    const Tensor q = at::linear(x, memory).view({1, kSteps, 2, kWidth / 2}).transpose(1, 2);
    const Tensor k = at::linear(x, memory.t()).view({1, kSteps, 2, kWidth / 2}).transpose(1, 2);
    // Newer versions of LibTorch have it under the plain name.
    auto op = c10::Dispatcher::singleton().findSchema({"aten::scaled_dot_product_attention", ""});
    if (!op) op = c10::Dispatcher::singleton().findSchema({"aten::_scaled_dot_product_attention", ""});
    std::vector<c10::IValue> stack = {q, k, k.tanh()};
    for (size_t a = 3; a < op->schema().arguments().size(); ++a) {
      const c10::Argument& argument = op->schema().arguments()[a];
      stack.push_back(argument.name() == "is_causal" ? c10::IValue(true) : argument.default_value().value());
    }
    op->callBoxed(stack);
    return stack[0].toTensor()[0].transpose(0, 1).reshape({kSteps, kWidth}) + x;
  };
  const Tensor value = Random({kSteps, kWidth}, 1);
  const Tensor baseline = Random({kSteps, kWidth}, 2);
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    const Decomposition result = Decompose(Of(model), value, baseline, 0, preset);
    CheckTruths(result, model(value), model(baseline));
    ExpectCausal(result.outputs[0].composition);
  }
}

// LibTorch's own decoder, in C++.
TEST(CausalMask, OfLibTorchsDecoderKeepsFutureTokensOut) {
  at::manual_seed(1);
  torch::nn::TransformerDecoder decoder(torch::nn::TransformerDecoderOptions(
      torch::nn::TransformerDecoderLayerOptions(kWidth, 2).dim_feedforward(12).dropout(0.1), 2));
  decoder->to(at::kDouble);
  decoder->eval();
  const Tensor memory = Random({4, 1, kWidth}, 3);
  const Tensor mask = at::full({kSteps, kSteps}, -INFINITY, at::kDouble).triu(1);
  const auto model = FromModule(*decoder, [&](const std::vector<Tensor>& in) { return decoder(in[0], memory, mask); });
  const Tensor value = Random({kSteps, 1, kWidth}, 1);
  const Tensor baseline = Random({kSteps, 1, kWidth}, 2);
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    const Decomposition result = Decompose(model, value, baseline, 0, preset);
    at::NoGradGuard no_grad;
    CheckTruths(result, decoder(value, memory, mask), decoder(baseline, memory, mask));
    ExpectCausal(result.outputs[0].composition);
  }
}

// ---- rows that are masked as a whole

class MaskedRows : public testing::TestWithParam<Preset> {};

TEST_P(MaskedRows, StayWhatTheModelMakesOfThem) {
  Tensor mask = Future();
  mask[2].fill_(true);
  const auto scores = [](const Tensor& x) { return x.matmul(x.t()); };
  const std::vector<std::pair<std::string, Function>> models = {
      {"NaN stays in its row",
       [&](const Tensor& x) { return at::softmax(scores(x).masked_fill(mask, -INFINITY), -1).matmul(x); }},
      {"NaN is replaced",
       [&](const Tensor& x) {
         const Tensor weights = at::softmax(scores(x).masked_fill(mask, -INFINITY), -1);
         return weights.masked_fill(mask.all(1, true), 0).matmul(x) + x;
       }},
      {"an even share",
       [&](const Tensor& x) { return at::softmax(scores(x).masked_fill(mask, -1e9), -1).matmul(x).tanh(); }},
      {"scores that rounding nearly swallows",
       [&](const Tensor& x) { return at::softmax(scores(x) + mask.to(x.dtype()) * -1e9, -1).matmul(x).tanh(); }},
      {"scores that rounding swallows",
       [&](const Tensor& x) { return at::softmax(scores(x) + mask.to(x.dtype()) * -1e18, -1).matmul(x).tanh(); }},
  };
  const Tensor value = Random({kSteps, kWidth}, 1) * 0.5;
  const Tensor baseline = Random({kSteps, kWidth}, 2) * 0.5;
  for (const auto& [name, model] : models) {
    SCOPED_TRACE(name);
    const Decomposition result = Decompose(Of(model), value, baseline, 0, GetParam());
    CheckTruths(result, model(value), model(baseline));
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, MaskedRows, testing::Values(Preset::kFaithful, Preset::kFast), [](const auto& info) {
  return std::string(info.param == Preset::kFast ? "fast" : "faithful");
});

// ---- recurrent networks

struct Recurrent {
  std::string name;
  int64_t gates;
  Function run;  // [steps, 1, 3] -> a number
};

std::vector<Tensor> Parameters(int64_t gates) {
  std::vector<Tensor> all;
  for (uint64_t layer = 0; layer < 2; ++layer) {
    all.push_back(Random({gates * 4, layer == 0 ? 3 : 4}, 10 + layer) * 0.7);
    all.push_back(Random({gates * 4, 4}, 20 + layer) * 0.7);
    all.push_back(Random({gates * 4}, 30 + layer));
    all.push_back(Random({gates * 4}, 40 + layer));
  }
  return all;
}

std::vector<Recurrent> Networks() {
  const Tensor zeros = at::zeros({2, 1, 4}, at::kDouble);
  const Tensor head = Random({4}, 5);
  const auto last = [head](const Tensor& output) { return output[output.size(0) - 1][0].dot(head).unsqueeze(0); };
  return {
      {"lstm", 4,
       [=](const Tensor& x) {
         return last(std::get<0>(at::lstm(x, {zeros, zeros}, Parameters(4), true, 2, 0.0, false, false, false)));
       }},
      {"gru", 3,
       [=](const Tensor& x) {
         return last(std::get<0>(at::gru(x, zeros, Parameters(3), true, 2, 0.0, false, false, false)));
       }},
      {"rnn_tanh", 1,
       [=](const Tensor& x) {
         return last(std::get<0>(at::rnn_tanh(x, zeros, Parameters(1), true, 2, 0.0, false, false, false)));
       }},
      {"packed_lstm", 4,
       [=](const Tensor& x) {
         const Tensor sizes = at::ones({x.size(0)}, at::kLong);
         return last(
             std::get<0>(at::lstm(x.squeeze(1), sizes, {zeros, zeros}, Parameters(4), true, 2, 0.0, false, false))
                 .unsqueeze(1));
       }},
  };
}

void PrintTo(const Recurrent& network, std::ostream* out) { *out << network.name; }

class RecurrentNetworks : public testing::TestWithParam<Recurrent> {
 protected:
  const int64_t steps_ = 12;
  const Tensor value_ = Random({steps_, 1, 3}, 1);
  const Tensor baseline_ = Random({steps_, 1, 3}, 2);

  Composition Parts(const Tensor& value, const Tensor& baseline, Preset preset, uint32_t freeze = kFreezeNothing,
                    uint32_t content_first = kDefaultContentFirst) {
    const Decomposition result = Decompose(Of(GetParam().run), value, baseline, 0, preset, freeze, content_first);
    CheckTruths(result, GetParam().run(value), GetParam().run(baseline));
    return result.outputs[0].composition;
  }
  // Integrated gradients of LibTorch's own network, [steps].
  Tensor IntegratedGradients(int64_t nodes) {
    c10::AutoGradMode grad(true);
    Tensor sum = at::zeros_like(value_);
    for (int64_t k = 0; k < nodes; ++k) {
      const double t = (static_cast<double>(k) + 0.5) / static_cast<double>(nodes);
      const Tensor x = (baseline_ + t * (value_ - baseline_)).detach().requires_grad_();
      GetParam().run(x).sum().backward();
      sum += x.grad();
    }
    return (sum / nodes * (value_ - baseline_)).sum(2).sum(1);
  }
};

TEST_P(RecurrentNetworks, GiveAttributionNotLeftover) {
  const Composition parts = Parts(value_, baseline_, Preset::kFaithful);
  const double move = (GetParam().run(value_) - GetParam().run(baseline_)).item<double>();
  const double size = std::abs(GetParam().run(value_).item<double>());
  EXPECT_LE(Largest(parts.leftover()), 1e-8 * size);
  EXPECT_NEAR(parts.components().sum().item<double>(), move, 1e-8 * size);
  // Every step has its part, the last ones the larger.
  EXPECT_EQ(at::count_nonzero(parts.components()).item<int64_t>(), steps_);
  // Integrated gradients reach the same sum in many steps.
  EXPECT_NEAR(IntegratedGradients(400).sum().item<double>(), parts.components().sum().item<double>(), 1e-4);
}

// An oracle for the parts themselves: along ever shorter pieces of the line they become integrated gradients, with an
// error that falls with the square of the length of a piece.
TEST_P(RecurrentNetworks, BecomeIntegratedGradientsOnShortPieces) {
  const Tensor expected = IntegratedGradients(400);
  const auto error = [&](int64_t pieces, uint32_t content_first) {
    Tensor sum = at::zeros({steps_}, at::kDouble);
    for (int64_t k = 0; k < pieces; ++k) {
      const auto point = [&](int64_t p) {
        return baseline_ + (value_ - baseline_) * (static_cast<double>(p) / pieces);
      };
      sum += Parts(point(k + 1), point(k), Preset::kFaithful, kFreezeNothing, content_first).components().squeeze(1);
    }
    return Largest(sum - expected) / Largest(expected);
  };
  // The error is of second order by half, and of first by magnitude, which gives content more than half of each piece.
  const double by_half = error(32, kFreezeNothing);
  EXPECT_LE(by_half, 2e-3);
  EXPECT_LE(by_half, std::max(error(16, kFreezeNothing) / 3, 1e-4));
  const double by_magnitude = error(32, kDefaultContentFirst);
  EXPECT_LE(by_magnitude, 1e-2);
  EXPECT_LE(by_magnitude, std::max(error(16, kDefaultContentFirst) / 1.7, 1e-4));
}

TEST_P(RecurrentNetworks, RecoverWithFrozenGates) {
  const Composition parts = Parts(value_, baseline_, Preset::kFaithful, kFreezeGate);
  if (GetParam().gates > 1) {
    EXPECT_GT(Largest(parts.leftover()), 1e-6);
    const Composition free = Parts(value_, baseline_, Preset::kFaithful);
    EXPECT_GT(Largest(parts.components() - free.components()), 1e-6);
  } else {
    EXPECT_LE(Largest(parts.leftover()), 1e-8);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentNetworks, testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

// With frozen gates a step is linear but for two secants.
TEST(FrozenGates, AreTheirValues) {
  const Tensor weight = Random({8, 3}, 1);
  const Tensor hidden_weight = Random({8, 2}, 2);
  const Tensor bias = Random({8}, 3);
  // No state before: a gate that multiplies a plain tensor is not frozen, there is nothing else to move.
  const Tensor before = at::zeros({1, 2}, at::kDouble);
  const auto cell = [&](const Tensor& x) {
    return std::get<0>(at::lstm_cell(x, {before, before}, weight, hidden_weight, bias, bias));
  };
  const Tensor value = Random({1, 3}, 5);
  const Tensor baseline = Random({1, 3}, 6);
  const Decomposition result = Decompose(Of(cell), value, baseline, 1, Preset::kFaithful, kFreezeGate);

  const auto gates = [&](const Tensor& x) {
    return at::linear(x, weight, bias) + at::linear(before, hidden_weight, bias);
  };
  const auto part = [&](const Tensor& x, int64_t k) { return gates(x).narrow(1, 2 * k, 2); };
  const Tensor in = part(value, 0).sigmoid();
  const Tensor out = part(value, 3).sigmoid();
  const auto state = [&](const Tensor& x) {
    return part(x, 1).sigmoid() * before + part(x, 0).sigmoid() * part(x, 2).tanh();
  };
  const Tensor inner = (part(value, 2).tanh() - part(baseline, 2).tanh()) / (part(value, 2) - part(baseline, 2));
  const Tensor outer = (state(value).tanh() - state(baseline).tanh()) / (state(value) - state(baseline));
  for (int64_t k = 0; k < 3; ++k) {
    const Tensor row = (value - baseline).select(1, k) * weight.narrow(0, 4, 2).select(1, k);
    EXPECT_TRUE(at::allclose(result.outputs[0].composition.component(k), out * outer * in * inner * row, 1e-9, 1e-12))
        << k;
  }
}

TEST(Recurrent, RefusesDropoutInTraining) {
  const Tensor zeros = at::zeros({2, 1, 4}, at::kDouble);
  const auto model = [&](const Tensor& x) {
    return std::get<0>(at::gru(x, zeros, Parameters(3), true, 2, 0.5, /*train=*/true, false, false));
  };
  try {
    Decompose(Of(model), Random({3, 1, 3}, 1), Random({3, 1, 3}, 2), 0, Preset::kFaithful);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("aten::gru with dropout draws random numbers in training; call eval()"),
              std::string::npos)
        << e.what();
    EXPECT_EQ(e.code(), absl::StatusCode::kUnimplemented);
  }
}

// Packed sequences of several lengths give each sequence the parts that it has alone.
TEST(Recurrent, PackedSequencesAreTheirOwn) {
  const std::vector<int64_t> lengths = {4, 3, 1};
  const Tensor padded = Random({4, 3, 3}, 1);
  const Tensor padded_baseline = Random({4, 3, 3}, 2);
  const Tensor sizes = at::tensor({3, 2, 2, 1}, at::kLong);
  const auto pack = [&](const Tensor& x) {
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < 4; ++t) rows.push_back(x[t].narrow(0, 0, sizes[t].item<int64_t>()));
    return at::cat(rows);
  };
  const std::vector<Tensor> parameters = [] {
    std::vector<Tensor> both = Parameters(3);  // two layers; taken as both directions of one
    both[4] = Random({12, 3}, 77);
    return both;
  }();
  const auto run = [&](const Tensor& data, const Tensor& batches) {
    const Tensor zeros = at::zeros({2, batches[0].item<int64_t>(), 4}, at::kDouble);
    return std::get<1>(at::gru(data, batches, zeros, parameters, true, 1, 0.0, false, true));
  };
  const Decomposition all = Decompose(Of([&](const Tensor& x) { return run(x, sizes); }), pack(padded),
                                      pack(padded_baseline), 0, Preset::kFaithful);
  CheckTruths(all, run(pack(padded), sizes), run(pack(padded_baseline), sizes));
  const Tensor positions = pack(at::arange(12).view({4, 3, 1}));  // 3 t + sequence, in packed order
  for (int64_t s = 0; s < 3; ++s) {
    const auto alone = [&](const Tensor& x) { return x.select(1, s).narrow(0, 0, lengths[s]); };
    const Decomposition one = Decompose(Of([&](const Tensor& x) { return run(x, at::ones({lengths[s]}, at::kLong)); }),
                                        alone(padded), alone(padded_baseline), 0, Preset::kFaithful);
    for (int64_t k = 0; k < positions.size(0); ++k) {
      const int64_t position = positions[k].item<int64_t>();
      const Tensor part = all.outputs[0].composition.component(k).select(1, s);
      if (position % 3 != s) {
        EXPECT_EQ(at::count_nonzero(part).item<int64_t>(), 0);
      } else {
        const Tensor expected = one.outputs[0].composition.component(position / 3).select(1, 0);
        EXPECT_TRUE(at::allclose(part, expected, 1e-9, 1e-12)) << s << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace addend

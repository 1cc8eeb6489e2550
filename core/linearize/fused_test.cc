// Rewrites that a rule stands in for, against the operators that they call: the same parts under every policy,
// whichever way they are found. The expansion shares no code with the fused map.
#include "core/rules/fused.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/policy_testing.h"
#include "core/linearize/segments.h"
#include "core/linearize/small_models.h"
#include "core/linearize/traced_testing.h"
#include "core/program/view.h"
#include "core/rules/kinds.h"
#include "core/rules/registry.h"

namespace addend {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// Attention as newer versions of LibTorch have it, for all versions.
std::tuple<Tensor, Tensor> Attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Optional<Tensor>& mask, double, bool causal, Optional<double> scale, bool) {
  const int64_t share = query.size(1) / key.size(1);
  Tensor scores = at::matmul(query, key.repeat_interleave(share, 1).transpose(-2, -1)) *
                  scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor hidden;
  if (causal) hidden = at::ones({query.size(-2), key.size(-2)}, at::kBool).triu(1);
  if (mask.has_value() && mask->scalar_type() == at::kBool) hidden = mask->logical_not();
  if (mask.has_value() && mask->scalar_type() != at::kBool) scores = scores + *mask;
  if (hidden.defined()) scores = scores.masked_fill(hidden, -INFINITY);
  return {at::matmul(scores.softmax(-1), value.repeat_interleave(share, 1)), scores.logsumexp(-1)};
}

TORCH_LIBRARY(attended, library) {
  const std::string arguments =
      "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
      "float? scale=None, bool enable_gqa=False)";
  library.def(("alone" + arguments + " -> Tensor").c_str(),
              [](const Tensor& q, const Tensor& k, const Tensor& v, const Optional<Tensor>& mask, double dropout,
                 bool causal, Optional<double> scale,
                 bool shared) { return std::get<0>(Attend(q, k, v, mask, dropout, causal, scale, shared)); });
  library.def(("with_sums" + arguments + " -> (Tensor, Tensor)").c_str(), Attend);
  library.def(("with_weights" + arguments + " -> (Tensor, Tensor)").c_str(),
              [](const Tensor& q, const Tensor& k, const Tensor& v, const Optional<Tensor>& mask, double dropout,
                 bool causal, Optional<double> scale, bool shared) {
                // Attending to unit vectors gives the weights themselves.
                const Tensor unit = at::eye(k.size(-2), v.options()).expand({v.size(0), v.size(1), -1, -1});
                return std::make_tuple(std::get<0>(Attend(q, k, v, mask, dropout, causal, scale, shared)),
                                       std::get<0>(Attend(q, k, unit, mask, dropout, causal, scale, shared)));
              });
}

// The default rules, and `change` of each rewrite that a rule stands in for.
const Registry* Changed(const std::function<Rewrite(const Rewrite&)>& change) {
  auto* all = new Registry(Registry::Default());
  const auto add = [&](const std::string& name, const std::string& like) {
    Rewrite own = *Registry::Default().FindRewrite(like, like);
    own.name = name;
    all->Register(change(own));
  };
  add("attended::alone", "aten::scaled_dot_product_attention");
  add("attended::with_sums", "aten::_scaled_dot_product_flash_attention_for_cpu");
  add("attended::with_weights", "aten::_scaled_dot_product_attention_math");
  for (const Rewrite* rewrite : Registry::Default().AllRewrites()) {
    if (FusedOf(rewrite) != nullptr) all->Register(change(*rewrite));
  }
  return all;
}

// Every rewrite is fused where its rule covers the call.
const Registry& Fusing() {
  static const Registry& registry = *Changed([](const Rewrite& rewrite) { return rewrite; });
  return registry;
}

// Every rewrite runs step by step.
const Registry& Expanding() {
  static const Registry& registry = *Changed([](const Rewrite& rewrite) { return Rewrite{rewrite.name, rewrite.run}; });
  return registry;
}

// ---- networks: every form of LSTM, on an input [5, 2, 3] whose first two dimensions are steps and batch; attention
// between its positions; and normalizations of its channels

struct Network {
  std::string name;
  std::function<Tensors(const Tensor&)> run;
  bool fused = true;
  std::string op = "lstm";  // a part of the operators' names
};

void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

constexpr int64_t kSize = 4;

Tensors Parameters(const Tensor& like, int64_t layers, int64_t directions, bool biases, int64_t projection = 0) {
  Tensors all;
  const int64_t width = projection > 0 ? projection : kSize;
  uint64_t seed = 100;
  const auto draw = [&](at::IntArrayRef sizes) { all.push_back((Random(sizes, seed++) * 0.6).to(like.scalar_type())); };
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t d = 0; d < directions; ++d) {
      draw({4 * kSize, layer == 0 ? 3 : directions * width});
      draw({4 * kSize, width});
      if (biases) draw({4 * kSize});
      if (biases) draw({4 * kSize});
      if (projection > 0) draw({projection, kSize});
    }
  }
  return all;
}

Tensors PlainStates(const Tensor& like, int64_t count, int64_t width = kSize) {
  return {Random({count, 2, width}, 7).to(like.scalar_type()), Random({count, 2, kSize}, 8).to(like.scalar_type())};
}
// States that are computed from the input.
Tensors MovingStates(const Tensor& x, int64_t count, int64_t width = kSize) {
  const Tensor start = x.select(0, 0).unsqueeze(0);
  return {at::tanh(start.matmul(Random({3, width}, 9).to(x.scalar_type()))).repeat({count, 1, 1}),
          start.matmul(Random({3, kSize}, 10).to(x.scalar_type())).repeat({count, 1, 1})};
}
Tensors All(const std::tuple<Tensor, Tensor, Tensor>& results) {
  return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
}
Tensors Padded(const Tensor& x, const Tensors& states, int64_t layers, bool both, bool biases, bool batch_first = false,
               int64_t projection = 0) {
  const Tensors parameters = Parameters(x, layers, both ? 2 : 1, biases, projection);
  return All(
      at::lstm(batch_first ? x.transpose(0, 1) : x, states, parameters, biases, layers, 0.0, false, both, batch_first));
}
// Three steps of two sequences and two of one.
Tensors Packed(const Tensor& x, const Tensors& states, int64_t layers, bool both, int64_t projection = 0) {
  const Tensor data = x.reshape({10, 3}).narrow(0, 0, 8);
  const Tensor sizes = at::tensor({2, 2, 2, 1, 1}, at::kLong);
  return All(at::lstm(data, sizes, states, Parameters(x, layers, both ? 2 : 1, true, projection), true, layers, 0.0,
                      false, both));
}

// One of the input's projections, [batch 2, heads, positions 5, width].
Tensor Projected(const Tensor& x, int64_t heads, int64_t width, uint64_t seed) {
  const Tensor weight = Random({3, heads * width}, seed).to(x.scalar_type());
  return x.matmul(weight).view({5, 2, heads, width}).permute({1, 2, 0, 3});
}
struct AttentionInputs {
  Tensor query, key, value;
};
AttentionInputs InputsOf(const Tensor& x, int64_t key_heads = 4) {
  return {Projected(x, 4, 2, 20), Projected(x, key_heads, 2, 21), Projected(x, key_heads, 3, 22)};
}
Tensors Attended(const char* op, const AttentionInputs& in, const Tensor& mask = {}, bool causal = false,
                 c10::IValue scale = {}) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op, "");
  const c10::IValue own = mask.defined() ? c10::IValue(mask) : c10::IValue();
  std::vector<c10::IValue> stack = {in.query, in.key, in.value, own,
                                    0.0,      causal, scale,    in.query.size(1) != in.key.size(1)};
  handle.callBoxed(stack);
  Tensors results;
  for (const c10::IValue& result : stack) results.push_back(result.toTensor());
  return results;
}
Tensor BandOf(const Tensor& x) { return at::ones({x.size(0), x.size(0)}, at::kBool).triu(-2).tril(1); }

std::vector<Network> AttentionNetworks() {
  constexpr const char* kAlone = "attended::alone";
  constexpr const char* kWithSums = "attended::with_sums";
  constexpr const char* kWithWeights = "attended::with_weights";
  const auto plain = [](const Tensor& t) { return at::ones_like(t) * 0.3 + Random(t.sizes(), 23).to(t.scalar_type()); };
  std::vector<Network> all = {
      {"attention", [](const Tensor& x) { return Attended(kAlone, InputsOf(x)); }},
      {"attention_with_sums", [](const Tensor& x) { return Attended(kWithSums, InputsOf(x)); }},
      {"attention_shared_heads_scaled",
       [](const Tensor& x) { return Attended(kAlone, InputsOf(x, 2), {}, false, 0.4); }},
      {"attention_causal", [](const Tensor& x) { return Attended(kAlone, InputsOf(x), {}, true); }},
      {"attention_causal_with_sums_one_head",
       [](const Tensor& x) { return Attended(kWithSums, InputsOf(x, 1), {}, true); }},
      {"attention_masked", [](const Tensor& x) { return Attended(kAlone, InputsOf(x), BandOf(x)); }},
      {"attention_mask_added",
       [](const Tensor& x) {
         const Tensor mask = Random({2, 1, 5, 5}, 24).to(x.scalar_type());
         return Attended(kWithSums, InputsOf(x), mask.masked_fill(BandOf(x).logical_not(), -INFINITY));
       }},
      {"attention_masked_by_conditions",
       [](const Tensor& x) {
         const Tensor mask = x.sum(2).t().gt(0).view({2, 1, 1, 5});
         return Attended(kAlone, InputsOf(x), mask.logical_or(at::eye(5, at::kBool)));
       }},
      {"attention_query_only",
       [=](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kWithSums, {in.query, plain(in.key), plain(in.value)});
       }},
      {"attention_key_only",
       [=](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kWithSums, {plain(in.query), in.key, plain(in.value)});
       }},
      {"attention_value_only",
       [=](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kAlone, {plain(in.query), plain(in.key), in.value});
       }},
      {"attention_key_and_value",
       [=](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kAlone, {plain(in.query), in.key, in.value});
       }},
      // Coefficients as inputs: which operator made them changes the rule. See Note [Provenance].
      {"attention_gated_value",
       [](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kAlone, {in.query, in.key, at::sigmoid(in.value)});
       }},
      {"attention_to_attention",
       [](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kWithSums, {at::softmax(in.query, -1), in.key, at::softmax(in.value, -1)});
       }},
      {"attention_marked_key",
       [](const Tensor& x) {
         const AttentionInputs in = InputsOf(x, 2);
         return Attended(kAlone, {in.query, at::softmax(in.key, -1), in.value});
       }},
      {"attention_with_weights",
       [](const Tensor& x) { return Attended(kWithWeights, InputsOf(x), BandOf(x).to(x.scalar_type()).log()); }},
      {"attention_with_weights_of_plain_scores",
       [=](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kWithWeights, {plain(in.query), plain(in.key), in.value});
       }},
      // Weights that the operator gives are coefficients.
      {"attention_weights_used",
       [](const Tensor& x) {
         const Tensors both = Attended(kWithWeights, InputsOf(x), {}, true);
         return Tensors{both[0], at::matmul(both[1], InputsOf(x).query)};
       }},
      // The attended values are content, not coefficients, in the products that read them.
      {"attention_multiplied",
       [](const Tensor& x) {
         const Tensor out = Attended(kAlone, InputsOf(x))[0];
         return Tensors{out * InputsOf(x).value, at::matmul(out, out.transpose(-2, -1))};
       }},
      {"attention_of_itself",
       [](const Tensor& x) {
         const Tensor own = x.permute({1, 0, 2}).unsqueeze(1);
         return Attended(kAlone, {own, own, own}, {}, true);
       }},
      {"attention_mask_moves",
       [](const Tensor& x) {
         return Attended(kAlone, InputsOf(x), x.sum() * Random({5, 5}, 25).to(x.scalar_type()));
       },
       false},
      {"attention_broadcast",
       [](const Tensor& x) {
         const AttentionInputs in = InputsOf(x);
         return Attended(kAlone, {in.query, in.key.narrow(0, 0, 1), in.value.narrow(0, 0, 1)});
       },
       false},
  };
  for (Network& network : all) network.op = "attended::";
  return all;
}

Tensors Normalized(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-3) {
  return {at::instance_norm(x, weight, bias, {}, {}, true, 0.1, eps, false)};
}

std::vector<Network> NormNetworks() {
  const auto draw = [](const Tensor& x, uint64_t seed) { return Random({x.size(1)}, seed).to(x.scalar_type()); };
  std::vector<Network> all = {
      {"norm", [](const Tensor& x) { return Normalized(x, {}, {}); }},
      {"norm_scaled", [=](const Tensor& x) { return Normalized(x, draw(x, 30), draw(x, 31)); }},
      {"norm_of_images",
       [](const Tensor& x) {
         return Normalized(x.permute({1, 2, 0}).reshape({2, 3, 5, 1}), {}, {}, 1e-5);
       }},
      {"norm_of_a_transposed",
       [](const Tensor& x) {
         return Normalized(x.permute({1, 2, 0}), {}, {});
       }},
      {"norm_of_gates", [](const Tensor& x) { return Normalized(at::sigmoid(x), {}, {}); }},
      // The normalized values are content, not coefficients, in the products that read them.
      {"norm_multiplied",
       [](const Tensor& x) {
         const Tensor out = Normalized(x, {}, {})[0];
         return Tensors{out * x, out * out};
       }},
      {"norm_weight_moves", [](const Tensor& x) { return Normalized(x, x.select(2, 0).select(0, 0).repeat({1}), {}); },
       false},
      {"norm_updates_statistics",
       [](const Tensor& x) {
         const auto of = x.options();
         return Tensors{at::instance_norm(x, {}, {}, at::zeros({2}, of), at::ones({2}, of), true, 0.1, 1e-3, false)};
       },
       false},
  };
  for (Network& network : all) network.op = "instance_norm";
  return all;
}

std::vector<Network> Networks() {
  std::vector<Network> all = AttentionNetworks();
  const std::vector<Network> norms = NormNetworks();
  all.insert(all.end(), norms.begin(), norms.end());
  const std::vector<Network> recurrent = {
      {"one_layer", [](const Tensor& x) { return Padded(x, PlainStates(x, 1), 1, false, true); }},
      {"zero_states",
       [](const Tensor& x) {
         const Tensor zeros = at::zeros({1, 2, kSize}, x.options());
         return Padded(x, {zeros, zeros}, 1, false, true);
       }},
      {"no_biases", [](const Tensor& x) { return Padded(x, PlainStates(x, 1), 1, false, false); }},
      {"moving_states", [](const Tensor& x) { return Padded(x, MovingStates(x, 1), 1, false, true); }},
      {"moving_cell",
       [](const Tensor& x) {
         return Padded(x, {PlainStates(x, 1)[0], MovingStates(x, 1)[1]}, 1, false, true);
       }},
      {"marked_cell",
       [](const Tensor& x) {
         Tensors states = MovingStates(x, 1);
         states[1] = at::softmax(states[1], -1);
         return Padded(x, states, 1, false, true);
       }},
      {"gated_cell",
       [](const Tensor& x) {
         Tensors states = MovingStates(x, 1);
         states[1] = at::sigmoid(states[1]);
         return Padded(x, states, 1, false, true);
       }},
      {"layers", [](const Tensor& x) { return Padded(x, PlainStates(x, 3), 3, false, true); }},
      {"both_ways", [](const Tensor& x) { return Padded(x, MovingStates(x, 2), 1, true, true); }},
      {"layers_both_ways", [](const Tensor& x) { return Padded(x, PlainStates(x, 4), 2, true, false); }},
      {"batch_first", [](const Tensor& x) { return Padded(x, PlainStates(x, 2), 2, false, true, true); }},
      {"projected", [](const Tensor& x) { return Padded(x, PlainStates(x, 1, 2), 1, false, true, false, 2); }},
      {"projected_layers_both_ways",
       [](const Tensor& x) { return Padded(x, MovingStates(x, 4, 2), 2, true, false, true, 2); }},
      {"packed", [](const Tensor& x) { return Packed(x, PlainStates(x, 1), 1, false); }},
      {"packed_layers_both_ways", [](const Tensor& x) { return Packed(x, MovingStates(x, 4), 2, true); }},
      {"packed_marked_cell",
       [](const Tensor& x) {
         Tensors states = MovingStates(x, 2);
         states[1] = at::softmax(states[1], -1);
         return Packed(x, states, 1, true);
       }},
      {"packed_projected", [](const Tensor& x) { return Packed(x, MovingStates(x, 2, 2), 2, false, 2); }},
      {"cells",
       [](const Tensor& x) {
         const Tensors parameters = Parameters(x, 1, 1, true);
         Tensor h = at::zeros({2, kSize}, x.options());
         Tensor c = Random({2, kSize}, 3).to(x.scalar_type());
         for (int64_t t = 0; t < x.size(0); ++t) {
           std::tie(h, c) =
               at::lstm_cell(x.select(0, t), {h, c}, parameters[0], parameters[1], parameters[2], parameters[3]);
         }
         return Tensors{h, c};
       }},
      {"cell_without_biases",
       [](const Tensor& x) {
         const Tensors parameters = Parameters(x, 1, 1, false);
         const Tensors states = MovingStates(x, 1);
         const auto next = at::lstm_cell(x.select(0, 1), {states[0][0], states[1][0]}, parameters[0], parameters[1]);
         return Tensors{std::get<0>(next), std::get<1>(next)};
       }},
      {"plain_input",
       [](const Tensor& x) {
         return Padded(at::ones({5, 2, 3}, x.options()), MovingStates(x, 1), 1, false, true);
       },
       false},
      {"moving_weights",
       [](const Tensor& x) {
         Tensors parameters = Parameters(x, 1, 1, true);
         parameters[1] = parameters[1] * x.sum() * 0.1;
         return All(at::lstm(x, PlainStates(x, 1), parameters, true, 1, 0.0, false, false, false));
       },
       false},
  };
  all.insert(all.end(), recurrent.begin(), recurrent.end());
  return all;
}

// ---- policies

struct Choice {
  std::string name;
  PolicyFields fields;
  bool fused = true;
  bool linear = true;  // in the components
};

void PrintTo(const Choice& choice, std::ostream* out) { *out << choice.name; }

std::vector<Choice> Choices() {
  const bool expanded = false;
  const bool joint = false;
  return {
      {"faithful", {}},
      {"fast", {{"preset", "fast"}}},
      {"frozen_gates", {{"freeze", "gate"}}},
      {"frozen_attention", {{"freeze", "attention"}}},
      {"all_frozen", {{"freeze", "attention+normalizer+denominator+gate+activation"}}},
      {"by_half", {{"content_first", "none"}}},
      {"gates_by_half", {{"content_first", "attention+normalizer+denominator"}}},
      {"gates_first", {{"content_first", "gate"}}},
      {"gates_and_attention_first", {{"content_first", "attention+gate"}}},
      {"content_takes_all", {{"content_first", "attention+gate"}, {"by_magnitude", "none"}}},
      {"by_magnitude", {{"content_first", "attention+gate"}, {"by_magnitude", "attention+gate"}}},
      {"gates_first_attention_frozen", {{"content_first", "gate"}, {"freeze", "attention"}}},
      {"segments", {{"segments", "3"}}},
      {"segments_frozen", {{"segments", "2"}, {"freeze", "gate"}}},
      {"scaling", {{"nonlinearity", "scaling"}}},
      {"gradient", {{"nonlinearity", "gradient"}}},
      {"gradient_frozen", {{"nonlinearity", "gradient"}, {"freeze", "gate+attention"}}},
      {"none", {{"nonlinearity", "none"}}},
      {"abs_affine", {{"nonlinearity", "abs_affine"}}, expanded, joint},
      {"hybrid_affine", {{"nonlinearity", "hybrid_affine(0.2)"}}, expanded, joint},
      {"bias_abs", {{"bias", "abs"}}, expanded, joint},
      {"bias_norm", {{"bias", "norm"}}, expanded, joint},
      {"bias_sign_threshold", {{"bias", "sign_threshold(0.3)"}}, expanded},
      {"residual", {{"anchor", "residual"}, {"freeze", "gate"}}, expanded},
      {"one_operator", {{"nonlinearity@aten::tanh", "gradient"}}, expanded},
  };
}

// ---- both ways

int64_t CallsOf(const Traced& traced, const std::string& part) {
  const std::vector<Call>& calls = traced.trace.calls;
  return std::count_if(calls.begin(), calls.end(), [&](const addend::Call& call) {
    return call.op.schema().name().find(part) != std::string::npos;
  });
}

Traced TraceNetwork(const Network& network, const Policy& policy, const Registry& registry, at::ScalarType dtype,
                    bool near = false) {
  const Tensor input = Random({5, 2, 3}, 1).to(dtype);
  // Near: some elements move by almost nothing, and some do not at all.
  Tensor baseline = Random({5, 2, 3}, 2).to(dtype);
  if (near) baseline = input + (baseline - input) * at::tensor({0.0, 1e-7, 1e-3}, input.options());
  const auto begin = [&](Tracer& tracer, const Tensor& own) {
    const Tensor labels = at::arange(30, at::kLong).remainder(5).view({5, 2, 3});
    tracer.AddFloatInput(own, baseline, labels, labels);
  };
  return TraceOf(network.run, input, policy, 5, begin, registry);
}

// Relative to the larger of both, and of one.
double Apart(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return 1e300;
  if (a.numel() == 0) return 0;
  const double scale = std::max({1.0, a.abs().max().item<double>(), b.abs().max().item<double>()});
  return (a - b).abs().max().item<double>() / scale;
}

class Fused : public testing::TestWithParam<std::tuple<Network, Choice>> {
 protected:
  // `of_leftover`: where another tolerance holds for what rounding leaves over.
  void ExpectSame(at::ScalarType dtype, double tolerance, bool near = false, double of_leftover = 0) {
    if (of_leftover == 0) of_leftover = tolerance;
    const auto& [network, choice] = GetParam();
    Policy policy = PolicyOf(choice.fields);
    // Step by step, a query, key or value that is a coefficient shares by magnitude; in one map its content takes all.
    for (const char* name : {"attention_gated_value", "attention_to_attention", "attention_marked_key"}) {
      if (network.name == name) policy.by_magnitude = kFreezeNothing;
    }
    const Traced fused = TraceNetwork(network, policy, Fusing(), dtype, near);
    const Traced expanded = TraceNetwork(network, policy, Expanding(), dtype, near);
    EXPECT_EQ(CallsOf(expanded, network.op), 0);
    EXPECT_EQ(CallsOf(fused, network.op) > 0, network.fused && choice.fused);
    ASSERT_EQ(fused.values.size(), expanded.values.size());
    for (size_t k = 0; k < fused.values.size(); ++k) {
      EXPECT_TRUE(fused.values[k].equal(expanded.values[k]));
      EXPECT_EQ(fused.values[k].strides(), expanded.values[k].strides());
    }
    const auto copy = [](const Traced& own) { return std::make_shared<TracedRun>(own.trace); };
    const auto sweep = [&](const Traced& own, const Registry& registry) {
      return LinearizeAndSweep(copy(own), registry, policy, own.probes, false).sweep;
    };
    const SweepResult forward = sweep(fused, Fusing());
    const SweepResult expected = sweep(expanded, Expanding());
    for (size_t p = 0; p < fused.probes.size(); ++p) {
      SCOPED_TRACE(testing::Message() << "output " << p);
      EXPECT_LE(Apart(forward.probes[p].components, expected.probes[p].components), tolerance);
      EXPECT_LE(Apart(forward.probes[p].leftover, expected.probes[p].leftover), of_leftover);
      EXPECT_LE(Apart(forward.probes[p].reference, expected.probes[p].reference), tolerance);
      EXPECT_TRUE(forward.probes[p].value.equal(expected.probes[p].value));
    }
    if (!choice.linear) return;
    for (const int64_t targets : {1, 3}) {
      Tensors seeds;
      for (size_t p = 0; p < fused.probes.size(); ++p) {
        at::DimVector sizes = {targets};
        const auto own = fused.values[p].sizes();
        sizes.append(own.begin(), own.end());
        seeds.push_back(Random(sizes, 50 + p).to(dtype));
      }
      const bool each = targets == 1 && seeds.size() > 1;  // leave out each of them
      for (size_t left_out = each ? 0 : seeds.size(); left_out <= seeds.size(); ++left_out) {
        Tensors some = seeds;
        if (left_out < seeds.size()) some[left_out] = Tensor();
        const auto back = [&](const Traced& own, const Registry& registry) {
          return LinearizeAndTranspose(copy(own), registry, policy, own.probes, some).adjoint;
        };
        const AdjointResult ours = back(fused, Fusing());
        const AdjointResult theirs = back(expanded, Expanding());
        SCOPED_TRACE(testing::Message() << targets << " targets, without output " << left_out);
        EXPECT_LE(Apart(ours.components, theirs.components), tolerance);
        EXPECT_LE(Apart(ours.leftover, theirs.leftover), of_leftover);
        EXPECT_LE(Apart(ours.reference, theirs.reference), tolerance);
        EXPECT_LE(Apart(ours.value, theirs.value), tolerance);
        EXPECT_LE(ours.recovery_error, ours.tolerance);
        // Apply and transpose: the same number from rows as from cotangents.
        Tensor from_rows = at::zeros_like(ours.components);
        for (size_t p = 0; p < some.size(); ++p) {
          if (!some[p].defined()) continue;
          const Tensor rows = forward.probes[p].components;
          from_rows += at::matmul(some[p].to(at::kDouble).reshape({targets, -1}),
                                  rows.to(at::kDouble).reshape({rows.size(0), -1}).t());
        }
        // Products of float32 in two orders: below 1e-6 apart on x86-64, 1.03e-6 on aarch64.
        EXPECT_LE(Apart(ours.components, from_rows), dtype == at::kDouble ? 1e-12 : std::max(tolerance, 2e-6));
      }
    }
  }
};

std::string NameOf(const testing::TestParamInfo<std::tuple<Network, Choice>>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

TEST_P(Fused, GivesWhatTheExpansionGives) {
  ExpectSame(at::kDouble, std::get<0>(GetParam()).op == "lstm" ? 1e-11 : 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, Fused, testing::Combine(testing::ValuesIn(Networks()), testing::ValuesIn(Choices())),
                         NameOf);

// Policies that have one formula each for what a step does.
std::vector<Choice> ChoicesOfFormulas() {
  std::vector<Choice> some;
  for (const Choice& choice : Choices()) {
    for (const char* name : {"faithful", "all_frozen", "scaling", "gradient"}) {
      if (choice.name == name) some.push_back(choice);
    }
  }
  return some;
}

class FusedNumbers : public Fused {};

TEST_P(FusedNumbers, AreThoseOfTheExpansionWhereMovesAreSmall) { ExpectSame(at::kDouble, 1e-10, /*near=*/true); }
TEST_P(FusedNumbers, AreThoseOfTheExpansionInSinglePrecision) {
  if (std::get<0>(GetParam()).op != "lstm") return ExpectSame(at::kFloat, 1e-6, false, 1e-4);
  // Scaling divides by values, some of which are small.
  ExpectSame(at::kFloat, std::get<1>(GetParam()).name == std::string("scaling") ? 1e-2 : 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Some, FusedNumbers,
                         testing::Combine(testing::ValuesIn(Networks()), testing::ValuesIn(ChoicesOfFormulas())),
                         NameOf);

// A mask that is another on the baseline makes another map there: the rewrite knows what to say of it.
TEST(FusedRule, LeavesConditionsOfTheBaselineToTheRewrite) {
  for (const Network& network : AttentionNetworks()) {
    const bool conditions = network.name == "attention_masked_by_conditions";
    if (!conditions && network.name != "attention_masked") continue;
    const Policy policy = PolicyOf({{"conditions", "baseline"}});
    EXPECT_EQ(CallsOf(TraceNetwork(network, policy, Fusing(), at::kDouble), network.op), conditions ? 0 : 1);
  }
}

// Rows are float32, and what rounding the results to a half type leaves over is within bounds.
TEST(FusedRule, TakesAttentionInHalfPrecision) {
  const Policy policy = PolicyOf({});
  for (const Network& network : AttentionNetworks()) {
    if (network.name != "attention" && network.name != "attention_causal" && network.name != "attention_masked")
      continue;
    const auto sweep = [&](at::ScalarType dtype) {
      const Traced traced = TraceNetwork(network, policy, Fusing(), dtype);
      EXPECT_EQ(CallsOf(traced, network.op), 1) << network.name;
      const auto trace = std::make_shared<TracedRun>(traced.trace);
      return LinearizeAndSweep(trace, Fusing(), policy, traced.probes, false).sweep.probes[0];
    };
    const ProbeRows half = sweep(at::kBFloat16);
    const ProbeRows twice = sweep(at::kDouble);
    EXPECT_LE(Apart(half.components.to(at::kDouble), twice.components), 0.1) << network.name;
    EXPECT_LE(half.leftover.abs().max().item<double>(), 0.1) << network.name;
  }
}

// The fused rule leaves over rounding only, and the sweep checks that bound.
TEST(FusedRule, LeavesNothingOver) {
  const Policy policy = PolicyOf({});
  for (const Network& network : Networks()) {
    if (!network.fused) continue;
    const Traced traced = TraceNetwork(network, policy, Fusing(), at::kDouble);
    const auto trace = std::make_shared<TracedRun>(traced.trace);
    const Explained explained = LinearizeAndSweep(trace, Fusing(), policy, traced.probes, false);
    for (const ProbeRows& rows : explained.sweep.probes) EXPECT_LE(rows.leftover.abs().max().item<double>(), 1e-11);
    bool found = false;
    for (const OperatorCheck& check : explained.sweep.checks) {
      if (check.kind != Kind::kRewrite) continue;
      found = true;
      EXPECT_GE(check.bracket_bound, 0) << network.name;
      EXPECT_LE(check.bracket_bound, 1e-10) << network.name;
    }
    EXPECT_TRUE(found) << network.name;
  }
}

// Rows that are many go through in blocks.
TEST(FusedRule, TakesManyRows) {
  const Policy policy = PolicyOf({});
  const int64_t steps = 64;
  const int64_t size = 64;
  const Tensor input = Random({steps, 1, size}, 1);
  const Tensor parameters[] = {Random({4 * size, size}, 2) * 0.1, Random({4 * size, size}, 3) * 0.1};
  const auto model = [&](const Tensor& x) {
    const Tensor zeros = at::zeros({1, 1, size}, at::kDouble);
    return Tensors{
        std::get<1>(at::lstm(x, {zeros, zeros}, {parameters[0], parameters[1]}, false, 1, 0.0, false, false, false))};
  };
  const Traced traced = TraceOf(model, input, policy, steps * size, [&](Tracer& tracer, const Tensor& own) {
    const Tensor labels = at::arange(steps * size, at::kLong).view(own.sizes());
    tracer.AddFloatInput(own, at::zeros_like(own), labels, labels);
  });
  const std::vector<Probe>& probes = traced.probes;
  const auto trace = std::make_shared<TracedRun>(traced.trace);
  const Tensor rows = LinearizeAndSweep(trace, Registry::Default(), policy, probes, false).sweep.probes[0].components;
  const Tensor seed = Random({1, 1, 1, size}, 4);
  const AdjointResult back = LinearizeAndTranspose(trace, Registry::Default(), policy, probes, {seed}).adjoint;
  const Tensor from_rows = at::matmul(seed.reshape({1, size}), rows.reshape({steps * size, size}).t());
  EXPECT_LE(Apart(back.components, from_rows), 1e-12);
}

}  // namespace
}  // namespace addend

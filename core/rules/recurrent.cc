// Recurrent networks, rewritten into linear maps, sigmoid, tanh and products: LibTorch fuses them in other ways on
// every device and in every version, and each part has a closed form. Gates carry the mark of their sigmoid. Of LSTMs
// most calls have one map for all steps instead; see lstm.cc.
//
// Note [Recurrent layers]
// The input of a layer meets its weights once, for all time steps together; what is left for each step is one linear
// map of the hidden state. A layer knows its input as a sequence of steps with a batch size each: padded batches have
// the same in every step, packed ones (sorted by length) shrink with time. Backwards, a packed batch grows instead.
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/rules/families.h"
#include "core/rules/lstm.h"
#include "core/rules/rewrite.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

// ---- cells

// One layer in one direction. Undefined: not there.
struct Weights {
  at::Tensor input;
  at::Tensor hidden;
  at::Tensor input_bias;
  at::Tensor hidden_bias;
  at::Tensor projection;
};

// The next state (the hidden one first) from the input's share of the gates and the state before.
using Step = Tensors (*)(const at::Tensor& input, const Tensors& state, const Weights& weights);

// `gates`: input, forget, cell and output gate side by side, before their functions. Gives hidden, cell and, side by
// side, what the gates became.
struct LstmStep {
  LstmStep(const at::Tensor& gates, const at::Tensor& before) {
    const int64_t size = gates.size(-1) / 4;
    input_and_forget = at::sigmoid(gates.narrow(-1, 0, 2 * size));
    candidate = at::tanh(gates.narrow(-1, 2 * size, size));
    output = at::sigmoid(gates.narrow(-1, 3 * size, size));
    cell = input_and_forget.narrow(-1, size, size) * before + input_and_forget.narrow(-1, 0, size) * candidate;
    hidden = output * at::tanh(cell);
  }
  at::Tensor input_and_forget;
  at::Tensor candidate;
  at::Tensor output;
  at::Tensor cell;
  at::Tensor hidden;
};

Tensors Lstm(const at::Tensor& input, const Tensors& state, const Weights& weights) {
  const LstmStep step(input + at::linear(state[0], weights.hidden, weights.hidden_bias), state[1]);
  return {weights.projection.defined() ? at::linear(step.hidden, weights.projection) : step.hidden, step.cell};
}

// Reset, update and new gate side by side; the reset gate acts on the hidden state's share of the new one.
struct GruStep {
  GruStep(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& before) {
    const int64_t size = before.size(-1);
    both = at::sigmoid(input.narrow(-1, 0, 2 * size) + hidden.narrow(-1, 0, 2 * size));
    share = hidden.narrow(-1, 2 * size, size);
    candidate = at::tanh(input.narrow(-1, 2 * size, size) + both.narrow(-1, 0, size) * share);
    next = candidate + both.narrow(-1, size, size) * (before - candidate);
  }
  at::Tensor both;
  at::Tensor share;
  at::Tensor candidate;
  at::Tensor next;
};

Tensors Gru(const at::Tensor& input, const Tensors& state, const Weights& weights) {
  return {GruStep(input, at::linear(state[0], weights.hidden, weights.hidden_bias), state[0]).next};
}

Tensors RnnTanh(const at::Tensor& input, const Tensors& state, const Weights& weights) {
  return {at::tanh(input + at::linear(state[0], weights.hidden, weights.hidden_bias))};
}

Tensors RnnRelu(const at::Tensor& input, const Tensors& state, const Weights& weights) {
  return {at::relu(input + at::linear(state[0], weights.hidden, weights.hidden_bias))};
}

// ---- layers

struct Layer {
  at::Tensor output;  // as the input: time steps one below the other
  Tensors state;      // after the last step, the whole batch
};

// See Note [Recurrent layers]. `input`: [sum of sizes, features], step by step; `sizes`: the batch of each step.
Layer RunLayer(Step step, const at::Tensor& input, const std::vector<int64_t>& sizes, const Tensors& initial,
               const Weights& weights, bool backwards) {
  const at::Tensor projected = at::linear(input, weights.input, weights.input_bias);
  const size_t steps = sizes.size();
  std::vector<int64_t> offsets = {0};
  for (const int64_t size : sizes) offsets.push_back(offsets.back() + size);

  const auto first = [](const Tensors& tensors, int64_t count) {
    if (tensors[0].size(0) == count) return tensors;
    Tensors narrowed;
    for (const at::Tensor& tensor : tensors) narrowed.push_back(tensor.narrow(0, 0, count));
    return narrowed;
  };
  Tensors outputs(steps);
  Tensors state = first(initial, backwards ? sizes.back() : sizes.front());
  std::vector<Tensors> finished;  // states of sequences that ended, the shortest first
  for (size_t k = 0; k < steps; ++k) {
    const size_t t = backwards ? steps - 1 - k : k;
    const int64_t before = state[0].size(0);
    if (sizes[t] < before) {
      finished.emplace_back();
      for (const at::Tensor& tensor : state) {
        finished.back().push_back(tensor.narrow(0, sizes[t], before - sizes[t]));
      }
      state = first(state, sizes[t]);
    }
    for (size_t s = 0; sizes[t] > before && s < state.size(); ++s) {
      state[s] = at::cat({state[s], initial[s].narrow(0, before, sizes[t] - before)});
    }
    state = step(projected.narrow(0, offsets[t], sizes[t]), state, weights);
    outputs[t] = state[0];
  }
  if (!finished.empty()) {
    for (size_t s = 0; s < state.size(); ++s) {
      Tensors parts = {state[s]};
      for (auto part = finished.rbegin(); part != finished.rend(); ++part) parts.push_back((*part)[s]);
      state[s] = at::cat(parts);
    }
  }
  return {at::cat(outputs), state};
}

struct Options {
  bool has_biases = true;
  int64_t num_layers = 1;
  bool bidirectional = false;
};

// The weights of layer after layer, both directions of each: input, hidden, biases, projection.
std::vector<Weights> GatherWeights(const Tensors& parameters, const Options& options, bool has_projection) {
  const size_t each = 2 + (options.has_biases ? 2 : 0) + (has_projection ? 1 : 0);
  std::vector<Weights> all;
  for (size_t first = 0; first + each <= parameters.size(); first += each) {
    Weights weights;
    weights.input = parameters[first];
    weights.hidden = parameters[first + 1];
    if (options.has_biases) {
      weights.input_bias = parameters[first + 2];
      weights.hidden_bias = parameters[first + 3];
    }
    if (has_projection) weights.projection = parameters[first + each - 1];
    all.push_back(std::move(weights));
  }
  return all;
}

// `initial`: [layers * directions, batch, size] of each state. The output is followed by the final states.
Tensors RunNetwork(Step step, const at::Tensor& input, const std::vector<int64_t>& sizes, const Tensors& initial,
                   const Tensors& parameters, const Options& options) {
  const bool has_projection = initial.size() == 2 && initial[0].size(2) != initial[1].size(2);
  const std::vector<Weights> weights = GatherWeights(parameters, options, has_projection);
  const int64_t directions = options.bidirectional ? 2 : 1;
  std::vector<Tensors> finals(initial.size());
  at::Tensor sequence = input;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    Tensors outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t k = layer * directions + direction;
      Tensors own;
      for (const at::Tensor& state : initial) own.push_back(state.select(0, k));
      const Layer done = RunLayer(step, sequence, sizes, own, weights.at(k), direction == 1);
      outputs.push_back(done.output);
      for (size_t s = 0; s < finals.size(); ++s) finals[s].push_back(done.state[s]);
    }
    sequence = directions == 1 ? outputs[0] : at::cat(outputs, -1);
  }
  Tensors results = {sequence};
  for (const Tensors& states : finals) results.push_back(at::stack(states));
  return results;
}

void RefuseDropout(const RewriteCall& call, double dropout, bool train, int64_t num_layers) {
  if (dropout == 0 || !train || num_layers < 2) return;
  throw Unimplemented(call.name + " with dropout draws random numbers in training; call eval() on the model");
}

// lstm.input(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first); hx is a list for
// LSTMs and a tensor for all others.
RewriteFunction Padded(Step step) {
  return [step](const RewriteCall& call) -> Tensors {
    const Options options = {call.Bool("has_biases", true), call.Int("num_layers", 1),
                             call.Bool("bidirectional", false)};
    RefuseDropout(call, call.Double("dropout", 0), call.Bool("train", false), options.num_layers);
    const bool batch_first = call.Bool("batch_first", false);
    const at::Tensor input = batch_first ? call.Tensor("input").transpose(0, 1) : call.Tensor("input");
    const Tensors initial = call.Given("hx").isTensor() ? Tensors{call.Tensor("hx")} : call.Tensors("hx");
    const int64_t steps = input.size(0);
    const int64_t batch = input.size(1);
    if (steps == 0) throw Unimplemented(call.name + " of no time steps");
    Tensors results = RunNetwork(step, input.reshape({steps * batch, input.size(2)}),
                                 std::vector<int64_t>(steps, batch), initial, call.Tensors("params"), options);
    results[0] = results[0].view({steps, batch, results[0].size(1)});
    if (batch_first) results[0] = results[0].transpose(0, 1);
    return results;
  };
}

// lstm.data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
RewriteFunction Packed(Step step) {
  return [step](const RewriteCall& call) -> Tensors {
    const Options options = {call.Bool("has_biases", true), call.Int("num_layers", 1),
                             call.Bool("bidirectional", false)};
    RefuseDropout(call, call.Double("dropout", 0), call.Bool("train", false), options.num_layers);
    const at::Tensor sizes = call.Tensor("batch_sizes");  // on the CPU, whatever the device of the data
    const std::vector<int64_t> batches(sizes.data_ptr<int64_t>(), sizes.data_ptr<int64_t>() + sizes.numel());
    const Tensors initial = call.Given("hx").isTensor() ? Tensors{call.Tensor("hx")} : call.Tensors("hx");
    return RunNetwork(step, call.Tensor("data"), batches, initial, call.Tensors("params"), options);
  };
}

// lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
RewriteFunction Cell(Step step) {
  return [step](const RewriteCall& call) -> Tensors {
    const Weights weights = {call.Tensor("w_ih"), call.Tensor("w_hh"), call.Tensor("b_ih"), call.Tensor("b_hh"),
                             at::Tensor()};
    const Tensors state = call.Given("hx").isTensor() ? Tensors{call.Tensor("hx")} : call.Tensors("hx");
    return step(at::linear(call.Tensor("input"), weights.input, weights.input_bias), state, weights);
  };
}

// ---- the pieces that LibTorch uses on its devices, under their own names

at::Tensor WithBias(const at::Tensor& gates, const at::Tensor& bias) { return bias.defined() ? gates + bias : gates; }

// _thnn_fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias) -> (hidden, cell, all gates)
Tensors ThnnLstmCell(const RewriteCall& call) {
  const at::Tensor gates = WithBias(call.Tensor("input_gates"), call.Tensor("input_bias")) +
                           WithBias(call.Tensor("hidden_gates"), call.Tensor("hidden_bias"));
  const LstmStep step(gates, call.Tensor("cx"));
  return {step.hidden, step.cell, at::cat({step.input_and_forget, step.candidate, step.output}, -1)};
}

// _thnn_fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias) -> (hidden, all that it went through)
Tensors ThnnGruCell(const RewriteCall& call) {
  const at::Tensor before = call.Tensor("hx");
  const GruStep step(WithBias(call.Tensor("input_gates"), call.Tensor("input_bias")),
                     WithBias(call.Tensor("hidden_gates"), call.Tensor("hidden_bias")), before);
  return {step.next, at::cat({step.both, step.candidate, before, step.share}, -1)};
}

// mkldnn_rnn_layer(input, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse, batch_sizes, mode, hidden_size, num_layers,
// has_biases, bidirectional, batch_first, train) -> (output, hidden, cell, workspace): one layer, one direction, time
// steps first. Only LSTMs are computed this way.
Tensors MkldnnLayer(const RewriteCall& call) {
  if (call.Int("mode", -1) != 2) throw Unimplemented("mkldnn_rnn_layer of a kind that is no LSTM");
  const at::Tensor input = call.Tensor("input");
  Weights weights = {call.Tensor("weight0"), call.Tensor("weight1"), call.Tensor("weight2"), call.Tensor("weight3"),
                     at::Tensor()};
  if (!call.Bool("has_biases", true)) weights.input_bias = weights.hidden_bias = at::Tensor();
  const int64_t steps = input.size(0);
  const int64_t batch = input.size(1);
  const int64_t hidden = weights.hidden.size(1);
  const Tensors initial = {call.Tensor("hx_").reshape({batch, hidden}), call.Tensor("cx_").reshape({batch, hidden})};
  const Layer done = RunLayer(Lstm, input.reshape({steps * batch, input.size(2)}), std::vector<int64_t>(steps, batch),
                              initial, weights, call.Bool("reverse", false));
  return {done.output.view({steps, batch, hidden}), done.state[0].view(call.Tensor("hx_").sizes()),
          done.state[1].view(call.Tensor("cx_").sizes()), at::Tensor()};
}

}  // namespace

void RegisterRecurrent(Registry& registry) {
  const std::pair<const char*, Step> networks[] = {
      {"aten::gru", Gru}, {"aten::rnn_tanh", RnnTanh}, {"aten::rnn_relu", RnnRelu}};
  const auto whole = [&](Rewrite network) {
    network.products = Products::kConvolution;
    registry.Register(std::move(network));
  };
  for (const auto& [name, step] : networks) {
    whole(Rewrite{std::string(name) + ".input", Padded(step)});
    whole(Rewrite{std::string(name) + ".data", Packed(step)});
    registry.Register(Rewrite{std::string(name) + "_cell", Cell(step)});
  }
  whole(FusedPaddedLstm(Padded(Lstm)));
  whole(FusedPackedLstm(Packed(Lstm)));
  Rewrite cell = FusedLstmCell(Cell(Lstm));
  cell.products = Products::kMatmul;
  registry.Register(std::move(cell));
  registry.Register(Rewrite{"aten::_thnn_fused_lstm_cell", ThnnLstmCell});
  registry.Register(Rewrite{"aten::_thnn_fused_gru_cell", ThnnGruCell});
  registry.Register(Rewrite{"aten::mkldnn_rnn_layer", MkldnnLayer});
}

}  // namespace addend

// Recurrent networks: LSTM, GRU, RNN.
//
// Note [Recurrent networks]
// LibTorch's layers stand for a node where they compute the same: at::lstm, at::gru, at::rnn_tanh and at::rnn_relu have
// rules of their own. Their gates come in another order, and they know neither peepholes nor other activations, clips,
// sequences of several lengths or the GRU that resets before its product. Such nodes run step by step: one product for
// the inputs of all steps, then an update of the state for each.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// --------------------------------------------------------------------------------------------------------- activations

using Activation = std::function<Tensor(const Tensor&)>;

// Values of activation_alpha or activation_beta, which the activations take one after the other.
class Coefficients {
 public:
  Coefficients(const Context& context, const char* name)
      : context_(context), name_(name), values_(context.FloatsAttribute(name)) {}

  double Take(std::optional<double> otherwise) {
    if (next_ < values_.size()) return values_[next_++];
    if (otherwise) return *otherwise;
    throw context_.Invalid(absl::StrCat("an activation needs a value of ", name_));
  }
  // Values that no activation has taken belong to one that takes none: writers disagree about those.
  void RequireTaken() const {
    if (next_ < values_.size()) throw context_.Refused(absl::StrCat(name_, " has more values than activations take"));
  }

 private:
  const Context& context_;
  const char* name_;
  std::vector<double> values_;
  size_t next_ = 0;
};

Activation ActivationOf(const Context& context, const std::string& name, Coefficients& alphas, Coefficients& betas) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "sigmoid") return [](const Tensor& x) { return at::sigmoid(x); };
  if (lower == "tanh") return [](const Tensor& x) { return at::tanh(x); };
  if (lower == "relu") return [](const Tensor& x) { return at::relu(x); };
  if (lower == "softplus") return [](const Tensor& x) { return at::softplus(x); };
  if (lower == "softsign") return [](const Tensor& x) { return at::div(x, at::add(at::abs(x), 1)); };
  if (lower == "leakyrelu") return [a = alphas.Take(0.01)](const Tensor& x) { return at::leaky_relu(x, a); };
  // Its default is 1 by ONNX and 0 by ONNX Runtime.
  if (lower == "thresholdedrelu") return [a = alphas.Take({})](const Tensor& x) { return at::threshold(x, a, 0); };
  if (lower == "elu") return [a = alphas.Take(1)](const Tensor& x) { return at::elu(x, a); };
  if (lower == "hardsigmoid") {
    const double a = alphas.Take(0.2), b = betas.Take(0.5);
    return [=](const Tensor& x) { return at::clamp(at::add(at::mul(x, a), b), 0, 1); };
  }
  if (lower == "affine") {
    const double a = alphas.Take({}), b = betas.Take({});
    return [=](const Tensor& x) { return at::add(at::mul(x, a), b); };
  }
  if (lower == "scaledtanh") {
    const double a = alphas.Take({}), b = betas.Take({});
    return [=](const Tensor& x) { return at::mul(at::tanh(at::mul(x, b)), a); };
  }
  throw context.Refused(absl::StrCat("the activation ", name, " is not supported"));
}

// ---------------------------------------------------------------------------------------------- the parts of a network

// A node's tensors, time first, and its attributes.
struct Network {
  Tensor x;        // steps x batch x inputs
  Tensor weights;  // directions x gates * hidden x inputs
  Tensor hidden_weights;
  Tensor biases;    // directions x 2 * gates * hidden; may be undefined
  Tensor lengths;   // of the sequences in the batch; undefined where all are whole
  Tensor initial;   // directions x batch x hidden
  Tensor cells;     // an LSTM's first ones
  Tensor peephole;  // may be undefined
  int64_t hidden = 0;
  int64_t directions = 1;
  bool is_reverse = false;      // a single direction, from the end
  bool is_batch_first = false;  // in the file
  std::optional<double> clip;
  std::vector<std::string> activations;  // as the file has them; empty: the defaults
};

// Whether every sequence of the batch has as many steps as the tensor.
bool AreWhole(const Context& context, size_t k, int64_t steps) {
  if (!context.Has(k)) return true;
  if (!context.Input(k).IsKnown()) return false;
  const std::vector<int64_t> lengths = context.Integers(k);
  return std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length == steps; });
}

// The lengths of the sequences in the batch; undefined where all are whole. Runtimes do not agree on empty ones.
Tensor LengthsOf(const Context& context, const Tensor& x) {
  if (AreWhole(context, 4, x.size(0))) return Tensor();
  const Tensor lengths = context.Tensor(4);
  if (lengths.dim() != 1 || lengths.size(0) != x.size(1)) {
    throw context.Invalid("sequence_lens does not hold one length for each sequence of the batch");
  }
  const TracingPause pause;
  if (lengths.numel() > 0 && (at::min(lengths).item<int64_t>() < 1 || at::max(lengths).item<int64_t>() > x.size(0))) {
    throw context.Invalid("a sequence is empty, or longer than the input");
  }
  return lengths;
}

// State at the first step, directions first: input k, or zeros.
Tensor FirstState(const Context& context, const Network& net, size_t k) {
  if (!context.Has(k)) return at::zeros({net.directions, net.x.size(1), net.hidden}, net.x.options());
  const Tensor state = context.Tensor(k);
  return net.is_batch_first ? at::transpose(state, 0, 1) : state;
}

Network NetworkOf(const Context& context, int64_t gates) {
  Network net;
  net.is_batch_first = context.FlagAttribute("layout", false);
  const Tensor x = context.Tensor(0);
  if (x.dim() != 3) throw context.Invalid("the input has not three dimensions");
  net.x = net.is_batch_first ? at::transpose(x, 0, 1) : x;
  net.weights = context.Tensor(1);
  net.hidden_weights = context.Tensor(2);
  net.biases = context.OptionalTensor(3);
  const std::string direction = absl::AsciiStrToLower(context.TextAttribute("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    throw context.Invalid("the direction is none of forward, reverse and bidirectional");
  }
  net.directions = direction == "bidirectional" ? 2 : 1;
  net.is_reverse = direction == "reverse";
  const Tensor& hidden = net.hidden_weights;
  if (hidden.dim() != 3 || hidden.size(0) != net.directions || hidden.size(1) != gates * hidden.size(2) ||
      net.weights.dim() != 3 || net.weights.size(0) != net.directions || net.weights.size(1) != hidden.size(1)) {
    throw context.Invalid("the sizes of the weights do not fit the direction and the number of gates");
  }
  net.hidden = hidden.size(2);
  if (context.IntAttribute("hidden_size", net.hidden) != net.hidden) {
    throw context.Invalid("hidden_size is not that of the weights");
  }
  net.lengths = LengthsOf(context, net.x);
  net.initial = FirstState(context, net, 5);
  if (context.HasAttribute("clip") && context.FloatAttribute("clip") > 0) net.clip = context.FloatAttribute("clip");
  net.activations = context.TextsAttribute("activations");
  return net;
}

// The functions of each direction.
std::vector<std::vector<Activation>> ActivationsOf(const Context& context, const Network& net,
                                                   const std::vector<std::string>& defaults) {
  std::vector<std::string> names = net.activations;
  for (int64_t d = 0; net.activations.empty() && d < net.directions; ++d) {
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * static_cast<size_t>(net.directions)) {
    throw context.Invalid(absl::StrCat("it has ", names.size(), " activations"));
  }
  Coefficients alphas(context, "activation_alpha"), betas(context, "activation_beta");
  std::vector<std::vector<Activation>> all(static_cast<size_t>(net.directions));
  for (size_t k = 0; k < names.size(); ++k) {
    all[k / defaults.size()].push_back(ActivationOf(context, names[k], alphas, betas));
  }
  alphas.RequireTaken();
  betas.RequireTaken();
  return all;
}

// Whether the activations are `defaults` for each direction.
bool HasActivations(const Network& net, const std::vector<std::string>& defaults) {
  for (size_t k = 0; k < net.activations.size(); ++k) {
    if (absl::AsciiStrToLower(net.activations[k]) != absl::AsciiStrToLower(defaults[k % defaults.size()])) return false;
  }
  return true;
}

// The results as the file wants them. `all`: steps x directions x batch x hidden; `last`: directions x batch x hidden.
Tensor AllStates(const Network& net, const Tensor& all) {
  return net.is_batch_first ? at::permute(all, {2, 0, 1, 3}) : all;
}

Tensor LastState(const Network& net, const Tensor& last) {
  return net.is_batch_first ? at::transpose(last, 0, 1) : last;
}

// ----------------------------------------------------------------------------------------------- LibTorch's own layers

// The gates of a weight, stacked along dimension 0, in LibTorch's order.
Tensor Ordered(const Tensor& weight, const std::vector<int64_t>& order) {
  if (order.size() == 1) return weight;
  const std::vector<Tensor> gates = at::chunk(weight, static_cast<int64_t>(order.size()), 0);
  std::vector<Tensor> ordered;
  for (const int64_t gate : order) ordered.push_back(gates[static_cast<size_t>(gate)]);
  return at::cat(ordered, 0);
}

// The parameters of LibTorch's layers: for each direction two weights, then two biases.
std::vector<Tensor> Parameters(const Network& net, const std::vector<int64_t>& order) {
  std::vector<Tensor> parameters;
  for (int64_t d = 0; d < net.directions; ++d) {
    parameters.push_back(Ordered(at::select(net.weights, 0, d), order));
    parameters.push_back(Ordered(at::select(net.hidden_weights, 0, d), order));
    if (!net.biases.defined()) continue;
    const std::vector<Tensor> biases = at::chunk(at::select(net.biases, 0, d), 2, 0);
    for (const Tensor& bias : biases) parameters.push_back(Ordered(bias, order));
  }
  return parameters;
}

// The input of a layer that only goes forward.
Tensor Turned(const Network& net, const Tensor& steps) { return net.is_reverse ? at::flip(steps, {0}) : steps; }

// LibTorch's steps x batch x directions * hidden as ONNX has them.
Tensor ByDirection(const Network& net, const Tensor& all) {
  const Tensor apart = at::reshape(Turned(net, all), {all.size(0), all.size(1), net.directions, net.hidden});
  return at::transpose(apart, 1, 2);
}

bool IsPlain(const Network& net) {
  return !net.lengths.defined() && !net.clip && !net.peephole.defined() && net.x.size(0) > 0;
}

// -------------------------------------------------------------------------------------------------------- step by step

// One direction of a network.
struct Way {
  Tensor inputs;          // steps x batch x gates * hidden: products of the inputs, with their biases
  Tensor hidden_weights;  // gates * hidden x hidden
  Tensor hidden_biases;   // may be undefined
  Tensor peephole;
  std::vector<Activation> activations;
  std::optional<double> clip;
  int64_t gates = 1;

  Tensor Clipped(const Tensor& x) const { return clip ? at::clamp(x, -*clip, *clip) : x; }
  Tensor Activate(size_t k, const Tensor& x) const { return activations[k](Clipped(x)); }
  // The product of the state with the weights of some gates.
  Tensor Product(const Tensor& state, int64_t first, int64_t count) const {
    const int64_t hidden = hidden_weights.size(1);
    const auto rows = [&](const Tensor& t) { return at::narrow(t, 0, first * hidden, count * hidden); };
    const bool whole = count == gates;
    c10::optional<Tensor> bias;
    if (hidden_biases.defined()) bias = whole ? hidden_biases : rows(hidden_biases);
    return at::linear(state, whole ? hidden_weights : rows(hidden_weights), bias);
  }
};

Way WayOf(const Network& net, int64_t d, int64_t gates, std::vector<Activation> activations) {
  Way way;
  way.gates = gates;
  c10::optional<Tensor> bias;
  if (net.biases.defined()) {
    const std::vector<Tensor> biases = at::chunk(at::select(net.biases, 0, d), 2, 0);
    bias = biases[0];
    way.hidden_biases = biases[1];
  }
  way.inputs = at::linear(net.x, at::select(net.weights, 0, d), bias);
  way.hidden_weights = at::select(net.hidden_weights, 0, d);
  if (net.peephole.defined()) way.peephole = at::select(net.peephole, 0, d);
  way.activations = std::move(activations);
  way.clip = net.clip;
  return way;
}

// State of a step: the hidden one, and an LSTM's cells.
using State = std::vector<Tensor>;
using Update = std::function<State(const Way&, const Tensor& inputs, const State&)>;

// All steps of one direction: results of each, and the last state. Sequences that have ended keep their state and give
// zeros.
std::pair<Tensor, State> Walk(const Network& net, const Way& way, bool backward, State state, const Update& update) {
  const int64_t steps = net.x.size(0);
  std::vector<Tensor> results(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t step = backward ? steps - 1 - k : k;
    State next = update(way, at::select(way.inputs, 0, step), state);
    Tensor result = next[0];
    if (net.lengths.defined()) {
      const Tensor ended = at::unsqueeze(at::le(net.lengths, step), 1);
      result = at::masked_fill(result, ended, 0);
      for (size_t n = 0; n < state.size(); ++n) next[n] = at::where(ended, state[n], next[n]);
    }
    results[static_cast<size_t>(step)] = result;
    state = std::move(next);
  }
  return {results.empty() ? at::zeros({0, net.x.size(1), net.hidden}, net.x.options()) : at::stack(results, 0),
          std::move(state)};
}

// All directions, step by step.
std::vector<Tensor> StepByStep(const Context& context, const Network& net, int64_t gates,
                               const std::vector<std::string>& defaults, const Update& update) {
  const std::vector<std::vector<Activation>> activations = ActivationsOf(context, net, defaults);
  std::vector<Tensor> all;
  std::vector<std::vector<Tensor>> last(net.cells.defined() ? 2 : 1);
  for (int64_t d = 0; d < net.directions; ++d) {
    const Way way = WayOf(net, d, gates, activations[static_cast<size_t>(d)]);
    State state{at::select(net.initial, 0, d)};
    if (net.cells.defined()) state.push_back(at::select(net.cells, 0, d));
    auto [results, end] = Walk(net, way, net.is_reverse || d == 1, std::move(state), update);
    all.push_back(std::move(results));
    for (size_t n = 0; n < last.size(); ++n) last[n].push_back(end[n]);
  }
  std::vector<Tensor> results{AllStates(net, at::stack(all, 1))};
  for (const std::vector<Tensor>& states : last) results.push_back(LastState(net, at::stack(states, 0)));
  return results;
}

// ---------------------------------------------------------------------------------------------------------------- LSTM

const std::vector<std::string>& LstmDefaults() {
  static const auto& names = *new std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  return names;
}

// Gates i, o, f, c. Peepholes i, o, f: the first two look at the cells before, the output gate at those behind.
State LstmStep(const Way& way, const Tensor& inputs, const State& before, bool input_forget) {
  std::vector<Tensor> gates = at::chunk(at::add(inputs, way.Product(before[0], 0, 4)), 4, 1);
  std::vector<Tensor> holes;
  if (way.peephole.defined()) holes = at::chunk(way.peephole, 3, 0);
  const auto seen = [&](size_t gate, const Tensor& cells) {
    return holes.empty() ? gates[gate] : at::add(gates[gate], at::mul(holes[gate], cells));
  };
  const Tensor i = way.Activate(0, seen(0, before[1]));
  const Tensor f = input_forget ? at::rsub(i, 1) : way.Activate(0, seen(2, before[1]));
  const Tensor cells = at::add(at::mul(f, before[1]), at::mul(i, way.Activate(1, gates[3])));
  const Tensor o = way.Activate(0, seen(1, cells));
  return {at::mul(o, way.activations[2](cells)), cells};
}

Results Lstm(const Context& context) {
  Network net = NetworkOf(context, 4);
  net.cells = FirstState(context, net, 6);
  net.peephole = context.OptionalTensor(7);
  const bool input_forget = context.FlagAttribute("input_forget", false);
  if (IsPlain(net) && !input_forget && HasActivations(net, LstmDefaults())) {
    const auto [all, hidden, cells] =
        at::lstm(Turned(net, net.x), {net.initial, net.cells}, Parameters(net, {0, 2, 3, 1}), net.biases.defined(),
                 /*num_layers=*/1, /*dropout=*/0, /*train=*/false, net.directions == 2, /*batch_first=*/false);
    return {AllStates(net, ByDirection(net, all)), LastState(net, hidden), LastState(net, cells)};
  }
  return StepByStep(context, net, 4, LstmDefaults(), [&](const Way& way, const Tensor& inputs, const State& before) {
    return LstmStep(way, inputs, before, input_forget);
  });
}

// ----------------------------------------------------------------------------------------------------------------- GRU

const std::vector<std::string>& GruDefaults() {
  static const auto& names = *new std::vector<std::string>{"Sigmoid", "Tanh"};
  return names;
}

// Gates z, r, h. `late`: the state is reset behind its product, with its bias; else before it.
State GruStep(const Way& way, const Tensor& inputs, const Tensor& before, bool late) {
  const std::vector<Tensor> from_inputs = at::chunk(inputs, 3, 1);
  std::vector<Tensor> from_state = at::chunk(way.Product(before, 0, late ? 3 : 2), late ? 3 : 2, 1);
  const Tensor z = way.Activate(0, at::add(from_inputs[0], from_state[0]));
  const Tensor r = way.Activate(0, at::add(from_inputs[1], from_state[1]));
  const Tensor reset = late ? at::mul(r, from_state[2]) : way.Product(at::mul(r, before), 2, 1);
  const Tensor h = way.Activate(1, at::add(from_inputs[2], reset));
  return {at::add(at::mul(at::rsub(z, 1), h), at::mul(z, before))};
}

Results Gru(const Context& context) {
  const Network net = NetworkOf(context, 3);
  const bool late = context.FlagAttribute("linear_before_reset", false);
  if (IsPlain(net) && late && HasActivations(net, GruDefaults())) {
    const auto [all, hidden] =
        at::gru(Turned(net, net.x), net.initial, Parameters(net, {1, 0, 2}), net.biases.defined(), /*num_layers=*/1,
                /*dropout=*/0, /*train=*/false, net.directions == 2, /*batch_first=*/false);
    return {AllStates(net, ByDirection(net, all)), LastState(net, hidden)};
  }
  return StepByStep(context, net, 3, GruDefaults(), [&](const Way& way, const Tensor& inputs, const State& before) {
    return GruStep(way, inputs, before[0], late);
  });
}

// ----------------------------------------------------------------------------------------------------------------- RNN

Results Rnn(const Context& context) {
  const Network net = NetworkOf(context, 1);
  const bool is_relu = !net.activations.empty() && HasActivations(net, {"Relu"});
  if (IsPlain(net) && (is_relu || HasActivations(net, {"Tanh"}))) {
    const std::vector<Tensor> parameters = Parameters(net, {0});
    const auto [all, hidden] =
        is_relu ? at::rnn_relu(Turned(net, net.x), net.initial, parameters, net.biases.defined(), /*num_layers=*/1,
                               /*dropout=*/0, /*train=*/false, net.directions == 2, /*batch_first=*/false)
                : at::rnn_tanh(Turned(net, net.x), net.initial, parameters, net.biases.defined(), /*num_layers=*/1,
                               /*dropout=*/0, /*train=*/false, net.directions == 2, /*batch_first=*/false);
    return {AllStates(net, ByDirection(net, all)), LastState(net, hidden)};
  }
  return StepByStep(context, net, 1, {"Tanh"}, [](const Way& way, const Tensor& inputs, const State& before) {
    return State{way.Activate(0, at::add(inputs, way.Product(before[0], 0, 1)))};
  });
}

// Attributes that the three have.
std::vector<std::string> SharedAttributes(std::vector<std::string> more) {
  for (const char* name : {"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size",
                           "layout", "output_sequence"}) {
    more.push_back(name);
  }
  return more;
}

}  // namespace

void RegisterRecurrent(OperatorTable& table) {
  table.Add("LSTM", 1, Lstm).Inputs(3, 8).Attributes(SharedAttributes({"input_forget"}));
  table.Add("GRU", 1, Gru).Inputs(3, 6).Attributes(SharedAttributes({"linear_before_reset"}));
  table.Add("RNN", 1, Rnn).Inputs(3, 6).Attributes(SharedAttributes({}));
}

}  // namespace addend::onnx

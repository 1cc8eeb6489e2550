// LSTMs as one map: all layers, directions and steps of a call.
//
// Note [LSTMs in one map]
// A step computes, with gates i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W x + U h + bias (Hochreiter and
// Schmidhuber 1997; Gers et al. 2000 for f),
//   c' = f c + i g,   h' = o tanh(c').
// On rows each function is its slope s, and each factor of a product meets the other one at a point m, by half the
// middle of its line (Note [Products] in kinds.h):
//   C = m_c s_f F + m_f C + m_g s_i I + m_i s_g G,   H = m_t s_o O + m_o s_t C,
// where F, I, G, O are the rows of W x + U h. Six numbers for each element of each step are all that a map needs beside
// the weights. The last layer's h at both ends of the line are the call's own results, so that the gates of all steps
// come from one product; only the cells are followed step by step. Rows then go through W for all steps together, and
// through U step by step.
#include "core/rules/lstm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/rules/for_loops.h"
#include "core/rules/kinds.h"
#include "core/rules/lstm_kernel.h"
#include "core/rules/row_product.h"

namespace addend {
namespace {

using Tensors = std::vector<at::Tensor>;

// Rows of a sequence lie step by step, each with a batch of its own size: those of padded batches are the same, those
// of packed ones shrink with time.
struct Steps {
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;
  int64_t rows = 0;
  int64_t batch = 0;

  explicit Steps(std::vector<int64_t> own) : sizes(std::move(own)) {
    for (const int64_t size : sizes) {
      offsets.push_back(rows);
      rows += size;
      batch = std::max(batch, size);
    }
  }
};

// One step in the order of a direction.
struct Step {
  int64_t offset;  // of its rows
  int64_t size;
  int64_t before;       // offset of the rows of the step before it
  int64_t from_before;  // how many of its rows go on from there; the others begin with the initial state
};

std::vector<Step> InOrder(const Steps& steps, bool backwards) {
  std::vector<Step> all;
  const size_t count = steps.sizes.size();
  for (size_t k = 0; k < count; ++k) {
    const size_t t = backwards ? count - 1 - k : k;
    const size_t p = backwards ? t + 1 : t - 1;
    const bool first = k == 0;
    all.push_back({steps.offsets[t], steps.sizes[t], first ? 0 : steps.offsets[p],
                   first ? 0 : std::min(steps.sizes[t], steps.sizes[p])});
  }
  return all;
}

// The last row of each element of the batch, in a direction.
std::vector<int64_t> LastRows(const Steps& steps, bool backwards) {
  std::vector<int64_t> last(steps.batch, 0);
  for (size_t k = 0; k < steps.sizes.size(); ++k) {
    const size_t t = backwards ? steps.sizes.size() - 1 - k : k;
    for (int64_t b = 0; b < steps.sizes[t]; ++b) last[b] = steps.offsets[t] + b;
  }
  return last;
}

// One layer in one direction. Weights as LibTorch has them, [outputs, inputs].
struct Direction {
  at::Tensor input;
  at::Tensor hidden;
  at::Tensor bias;        // of both; undefined: none
  at::Tensor projection;  // undefined: none
  std::vector<Step> order;
  std::vector<int64_t> last;
  // Coefficients: see LstmCoefficients. [rows, 4 * size] and [rows, size].
  at::Tensor of_gates;
  at::Tensor keep;
  at::Tensor show;

  int64_t size() const { return hidden.size(0) / 4; }
  int64_t width() const { return hidden.size(1); }  // of its output
};

// ---- memory

template <typename T>
T* Data(const at::Tensor& t) {
  return t.defined() ? t.data_ptr<T>() : nullptr;
}

// Rows [count, rows, width] of a sequence and [count, batch, width] of an initial state (undefined: zero), as a step
// finds them: what was there before each of its rows.
template <typename T>
class Before {
 public:
  Before(T* sequence, int64_t rows, T* initial, int64_t batch, int64_t width)
      : sequence_(sequence), rows_(rows), initial_(initial), batch_(batch), width_(width) {}
  // Null where it is zero.
  T* At(const Step& step, int64_t r, int64_t b) const {
    if (b < step.from_before) return sequence_ + (r * rows_ + step.before + b) * width_;
    return initial_ == nullptr ? nullptr : initial_ + (r * batch_ + b) * width_;
  }
  // All of them, one below the other.
  void Gather(const Step& step, int64_t count, T* out) const {
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t b = 0; b < step.size; ++b, out += width_) {
        const T* from = At(step, r, b);
        if (from == nullptr) {
          std::fill(out, out + width_, T(0));
        } else {
          std::copy(from, from + width_, out);
        }
      }
    }
  }

 private:
  T* sequence_;
  int64_t rows_;
  T* initial_;
  int64_t batch_;
  int64_t width_;
};

// ---- coefficients

struct Choice {
  GateSlope slope = GateSlope::kSecant;
  LstmFactor gates = LstmFactor::kMoves;
  LstmFactor initial = LstmFactor::kMoves;  // the cell before the first step
  uint32_t initial_by_magnitude = 0;        // its marks that share so
};

// `input` [2, rows, features], `output` [2, rows, width], `hidden` and `cell` [2, batch, *]: at the value and at the
// reference.
template <typename T>
void FindCoefficients(const Steps& steps, const at::Tensor& input, const at::Tensor& output, const at::Tensor& hidden,
                      const at::Tensor& cell, const Choice& choice, Direction& direction) {
  const int64_t n = direction.size();
  const int64_t rows = steps.rows;
  const at::Tensor before = at::empty({2 * rows, direction.width()}, input.options());
  const Before<T> hidden_before(Data<T>(output), rows, Data<T>(hidden), steps.batch, direction.width());
  for (const Step& step : direction.order) {
    for (int64_t end = 0; end < 2; ++end) {
      for (int64_t b = 0; b < step.size; ++b) {
        const T* from = hidden_before.At(step, end, b);
        std::copy(from, from + direction.width(), Data<T>(before) + (end * rows + step.offset + b) * direction.width());
      }
    }
  }
  const at::Tensor sums = at::linear(input.flatten(0, 1), direction.input, direction.bias);
  sums.addmm_(before, direction.hidden.t());
  const at::Tensor gates = at::sigmoid(sums);
  gates.narrow(1, 2 * n, n).copy_(at::tanh(sums.narrow(1, 2 * n, n)));

  const at::Tensor cells = at::empty({2, rows, n}, input.options());
  const Before<T> cell_before(Data<T>(cells), rows, Data<T>(cell), steps.batch, n);
  const auto row = [&](const Step& step, int64_t end, int64_t b) { return end * rows + step.offset + b; };
  for (const Step& step : direction.order) {
    for (int64_t end = 0; end < 2; ++end) {
      for (int64_t b = 0; b < step.size; ++b) {
        const int64_t k = row(step, end, b);
        LstmCell(Data<T>(gates) + k * 4 * n, cell_before.At(step, end, b), Data<T>(cells) + k * n, n);
      }
    }
  }
  const at::Tensor squashed = at::tanh(cells);

  direction.of_gates = at::empty({rows, 4 * n}, input.options());
  direction.keep = at::empty({rows, n}, input.options());
  direction.show = at::empty({rows, n}, input.options());
  // Limits for small moves are those of other elementwise functions; see SecantSlope.
  const T small = sizeof(T) == sizeof(double) ? T(2e-6) : T(2e-3);
  const MagnitudeWeights& weights = WeightsOfKinds(kFreezeGate);
  const MagnitudeWeights& of_cell = WeightsOfKinds(choice.initial_by_magnitude);
  const LstmChoices<T> choices = {choice.slope,
                                  choice.gates,
                                  small,
                                  static_cast<T>(weights.opens),
                                  static_cast<T>(weights.closes),
                                  static_cast<T>(of_cell.opens),
                                  static_cast<T>(of_cell.closes)};
  for (const Step& step : direction.order) {
    const LstmFactor own = &step == &direction.order.front() ? choice.initial : LstmFactor::kMoves;
    for (int64_t b = 0; b < step.size; ++b) {
      const auto point = [&](int64_t end) -> LstmPoint<T> {
        const int64_t k = row(step, end, b);
        return {Data<T>(sums) + k * 4 * n, Data<T>(gates) + k * 4 * n, cell_before.At(step, end, b),
                Data<T>(cells) + k * n, Data<T>(squashed) + k * n};
      };
      const int64_t k = step.offset + b;
      LstmCoefficients(point(0), point(1), choices, own, Data<T>(direction.of_gates) + k * 4 * n,
                       Data<T>(direction.keep) + k * n, Data<T>(direction.show) + k * n, n);
    }
  }
}

// ---- rows of one direction

struct States {
  at::Tensor hidden;  // [count, rows, width]
  at::Tensor cell;    // [count, rows, size]
};

// input [count, rows, features]; initial states [count, batch, *], undefined: zero.
template <typename T>
States Apply(const Steps& steps, const Direction& direction, const at::Tensor& input, const at::Tensor& hidden,
             const at::Tensor& cell) {
  const int64_t count = input.size(0);
  const int64_t rows = steps.rows;
  const int64_t n = direction.size();
  const int64_t width = direction.width();
  const at::Tensor gates = RowsTimesPlain(input, direction.input.t());
  const States states = {at::empty({count, rows, width}, input.options()),
                         at::empty({count, rows, n}, input.options())};
  const Before<T> hidden_before(Data<T>(states.hidden), rows, Data<T>(hidden), steps.batch, width);
  const Before<T> cell_before(Data<T>(states.cell), rows, Data<T>(cell), steps.batch, n);
  const std::vector<T> zero(n, T(0));
  for (const Step& step : direction.order) {
    at::Tensor recurrent;
    if (step.from_before > 0 || hidden.defined()) {
      const at::Tensor before = at::empty({count, step.size, width}, input.options());
      hidden_before.Gather(step, count, Data<T>(before));
      recurrent = RowsTimesPlain(before, direction.hidden.t());
    }
    const at::Tensor inner =
        direction.projection.defined() ? at::empty({count, step.size, n}, input.options()) : at::Tensor();
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t b = 0; b < step.size; ++b) {
        const int64_t k = step.offset + b;
        T* g = Data<T>(gates) + (r * rows + k) * 4 * n;
        if (recurrent.defined()) {
          const T* own = Data<T>(recurrent) + (r * step.size + b) * 4 * n;
          for (int64_t j = 0; j < 4 * n; ++j) g[j] += own[j];
        }
        const T* before = cell_before.At(step, r, b);
        T* out = inner.defined() ? Data<T>(inner) + (r * step.size + b) * n
                                 : Data<T>(states.hidden) + (r * rows + k) * width;
        LstmApply(g, before == nullptr ? zero.data() : before, Data<T>(direction.of_gates) + k * 4 * n,
                  Data<T>(direction.keep) + k * n, Data<T>(direction.show) + k * n,
                  Data<T>(states.cell) + (r * rows + k) * n, out, n);
      }
    }
    if (inner.defined()) {
      states.hidden.narrow(1, step.offset, step.size).copy_(RowsTimesPlain(inner, direction.projection.t()));
    }
  }
  return states;
}

struct Back {
  at::Tensor input;   // [count, rows, features]
  at::Tensor hidden;  // [count, batch, width]: to the initial states
  at::Tensor cell;    // [count, batch, size]
};

// `behind`: what comes back to hidden states and cells of every step. Both are overwritten.
template <typename T>
Back TransposeOf(const Steps& steps, const Direction& direction, const States& behind) {
  // Largest number of rows for which loops over a matrix are faster than the general product.
  constexpr int64_t kFew = 4;
  const int64_t count = behind.hidden.size(0);
  const int64_t rows = steps.rows;
  const int64_t n = direction.size();
  const int64_t width = direction.width();
  const auto options = behind.hidden.options();
  const at::Tensor gates = at::empty({count, rows, 4 * n}, options);
  const Back back = {at::Tensor(), at::zeros({count, steps.batch, width}, options),
                     at::zeros({count, steps.batch, n}, options)};
  const Before<T> hidden_before(Data<T>(behind.hidden), rows, Data<T>(back.hidden), steps.batch, width);
  const Before<T> cell_before(Data<T>(behind.cell), rows, Data<T>(back.cell), steps.batch, n);
  for (auto step = direction.order.rbegin(); step != direction.order.rend(); ++step) {
    at::Tensor inner;
    if (direction.projection.defined()) {
      const at::Tensor own = behind.hidden.narrow(1, step->offset, step->size);
      inner = at::mm(own.reshape({count * step->size, width}), direction.projection);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t b = 0; b < step->size; ++b) {
        const int64_t k = step->offset + b;
        const T* own = inner.defined() ? Data<T>(inner) + (r * step->size + b) * n
                                       : Data<T>(behind.hidden) + (r * rows + k) * width;
        LstmTranspose(Data<T>(behind.cell) + (r * rows + k) * n, own, Data<T>(direction.of_gates) + k * 4 * n,
                      Data<T>(direction.keep) + k * n, Data<T>(direction.show) + k * n,
                      Data<T>(gates) + (r * rows + k) * 4 * n, cell_before.At(*step, r, b), n);
      }
    }
    const bool few = count * step->size <= kFew;
    at::Tensor product;
    if (!few) {
      const at::Tensor own = gates.narrow(1, step->offset, step->size);
      product = at::mm(own.reshape({count * step->size, 4 * n}), direction.hidden);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t b = 0; b < step->size; ++b) {
        T* before = hidden_before.At(*step, r, b);
        if (few) {
          AddRowTimesMatrix(Data<T>(gates) + (r * rows + step->offset + b) * 4 * n, Data<T>(direction.hidden), before,
                            4 * n, width);
          continue;
        }
        const T* own = Data<T>(product) + (r * step->size + b) * width;
        for (int64_t j = 0; j < width; ++j) before[j] += own[j];
      }
    }
  }
  return {at::mm(gates.flatten(0, 1), direction.input).view({count, rows, direction.input.size(1)}), back.hidden,
          back.cell};
}

// ---- the whole call

// How a call lays out what it takes and gives.
struct Layout {
  enum class Form { kPadded, kBatchFirst, kPacked, kCell };
  Form form = Form::kPadded;
  Steps steps;
  int64_t layers = 1;
  int64_t directions = 1;

  explicit Layout(Steps own) : steps(std::move(own)) {}
  int64_t count() const { return layers * directions; }

  // [R, *sizes of the input] -> [R, rows, features]
  at::Tensor AsSequence(const at::Tensor& t) const {
    const at::Tensor own = form == Form::kBatchFirst ? t.transpose(1, 2) : t;
    return own.reshape({t.size(0), steps.rows, t.size(-1)});
  }
  // The inverse.
  at::Tensor FromSequence(const at::Tensor& t) const {
    if (form == Form::kPacked || form == Form::kCell) return t;
    const auto length = static_cast<int64_t>(steps.sizes.size());
    const at::Tensor own = t.reshape({t.size(0), length, steps.batch, t.size(-1)});
    return form == Form::kBatchFirst ? own.transpose(1, 2) : own;
  }
  // [R, *sizes of a state] -> [R, layers * directions, batch, width], and back.
  at::Tensor AsStates(const at::Tensor& t) const { return form == Form::kCell ? t.unsqueeze(1) : t; }
  at::Tensor FromStates(const at::Tensor& t) const { return form == Form::kCell ? t.squeeze(1) : t; }
};

// A position among the inputs of a map, or -1.
struct Positions {
  int input = -1;
  int hidden = -1;
  int cell = -1;
};

template <typename T>
class LstmMap : public LinearMap {
 public:
  LstmMap(Layout layout, std::vector<Direction> directions, Positions positions)
      : layout_(std::move(layout)), directions_(std::move(directions)), positions_(positions) {}

  Rows Forward(const Rows& rows) const override {
    // A few rows at a time: what is between the operands and the results is some times as large as they are.
    const int64_t count = rows[0].size(0);
    int64_t widest = 1;
    for (const Direction& direction : directions_) widest = std::max(widest, 4 * direction.size());
    const int64_t block = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, layout_.steps.rows * widest));
    if (count <= block) return ForwardBlock(rows);
    std::vector<Rows> parts;
    for (int64_t r = 0; r < count; r += block) {
      Rows own;
      for (const at::Tensor& t : rows) own.push_back(t.narrow(0, r, std::min(block, count - r)));
      parts.push_back(ForwardBlock(own));
    }
    Rows all;
    for (size_t k = 0; k < parts[0].size(); ++k) {
      Tensors one;
      for (const Rows& part : parts) one.push_back(part[k]);
      all.push_back(at::cat(one));
    }
    return all;
  }

  Rows Transpose(const Rows& cotangents) const override { return TransposeByRows(*this, cotangents); }

  Rows TransposeRows(const Rows& cotangents) const override {
    const bool cell_only = layout_.form == Layout::Form::kCell;
    const auto given = [&](size_t k) { return k < cotangents.size() ? cotangents[k] : at::Tensor(); };
    const at::Tensor sequence = cell_only ? at::Tensor() : given(0);
    const at::Tensor hidden = given(cell_only ? 0 : 1);
    const at::Tensor cell = given(cell_only ? 1 : 2);
    int64_t count = 0;
    for (const at::Tensor& g : cotangents) count = g.defined() ? g.size(0) : count;
    const at::TensorOptions options = directions_[0].keep.options();
    at::Tensor behind = sequence.defined() ? layout_.AsSequence(sequence) : at::Tensor();
    Tensors hidden_back(layout_.count());
    Tensors cell_back(layout_.count());
    for (int64_t layer = layout_.layers; layer-- > 0;) {
      at::Tensor input;
      for (int64_t d = 0; d < layout_.directions; ++d) {
        const int64_t k = layer * layout_.directions + d;
        const Direction& direction = directions_[k];
        const int64_t width = direction.width();
        States states = {at::empty({count, layout_.steps.rows, width}, options),
                         at::zeros({count, layout_.steps.rows, direction.size()}, options)};
        if (behind.defined()) {
          states.hidden.copy_(behind.narrow(2, d * width, width));
        } else {
          states.hidden.zero_();
        }
        if (hidden.defined()) AddLast(direction, layout_.AsStates(hidden).select(1, k), states.hidden);
        if (cell.defined()) AddLast(direction, layout_.AsStates(cell).select(1, k), states.cell);
        const Back back = TransposeOf<T>(layout_.steps, direction, states);
        input = input.defined() ? input.add_(back.input) : back.input;
        hidden_back[k] = back.hidden;
        cell_back[k] = back.cell;
      }
      behind = input;
    }
    Rows result(3);
    const auto put = [&](int position, const auto& make) {
      if (position >= 0) result[position] = make();
    };
    put(positions_.input, [&] { return layout_.FromSequence(behind); });
    put(positions_.hidden, [&] { return layout_.FromStates(at::stack(hidden_back, 1)); });
    put(positions_.cell, [&] { return layout_.FromStates(at::stack(cell_back, 1)); });
    while (!result.back().defined()) result.pop_back();
    return result;
  }

 private:
  static constexpr int64_t kBlock = int64_t{1} << 22;

  Rows ForwardBlock(const Rows& rows) const {
    const int64_t count = rows[0].size(0);
    const auto initial = [&](int position, int64_t k) {
      return position < 0 ? at::Tensor() : layout_.AsStates(rows[position]).select(1, k).contiguous();
    };
    at::Tensor sequence;
    if (positions_.input >= 0) {
      sequence = layout_.AsSequence(rows[positions_.input]).contiguous();
    } else {
      sequence = at::zeros({count, layout_.steps.rows, directions_[0].input.size(1)}, rows[0].options());
    }
    Tensors hidden;
    Tensors cell;
    for (int64_t layer = 0; layer < layout_.layers; ++layer) {
      Tensors outputs;
      for (int64_t d = 0; d < layout_.directions; ++d) {
        const int64_t k = layer * layout_.directions + d;
        const Direction& direction = directions_[k];
        const States states =
            Apply<T>(layout_.steps, direction, sequence, initial(positions_.hidden, k), initial(positions_.cell, k));
        outputs.push_back(states.hidden);
        hidden.push_back(TakeLast(direction, states.hidden));
        cell.push_back(TakeLast(direction, states.cell));
      }
      sequence = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
    }
    const at::Tensor last_hidden = layout_.FromStates(at::stack(hidden, 1));
    const at::Tensor last_cell = layout_.FromStates(at::stack(cell, 1));
    if (layout_.form == Layout::Form::kCell) return {last_hidden, last_cell};
    return {layout_.FromSequence(sequence), last_hidden, last_cell};
  }

  // [R, rows, width] -> [R, batch, width]
  at::Tensor TakeLast(const Direction& direction, const at::Tensor& sequence) const {
    const at::Tensor taken = at::empty({sequence.size(0), layout_.steps.batch, sequence.size(2)}, sequence.options());
    ForEachLast(direction, sequence, taken, [](T* from, T* to, int64_t width) { std::copy(from, from + width, to); });
    return taken;
  }
  // Its transpose.
  void AddLast(const Direction& direction, const at::Tensor& given, const at::Tensor& sequence) const {
    ForEachLast(direction, sequence, given.contiguous(), [](T* to, const T* from, int64_t width) {
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    });
  }
  template <typename Visit>
  void ForEachLast(const Direction& direction, const at::Tensor& sequence, const at::Tensor& states,
                   const Visit& visit) const {
    const int64_t width = sequence.size(2);
    const int64_t batch = layout_.steps.batch;
    for (int64_t r = 0; r < sequence.size(0); ++r) {
      for (int64_t b = 0; b < batch; ++b) {
        visit(Data<T>(sequence) + (r * layout_.steps.rows + direction.last[b]) * width,
              Data<T>(states) + (r * batch + b) * width, width);
      }
    }
  }

  Layout layout_;
  std::vector<Direction> directions_;
  Positions positions_;
};

// ---- the rule

GateSlope SlopeOf(const Policy& policy) {
  switch (policy.nonlinearity) {
    case Nonlinearity::kScaling:
      return GateSlope::kScaling;
    case Nonlinearity::kGradient:
      return GateSlope::kGradient;
    case Nonlinearity::kNone:
      return GateSlope::kNone;
    default:
      return GateSlope::kSecant;
  }
}

struct Parameters {
  Tensors all;
  bool has_biases = true;
  bool has_projection = false;
  size_t each() const { return 2 + (has_biases ? 2 : 0) + (has_projection ? 1 : 0); }
};

std::vector<Direction> DirectionsOf(const Layout& layout, const Parameters& parameters) {
  std::vector<Direction> all;
  for (int64_t k = 0; k < layout.count(); ++k) {
    const size_t first = static_cast<size_t>(k) * parameters.each();
    const bool backwards = k % layout.directions == 1;
    Direction direction;
    direction.input = parameters.all.at(first).contiguous();
    direction.hidden = parameters.all.at(first + 1).contiguous();
    if (parameters.has_biases) direction.bias = parameters.all.at(first + 2) + parameters.all.at(first + 3);
    if (parameters.has_projection)
      direction.projection = parameters.all.at(first + 4 - (parameters.has_biases ? 0 : 2));
    direction.order = InOrder(layout.steps, backwards);
    direction.last = LastRows(layout.steps, backwards);
    all.push_back(std::move(direction));
  }
  return all;
}

// The outputs of a layer at both ends, [2, rows, width], by LibTorch itself.
at::Tensor OutputOfLayer(const Layout& layout, const Parameters& parameters, int64_t layer, const at::Tensor& input,
                         const at::Tensor& hidden, const at::Tensor& cell) {
  const auto count = static_cast<int64_t>(parameters.each()) * layout.directions;
  const auto first = parameters.all.begin() + layer * count;
  const Tensors own(first, first + count);
  Tensors ends;
  for (int64_t end = 0; end < 2; ++end) {
    const auto state = [&](const at::Tensor& t) {
      return t.select(0, end).narrow(0, layer * layout.directions, layout.directions).contiguous();
    };
    const at::Tensor x = input.select(0, end);
    if (layout.form == Layout::Form::kPacked) {
      at::Tensor sizes = at::empty({static_cast<int64_t>(layout.steps.sizes.size())}, at::kLong);
      std::copy(layout.steps.sizes.begin(), layout.steps.sizes.end(), sizes.data_ptr<int64_t>());
      ends.push_back(std::get<0>(at::lstm(x, sizes, {state(hidden), state(cell)}, own, parameters.has_biases, 1, 0.0,
                                          false, layout.directions == 2)));
    } else {
      const auto length = static_cast<int64_t>(layout.steps.sizes.size());
      const at::Tensor padded = x.view({length, layout.steps.batch, x.size(1)});
      const at::Tensor output = std::get<0>(at::lstm(padded, {state(hidden), state(cell)}, own, parameters.has_biases,
                                                     1, 0.0, false, layout.directions == 2, false));
      ends.push_back(output.reshape({layout.steps.rows, output.size(2)}));
    }
  }
  return at::stack(ends);
}

// The policy's choices for the factors of a cell; `cell`: its initial state.
Choice ChoiceOf(const Policy& policy, const RuleOperand& cell) {
  Choice choice;
  choice.slope = SlopeOf(policy);
  if ((policy.content_first & kFreezeGate) != 0) {
    choice.gates = (policy.by_magnitude & kFreezeGate) != 0 ? LstmFactor::kByMagnitude : LstmFactor::kLeads;
  }
  if (policy.Freezes(kFreezeGate)) choice.gates = LstmFactor::kFrozen;
  if (cell.content_first != 0) {
    choice.initial = SharesByMagnitude(cell) ? LstmFactor::kByMagnitude : LstmFactor::kLeads;
    choice.initial_by_magnitude = cell.by_magnitude;
  }
  if ((cell.marks & policy.FrozenKinds()) != 0) choice.initial = LstmFactor::kFrozen;
  if (!cell.decomposed) choice.initial = LstmFactor::kRests;
  return choice;
}

// The layers with their coefficients; the initial states are the operands `states` and the next one.
std::vector<Direction> LinearizedDirections(const RuleCall& call, const Layout& layout, const Parameters& parameters,
                                            int states, const Choice& choice) {
  const auto ends = [&](int operand) {
    return at::stack({call.operands[operand].value, call.operands[operand].reference});
  };
  at::Tensor sequence = layout.AsSequence(ends(call.OperandAt(call.First())));
  const at::Tensor hidden = layout.AsStates(ends(states));
  const at::Tensor cell = layout.AsStates(ends(states + 1));
  std::vector<Direction> directions = DirectionsOf(layout, parameters);
  for (int64_t layer = 0; layer < layout.layers; ++layer) {
    at::Tensor output;
    // A single step needs none: it has no step before it.
    if (layout.form != Layout::Form::kCell) {
      const bool last = layer + 1 == layout.layers;
      output = last ? layout.AsSequence(at::stack({call.outputs[0].value, call.outputs[0].reference}))
                    : OutputOfLayer(layout, parameters, layer, sequence, hidden, cell);
    }
    for (int64_t d = 0; d < layout.directions; ++d) {
      const int64_t k = layer * layout.directions + d;
      Direction& direction = directions[k];
      const int64_t width = direction.width();
      const at::Tensor own = output.defined() ? output.narrow(2, d * width, width).contiguous() : output;
      const at::Tensor h0 = hidden.select(1, k).contiguous();
      const at::Tensor c0 = cell.select(1, k).contiguous();
      DispatchReal(sequence.scalar_type(), [&](auto zero) {
        FindCoefficients<decltype(zero)>(layout.steps, sequence.contiguous(), own, h0, c0, choice, direction);
      });
    }
    sequence = output;
  }
  return directions;
}

// The initial states are the operands `states` and the next one.
RuleResult Build(const RuleCall& call, const Layout& layout, const Parameters& parameters, int states) {
  if (!AllowsFused(*call.policy)) throw Internal(call.name + " was recorded whole under another policy");
  const c10::AutoGradMode no_grad(false);
  const int input = call.OperandAt(call.First());
  const Choice choice = ChoiceOf(*call.policy, call.operands[states + 1]);
  std::vector<Direction> directions = LinearizedDirections(call, layout, parameters, states, choice);
  RuleResult result;
  result.kind = Kind::kRewrite;
  Positions positions;
  const auto add = [&](int operand, int* position) {
    if (!call.operands[operand].decomposed) return;
    *position = static_cast<int>(result.inputs.size());
    result.inputs.push_back(operand);
  };
  add(input, &positions.input);
  add(states, &positions.hidden);
  add(states + 1, &positions.cell);
  const at::ScalarType dtype = call.operands[input].value.scalar_type();
  DispatchReal(dtype, [&](auto zero) {
    result.map = std::make_shared<LstmMap<decltype(zero)>>(layout, std::move(directions), positions);
  });
  // LibTorch's own results round otherwise than what the coefficients are made of; that is leftover, within bounds.
  result.exact = false;
  result.inner_terms = 1;
  const bool complete = choice.slope == GateSlope::kSecant && choice.gates != LstmFactor::kFrozen &&
                        choice.initial != LstmFactor::kFrozen;
  if (complete) result.quadrature = dtype == at::kDouble ? 5e-12 : 5e-5;
  return result;
}

// All operands of an argument.
Tensors ValuesOf(const RuleCall& call, std::string_view argument) {
  const int position = call.At(argument);
  Tensors all;
  for (const RuleOperand& operand : call.operands) {
    if (operand.argument == position) all.push_back(operand.value);
  }
  return all;
}

Parameters ParametersOf(const RuleCall& call, int states) {
  Parameters parameters;
  parameters.all = ValuesOf(call, "params");
  parameters.has_biases = call.Bool("has_biases", true);
  parameters.has_projection = call.operands[states].value.size(2) != call.operands[states + 1].value.size(2);
  return parameters;
}

// lstm.input(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
RuleResult Padded(const RuleCall& call) {
  const bool batch_first = call.Bool("batch_first", false);
  const at::Tensor& input = call.Require("input").value;
  Layout layout(Steps(std::vector<int64_t>(input.size(batch_first ? 1 : 0), input.size(batch_first ? 0 : 1))));
  layout.form = batch_first ? Layout::Form::kBatchFirst : Layout::Form::kPadded;
  layout.layers = call.Int("num_layers", 1);
  layout.directions = call.Bool("bidirectional", false) ? 2 : 1;
  const int states = call.OperandAt("hx");
  return Build(call, layout, ParametersOf(call, states), states);
}

// lstm.data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
RuleResult Packed(const RuleCall& call) {
  const at::Tensor sizes = call.Require("batch_sizes").value.contiguous();
  Layout layout(Steps(std::vector<int64_t>(sizes.data_ptr<int64_t>(), sizes.data_ptr<int64_t>() + sizes.numel())));
  layout.form = Layout::Form::kPacked;
  layout.layers = call.Int("num_layers", 1);
  layout.directions = call.Bool("bidirectional", false) ? 2 : 1;
  const int states = call.OperandAt("hx");
  return Build(call, layout, ParametersOf(call, states), states);
}

// lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
RuleResult Cell(const RuleCall& call) {
  Layout layout(Steps({call.Require("input").value.size(0)}));
  layout.form = Layout::Form::kCell;
  Parameters parameters;
  parameters.has_biases = call.OperandAt("b_ih") >= 0;
  for (const char* name : {"w_ih", "w_hh", "b_ih", "b_hh"}) {
    if (const RuleOperand* own = call.Find(name)) parameters.all.push_back(own->value);
  }
  return Build(call, layout, parameters, call.OperandAt("hx"));
}

// ---- what the rule covers

// Numbers that loops can read, all of one kind.
bool IsPlain(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() && t.device().is_cpu() && t.layout() == at::kStrided && t.scalar_type() == like.scalar_type() &&
         t.numel() > 0;
}

bool CoversTensors(const at::Tensor& input, const Tensors& states, const Tensors& parameters, int64_t rank) {
  if (!input.defined() || (input.scalar_type() != at::kFloat && input.scalar_type() != at::kDouble)) return false;
  if (states.size() != 2 || input.dim() != rank) return false;
  const auto plain = [&](const at::Tensor& t) { return IsPlain(t, input); };
  // Infinities pass each operator in a way of its own.
  return plain(input) && std::all_of(states.begin(), states.end(), plain) &&
         std::all_of(parameters.begin(), parameters.end(), plain) && AllFinite(input) && AllFinite(states[0]) &&
         AllFinite(states[1]);
}

// The input of a network, its first argument, has `rank` dimensions.
bool CoversNetwork(const RewriteCall& call, const std::vector<bool>& moves, int64_t rank) {
  const Tensors states = call.Tensors("hx");
  // A plain input would leave the first steps without rows, which policies that freeze tell apart.
  if (!moves[0] || moves[call.At("params")]) return false;
  const int64_t layers = call.Int("num_layers", 1);
  if (call.Double("dropout", 0) != 0 && call.Bool("train", false) && layers > 1) return false;
  const Tensors parameters = call.Tensors("params");
  if (!CoversTensors(call.Tensor(call.First()), states, parameters, rank)) return false;
  if (states[0].dim() != 3 || states[1].dim() != 3) return false;
  const bool projects = states[0].size(2) != states[1].size(2);
  const int64_t each = 2 + (call.Bool("has_biases", true) ? 2 : 0) + (projects ? 1 : 0);
  return static_cast<int64_t>(parameters.size()) == each * layers * (call.Bool("bidirectional", false) ? 2 : 1);
}

bool CoversPadded(const RewriteCall& call, const std::vector<bool>& moves) { return CoversNetwork(call, moves, 3); }

bool CoversPacked(const RewriteCall& call, const std::vector<bool>& moves) {
  return CoversNetwork(call, moves, 2) && call.Tensor("batch_sizes").scalar_type() == at::kLong;
}

bool CoversCell(const RewriteCall& call, const std::vector<bool>& moves) {
  for (const char* name : {"w_ih", "w_hh", "b_ih", "b_hh"}) {
    if (moves[call.At(name)]) return false;
  }
  if (!moves[0] || call.IsNone("b_ih") != call.IsNone("b_hh")) return false;
  Tensors parameters = {call.Tensor("w_ih"), call.Tensor("w_hh")};
  if (!call.IsNone("b_ih")) parameters.insert(parameters.end(), {call.Tensor("b_ih"), call.Tensor("b_hh")});
  const Tensors states = call.Tensors("hx");
  return CoversTensors(call.Tensor("input"), states, parameters, 2) && states[0].dim() == 2 && states[1].dim() == 2;
}

Rewrite Fused(const char* name, RewriteFunction steps, RuleFunction build,
              bool (*covers)(const RewriteCall&, const std::vector<bool>&)) {
  Rewrite rewrite{name, std::move(steps)};
  rewrite.fused = FusedRule{Rule{name, Kind::kRewrite, std::move(build)}, covers};
  return rewrite;
}

}  // namespace

Rewrite FusedPaddedLstm(RewriteFunction steps) {
  return Fused("aten::lstm.input", std::move(steps), Padded, CoversPadded);
}

Rewrite FusedPackedLstm(RewriteFunction steps) {
  return Fused("aten::lstm.data", std::move(steps), Packed, CoversPacked);
}

Rewrite FusedLstmCell(RewriteFunction steps) { return Fused("aten::lstm_cell", std::move(steps), Cell, CoversCell); }

}  // namespace addend

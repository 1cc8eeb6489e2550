#include "core/onnx/fuse_gelu.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/onnx/operators.h"

namespace addend::onnx {
namespace {

// The relative distance between numbers that a constant may have been rounded by.
double RoundingOf(c10::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// A GELU of a graph.
struct Gelu {
  int input = kNoValue;
  size_t erf = 0;             // the step that names it
  std::vector<size_t> steps;  // all of it; the last one gives the result
};

class Finder {
 public:
  Finder(absl::FunctionRef<const at::Tensor*(int value)> constant, const GraphPlan& graph)
      : constant_(constant), graph_(graph) {
    for (size_t k = 0; k < graph.steps.size(); ++k) {
      const Operator& op = *graph.steps[k].op;
      for (const int value : op.outputs) makers_[value] = k;
      for (const int value : op.inputs) readers_[value].push_back(k);
      // A graph inside counts twice, so that it is never the only reader.
      for (const Graph& inner : op.graphs) {
        for (const int value : inner.captured) readers_[value].insert(readers_[value].end(), 2, k);
      }
    }
    for (const int value : graph.outputs) readers_[value].insert(readers_[value].end(), 2, 0);
  }

  std::optional<Gelu> Find(size_t erf) const {
    Gelu gelu;
    gelu.erf = erf;
    const int argument = Is(erf, "Erf") ? graph_.steps[erf].op->inputs[0] : kNoValue;
    const auto scaled = MakerFor(argument, erf);
    if (!scaled) return std::nullopt;
    if (Is(*scaled, "Div")) {
      if (!IsNumber(graph_.steps[*scaled].op->inputs[1], std::sqrt(2.0))) return std::nullopt;
      gelu.input = graph_.steps[*scaled].op->inputs[0];
    } else {
      gelu.input = OtherThanNumber(*scaled, "Mul", std::sqrt(0.5));
    }
    if (gelu.input == kNoValue) return std::nullopt;
    const auto sum = OnlyReader(erf);
    if (!sum || OtherThanNumber(*sum, "Add", 1) == kNoValue) return std::nullopt;
    gelu.steps = {*scaled, erf, *sum};
    return AddFactors(OnlyReader(*sum), &gelu) ? std::make_optional(std::move(gelu)) : std::nullopt;
  }

 private:
  // The factors x and 1/2 of the sum, in any order. `product`: the one of the sum.
  bool AddFactors(std::optional<size_t> product, Gelu* gelu) const {
    if (!product || !Is(*product, "Mul")) return false;
    const std::vector<int>& factors = graph_.steps[*product].op->inputs;
    const int sum = graph_.steps[gelu->steps.back()].op->outputs[0];
    const int other = factors[0] == sum ? factors[1] : factors[0];
    // The half of x times the sum.
    const auto half = MakerFor(other, *product);
    if (half && OtherThanNumber(*half, "Mul", 0.5) == gelu->input) {
      gelu->steps.insert(gelu->steps.end(), {*half, *product});
      return true;
    }
    const bool has_input = other == gelu->input;
    if (!has_input && !IsNumber(other, 0.5)) return false;
    const auto last = OnlyReader(*product);
    if (!last || !Is(*last, "Mul")) return false;
    const std::vector<int>& rest = graph_.steps[*last].op->inputs;
    const int missing = rest[0] == graph_.steps[*product].op->outputs[0] ? rest[1] : rest[0];
    if (has_input ? !IsNumber(missing, 0.5) : missing != gelu->input) return false;
    gelu->steps.insert(gelu->steps.end(), {*product, *last});
    return true;
  }

  // Whether a step is of this operator, which aligns its operands from the right.
  bool Is(size_t step, absl::string_view op_type) const {
    constexpr int64_t kFirstBroadcasting = 7;
    const Operator& op = *graph_.steps[step].op;
    return op.function < 0 && op.domain.empty() && op.version >= kFirstBroadcasting && op.node->op_type == op_type;
  }

  // Whether a value is a constant without dimensions that is this number, rounded.
  bool IsNumber(int value, double number) const {
    const at::Tensor* tensor = value == kNoValue ? nullptr : constant_(value);
    if (tensor == nullptr || tensor->dim() != 0 || !c10::isFloatingType(tensor->scalar_type())) return false;
    return std::fabs(tensor->item<double>() - number) <= RoundingOf(tensor->scalar_type()) * number;
  }

  // The operand of a step beside that number; none where the step is another operator or of other operands.
  int OtherThanNumber(size_t step, absl::string_view op_type, double number) const {
    if (!Is(step, op_type)) return kNoValue;
    const std::vector<int>& inputs = graph_.steps[step].op->inputs;
    if (IsNumber(inputs[1], number)) return inputs[0];
    return IsNumber(inputs[0], number) ? inputs[1] : kNoValue;
  }

  // The step that makes a value of which `reader` is the only reader.
  std::optional<size_t> MakerFor(int value, size_t reader) const {
    const auto maker = makers_.find(value);
    if (value == kNoValue || maker == makers_.end()) return std::nullopt;
    const auto only = OnlyReader(maker->second);
    return only && *only == reader ? std::make_optional(maker->second) : std::nullopt;
  }

  // The only step that reads what a step makes.
  std::optional<size_t> OnlyReader(size_t step) const {
    const std::vector<int>& outputs = graph_.steps[step].op->outputs;
    const auto readers = outputs.size() == 1 ? readers_.find(outputs[0]) : readers_.end();
    if (readers == readers_.end() || readers->second.size() != 1) return std::nullopt;
    return readers->second[0];
  }

  absl::FunctionRef<const at::Tensor*(int value)> constant_;
  const GraphPlan& graph_;
  absl::flat_hash_map<int, size_t> makers_;
  absl::flat_hash_map<int, std::vector<size_t>> readers_;
};

// The step of a GELU. Its node is that of erf, by whose name it is known.
Step StepOf(const Gelu& gelu, const GraphPlan& graph, std::deque<Operator>* operators) {
  const Step& erf = graph.steps[gelu.erf];
  Operator op;
  op.node = erf.op->node;
  op.version = erf.op->version;
  op.inputs = {gelu.input};
  op.outputs = graph.steps[gelu.steps.back()].op->outputs;
  operators->push_back(std::move(op));
  Step step;
  step.op = &operators->back();
  step.row = &Operators().rows().at({"", "Gelu"}).front();
  step.place = erf.place;
  return step;
}

}  // namespace

void FuseGelu(absl::FunctionRef<const at::Tensor*(int value)> constant, std::deque<Operator>* operators,
              GraphPlan* graph) {
  const Finder finder(constant, *graph);
  std::vector<Gelu> found;
  for (size_t k = 0; k < graph->steps.size(); ++k) {
    if (auto gelu = finder.Find(k)) found.push_back(*std::move(gelu));
  }
  if (found.empty()) return;
  std::vector<bool> taken(graph->steps.size(), false);
  for (const Gelu& gelu : found) {
    Step step = StepOf(gelu, *graph, operators);
    for (const size_t k : gelu.steps) taken[k] = true;
    // The last one of the file's order, in which inputs come first.
    const size_t last = *std::max_element(gelu.steps.begin(), gelu.steps.end());
    graph->steps[last] = std::move(step);
    taken[last] = false;
  }
  std::vector<Step> kept;
  kept.reserve(graph->steps.size());
  for (size_t k = 0; k < taken.size(); ++k) {
    if (!taken[k]) kept.push_back(std::move(graph->steps[k]));
  }
  graph->steps = std::move(kept);
}

}  // namespace addend::onnx

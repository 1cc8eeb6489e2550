// Graphs inside of nodes: branches, loops, scans, maps of sequences.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results If(const Context& context) {
  const bool holds = context.Holds(context.Input(0));
  return context.RunGraph(context.GraphAttribute(holds ? "then_branch" : "else_branch"), {});
}

// --------------------------------------------------------------------------------------------- rows that are collected

// The value of row `row` of a tensor; known where the tensor is.
Datum RowOf(const Context& context, const Datum& rows, int64_t axis, int64_t row) {
  Datum own = Moved(rows.IsKnown(), rows.descent,
                    [&] { return at::select(rows.IsKnown() ? rows.known : context.TensorOf(rows), axis, row); });
  own.integers = rows.integers;
  return own;
}

// Rows side by side along a new axis; known where all of them are.
Datum Stacked(const Context& context, const std::vector<Datum>& rows, int64_t axis) {
  Descent descent = Descent::kConstants;
  bool is_known = true;
  for (const Datum& row : rows) {
    descent = std::max(descent, row.descent);
    is_known = is_known && row.IsKnown();
  }
  std::vector<Tensor> tensors;
  for (const Datum& row : rows) tensors.push_back(is_known ? row.known : context.TensorOf(row));
  Datum stacked =
      Moved(is_known, descent, [&] { return at::stack(tensors, context.Axis(axis, tensors[0].dim() + 1)); });
  stacked.integers = IntegersOfAll(context, rows);
  return stacked;
}

// Rows of a loop of no turns: as many dimensions as the file says, the new one of size 0.
Datum NoRows(const Context& context, const Value& value, int64_t axis) {
  const TypeProto* type = value.type;
  if (type == nullptr || type->kind != TypeProto::Kind::kTensor || !type->has_shape) {
    throw context.Refused("it runs its body zero times, and the file does not say the type and sizes of its results");
  }
  std::vector<int64_t> sizes;
  for (const Dimension& dimension : type->dims) sizes.push_back(std::max<int64_t>(dimension.value, 0));
  sizes.insert(sizes.begin() + context.Axis(axis, static_cast<int64_t>(sizes.size()) + 1), 0);
  const bool is_widened = IsWidened(type->data_type);
  const c10::ScalarType own = is_widened ? HolderOf(type->data_type).value() : context.TypeOf(type->data_type);
  Datum none = Datum::Of(at::zeros(sizes, context.Options(own)), Descent::kConstants);
  if (is_widened) none.integers = type->data_type;
  return none;
}

// Rows that the turns of a loop give beside its state, by output.
class Collected {
 public:
  explicit Collected(size_t count) : rows_(count) {}

  void Add(std::vector<Datum>::iterator first) {
    for (std::vector<Datum>& rows : rows_) rows.push_back(std::move(*first++));
  }
  std::vector<Datum>& rows(size_t k) { return rows_[k]; }
  size_t size() const { return rows_.size(); }

 private:
  std::vector<std::vector<Datum>> rows_;
};

const Value& OutputValue(const Context& context, const GraphPlan& graph, size_t k) {
  return context.ValueAt(graph.graph->outputs[k]);
}

// ------------------------------------------------------------------------------------------------------- Loop and Scan

// Inputs: the most turns, a condition, the state. The body gets the turn's number, the condition, the state; it gives
// the condition, the state, rows.
Results Loop(const Context& context) {
  const GraphPlan& body = context.GraphAttribute("body");
  const size_t num_state = context.num_inputs() < 2 ? 0 : context.num_inputs() - 2;
  if (body.graph->outputs.size() < num_state + 1) throw context.Invalid("the body gives too few values");
  const int64_t most = context.Integer(0, std::numeric_limits<int64_t>::max());
  // Without a condition at the node its body's is not looked at.
  const bool has_condition = context.Has(1);
  const auto true_datum = [] {
    const TracingPause pause;
    return Datum::Known(at::scalar_tensor(true, at::kBool), Descent::kConstants);
  };
  std::vector<Datum> state{has_condition ? context.Input(1) : true_datum()};
  for (size_t k = 0; k < num_state; ++k) state.push_back(context.Input(k + 2));
  Collected collected(body.graph->outputs.size() - num_state - 1);
  for (int64_t turn = 0; turn < most && (!has_condition || context.Holds(state[0])); ++turn) {
    std::vector<Datum> given;
    {
      const TracingPause pause;
      given.push_back(Datum::Known(at::scalar_tensor(turn, at::kLong), Descent::kConstants));
    }
    given.insert(given.end(), state.begin(), state.end());
    std::vector<Datum> results = context.RunGraph(body, std::move(given));
    collected.Add(results.begin() + static_cast<std::ptrdiff_t>(num_state) + 1);
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(num_state) + 1);
  }
  std::vector<Datum> results(state.begin() + 1, state.end());
  for (size_t k = 0; k < collected.size(); ++k) {
    results.push_back(collected.rows(k).empty()
                          ? NoRows(context, OutputValue(context, body, num_state + 1 + k), /*axis=*/0)
                          : Stacked(context, collected.rows(k), /*axis=*/0));
  }
  return results;
}

// Inputs: the state, then tensors whose rows the turns get. The body gets and gives the state, then rows.
Results Scan(const Context& context) {
  const GraphPlan& body = context.GraphAttribute("body");
  const auto num_scanned = static_cast<size_t>(context.IntAttribute("num_scan_inputs"));
  if (num_scanned == 0 || num_scanned > context.num_inputs()) {
    throw context.Invalid("num_scan_inputs is 0, or larger than the number of inputs");
  }
  const size_t num_state = context.num_inputs() - num_scanned;
  if (body.graph->outputs.size() < num_state) throw context.Invalid("the body gives too few values");
  const size_t num_rows = body.graph->outputs.size() - num_state;
  const auto list = [&](const char* name, size_t count) {
    std::vector<int64_t> numbers = context.IntsAttribute(name, std::vector<int64_t>(count, 0));
    if (numbers.size() != count) throw context.Invalid(absl::StrCat("the attribute ", name, " has another length"));
    return numbers;
  };
  std::vector<int64_t> axes = list("scan_input_axes", num_scanned);
  const std::vector<int64_t> backward = list("scan_input_directions", num_scanned);
  const std::vector<int64_t> row_axes = list("scan_output_axes", num_rows);
  const std::vector<int64_t> prepended = list("scan_output_directions", num_rows);
  std::vector<Datum> state;
  for (size_t k = 0; k < num_state; ++k) state.push_back(context.Input(k));
  int64_t turns = 0;
  for (size_t k = 0; k < num_scanned; ++k) {
    const Tensor scanned = context.Tensor(num_state + k);
    axes[k] = context.Axis(axes[k], scanned.dim());
    if (k > 0 && scanned.size(axes[k]) != turns) throw context.Invalid("the inputs to scan differ in length");
    turns = scanned.size(axes[k]);
  }
  Collected collected(num_rows);
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<Datum> given = state;
    for (size_t k = 0; k < num_scanned; ++k) {
      const int64_t row = backward[k] != 0 ? turns - 1 - turn : turn;
      given.push_back(RowOf(context, context.Input(num_state + k), axes[k], row));
    }
    std::vector<Datum> results = context.RunGraph(body, std::move(given));
    collected.Add(results.begin() + static_cast<std::ptrdiff_t>(num_state));
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(num_state));
  }
  std::vector<Datum> results = std::move(state);
  for (size_t k = 0; k < num_rows; ++k) {
    std::vector<Datum>& rows = collected.rows(k);
    if (prepended[k] != 0) std::reverse(rows.begin(), rows.end());
    results.push_back(rows.empty() ? NoRows(context, OutputValue(context, body, num_state + k), row_axes[k])
                                   : Stacked(context, rows, row_axes[k]));
  }
  return results;
}

Results OldScan(const Context& context) {
  throw context.Refused(
      "Scan of version 8 is another operator, which is not supported; convert the model to version 9");
}

// The body for each element of the first sequence, with those of the others or whole tensors.
Results SequenceMap(const Context& context) {
  const GraphPlan& body = context.GraphAttribute("body");
  std::vector<std::vector<Datum>> sequences(body.graph->outputs.size());
  for (size_t k = 0; k < context.Sequence(0).size(); ++k) {
    std::vector<Datum> given;
    for (size_t n = 0; n < context.num_inputs(); ++n) {
      const Datum& input = context.Input(n);
      if (input.IsSequence() && input.elements->size() <= k)
        throw context.Invalid("a sequence is shorter than the first");
      given.push_back(input.IsSequence() ? (*input.elements)[k] : input);
    }
    std::vector<Datum> results = context.RunGraph(body, std::move(given));
    for (size_t n = 0; n < sequences.size(); ++n) sequences[n].push_back(std::move(results[n]));
  }
  std::vector<Datum> results;
  for (std::vector<Datum>& sequence : sequences) results.push_back(Datum::Sequence(std::move(sequence)));
  return results;
}

}  // namespace

void RegisterControlFlow(OperatorTable& table) {
  // Nodes inside decide for themselves what is known.
  table.Add("If", 1, If).Attributes({"then_branch", "else_branch"}).Known(KnownIf::kNever);
  table.Add("Loop", 1, Loop).InputsFrom(0).Attributes({"body"}).Known(KnownIf::kNever).ReadsIntegers();
  table.Add("Scan", 8, OldScan).InputsFrom(0).Attributes({"body", "directions", "num_scan_inputs"});
  table.Add("Scan", 9, Scan)
      .InputsFrom(1)
      .Attributes({"body", "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes",
                   "scan_output_directions"})
      .Known(KnownIf::kNever)
      .ReadsIntegers();
  table.Add("SequenceMap", 17, SequenceMap).InputsFrom(1).Attributes({"body"}).Known(KnownIf::kNever);
}

}  // namespace addend::onnx

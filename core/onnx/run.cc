#include "core/onnx/run.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/onnx/context.h"
#include "core/onnx/node_name.h"
#include "core/onnx/node_place.h"

namespace addend::onnx {
namespace {

using FunctionAttributes = absl::flat_hash_map<absl::string_view, const Attribute*>;

// Parts of a run that all of its bodies share.
struct Shared {
  const Plan& plan;
  const std::vector<Datum>& constants;
  const Placement& placement;
  const int64_t most_nodes;
  int64_t nodes_left;
};

// Whether the results of a node are known values; see Note [Known values].
bool IsKnown(const OperatorRow& row, const std::vector<Datum>& inputs) {
  if (row.known() == KnownIf::kNever) return false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].IsNone()) continue;
    if (!inputs[k].IsKnown()) return false;
    const bool has_to_be_constant =
        row.known() == KnownIf::kInputsConstant || (row.known() == KnownIf::kSizesConstant && k > 0);
    if (has_to_be_constant && inputs[k].descent != Descent::kConstants) return false;
  }
  return true;
}

// The first `count` results of an operator that chooses elements hold integers as the inputs do.
void HandOnIntegers(const std::vector<Datum>& inputs, size_t count, std::vector<Datum>* results) {
  const auto holds =
      std::find_if(inputs.begin(), inputs.end(), [](const Datum& input) { return input.HoldsIntegers(); });
  if (holds == inputs.end()) return;
  for (size_t k = 0; k < std::min(count, results->size()); ++k) {
    if ((*results)[k].IsTensor()) (*results)[k].integers = holds->integers;
  }
}

// Whether a sentence of LibTorch's says that it lacks a kernel: "exp" not implemented for 'Half'.
bool LacksKernel(const std::string& sentence) {
  return absl::StrContains(sentence, "not implemented for") || absl::StrContains(sentence, "Could not run");
}

Error FailsAt(const Step& step, const std::exception& error) {
  const std::string sentence = SentenceOf(error);
  const std::string name = NameOf(*step.op->node);
  if (LacksKernel(sentence)) {
    return Error(absl::StatusCode::kUnimplemented, absl::StrCat(name, ": this LibTorch cannot compute it: ", sentence),
                 PositionOf(*step.op->node),
                 "load the model with dtype float32, or explain it with compute_dtype=float32");
  }
  return Error(absl::StatusCode::kInvalidArgument, absl::StrCat("the model fails at ", name, ": ", sentence),
               PositionOf(*step.op->node));
}

// Runs a function of a node. What LibTorch throws is said with the node; errors of Addend's own pass through.
template <typename Function>
auto RunAt(const Step& step, const Function& function) {
  try {
    return function();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw FailsAt(step, error);
  }
}

// One run of the model's graph or of a function.
class BodyRun : public Surroundings {
 public:
  BodyRun(Shared* shared, const BodyPlan& body, FunctionAttributes attributes)
      : shared_(*shared), body_(*body.body), attributes_(std::move(attributes)), values_(body_.values.size()) {}

  const Attribute* FunctionAttribute(absl::string_view name) const override {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : found->second;
  }

  const Datum& ConstantAt(size_t number) const override { return shared_.constants[number]; }

  const Value& ValueAt(int number) const override { return body_.values[static_cast<size_t>(number)]; }

  // Values have one number in all graphs of a body, so that graphs inside find those of graphs around them.
  std::vector<Datum> RunGraph(const GraphPlan& plan, std::vector<Datum> inputs) const override {
    const std::vector<int>& numbers = plan.graph->inputs;
    if (inputs.size() != numbers.size()) {
      throw InvalidArgument(
          absl::StrCat("a graph inside the model takes ", numbers.size(), " inputs and is given ", inputs.size()));
    }
    for (size_t k = 0; k < inputs.size(); ++k) At(numbers[k]) = std::move(inputs[k]);
    for (const auto& [value, constant] : plan.constants) At(value) = shared_.constants[constant];
    for (const Step& step : plan.steps) {
      RunStep(step);
      for (const int value : step.dead) At(value) = Datum();
    }
    std::vector<Datum> outputs;
    outputs.reserve(plan.outputs.size());
    for (const int value : plan.outputs) outputs.push_back(At(value));
    for (const int value : plan.dead) At(value) = Datum();
    return outputs;
  }

 private:
  Datum& At(int value) const { return values_[static_cast<size_t>(value)]; }

  std::vector<Datum> InputsOf(const Step& step) const {
    std::vector<Datum> inputs;
    inputs.reserve(step.op->inputs.size());
    for (const int value : step.op->inputs) inputs.push_back(value == kNoValue ? Datum() : At(value));
    return inputs;
  }

  void RunStep(const Step& step) const {
    if (--shared_.nodes_left < 0) {
      throw Unimplemented(absl::StrCat("the loops of the model run more than ", shared_.most_nodes,
                                       " nodes, which is more than is supported; the last was ",
                                       NameOf(*step.op->node)));
    }
    std::vector<Datum> results = ResultsOf(step);
    const std::vector<int>& outputs = step.op->outputs;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k] == kNoValue) continue;
      if (k >= results.size()) {
        throw Unimplemented(absl::StrCat(NameOf(*step.op->node), ": output ", k, " is not supported"));
      }
      At(outputs[k]) = std::move(results[k]);
    }
  }

  std::vector<Datum> ResultsOf(const Step& step) const {
    const std::vector<Datum> inputs = InputsOf(step);
    if (step.row == nullptr) return Call(step, inputs);
    const bool is_known = IsKnown(*step.row, inputs);
    const PlaceScope place(&step.place);
    std::optional<TracingPause> pause;
    if (is_known) pause.emplace();
    return RunAt(step, [&] {
      const Context context(step, inputs, is_known, shared_.placement, *this);
      std::vector<Datum> results = step.row->function()(context).Take(is_known, context.descent());
      HandOnIntegers(inputs, step.row->kept_results(), &results);
      return results;
    });
  }

  std::vector<Datum> Call(const Step& step, const std::vector<Datum>& inputs) const {
    const BodyPlan& body = shared_.plan.functions[static_cast<size_t>(step.op->function)];
    FunctionAttributes attributes;
    for (const Attribute& attribute : body.defaults) attributes[attribute.name] = &attribute;
    for (const Attribute& attribute : step.attributes) {
      const Attribute* given = attribute.reference.empty() ? &attribute : FunctionAttribute(attribute.reference);
      if (given != nullptr) attributes[attribute.name] = given;
    }
    std::vector<Datum> all = inputs;
    all.resize(body.body->graph.inputs.size());  // trailing ones may be left out
    return BodyRun(&shared_, body, std::move(attributes)).RunGraph(body.graph, std::move(all));
  }

  Shared& shared_;
  const Body& body_;
  const FunctionAttributes attributes_;
  mutable std::vector<Datum> values_;  // graphs inside run within an operator, which does not see that
};

// Looks up constants for nodes that make a tensor of them before the model runs.
class BeforeRun : public Surroundings {
 public:
  BeforeRun(const Plan& plan, const std::vector<Datum>& constants) : plan_(plan), constants_(constants) {}

  const Attribute* FunctionAttribute(absl::string_view /*name*/) const override { return nullptr; }
  const Datum& ConstantAt(size_t number) const override { return constants_[number]; }
  const Value& ValueAt(int number) const override { return plan_.model.body.values[static_cast<size_t>(number)]; }
  std::vector<Datum> RunGraph(const GraphPlan& /*graph*/, std::vector<Datum> /*inputs*/) const override {
    throw Internal("a node runs a graph before the model runs");
  }

 private:
  const Plan& plan_;
  const std::vector<Datum>& constants_;
};

// Makes the tensors that nodes make once.
void AddMadeOnce(const Plan& plan, const Placement& placement, std::vector<Datum>* constants) {
  const TracingPause pause;
  const BeforeRun surroundings(plan, *constants);
  const auto add = [&](const Step& step) {
    if (!step.made_once) return;
    std::vector<Datum> inputs;
    for (const std::optional<size_t>& constant : step.constant_inputs) {
      inputs.push_back(constant ? (*constants)[*constant] : Datum());
    }
    (*constants)[*step.made_once] = RunAt(step, [&] {
      const Context context(step, inputs, /*is_known=*/false, placement, surroundings);
      return Datum::Of(step.row->make_once()(context), Descent::kConstants);
    });
  };
  ForEachStep(plan.body.graph, add);
  for (const BodyPlan& function : plan.functions) ForEachStep(function.graph, add);
}

}  // namespace

std::vector<Datum> ConstantsOf(const Plan& plan, const Placement& placement, bool copy) {
  std::vector<Datum> constants;
  constants.reserve(plan.constants.size());
  for (const ConstantTensor& constant : plan.constants) {
    constants.push_back(constant.tensor.defined() ? placement.ConstantOf(constant.tensor, copy) : Datum());
    constants.back().integers = constant.integers;
  }
  AddMadeOnce(plan, placement, &constants);
  return constants;
}

std::vector<Datum> RunPlan(const Plan& plan, const std::vector<Datum>& constants, const Placement& placement,
                           std::vector<Datum> inputs, int64_t most_nodes) {
  Shared shared{plan, constants, placement, most_nodes, most_nodes};
  return BodyRun(&shared, plan.body, {}).RunGraph(plan.body.graph, std::move(inputs));
}

}  // namespace addend::onnx

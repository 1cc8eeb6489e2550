#include "core/onnx/plan.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/onnx/computed_part.h"
#include "core/onnx/context.h"
#include "core/onnx/fuse_gelu.h"
#include "core/onnx/node_name.h"
#include "core/onnx/node_place.h"
#include "core/onnx/tensor_data.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

// Looks up tensors of the file for nodes that are prepared.
class FileOnly : public Surroundings {
 public:
  explicit FileOnly(const Plan& plan) : plan_(plan) {}

  const Attribute* FunctionAttribute(absl::string_view /*name*/) const override { return nullptr; }
  const Datum& ConstantAt(size_t number) const override {
    Datum& datum = constants_[number];
    if (datum.IsNone()) datum = Datum::Known(plan_.constants[number].tensor, Descent::kConstants);
    return datum;
  }
  const Value& ValueAt(int number) const override { return plan_.model.body.values[static_cast<size_t>(number)]; }
  std::vector<Datum> RunGraph(const GraphPlan& /*graph*/, std::vector<Datum> /*inputs*/) const override {
    throw Internal("a node runs a graph before the model runs");
  }

 private:
  const Plan& plan_;
  mutable std::map<size_t, Datum> constants_;
};

class Planner {
 public:
  explicit Planner(Plan* plan) : plan_(*plan), budget_(plan->model.proto->file->budget) {}

  void PlanAll() {
    plan_.functions.resize(plan_.model.functions.size());
    plan_.body.body = &plan_.model.body;
    constants_.clear();
    plan_.body.graph = GraphOf(plan_.model.body.graph, plan_.model.body, /*is_main=*/true, MainPart());
    // Functions are planned when a call is met, so that those which nothing calls refuse nothing.
    while (!called_.empty()) {
      const size_t number = called_.back();
      called_.pop_back();
      PlanFunction(number);
    }
    for (const auto& [note, nodes] : notes_) plan_.notes.push_back(absl::StrCat(note, ": ", Listed(nodes)));
  }

 private:
  ComputedPart MainPart() {
    // Tables by value, at most two.
    budget_.Take(plan_.model.body.values.size() * 2 * weights::kMapNodeCost);
    ComputedPart part = ComputedPartOf(plan_.model.body);
    if (part.left_out.empty()) return part;
    const std::string names = Listed(part.left_out);
    if (part.outputs.empty()) {
      throw Unimplemented(absl::StrCat("the model gives texts or maps only (", names,
                                       "), and no numbers that could be explained; add the scores to its outputs"));
    }
    plan_.notes.push_back(absl::StrCat("outputs of the model are left out, because they are texts or maps: ", names));
    return part;
  }

  // A graph inside, or that of a function, is computed as a whole.
  GraphPlan GraphOf(const Graph& graph, const Body& body) {
    ComputedPart whole;
    whole.outputs = graph.outputs;
    return GraphOf(graph, body, /*is_main=*/false, whole);
  }

  void PlanFunction(size_t number) {
    const Function& function = plan_.model.functions[number];
    BodyPlan& body = plan_.functions[number];
    for (const AttributeProto& attribute : function.proto->attribute_defaults) {
      if (!attribute.graphs().empty()) {
        throw Unimplemented(absl::StrCat("the function ", Quoted(std::string(function.proto->name)),
                                         " has an attribute that is a graph, which is not supported"));
      }
      body.defaults.push_back(AttributeOf(attribute, /*graph=*/nullptr));
    }
    constants_.clear();
    body.graph = GraphOf(function.body.graph, function.body);
  }

  size_t AddConstant(const TensorProto& proto, absl::string_view name) {
    const TensorData data = ReadTensorData(proto, *plan_.model.proto, &plan_.files);
    budget_.TakeElement(plan_.constants);
    const std::string where = PlaceText(proto, *plan_.model.proto);
    at::Tensor tensor = ToTensor(Widened(data, where, &budget_), where, &budget_);
    plan_.constants.push_back({std::move(tensor), name, ScalarTypeOf(data.type) ? DataType::kUndefined : data.type});
    return plan_.constants.size() - 1;
  }

  // `graph`: the number of the first graph of the node that no attribute before this one has; null: there are none.
  Attribute AttributeOf(const AttributeProto& proto, int* graph) {
    budget_.Take(3 * sizeof(Attribute));
    Attribute attribute;
    attribute.name = proto.name;
    attribute.reference = proto.ref_attr_name;
    attribute.type = proto.type;
    attribute.f = proto.f;
    attribute.i = proto.i;
    budget_.Take(proto.s.size());
    attribute.s = std::string(proto.s);
    if (proto.type == AttributeType::kFloats) attribute.floats = proto.list.Floats();
    if (proto.type == AttributeType::kInts) attribute.ints = proto.list.Integers();
    if (proto.type == AttributeType::kStrings) {
      const std::vector<absl::string_view> texts = proto.list.Texts();
      budget_.Take(texts.size() * sizeof(std::string));
      attribute.strings.reserve(texts.size());
      for (const absl::string_view text : texts) {
        budget_.Take(text.size());
        attribute.strings.emplace_back(text);
      }
    }
    for (const TensorProto& tensor : proto.tensors()) attribute.tensors.push_back(AddConstant(tensor, {}));
    if (graph != nullptr && !proto.graphs().empty()) {
      attribute.graph = *graph;
      *graph += static_cast<int>(proto.graphs().size());
    }
    return attribute;
  }

  GraphPlan GraphOf(const Graph& graph, const Body& body, bool is_main, const ComputedPart& part) {
    GraphPlan plan;
    plan.graph = &graph;
    plan.outputs = part.outputs;
    budget_.Take(graph.initializers.size() * sizeof(plan.constants[0]));
    for (const Initializer& initializer : graph.initializers) {
      if (part.values.contains(initializer.value)) continue;
      const absl::string_view name = is_main ? initializer.tensor->name : absl::string_view();
      plan.constants.emplace_back(initializer.value, AddConstant(*initializer.tensor, name));
      budget_.Take(weights::kMapNodeCost);
      constants_[initializer.value] = plan.constants.back().second;
    }
    budget_.Take(graph.operators.size() * sizeof(Step));
    plan.steps.reserve(graph.operators.size());
    for (size_t k = 0; k < graph.operators.size(); ++k) {
      if (!part.operators.contains(static_cast<int>(k))) plan.steps.push_back(StepOf(graph.operators[k], body));
    }
    const auto constant = [&](int value) {
      const auto found = constants_.find(value);
      return found == constants_.end() ? nullptr : &plan_.constants[found->second].tensor;
    };
    FuseGelu(constant, &plan_.own_operators, &plan);
    FindLastUses(graph, &plan);
    return plan;
  }

  Step StepOf(const Operator& op, const Body& body) {
    Step step;
    step.op = &op;
    if (op.function >= 0) {
      const auto number = static_cast<size_t>(op.function);
      if (plan_.functions[number].body == nullptr) {
        plan_.functions[number].body = &plan_.model.functions[number].body;
        called_.push_back(number);
      }
    } else {
      step.row = &Operators().Find(op);
      step.row->Check(*op.node);
      if (!step.row->note().empty()) {
        budget_.Take(kMostQuoted + weights::kMapNodeCost);
        notes_[step.row->note()].push_back(NameOf(*op.node));
      }
    }
    int next_graph = 0;
    const uint64_t left = budget_.left();
    for (const AttributeProto& attribute : op.node->attributes) {
      step.attributes.push_back(AttributeOf(attribute, &next_graph));
    }
    if (op.domain.empty() && op.node->op_type == "Constant") AddConstantNode(step);
    if (step.row != nullptr && step.row->prepare() != nullptr) Prepare(left, &step);
    if (step.row != nullptr && step.row->make_once() != nullptr) PlanMadeOnce(&step);
    for (const Graph& inner : op.graphs) step.graphs.push_back(GraphOf(inner, body));
    budget_.Take(sizeof(SourceFrame) + op.node->op_type.size() + kMostQuoted);
    step.place = PlaceOf(*op.node);
    return step;
  }

  // Lets a node make tensors of its attributes. `left`: of the budget, before these were decoded.
  void Prepare(uint64_t left, Step* step) {
    for (const Attribute& attribute : step->attributes) {
      if (attribute.reference.empty()) continue;
      throw Unimplemented(absl::StrCat(NameOf(*step->op->node), " takes its attribute ",
                                       Quoted(std::string(attribute.name)),
                                       " from a call of the function around it, which is not supported"));
    }
    const Placement as_in_file;
    const FileOnly file(plan_);
    const std::vector<Datum> no_inputs;
    const std::vector<at::Tensor> tensors =
        step->row->prepare()(Context(*step, no_inputs, /*is_known=*/true, as_in_file, file));
    std::vector<Attribute> kept;
    uint64_t kept_bytes = 0;
    for (Attribute& attribute : step->attributes) {
      for (const size_t constant : attribute.tensors) {
        kept_bytes += weights::kTensorCost + plan_.constants[constant].tensor.nbytes();
      }
      const std::vector<std::string>& once = step->row->read_once();
      if (std::find(once.begin(), once.end(), attribute.name) == once.end()) kept.push_back(std::move(attribute));
    }
    step->attributes = std::move(kept);
    budget_.GiveBackTo(left);
    budget_.Take(kept_bytes);
    for (const Attribute& attribute : step->attributes) {
      budget_.Take(3 * sizeof(Attribute) + attribute.s.size() + sizeof(float) * attribute.floats.size() +
                   sizeof(int64_t) * attribute.ints.size());
      for (const std::string& text : attribute.strings) budget_.Take(3 * sizeof(std::string) + text.size());
    }
    for (const at::Tensor& tensor : tensors) {
      budget_.Take(weights::kTensorCost + tensor.nbytes());
      budget_.TakeElement(plan_.constants);
      step->prepared.push_back(plan_.constants.size());
      ConstantTensor constant;
      constant.tensor = tensor;
      plan_.constants.push_back(std::move(constant));
    }
  }

  // Notes the value of a node that gives a tensor of the file.
  void AddConstantNode(const Step& step) {
    if (step.attributes.size() != 1 || step.attributes[0].tensors.size() != 1 || step.op->outputs.size() != 1) return;
    budget_.Take(weights::kMapNodeCost);
    constants_[step.op->outputs[0]] = step.attributes[0].tensors[0];
  }

  // Plans the tensor that a node makes once, where its inputs behind the first are constants.
  void PlanMadeOnce(Step* step) {
    const bool refers = std::any_of(step->attributes.begin(), step->attributes.end(),
                                    [](const Attribute& attribute) { return !attribute.reference.empty(); });
    if (refers) return;
    std::vector<std::optional<size_t>> inputs(step->op->inputs.size());
    for (size_t k = 1; k < inputs.size(); ++k) {
      const int value = step->op->inputs[k];
      if (value == kNoValue) continue;
      const auto found = constants_.find(value);
      if (found == constants_.end()) return;
      inputs[k] = found->second;
    }
    budget_.Take(inputs.size() * sizeof(inputs[0]));
    budget_.TakeElement(plan_.constants);
    step->constant_inputs = std::move(inputs);
    step->made_once = plan_.constants.size();
    plan_.constants.emplace_back();
  }

  // A graph frees its own values alone: those of graphs around it may be read by a later turn of a loop.
  void FindLastUses(const Graph& graph, GraphPlan* plan) {
    absl::flat_hash_set<int> kept;  // seen from the end on, or given back
    absl::flat_hash_set<int> own;
    const auto add_own = [&](int value) {
      budget_.Take(weights::kMapNodeCost);
      if (value != kNoValue) own.insert(value);
    };
    for (const int value : graph.inputs) add_own(value);
    for (const Initializer& initializer : graph.initializers) add_own(initializer.value);
    for (const Operator& op : graph.operators) {
      for (const int value : op.outputs) add_own(value);
    }
    for (const int value : plan->outputs) {
      if (own.contains(value) && kept.insert(value).second) plan->dead.push_back(value);
    }
    for (size_t k = plan->steps.size(); k-- > 0;) {
      Step& step = plan->steps[k];
      const auto use = [&](int value) {
        if (own.contains(value) && kept.insert(value).second) step.dead.push_back(value);
      };
      for (const int value : step.op->inputs) use(value);
      for (const Graph& inner : step.op->graphs) {
        for (const int value : inner.captured) use(value);
      }
      for (const int value : step.op->outputs) use(value);
    }
    for (const int value : own) {
      if (!kept.contains(value)) plan->dead.push_back(value);
    }
  }

  Plan& plan_;
  weights::MemoryBudget& budget_;
  absl::flat_hash_map<int, size_t> constants_;             // of the body that is planned: their numbers by value
  std::vector<size_t> called_;                             // functions that are still to be planned
  std::map<std::string, std::vector<std::string>> notes_;  // nodes, by what has to be known of them
};

}  // namespace

std::shared_ptr<const Plan> MakePlan(CheckedModel model, ExternalFiles files) {
  auto plan = std::make_shared<Plan>();
  plan->model = std::move(model);
  plan->files = std::move(files);
  plan->notes = plan->model.notes;
  Planner(plan.get()).PlanAll();
  return plan;
}

}  // namespace addend::onnx

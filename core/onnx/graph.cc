#include "core/onnx/graph.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/onnx/node_name.h"

namespace addend::onnx {
namespace {

constexpr int64_t kFirstMergedIrVersion = 4;  // before it each initializer had to be an input too
constexpr absl::string_view kMachineLearning = "ai.onnx.ml";

std::string Shown(absl::string_view text) { return Quoted(std::string(text)); }

// The default domain has two names.
absl::string_view DomainOf(absl::string_view name) { return name == "ai.onnx" ? absl::string_view() : name; }

std::string NameOfDomain(absl::string_view domain) { return domain.empty() ? "ai.onnx" : Shown(domain); }

using Versions = absl::flat_hash_map<absl::string_view, int64_t>;

// Domain, name and overload.
using FunctionName = std::tuple<absl::string_view, absl::string_view, absl::string_view>;

// The model and its functions, with which all bodies are checked.
struct Context {
  const ModelProto* model = nullptr;
  absl::flat_hash_map<FunctionName, int> functions;

  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgument(absl::StrCat(model->file->name, ": ", what));
  }
  weights::MemoryBudget& budget() const { return model->file->budget; }
};

// The operator sets of a model or a function. Of two of one domain the higher counts.
Versions VersionsOf(const Context& context, const std::vector<OperatorSetIdProto>& sets, const std::string& whose) {
  Versions versions;
  for (const OperatorSetIdProto& set : sets) {
    const absl::string_view domain = DomainOf(set.domain);
    if (set.version < 1) {
      context.Fail(absl::StrCat(whose, " imports version ", set.version, " of the operators of ", NameOfDomain(domain),
                                ", which is none"));
    }
    context.budget().Take(weights::kMapNodeCost);
    int64_t& version = versions[domain];
    version = std::max(version, set.version);
  }
  return versions;
}

// --------------------------------------------------------------------------------------------------------- one body

// Resolves the names of the model's graph or of a function.
class Resolver {
 public:
  // `function`: null for the model's graph. `whose` names it in messages.
  Resolver(const Context& context, const Versions& versions, const FunctionProto* function, std::string whose)
      : context_(context), versions_(versions), function_(function), whose_(std::move(whose)) {
    if (function == nullptr) return;
    for (const absl::string_view name : function->attributes) DeclareAttribute(name);
    for (const AttributeProto& attribute : function->attribute_defaults) {
      if (!attribute.ref_attr_name.empty()) {
        context_.Fail(absl::StrCat(whose_, " has a default for ", Shown(attribute.name), " that refers to another"));
      }
      DeclareAttribute(attribute.name);
    }
  }

  Body ResolveGraph(const GraphProto& proto, std::vector<std::string>* fixed_inputs) {
    body_.graph = GraphOf(proto, fixed_inputs);
    return std::move(body_);
  }

  Body ResolveFunction() {
    Scope scope;
    scopes_.push_back(&scope);
    Graph& graph = body_.graph;
    scope.graph = &graph;
    Reserve(function_->inputs.size(), &graph.inputs);
    for (const absl::string_view name : function_->inputs) {
      graph.inputs.push_back(Define(name, nullptr, absl::StrCat("an input of ", whose_)));
    }
    ResolveNodes(function_->nodes, graph);
    Reserve(function_->outputs.size(), &graph.outputs);
    for (const absl::string_view name : function_->outputs) {
      graph.outputs.push_back(Output(name, whose_));
    }
    scopes_.pop_back();
    return std::move(body_);
  }

 private:
  // A value by its name, and in which of the open graphs it is.
  struct Known {
    int value = 0;
    size_t depth = 0;
  };
  // A graph whose nodes are being resolved.
  struct Scope {
    Graph* graph = nullptr;
    std::vector<absl::string_view> names;  // that were defined in it
    absl::flat_hash_set<int> captured;
    absl::flat_hash_map<absl::string_view, const TypeProto*> types;
  };

  [[noreturn]] void Fail(const std::string& what) const { context_.Fail(what); }

  template <typename T>
  void Reserve(size_t count, std::vector<T>* vector) const {
    context_.budget().Take(count * sizeof(T));
    vector->reserve(count);
  }

  void DeclareAttribute(absl::string_view name) {
    context_.budget().Take(weights::kMapNodeCost);
    if (name.empty() || !attributes_.insert(name).second) {
      Fail(absl::StrCat(whose_, " declares the attribute ", Shown(name), " twice, or without a name"));
    }
  }

  // Makes the number of a value; `what` defines it: "an input of the graph".
  int Define(absl::string_view name, const TypeProto* type, const std::string& what) {
    if (name.empty()) Fail(absl::StrCat(what, " has no name"));
    context_.budget().Take(3 * (sizeof(Value) + sizeof(absl::string_view)) + 2 * weights::kMapNodeCost);
    Scope& scope = *scopes_.back();
    const Known known{static_cast<int>(body_.values.size()), scopes_.size()};
    if (body_.values.size() >= static_cast<size_t>(std::numeric_limits<int>::max())) Fail("has too many values");
    const auto [found, is_new] = known_.emplace(name, known);
    if (!is_new) {
      Fail(absl::StrCat(what, " is named ", Shown(name), ", as a value ",
                        found->second.depth == scopes_.size() ? "of the same graph" : "of a graph around it",
                        " is; each name may be given once"));
    }
    scope.names.push_back(name);
    if (type == nullptr) {
      const auto told = scope.types.find(name);
      if (told != scope.types.end()) type = told->second;
    }
    body_.values.push_back({name, type});
    return known.value;
  }

  // The number of a value that is read. `who` says who reads it, for messages.
  template <typename Who>
  int Use(absl::string_view name, const Who& who) {
    const auto found = known_.find(name);
    if (found == known_.end()) {
      Fail(absl::StrCat(who(), " reads ", Shown(name),
                        ", which nothing before it makes; the nodes of a graph stand in ",
                        "the order in which they run, and do not form cycles"));
    }
    const Known known = found->second;
    // All graphs between the one that has it and the one that reads it.
    for (size_t depth = known.depth; depth < scopes_.size(); ++depth) {
      Scope& scope = *scopes_[depth];
      if (!scope.captured.insert(known.value).second) continue;
      context_.budget().Take(3 * sizeof(int) + weights::kMapNodeCost);
      scope.graph->captured.push_back(known.value);
    }
    return known.value;
  }

  // The number of an output of a graph or function.
  int Output(absl::string_view name, const std::string& what) {
    if (name.empty()) Fail(absl::StrCat("an output of ", what, " has no name"));
    if (known_.count(name) == 0) Fail(absl::StrCat("the output ", Shown(name), " of ", what, " is made by no node"));
    return Use(name, [&] { return what; });
  }

  // `fixed_inputs` gets the names of inputs that have an initializer; null for graphs inside, which may have none.
  Graph GraphOf(const GraphProto& proto, std::vector<std::string>* fixed_inputs) {
    Graph graph;
    Scope scope;
    scope.graph = &graph;
    scopes_.push_back(&scope);
    const std::string what = proto.name.empty() ? whose_ : absl::StrCat("the graph ", Shown(proto.name));
    for (const ValueInfoProto& info : proto.value_infos) RememberType(info, scope);
    for (const ValueInfoProto& info : proto.outputs) RememberType(info, scope);
    DefineInputs(proto, what, fixed_inputs, graph);
    ResolveNodes(proto.nodes, graph);
    Reserve(proto.outputs.size(), &graph.outputs);
    for (const ValueInfoProto& output : proto.outputs) {
      graph.outputs.push_back(Output(output.name, what));
    }
    for (const absl::string_view name : scope.names) known_.erase(name);
    scopes_.pop_back();
    return graph;
  }

  void RememberType(const ValueInfoProto& info, Scope& scope) const {
    context_.budget().Take(2 * weights::kMapNodeCost);
    scope.types.emplace(info.name, &info.type);
  }

  void DefineInputs(const GraphProto& proto, const std::string& what, std::vector<std::string>* fixed_inputs,
                    Graph& graph) {
    // An initializer may be an input too, whose default it then is.
    absl::flat_hash_map<absl::string_view, const TypeProto*> defaults;
    context_.budget().Take(proto.initializers.size() * 2 * weights::kMapNodeCost);
    for (const TensorProto& tensor : proto.initializers) defaults.emplace(tensor.name, nullptr);
    Reserve(proto.inputs.size(), &graph.inputs);
    for (const ValueInfoProto& input : proto.inputs) {
      const auto found = defaults.find(input.name);
      if (found == defaults.end()) {
        graph.inputs.push_back(Define(input.name, &input.type, absl::StrCat("an input of ", what)));
        continue;
      }
      if (fixed_inputs == nullptr) {
        Fail(absl::StrCat("the input ", Shown(input.name), " of ", what, " has an initializer, which inputs of graphs ",
                          "inside of others may not have"));
      }
      if (found->second != nullptr) Fail(absl::StrCat(what, " has the input ", Shown(input.name), " twice"));
      found->second = &input.type;
      context_.budget().Take(3 * sizeof(std::string) + input.name.size());
      fixed_inputs->emplace_back(input.name);
    }
    Reserve(proto.initializers.size(), &graph.initializers);
    for (const TensorProto& tensor : proto.initializers) {
      const int value = Define(tensor.name, defaults[tensor.name], absl::StrCat("an initializer of ", what));
      graph.initializers.push_back({value, &tensor});
    }
  }

  void ResolveNodes(const std::vector<NodeProto>& nodes, Graph& graph) {
    Reserve(nodes.size(), &graph.operators);
    for (const NodeProto& node : nodes) graph.operators.push_back(OperatorOf(node));
  }

  Operator OperatorOf(const NodeProto& node) {
    Operator op;
    op.node = &node;
    op.domain = DomainOf(node.domain);
    const auto who = [&] { return NameOf(node); };
    CheckAttributes(node);
    FindOperator(node, op);
    Reserve(node.inputs.size(), &op.inputs);
    for (const absl::string_view name : node.inputs) {
      op.inputs.push_back(name.empty() ? kNoValue : Use(name, who));
    }
    for (const AttributeProto& attribute : node.attributes) {
      for (const GraphProto& graph : attribute.graphs()) {
        context_.budget().Take(3 * sizeof(Graph));
        op.graphs.push_back(GraphOf(graph, /*fixed_inputs=*/nullptr));
      }
    }
    Reserve(node.outputs.size(), &op.outputs);
    for (const absl::string_view name : node.outputs) {
      op.outputs.push_back(name.empty() ? kNoValue : Define(name, nullptr, absl::StrCat("an output of ", who())));
    }
    return op;
  }

  void FindOperator(const NodeProto& node, Operator& op) const {
    const auto function = context_.functions.find(FunctionName(op.domain, node.op_type, node.overload));
    if (function != context_.functions.end()) {
      op.function = function->second;
      CheckCall(node, context_.model->functions[static_cast<size_t>(op.function)]);
      return;
    }
    if (!node.overload.empty()) {
      Fail(absl::StrCat(NameOf(node), " calls the overload ", Shown(node.overload), " of a function, which the model ",
                        "does not hold"));
    }
    const auto version = versions_.find(op.domain);
    if (version == versions_.end()) {
      Fail(absl::StrCat(NameOf(node), " is an operator of the domain ", NameOfDomain(op.domain), ", which ", whose_,
                        " does not import"));
    }
    op.version = version->second;
  }

  void CheckCall(const NodeProto& node, const FunctionProto& function) const {
    const auto check = [&](size_t given, size_t most, const char* what) {
      if (given <= most) return;
      Fail(absl::StrCat(NameOf(node), " has ", given, " ", what, ", and the function ", Shown(function.name), " has ",
                        most));
    };
    check(node.inputs.size(), function.inputs.size(), "inputs");
    check(node.outputs.size(), function.outputs.size(), "outputs");
  }

  void CheckAttributes(const NodeProto& node) const {
    const uint64_t left = context_.budget().left();
    context_.budget().Take(node.attributes.size() * weights::kMapNodeCost);
    absl::flat_hash_set<absl::string_view> names;
    for (const AttributeProto& attribute : node.attributes) {
      if (!names.insert(attribute.name).second) {
        Fail(absl::StrCat(NameOf(node), " has the attribute ", Shown(attribute.name), " twice"));
      }
      if (attribute.ref_attr_name.empty()) continue;
      if (function_ == nullptr) {
        Fail(absl::StrCat(NameOf(node), " has the attribute ", Shown(attribute.name),
                          " refer to an attribute of a function, and stands in none"));
      }
      if (attributes_.count(attribute.ref_attr_name) == 0) {
        Fail(absl::StrCat(NameOf(node), " refers to the attribute ", Shown(attribute.ref_attr_name), ", which ", whose_,
                          " does not declare"));
      }
    }
    context_.budget().GiveBackTo(left);
  }

  const Context& context_;
  const Versions& versions_;
  const FunctionProto* function_;
  const std::string whose_;
  Body body_;
  absl::flat_hash_map<absl::string_view, Known> known_;
  std::vector<Scope*> scopes_;                         // the open graphs, outermost first
  absl::flat_hash_set<absl::string_view> attributes_;  // that the function declares
};

// ------------------------------------------------------------------------------------------------- what calls expand
// to

// Counts the nodes of bodies with functions in place of their calls, and how deep these go.
class Counter {
 public:
  Counter(const Context& context, CheckedModel* model)
      : context_(context), model_(*model), states_(model->functions.size(), State::kNew) {}

  void CountAll() {
    for (size_t k = 0; k < model_.functions.size(); ++k) CountFunction(k, /*node=*/nullptr, /*depth=*/1);
    model_.num_nodes = Count(model_.body.graph, /*depth=*/0).num_nodes;
  }

 private:
  enum class State { kNew, kOpen, kDone };
  struct Extent {
    int64_t num_nodes = 0;
    int depth = 0;  // of calls
  };

  // `depth`: of the calls around it.
  Extent Count(const Graph& graph, int depth) {
    Extent extent;
    for (const Operator& op : graph.operators) {
      Add(op.function < 0 ? Extent{1, 0} : CountFunction(static_cast<size_t>(op.function), op.node, depth + 1),
          &extent);
      for (const Graph& inner : op.graphs) Add(Count(inner, depth), &extent);
    }
    return extent;
  }

  // `node`: which calls it; null for none.
  Extent CountFunction(size_t number, const NodeProto* node, int depth) {
    Function& function = model_.functions[number];
    if (states_[number] == State::kOpen) {
      context_.Fail(absl::StrCat(NameOf(*node), " calls the function ", Shown(function.proto->name),
                                 ", in which it runs; functions may not call themselves"));
    }
    if (states_[number] == State::kNew && depth <= kDeepestCall) {
      states_[number] = State::kOpen;
      const Extent inside = Count(function.body.graph, depth);
      function.num_nodes = inside.num_nodes;
      function.depth = inside.depth + 1;
      states_[number] = State::kDone;
    }
    if (depth > kDeepestCall || function.depth > kDeepestCall) {
      context_.Fail(absl::StrCat("the function ", Shown(function.proto->name), " is in calls more than ", kDeepestCall,
                                 " functions deep, which is more than is supported"));
    }
    return {function.num_nodes, function.depth};
  }

  void Add(const Extent& part, Extent* whole) const {
    whole->num_nodes += part.num_nodes;
    whole->depth = std::max(whole->depth, part.depth);
    if (whole->num_nodes > kMostNodes) {
      context_.Fail(absl::StrCat("the model has more than ", kMostNodes, " nodes with functions in place of their ",
                                 "calls, which is more than is supported"));
    }
  }

  const Context& context_;
  CheckedModel& model_;
  std::vector<State> states_;
};

void FindFunctions(Context& context) {
  for (size_t k = 0; k < context.model->functions.size(); ++k) {
    const FunctionProto& function = context.model->functions[k];
    const absl::string_view domain = DomainOf(function.domain);
    // One reader would take the standard's operator and another one the model's.
    if (domain.empty() || domain == kMachineLearning) {
      context.Fail(absl::StrCat("the function ", Shown(function.name), " has the domain ", NameOfDomain(domain),
                                ", whose operators a model cannot define"));
    }
    context.budget().Take(2 * weights::kMapNodeCost);
    if (!context.functions.emplace(FunctionName(domain, function.name, function.overload), static_cast<int>(k))
             .second) {
      context.Fail(absl::StrCat("the model has the function ", Shown(domain), ".", Shown(function.name), " twice"));
    }
  }
}

void CheckVersion(const Context& context, CheckedModel* model) {
  const int64_t version = context.model->ir_version;
  if (version < 1) context.Fail(absl::StrCat("the IR version is ", version, ", which is none; the file is damaged"));
  if (version < kOldestIrVersion) {
    throw Unimplemented(absl::StrCat(context.model->file->name, ": the file is of IR version ", version,
                                     "; versions from ", kOldestIrVersion,
                                     " on (2017) are supported: convert it with onnx.version_converter"));
  }
  if (version > kNewestIrVersion) {
    model->notes.push_back(absl::StrCat("the model's file is of IR version ", version,
                                        "; the newest that this version ", "of Addend knows is ", kNewestIrVersion));
  }
  if (context.model->opset_imports.empty()) context.Fail("the model imports no operator set; the file is truncated");
}

}  // namespace

CheckedModel CheckModel(ModelProto proto) {
  CheckedModel model;
  model.proto = std::make_shared<const ModelProto>(std::move(proto));
  Context context;
  context.model = model.proto.get();
  CheckVersion(context, &model);
  FindFunctions(context);
  const std::string whose = "the model";
  const Versions versions = VersionsOf(context, model.proto->opset_imports, whose);
  context.budget().Take(model.proto->functions.size() * sizeof(Function));
  model.functions.reserve(model.proto->functions.size());
  for (const FunctionProto& function : model.proto->functions) {
    const std::string name = absl::StrCat("the function ", Shown(function.name));
    const Versions own = VersionsOf(context, function.opset_imports, name);
    model.functions.push_back({&function, Resolver(context, own, &function, name).ResolveFunction()});
  }
  std::vector<std::string> fixed_inputs;
  model.body = Resolver(context, versions, /*function=*/nullptr, whose).ResolveGraph(model.proto->graph, &fixed_inputs);
  if (model.body.graph.outputs.empty()) context.Fail("the model has no outputs");
  Counter(context, &model).CountAll();
  if (!fixed_inputs.empty() && model.proto->ir_version >= kFirstMergedIrVersion) {
    model.notes.push_back(absl::StrCat("the inputs ", Listed(fixed_inputs),
                                       " have values in the model's file, and keep them: they are no inputs here"));
  }
  if (model.proto->num_training_infos > 0) {
    model.notes.push_back("the model's file also holds how it is trained, which is not used");
  }
  return model;
}

}  // namespace addend::onnx

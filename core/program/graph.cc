#include "core/program/graph.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/text.h"

namespace addend {
namespace {

std::string WithoutNamespace(const std::string& name) {
  const size_t colons = name.find("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

// The module that has a parameter: the longest of the paths before a dot in its name that is a module.
std::string ModuleOfName(const std::string& name, const std::vector<std::string>& sorted_paths) {
  for (size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    std::string path = name.substr(0, dot);
    if (std::binary_search(sorted_paths.begin(), sorted_paths.end(), path)) return path;
  }
  return "";
}

// The names of all tensors in a result, in order: `name`, then what leads to each.
void OutputNames(const Structure& structure, const std::string& name, std::vector<std::string>* names) {
  if (structure.kind == Structure::Kind::kTensor && structure.tensor >= 0) names->push_back(name);
  for (size_t k = 0; k < structure.elements.size(); ++k) {
    std::string step = absl::StrCat("[", k, "]");
    if (structure.kind == Structure::Kind::kDict) {
      const c10::IValue& key = structure.keys[k];
      if (key.isString()) step = absl::StrCat("[\"", key.toStringRef(), "\"]");
      if (key.isInt()) step = absl::StrCat("[", key.toInt(), "]");
      if (key.isDouble()) step = absl::StrCat("[", key.toDouble(), "]");
      if (key.isBool()) step = key.toBool() ? "[True]" : "[False]";
    } else if (k < structure.names.size()) {
      step = absl::StrCat(".", structure.names[k]);
    }
    OutputNames(structure.elements[k], name + step, names);
  }
}

NodeKind KindOfSource(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return NodeKind::kInput;
    case ValueKind::kParameter:
      return NodeKind::kParameter;
    case ValueKind::kBuffer:
      return NodeKind::kBuffer;
    default:
      return NodeKind::kConstant;
  }
}

}  // namespace

const char* NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kInput:
      return "input";
    case NodeKind::kParameter:
      return "parameter";
    case NodeKind::kBuffer:
      return "buffer";
    case NodeKind::kConstant:
      return "constant";
    case NodeKind::kCall:
      return "call";
    case NodeKind::kOutput:
      return "output";
  }
  return "";
}

const char* EdgeKindName(EdgeKind kind) { return kind == EdgeKind::kElements ? "elements" : "tensor"; }

Graph::Graph(std::shared_ptr<const RecordedProgram> program) : program_(std::move(program)) {
  if (program_ == nullptr) throw InvalidArgument("a graph needs a program");
  value_nodes_.assign(program_->values.size(), -1);
  AddSources();
  AddCalls();
  AddOutputs();
  Link();
}

std::string Graph::UniqueName(const std::string& name) {
  std::string unique = name;
  for (int k = 1; by_name_.count(unique) != 0; ++k) unique = absl::StrCat(name, "_", k);
  return unique;
}

void Graph::AddNode(GraphNode node) {
  node.name = UniqueName(node.name);
  by_name_.emplace(node.name, static_cast<int>(nodes_.size()));
  nodes_.push_back(std::move(node));
}

void Graph::AddSources() {
  std::vector<std::string> paths = program_->module_paths;
  std::sort(paths.begin(), paths.end());
  const auto add = [&](int value) {
    const RecordedValue& recorded = program_->values[value];
    if (value_nodes_[value] >= 0) return;
    GraphNode node;
    node.kind = KindOfSource(recorded.kind);
    node.name = recorded.name;
    node.value = value;
    const bool own = node.kind == NodeKind::kParameter || node.kind == NodeKind::kBuffer;
    if (own) node.module = ModuleOfName(recorded.name, paths);
    value_nodes_[value] = static_cast<int>(nodes_.size());
    AddNode(std::move(node));
  };
  for (const RecordedInput& input : program_->inputs) ForEachNumber(input.structure, add);
  for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter, ValueKind::kBuffer, ValueKind::kConstant}) {
    for (size_t v = 0; v < program_->values.size(); ++v) {
      if (program_->values[v].kind == kind && program_->values[v].call < 0) add(static_cast<int>(v));
    }
  }
}

void Graph::AddCalls() {
  for (size_t c = 0; c < program_->calls.size(); ++c) {
    const RecordedCall& call = program_->calls[c];
    const int index = static_cast<int>(c);
    GraphNode node;
    node.call = index;
    if (call.place >= 0) node.module = program_->places[call.place].module_path;
    std::vector<int> made;
    for (const auto* values : {&call.results, &call.written}) {
      for (const int value : *values) {
        const bool own = value >= 0 && program_->values[value].call == index;
        if (own && std::find(made.begin(), made.end(), value) == made.end()) made.push_back(value);
      }
    }
    if (made.empty()) {
      node.name = WithoutNamespace(call.op.schema().name());
    } else {
      node.name = program_->values[made[0]].name;
      if (made.size() > 1 && absl::EndsWith(node.name, ".0")) node.name.resize(node.name.size() - 2);
    }
    call_nodes_.push_back(static_cast<int>(nodes_.size()));
    AddNode(std::move(node));
    for (const TensorUse& use : call.uses) AddEdges(use, call_nodes_.back());
  }
}

void Graph::AddOutputs() {
  std::vector<std::string> names;
  OutputNames(program_->output, "output", &names);
  int output = 0;
  ForEachNumber(program_->output, [&](int value) {
    GraphNode node;
    node.kind = NodeKind::kOutput;
    node.name = names[output];
    node.value = value;
    node.output = output;
    TensorUse use;
    use.value = value;
    use.version = program_->output_versions[output];
    ++output;
    AddEdges(use, static_cast<int>(nodes_.size()));
    AddNode(std::move(node));
  });
}

void Graph::AddEdges(const TensorUse& use, int to) {
  if (use.value < 0) return;
  const RecordedValue& value = program_->values[use.value];
  GraphEdge edge;
  edge.to = to;
  edge.value = use.value;
  edge.version = use.version;
  edge.argument = use.argument;

  // Who made the tensor. A part has no maker: it lies somewhere in a storage that the first value in it brought along.
  const auto maker = [&](int number) {
    const RecordedValue& made = program_->values[number];
    return made.call >= 0 ? call_nodes_[made.call] : value_nodes_[number];
  };
  int tensor = maker(use.value);
  const bool part = tensor < 0;
  if (part && value.storage >= 0) tensor = maker(program_->storages[value.storage].value);

  int elements = tensor;
  // Writes before the call that made the value have gone through that call; tensors from outside and parts see all
  // writes.
  const int seen = part || value.call < 0 ? 0 : value.version;
  if (use.version > seen && value.storage >= 0) {
    elements = call_nodes_[program_->storages[value.storage].writers[use.version - 1]];
  }
  edge.from = elements;
  if (elements >= 0) edges_.push_back(edge);
  if (tensor >= 0 && tensor != elements) {
    edge.kind = EdgeKind::kTensor;
    edge.from = tensor;
    edges_.push_back(edge);
  }
}

void Graph::Link() {
  const size_t count = nodes_.size();
  first_incoming_.assign(count + 1, 0);
  first_outgoing_.assign(count + 1, 0);
  for (const GraphEdge& edge : edges_) {
    ++first_incoming_[edge.to + 1];
    ++first_outgoing_[edge.from + 1];
  }
  for (size_t n = 0; n < count; ++n) {
    first_incoming_[n + 1] += first_incoming_[n];
    first_outgoing_[n + 1] += first_outgoing_[n];
  }
  std::vector<int> next(first_outgoing_.begin(), first_outgoing_.end() - 1);
  outgoing_.resize(edges_.size());
  depths_.assign(count, 0);
  for (size_t e = 0; e < edges_.size(); ++e) {
    outgoing_[next[edges_[e].from]++] = static_cast<int>(e);
    // Edges are ascending by `to` and come from below it, so that depths_[from] is final.
    depths_[edges_[e].to] = std::max(depths_[edges_[e].to], depths_[edges_[e].from] + 1);
  }
}

const GraphNode& Graph::At(int node) const {
  if (node < 0 || static_cast<size_t>(node) >= nodes_.size()) {
    throw InvalidArgument(absl::StrCat("the graph has no node ", node, ", only ", nodes_.size()));
  }
  return nodes_[node];
}

std::vector<int> Graph::Incoming(int node) const {
  At(node);
  std::vector<int> edges;
  for (int e = first_incoming_[node]; e < first_incoming_[node + 1]; ++e) edges.push_back(e);
  return edges;
}

std::vector<int> Graph::Outgoing(int node) const {
  At(node);
  return {outgoing_.begin() + first_outgoing_[node], outgoing_.begin() + first_outgoing_[node + 1]};
}

std::vector<int> Graph::Parents(int node) const {
  std::vector<int> parents;
  for (const int e : Incoming(node)) parents.push_back(edges_[e].from);
  std::sort(parents.begin(), parents.end());
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  return parents;
}

std::vector<int> Graph::Children(int node) const {
  std::vector<int> children;
  for (const int e : Outgoing(node)) children.push_back(edges_[e].to);
  std::sort(children.begin(), children.end());
  children.erase(std::unique(children.begin(), children.end()), children.end());
  return children;
}

std::vector<int> Graph::Reach(int node, bool forward) const {
  At(node);
  std::vector<bool> reached(nodes_.size(), false);
  std::vector<int> open = {node};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    const auto visit = [&](int other) {
      if (reached[other]) return;
      reached[other] = true;
      open.push_back(other);
    };
    if (forward) {
      for (int k = first_outgoing_[next]; k < first_outgoing_[next + 1]; ++k) visit(edges_[outgoing_[k]].to);
    } else {
      for (int e = first_incoming_[next]; e < first_incoming_[next + 1]; ++e) visit(edges_[e].from);
    }
  }
  std::vector<int> list;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (reached[n]) list.push_back(static_cast<int>(n));
  }
  return list;
}

std::vector<int> Graph::Ancestors(int node) const { return Reach(node, false); }
std::vector<int> Graph::Descendants(int node) const { return Reach(node, true); }

std::vector<int> Graph::ByKind(NodeKind kind) const {
  std::vector<int> list;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].kind == kind) list.push_back(static_cast<int>(n));
  }
  return list;
}

std::vector<int> Graph::ByOperator(const std::string& name) const {
  std::vector<int> list;
  for (size_t c = 0; c < call_nodes_.size(); ++c) {
    const c10::FunctionSchema& schema = program_->calls[c].op.schema();
    const std::string full = FullName(schema);
    const bool same = name == full || name == schema.name() || name == WithoutNamespace(full) ||
                      name == WithoutNamespace(schema.name());
    if (same) list.push_back(call_nodes_[c]);
  }
  return list;
}

std::vector<int> Graph::ByModule(const std::string& path, bool nested) const {
  std::vector<int> list;
  const std::string inside = path.empty() ? "" : absl::StrCat(path, ".");
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const GraphNode& node = nodes_[n];
    if (node.kind != NodeKind::kCall && node.kind != NodeKind::kParameter && node.kind != NodeKind::kBuffer) continue;
    if (node.module == path || (nested && absl::StartsWith(node.module, inside))) list.push_back(static_cast<int>(n));
  }
  return list;
}

int Graph::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) throw NotFound(absl::StrCat("the graph has no node called ", OneLine(name)));
  return found->second;
}

std::vector<CallArgument> Graph::Arguments(int node) const {
  if (At(node).kind != NodeKind::kCall) return {};
  return ArgumentsOf(program_->calls[nodes_[node].call]);
}

std::vector<int> Graph::Values(int node) const {
  const GraphNode& at = At(node);
  if (at.kind != NodeKind::kCall) return {at.value};
  const RecordedCall& call = program_->calls[at.call];
  const auto& values = call.results.empty() ? call.written : call.results;
  return {values.begin(), values.end()};
}

Position Graph::PositionOf(int node) const {
  return At(node).kind == NodeKind::kCall ? addend::PositionOf(*program_, nodes_[node].call) : Position();
}

}  // namespace addend

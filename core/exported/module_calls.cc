#include "core/exported/module_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/exported/node_place.h"

namespace addend::exported {
namespace {

constexpr size_t kModel = static_cast<size_t>(-1);  // reads what it returns

// The tensors of an argument or a result, by name.
void AddTensors(const Argument& argument, std::vector<std::string>& names) {
  const bool tensor = argument.kind == Argument::Kind::kValue && argument.tag == "as_tensor";
  if (tensor && !argument.name.empty()) names.push_back(argument.name);
  for (const Argument& element : argument.elements) AddTensors(element, names);
}

void AddModules(const Graph& graph, std::set<std::string>& paths);

// The modules of the graphs that a node calls.
void AddModulesInside(const Argument& argument, std::set<std::string>& paths) {
  if (argument.graph != nullptr) AddModules(*argument.graph, paths);
  for (const Argument& element : argument.elements) AddModulesInside(element, paths);
}

void AddModules(const Graph& graph, std::set<std::string>& paths) {
  for (const Node& node : graph.nodes) {
    for (const ModulePlace& module : ModulesOf(node)) paths.insert(module.path);
    for (const NamedArgument& input : node.inputs) AddModulesInside(input.argument, paths);
  }
}

// One numbered call of a module.
struct Span {
  std::set<size_t> nodes;
  size_t depth = 0;  // how many modules are around it
};

// The only tensor that a call made and that others read; empty where there is not just one.
std::string Leaving(const Span& span, const Graph& graph,
                    const absl::flat_hash_map<std::string, std::vector<size_t>>& readers) {
  std::vector<std::string> leaving;
  for (const size_t n : span.nodes) {
    std::vector<std::string> made;
    for (const Argument& output : graph.nodes[n].outputs) AddTensors(output, made);
    for (const std::string& name : made) {
      const auto found = readers.find(name);
      if (found == readers.end()) continue;
      const bool read = std::any_of(found->second.begin(), found->second.end(),
                                    [&](size_t reader) { return span.nodes.count(reader) == 0; });
      if (read) leaving.push_back(name);
    }
  }
  return leaving.size() == 1 ? leaving[0] : "";
}

// Whether these are all calls of a module: the first, "layers.0", and those behind it, "layers.0@1".
bool AreAll(const std::string& path, const std::map<std::string, Span>& spans) {
  for (size_t k = 0; k < spans.size(); ++k) {
    if (spans.count(k == 0 ? path : absl::StrCat(path, "@", k)) == 0) return false;
  }
  return true;
}

}  // namespace

std::vector<ModuleCall> NumberedCalls(const Graph& graph, const std::vector<std::string>& returned) {
  absl::flat_hash_map<std::string, std::vector<size_t>> readers;
  std::set<std::string> elsewhere;
  std::map<std::string, std::map<std::string, Span>> calls;  // by path, then by what the file calls them
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    std::vector<std::string> read;
    for (const NamedArgument& input : node.inputs) {
      AddTensors(input.argument, read);
      AddModulesInside(input.argument, elsewhere);
    }
    for (const std::string& name : read) readers[name].push_back(n);
    size_t depth = 0;
    for (const ModulePlace& module : ModulesOf(node)) {
      Span& span = calls[module.path][module.call];
      span.nodes.insert(n);
      span.depth = depth++;
    }
  }
  for (const std::string& name : returned) readers[name].push_back(kModel);

  const bool numbered = std::any_of(calls.begin(), calls.end(), [](const auto& module) {
    return module.second.size() > 1 || module.second.begin()->first != module.first;
  });
  if (!numbered) return {};
  std::vector<std::tuple<size_t, int64_t, ModuleCall>> ordered;
  for (const auto& [path, spans] : calls) {
    const bool known = elsewhere.count(path) == 0 && AreAll(path, spans);
    for (const auto& [call, span] : spans) {
      const std::string value = known ? Leaving(span, graph, readers) : "";
      if (value.empty() && known && spans.size() == 1) continue;
      const size_t last = *span.nodes.rbegin();
      ordered.emplace_back(last, -static_cast<int64_t>(span.depth), ModuleCall{path, last, value});
    }
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<ModuleCall> in_order;
  for (auto& one : ordered) in_order.push_back(std::move(std::get<2>(one)));
  return in_order;
}

}  // namespace addend::exported

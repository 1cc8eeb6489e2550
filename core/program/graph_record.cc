#include "core/program/graph_record.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "core/program/call_arguments.h"
#include "core/program/graph_template.h"

namespace addend {
namespace {

// Modules in a box in a box: deeper ones share the last box, since a path from a file may have any length.
constexpr size_t kDeepest = 30;

Json TensorsJson(const RecordedProgram& program, const std::vector<int>& values) {
  Json list = Json::array();
  for (const int value : values) {
    list.push_back(value < 0 ? Json(nullptr) : ValueJson(program.values[value], program.values[value].version));
  }
  return list;
}

Json NodeJson(const Graph& graph, int number, const std::vector<CallNumbers>& numbers) {
  const RecordedProgram& program = graph.program();
  const GraphNode& node = graph.nodes()[number];
  Json record = {{"id", number},
                 {"kind", NodeKindName(node.kind)},
                 {"name", node.name},
                 {"module_path", node.module},
                 {"depth", graph.Depth(number)},
                 {"tensors", TensorsJson(program, graph.Values(number))}};
  if (node.kind != NodeKind::kCall) return record;
  const RecordedCall& call = program.calls[node.call];
  Json arguments = Json::array();
  for (const CallArgument& argument : graph.Arguments(number)) arguments.push_back(ArgumentJson(program, argument));
  record["call"] = node.call;
  record["operator"] = call.op.schema().name();
  record["overload"] = call.op.schema().overload_name();
  record["arguments"] = std::move(arguments);
  record["in_place"] = !call.written.empty();
  record["view"] = call.is_view;
  record["random"] = call.random;
  record["guard"] = GuardJson(program, call);
  record["frames"] = call.place < 0 ? Json::array() : FramesJson(program.places[call.place]);
  record["numbers"] = NumbersJson(numbers, node.call);
  return record;
}

// A string of the DOT language. Backslashes would be escapes to Graphviz, and '&' starts an entity of HTML.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"&", "&amp;"}}), "\"");
}

std::string Lines(const std::vector<std::string>& lines) {
  std::vector<std::string> quoted;
  for (const std::string& line : lines) {
    const std::string text = Quoted(OneLine(line));
    quoted.push_back(text.substr(1, text.size() - 2));
  }
  return absl::StrCat("\"", absl::StrJoin(quoted, "\\n"), "\"");
}

std::string NodeDot(const Graph& graph, int number) {
  const GraphNode& node = graph.nodes()[number];
  std::vector<std::string> tensors;
  for (const int value : graph.Values(number)) {
    tensors.push_back(value < 0 ? "None" : DescribeValue(graph.program().values[value]));
  }
  std::vector<std::string> lines = {node.name};
  const char* style = "shape=box, style=rounded";
  if (node.kind == NodeKind::kCall) {
    lines.push_back(FullName(graph.program().calls[node.call].op.schema()));
    style = "shape=box";
  } else if (node.kind != NodeKind::kInput && node.kind != NodeKind::kOutput) {
    style = "shape=note";
  }
  if (!tensors.empty()) lines.push_back(absl::StrJoin(tensors, ", "));
  return absl::StrCat("n", number, " [", style, ", label=", Lines(lines), "];\n");
}

struct Cluster {
  std::string path;
  std::map<std::string, int> children;
  std::vector<int> order;  // the children as they were first met
  std::vector<int> nodes;
};

class Clusters {
 public:
  Clusters() : all_(1) {}

  void Add(const std::string& module, int node) {
    int at = 0;
    std::string path;
    const std::vector<std::string> parts = absl::StrSplit(module, absl::MaxSplits('.', kDeepest), absl::SkipEmpty());
    for (const std::string& part : parts) {
      path = path.empty() ? part : absl::StrCat(path, ".", part);
      const auto [found, is_new] = all_[at].children.try_emplace(part, static_cast<int>(all_.size()));
      const int child = found->second;
      if (is_new) {
        all_[at].order.push_back(child);
        all_.emplace_back();
        all_.back().path = path;
      }
      at = child;
    }
    all_[at].nodes.push_back(node);
  }

  void Write(const Graph& graph, int at, size_t depth, std::string* text) const {
    const Cluster& cluster = all_[at];
    const std::string indent(2 * depth, ' ');
    for (const int node : cluster.nodes) absl::StrAppend(text, indent, NodeDot(graph, node));
    for (const int child : cluster.order) {
      absl::StrAppend(text, indent, "subgraph cluster_", child, " {\n", indent, "  label=", Lines({all_[child].path}),
                      ";\n");
      Write(graph, child, depth + 1, text);
      absl::StrAppend(text, indent, "}\n");
    }
  }

 private:
  std::vector<Cluster> all_;
};

}  // namespace

Json GraphRecord(const Graph& graph, const std::vector<CallNumbers>& numbers) {
  CheckNumbers(numbers, graph.program().calls.size());
  Json record = {{"format", "addend.graph"},
                 {"version", 2},
                 {"modules", graph.program().module_paths},
                 {"numbers", NumbersHeadJson(numbers)}};
  Json nodes = Json::array();
  for (size_t n = 0; n < graph.nodes().size(); ++n) nodes.push_back(NodeJson(graph, static_cast<int>(n), numbers));
  record["nodes"] = std::move(nodes);
  Json edges = Json::array();
  for (const GraphEdge& edge : graph.edges()) {
    Json argument = nullptr;
    if (edge.argument >= 0) {
      const RecordedCall& call = graph.program().calls[graph.nodes()[edge.to].call];
      argument = call.op.schema().arguments()[edge.argument].name();
    }
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"kind", EdgeKindName(edge.kind)},
                     {"value", graph.program().values[edge.value].name},
                     {"version", edge.version},
                     {"argument", std::move(argument)}});
  }
  record["edges"] = std::move(edges);
  return record;
}

std::string GraphDot(const Graph& graph, const DotOptions& options) {
  std::string text = "digraph program {\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=10];\n";
  const auto shown = [&](int node) {
    const NodeKind kind = graph.nodes()[node].kind;
    return options.sources || kind == NodeKind::kInput || kind == NodeKind::kCall || kind == NodeKind::kOutput;
  };
  Clusters clusters;
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (shown(n)) clusters.Add(options.modules ? graph.nodes()[n].module : "", n);
  }
  clusters.Write(graph, 0, 1, &text);
  for (const GraphEdge& edge : graph.edges()) {
    if (!shown(edge.from) || !shown(edge.to)) continue;
    absl::StrAppend(&text, "  n", edge.from, " -> n", edge.to,
                    edge.kind == EdgeKind::kTensor ? " [style=dashed];\n" : ";\n");
  }
  return text + "}\n";
}

std::string GraphPage(const Graph& graph, const std::string& title, const std::vector<CallNumbers>& numbers) {
  Json record = GraphRecord(graph, numbers);
  record["title"] = title;
  return FillPage(kGraphTemplate, record);
}

}  // namespace addend

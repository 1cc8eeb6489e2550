// The graph of a recorded program: which call made what a call reads, and which calls read what it makes.
//
// Note [Edges]
// A tensor lies in memory that other tensors may share and that calls may overwrite. So a use depends on up to two
// calls: the call that made the elements it reads (kElements) and, if another call wrote them after the tensor was
// made, the call that made the tensor, which determines where the tensor lies (kTensor). After
//   y = x.view(6); x.add_(1); z = y.relu()
// relu depends on add_ by kElements and on view by kTensor.
#ifndef ADDEND_CORE_PROGRAM_GRAPH_H_
#define ADDEND_CORE_PROGRAM_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/program/call_arguments.h"
#include "core/program/recorded_program.h"

namespace addend {

enum class NodeKind { kInput, kParameter, kBuffer, kConstant, kCall, kOutput };
// "input", "parameter", "buffer", "constant", "call", "output".
const char* NodeKindName(NodeKind kind);

struct GraphNode {
  NodeKind kind = NodeKind::kCall;
  // Unique in the graph. For calls the name of what they make ("linear_1", "max_2" for "max_2.0" and "max_2.1"), or the
  // operator if they make no tensor; for outputs "output", "output[1]", "output[\"logits\"]".
  std::string name;
  // For calls the module that ran; for parameters and buffers the module that has them by its name.
  std::string module;
  int call = -1;    // kCall: in program().calls
  int value = -1;   // every other kind: in program().values
  int output = -1;  // kOutput: which of the tensors of the program's output
};

enum class EdgeKind { kElements, kTensor };
// "elements", "tensor".
const char* EdgeKindName(EdgeKind kind);

struct GraphEdge {
  int from = -1;  // nodes
  int to = -1;
  EdgeKind kind = EdgeKind::kElements;
  int value = -1;         // what is used
  int version = 0;        // of its storage
  int16_t argument = -1;  // in the schema of the call that uses it; -1 at outputs
};

// The graph is immutable, so that threads may share it. The program has to be complete: every number in it is in range.
class Graph {
 public:
  explicit Graph(std::shared_ptr<const RecordedProgram> program);

  const RecordedProgram& program() const { return *program_; }
  // Nodes in topological order: inputs, parameters, buffers, constants, the calls as they ran, and outputs. Inputs and
  // outputs are in the order of the model's arguments and results.
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  // Edges ascending by `to`, and for one node in the order of its arguments. There are several if a call uses a value
  // several times.
  const std::vector<GraphEdge>& edges() const { return edges_; }
  // The number of edges on the longest way from a node without parents.
  int Depth(int node) const { return depths_.at(node); }

  // The functions below throw InvalidArgument for nodes that do not exist. Each list is ascending, hence in topological
  // order, and names a node once.
  std::vector<int> Parents(int node) const;
  std::vector<int> Children(int node) const;
  // All nodes that the node depends on, and all nodes that depend on it, itself excluded.
  std::vector<int> Ancestors(int node) const;
  std::vector<int> Descendants(int node) const;
  // Edges, as numbers in edges().
  std::vector<int> Incoming(int node) const;
  std::vector<int> Outgoing(int node) const;

  std::vector<int> ByKind(NodeKind kind) const;
  // Calls by operator. "aten::add.Tensor" and "add.Tensor" mean one overload, "aten::add" and "add" all of them.
  // In-place forms have a name of their own: "add_".
  std::vector<int> ByOperator(const std::string& name) const;
  // Calls, parameters and buffers of a module and, if `nested`, of the modules in it; "" is the model itself.
  std::vector<int> ByModule(const std::string& path, bool nested = true) const;
  // The node with this name. Throws NotFound.
  int Find(const std::string& name) const;

  // A call's arguments in the order of its schema, hyperparameters and tensors; empty for other nodes.
  std::vector<CallArgument> Arguments(int node) const;
  // The values that a node gives: for calls their results, or what they wrote if they return nothing.
  std::vector<int> Values(int node) const;
  // Operator, module, source line and names of the parameters that a call reads. Empty for other nodes.
  Position PositionOf(int node) const;

 private:
  void AddSources();
  void AddCalls();
  void AddOutputs();
  void Link();
  void AddEdges(const TensorUse& use, int to);
  std::string UniqueName(const std::string& name);
  void AddNode(GraphNode node);
  const GraphNode& At(int node) const;
  std::vector<int> Reach(int node, bool forward) const;

  std::shared_ptr<const RecordedProgram> program_;
  std::vector<GraphNode> nodes_;
  std::vector<GraphEdge> edges_;
  std::vector<int> depths_;
  std::map<std::string, int> by_name_;
  std::vector<int> call_nodes_;   // by call
  std::vector<int> value_nodes_;  // by value; -1 where it has no node of its own
  // Edges by node: from first_incoming_[n] to first_incoming_[n + 1] in edges_, and outgoing_ alike.
  std::vector<int> first_incoming_;
  std::vector<int> first_outgoing_;
  std::vector<int> outgoing_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_GRAPH_H_

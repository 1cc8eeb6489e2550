// The graph of a recorded program for other programs and for browsers: JSON, Graphviz and one HTML page.
#ifndef ADDEND_CORE_PROGRAM_GRAPH_RECORD_H_
#define ADDEND_CORE_PROGRAM_GRAPH_RECORD_H_

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/program/call_numbers.h"
#include "core/program/graph.h"

namespace addend {

// Writes the graph as page/README.md describes it. `numbers`: what is known about each call, contributions for example.
Json GraphRecord(const Graph& graph, const std::vector<CallNumbers>& numbers = {});

struct DotOptions {
  // Parameters, buffers and constants as nodes; inputs, calls and outputs always are.
  bool sources = false;
  // Modules as boxes around their calls.
  bool modules = true;
};
// Writes the graph for Graphviz: always UTF-8, whatever the names hold. Dashed edges are EdgeKind::kTensor.
std::string GraphDot(const Graph& graph, const DotOptions& options = {});

// Writes a self-contained page that shows the graph: modules to open and close, search, details of every node, and the
// numbers as colours. `title`: the heading.
std::string GraphPage(const Graph& graph, const std::string& title, const std::vector<CallNumbers>& numbers = {});

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_GRAPH_RECORD_H_

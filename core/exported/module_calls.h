// The calls of modules that an exported program tells apart, and what left them.
#ifndef ADDEND_CORE_EXPORTED_MODULE_CALLS_H_
#define ADDEND_CORE_EXPORTED_MODULE_CALLS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/exported/program.h"

namespace addend::exported {

// A call of a module, and the one tensor of it that others read.
struct ModuleCall {
  std::string path;      // "layers.0"
  size_t last_node = 0;  // of the call, in Graph::nodes
  std::string value;     // of the graph; empty: the call gives no tensor, or several, or nobody knows
};

// The calls of the modules, in the order in which they end, inner ones first; none where the file does not tell the
// second call of a module from the first ("layers.0@1"). Of a module that runs inside a subgraph, too, nobody knows
// which call gives what. Left out are modules that are called once and give no tensor, or several: a file does not say
// in which order they were returned. `returned`: the values of the graph that the model returns.
std::vector<ModuleCall> NumberedCalls(const Graph& graph, const std::vector<std::string>& returned);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_MODULE_CALLS_H_

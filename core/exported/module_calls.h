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
  std::string value;     // of the graph
};

// The calls of each module that the file says is called several times ("layers.0", "layers.0@1"), in the order in which
// they end, inner ones first. Left out are modules of which a call gives no tensor or several, since a file does not
// say in which order they were returned, and modules that run inside a subgraph. `returned`: the values of the graph
// that the model returns.
std::vector<ModuleCall> NumberedCalls(const Graph& graph, const std::vector<std::string>& returned);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_MODULE_CALLS_H_

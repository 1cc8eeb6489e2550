// Origin of a node of an exported program: its module and the source lines of its author.
#ifndef ADDEND_CORE_EXPORTED_NODE_PLACE_H_
#define ADDEND_CORE_EXPORTED_NODE_PLACE_H_

#include <string>
#include <vector>

#include "core/exported/program.h"
#include "core/intercept/script_frames.h"

namespace addend::exported {

// A module in whose call a node stands.
struct ModulePlace {
  std::string path;  // "layers.0"
  std::string call;  // what the file calls this call of it: "layers.0@1"
};

// The modules around a node, outermost first, without the model itself. None where the file does not say it.
std::vector<ModulePlace> ModulesOf(const Node& node);

// Reads the place from the node's metadata. Fields that the file lacks are empty. A module that is called twice has one
// path, whatever the file calls its second call ("layers.0@1").
CodePlace PlaceOf(const Node& node);

// The position of a node as errors tell it.
Position PositionOf(const Node& node);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_NODE_PLACE_H_

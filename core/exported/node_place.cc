#include "core/exported/node_place.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/intercept/python_trace.h"

namespace addend::exported {
namespace {

const std::string& Metadata(const Node& node, const std::string& key) {
  static const auto& none = *new std::string();
  const auto found = node.metadata.find(key);
  return found == node.metadata.end() ? none : found->second;
}

// The elements of a list between `separator`s that stand outside parentheses: the keys of a stack of modules may hold
// calls.
std::vector<std::string> SplitOutside(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == separator && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

// "@1" of the second call of a module; empty of the first. Exporters number the key or the path.
std::string CallNumber(const std::string& field) {
  const size_t mark = field.rfind('@');
  if (mark == std::string::npos || mark + 1 == field.size()) return "";
  const bool digits = std::all_of(field.begin() + static_cast<std::ptrdiff_t>(mark) + 1, field.end(),
                                  [](unsigned char c) { return absl::ascii_isdigit(c); });
  return digits ? field.substr(mark) : "";
}

}  // namespace

std::vector<ModulePlace> ModulesOf(const Node& node) {
  std::vector<ModulePlace> modules;
  // "key,path,type;key,path,type"
  for (const std::string& module : SplitOutside(Metadata(node, "nn_module_stack"), ';')) {
    const std::vector<std::string> fields = SplitOutside(module, ',');
    // Nodes that passes of the exporter insert are in no module; a marker is their path, key and type.
    if (fields.size() < 3 || fields[0] == fields[1]) continue;
    const std::string path = fields[1].substr(0, fields[1].find('@'));
    if (!path.empty()) modules.push_back({path, path + CallNumber(fields[0]) + CallNumber(fields[1])});
  }
  return modules;
}

CodePlace PlaceOf(const Node& node) {
  CodePlace place;
  const std::vector<ModulePlace> modules = ModulesOf(node);
  if (!modules.empty()) place.module_path = modules.back().path;
  place.frames = FramesOfPythonTrace(Metadata(node, "stack_trace"));
  return place;
}

Position PositionOf(const Node& node) {
  Position position = PositionAt(PlaceOf(node));
  position.op = node.target;
  return position;
}

}  // namespace addend::exported

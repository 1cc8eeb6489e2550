#include "core/exported/node_place.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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

// Reads the text of a Python traceback: a line that names file, line and function, then the source, for each frame.
std::vector<SourceFrame> FramesOf(const std::string& trace) {
  std::vector<SourceFrame> frames;
  bool text_next = false;
  for (const auto whole : absl::StrSplit(trace, '\n')) {
    std::string line(absl::StripAsciiWhitespace(whole));
    if (absl::StartsWith(line, "File \"")) {
      const size_t quote = line.find("\", line ");
      if (quote == std::string::npos) continue;
      SourceFrame frame;
      frame.file = line.substr(6, quote - 6);
      const std::string rest = line.substr(quote + 8);
      const size_t comma = rest.find(',');
      if (!absl::SimpleAtoi(rest.substr(0, comma), &frame.line)) frame.line = -1;
      const size_t in = rest.find(", in ");
      if (in != std::string::npos) frame.function = rest.substr(in + 5);
      frames.push_back(std::move(frame));
      text_next = true;
    } else if (text_next && !line.empty()) {
      frames.back().text = std::move(line);
      text_next = false;
    }
  }
  return frames;
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
  place.frames = FramesOf(Metadata(node, "stack_trace"));
  return place;
}

Position PositionOf(const Node& node) {
  Position position = PositionAt(PlaceOf(node));
  position.op = node.target;
  return position;
}

}  // namespace addend::exported

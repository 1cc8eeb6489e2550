#include "core/onnx/node_place.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/text.h"
#include "core/intercept/python_trace.h"

namespace addend::onnx {
namespace {

// The texts of a list as Python writes it: "['', 'encoder', 'encoder.layer.0', 'linear']". What is no such list has
// none.
std::vector<std::string> TextsOfPythonList(absl::string_view list) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < list.size(); ++at) {
    const char quote = list[at];
    if (quote != '\'' && quote != '"') continue;
    std::string text;
    for (++at; at < list.size() && list[at] != quote; ++at) {
      if (list[at] == '\\' && at + 1 < list.size()) ++at;
      text.push_back(list[at]);
    }
    if (at == list.size()) return {};
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string ModulePathOf(const NodeProto& node) {
  // The model itself, the modules around the node, the node.
  const std::vector<std::string> scopes = TextsOfPythonList(Find(node.metadata, "pkg.torch.onnx.name_scopes"));
  if (scopes.size() >= 2) return scopes[scopes.size() - 2];
  if (node.name.empty() || node.name.front() != '/') return "";
  std::vector<absl::string_view> steps = absl::StrSplit(node.name.substr(1), '/');
  steps.pop_back();
  return absl::StrJoin(steps, ".");
}

// The node itself, in place of a line of source.
SourceFrame FrameOf(const NodeProto& node) {
  SourceFrame frame;
  frame.text = std::string(node.op_type);
  absl::string_view name = node.name;
  for (const absl::string_view made : node.outputs) {
    if (name.empty()) name = made;
  }
  frame.function = Quoted(std::string(name));
  return frame;
}

}  // namespace

CodePlace PlaceOf(const NodeProto& node) {
  CodePlace place;
  place.module_path = ModulePathOf(node);
  place.frames = FramesOfPythonTrace(std::string(Find(node.metadata, "pkg.torch.onnx.stack_trace")));
  if (place.frames.empty()) place.frames.push_back(FrameOf(node));
  return place;
}

Position PositionOf(const NodeProto& node) {
  Position position = PositionAt(PlaceOf(node));
  position.op = absl::StrCat("onnx::", absl::string_view(node.op_type));
  return position;
}

}  // namespace addend::onnx

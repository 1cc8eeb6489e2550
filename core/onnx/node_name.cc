#include "core/onnx/node_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/text.h"

namespace addend::onnx {
namespace {

std::string Shown(absl::string_view text) { return Quoted(std::string(text)); }

std::string OperatorOf(const NodeProto& node) {
  return node.domain.empty() ? Shown(node.op_type) : absl::StrCat(Shown(node.domain), ".", Shown(node.op_type));
}

}  // namespace

std::string NameOf(const NodeProto& node) {
  if (!node.name.empty()) return absl::StrCat("node ", Shown(node.name), " (", OperatorOf(node), ")");
  const auto made = std::find_if(node.outputs.begin(), node.outputs.end(), [](auto name) { return !name.empty(); });
  if (made == node.outputs.end()) return absl::StrCat("the node at byte ", node.place, " (", OperatorOf(node), ")");
  return absl::StrCat("the node that makes ", Shown(*made), " (", OperatorOf(node), ")");
}

}  // namespace addend::onnx

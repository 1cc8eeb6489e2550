#include "core/intercept/module_path.h"

#include "absl/strings/str_cat.h"

namespace addend {
namespace {

// "layers(ModuleList)::forward" -> "layers"; empty for the root, for functions and for calls without an instance.
std::string InstanceName(const std::string& frame) {
  const size_t paren = frame.find('(');
  if (paren == std::string::npos) return "";
  const std::string name = frame.substr(0, paren);
  const bool unknown = name == "TOP" || name == "SELF" || name.find("CALL_FUNCTION") == 0 ||
                       name.find("UNKNOWN") != std::string::npos || name.find("INSTANCE") != std::string::npos;
  return unknown ? "" : name;
}

}  // namespace

std::string ModulePathOf(const std::vector<std::string>& hierarchy) {
  std::string path;
  for (const std::string& frame : hierarchy) {
    const std::string name = InstanceName(frame);
    if (!name.empty()) absl::StrAppend(&path, path.empty() ? "" : ".", name);
  }
  return path;
}

}  // namespace addend

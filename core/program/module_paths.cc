#include "core/program/module_paths.h"

#include <algorithm>

namespace addend {
namespace {

// Where a module path such as "0.fc" skips containers, finds the one registered path that it abbreviates.
bool Abbreviates(const std::string& path, const std::string& full) {
  size_t at = 0;
  size_t start = 0;
  while (start <= full.size() && at <= path.size()) {
    const size_t end = std::min(full.find('.', start), full.size());
    const size_t path_end = std::min(path.find('.', at), path.size());
    if (full.compare(start, end - start, path, at, path_end - at) == 0) at = path_end + 1;
    start = end + 1;
    if (at > path.size()) return start > full.size();
  }
  return false;
}

}  // namespace

std::string ResolveModulePath(const std::string& script_path, const std::string& parameter,
                              const std::vector<std::string>& known) {
  std::string candidate;
  // "layers.0.fc.weight" belongs to the module "layers.0.fc".
  const size_t dot = parameter.rfind('.');
  if (dot != std::string::npos) candidate = parameter.substr(0, dot);
  if (script_path.empty()) return candidate;
  std::string match;
  int matches = 0;
  for (const std::string& path : known) {
    if (!Abbreviates(script_path, path)) continue;
    if (path == candidate) return path;  // the parameters settle which of several layers it is
    match = path;
    ++matches;
  }
  return matches == 1 ? match : script_path;
}

}  // namespace addend

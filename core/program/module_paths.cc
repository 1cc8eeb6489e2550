#include "core/program/module_paths.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace addend {
namespace {

// True if a module path that skips containers, such as "0.fc", abbreviates this full path.
bool Abbreviates(const std::string& path, const std::string& full) {
  if (full.size() < path.size()) return false;
  // Both end in the same module; most that do not are out by their last letter.
  for (size_t k = 1; k <= path.size() && path[path.size() - k] != '.'; ++k) {
    if (path[path.size() - k] != full[full.size() - k]) return false;
  }
  size_t at = 0;     // in `path`, where a name begins
  size_t start = 0;  // in `full`
  while (start <= full.size()) {
    size_t k = 0;
    while (at + k < path.size() && start + k < full.size() && path[at + k] == full[start + k] && path[at + k] != '.')
      ++k;
    const bool path_ends = at + k == path.size() || path[at + k] == '.';
    if (path_ends && (start + k == full.size() || full[start + k] == '.')) at += k + 1;
    start += k;
    while (start < full.size() && full[start] != '.') ++start;
    ++start;
    if (at > path.size()) return start > full.size();
  }
  return false;
}

// "layers.0.fc.weight" belongs to the module "layers.0.fc".
std::string OwnerOf(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

}  // namespace

std::string ResolveModulePath(const std::string& script_path, const std::string& parameter,
                              const std::vector<std::string>& known) {
  const std::string candidate = OwnerOf(parameter);
  if (script_path.empty()) return candidate;
  // Only a parameter could still say that a path of the model stands for another one.
  if (std::binary_search(known.begin(), known.end(), script_path)) {
    const bool other = !candidate.empty() && std::binary_search(known.begin(), known.end(), candidate) &&
                       Abbreviates(script_path, candidate);
    return other ? candidate : script_path;
  }
  std::string match;
  int matches = 0;
  for (const std::string& path : known) {
    if (!Abbreviates(script_path, path)) continue;
    if (path == candidate) return path;  // the parameters settle which of several layers it is
    // The second tells that it is none; only a parameter could still settle it.
    if (++matches > 1 && candidate.empty()) return script_path;
    match = path;
  }
  return matches == 1 ? match : script_path;
}

Error ModuleOutputsDoNotFollow(const std::string& module_path, int64_t index) {
  return InvalidArgument(absl::StrCat("output ", index, " of the module ", module_path,
                                      " does not follow; outputs are told in order, from 0, when a module returns"));
}

void CurrentModule::SetPaths(std::vector<std::string> paths) {
  paths_ = std::move(paths);
  std::sort(paths_.begin(), paths_.end());
  resolved_.clear();
}

void CurrentModule::Set(std::string path) {
  if (!path.empty()) entered_.insert(path);
  told_ = std::move(path);
}

std::string CurrentModule::PathOf(const std::string& script_path, const std::string& parameter) {
  if (told_ && !told_->empty()) return *told_;
  // The model itself reads parameters of modules that it calls. Where it calls methods of a module, which nobody tells,
  // the parameters do.
  if (told_ && script_path.empty() && entered_.contains(OwnerOf(parameter))) return "";
  const auto [found, is_new] = resolved_.try_emplace({script_path, parameter}, "");
  if (is_new) found->second = ResolveModulePath(script_path, parameter, paths_);
  return found->second;
}

}  // namespace addend

// Module paths of operators, from the interpreter's path and the names of parameters.
#ifndef ADDEND_CORE_PROGRAM_MODULE_PATHS_H_
#define ADDEND_CORE_PROGRAM_MODULE_PATHS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/error.h"

namespace addend {

// Resolves the module path of an operator. `script_path`: as the interpreter has it, without containers ("0.fc"); empty
// if it has none. `parameter`: the first parameter that the operator reads ("layers.0.fc.weight"), or empty. `known`:
// all paths of the model, sorted, so that a path that is one of them is found at once. Returns the full path if one of
// them settles it, else the interpreter's.
std::string ResolveModulePath(const std::string& script_path, const std::string& parameter,
                              const std::vector<std::string>& known);

// Error that a recorder throws if outputs of a module are not told in order.
Error ModuleOutputsDoNotFollow(const std::string& module_path, int64_t index);

// The module of the operator that runs, for recorders.
class CurrentModule {
 public:
  // All paths of the model, in any order.
  void SetPaths(std::vector<std::string> paths);
  // The module that runs now, where the caller knows it; empty: the model itself, or a TorchScript module inside it.
  // Before the first call script frames and parameter names tell.
  void Set(std::string path);
  const std::optional<std::string>& told() const { return told_; }
  // `script_path` and `parameter`: as for ResolveModulePath().
  std::string PathOf(const std::string& script_path, const std::string& parameter);

 private:
  std::optional<std::string> told_;
  absl::flat_hash_set<std::string> entered_;  // that were told
  std::vector<std::string> paths_;            // sorted
  // Comparing a place with every module takes a while, and the operators of a module share it.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::string> resolved_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_MODULE_PATHS_H_

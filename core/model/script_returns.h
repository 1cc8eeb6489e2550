// The modules of a TorchScript model tell what they return, while the model runs.
#ifndef ADDEND_CORE_MODEL_SCRIPT_RETURNS_H_
#define ADDEND_CORE_MODEL_SCRIPT_RETURNS_H_

#include <torch/csrc/jit/api/module.h>

#include <string>

#include "absl/container/flat_hash_map.h"

namespace addend {

// The operator that tells what a module has returned: "(Any module, Any returned) -> ()".
inline constexpr char kModuleReturned[] = "addend::module_returned";

// Follows each call of a module's forward() in the code of `module`, and of the modules within it, by a call of
// kModuleReturned. Code that was changed before stays as it is. Of a traced module that gives several tensors, or none,
// the call alone is told: its code holds the tensors that others use, in the order of their use.
void TellReturns(const torch::jit::Module& module);

// The paths of the modules of a model, by their objects. A module with several paths has the first.
class ScriptPaths {
 public:
  explicit ScriptPaths(const torch::jit::Module& module);
  // Null where the object is none of the model's modules.
  const std::string* Find(const void* object) const;

 private:
  absl::flat_hash_map<const void*, std::string> paths_;
};

// RAII: calls of kModuleReturned on this thread find the modules in `paths`, which must outlive the scope. Without a
// scope they tell nothing. The scopes of a thread nest.
class ScriptReturnsScope {
 public:
  explicit ScriptReturnsScope(const ScriptPaths* paths);
  ~ScriptReturnsScope();
  ScriptReturnsScope(const ScriptReturnsScope&) = delete;
  ScriptReturnsScope& operator=(const ScriptReturnsScope&) = delete;

 private:
  const ScriptPaths* before_;
};

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_SCRIPT_RETURNS_H_

// A run of a live model, whatever becomes of it: results and attributions (LiveTrace) or a program (LiveProgram).
#ifndef ADDEND_CORE_MODEL_LIVE_RUN_H_
#define ADDEND_CORE_MODEL_LIVE_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace addend {

// Records the operators of the thread that constructs it, from then on until Stop(). Inputs, parameters and outputs are
// live tensors or alias their memory; see Note [Live tensors] in core/program/live_memory.h. Every call but the
// destructor belongs to that thread and throws FailedPrecondition on another. On another thread the destructor leaves
// the interception open, which does nothing any more.
class LiveRun {
 public:
  virtual ~LiveRun() = default;

  // The module that runs from now on; empty: none.
  virtual void SetModule(const std::string& module_path) = 0;
  // Tensor number `index` of those that a module has just returned, in the order of their nesting, from 0; 0 begins
  // another call of the module. The name of the module then means what it returned. Undefined: it returned no
  // tensor there. Tensors that no operator has met count, and cannot be asked for. Throws InvalidArgument where the
  // numbers do not count up.
  virtual void AddModuleOutput(const std::string& module_path, int64_t index, const at::Tensor& tensor) = 0;
  // Names a tensor that is wanted, or what aliases it.
  virtual void AddOutput(const std::string& name, const at::Tensor& tensor) = 0;
  // Ends the recording of operators.
  virtual void Stop() = 0;
};

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_LIVE_RUN_H_

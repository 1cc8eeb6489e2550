// Models: anything that runs LibTorch operators. A model runs unmodified; tracing happens below it.
#ifndef ADDEND_CORE_MODEL_MODEL_H_
#define ADDEND_CORE_MODEL_MODEL_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/model_state.h"

namespace addend {

// An operator that a model's code calls.
struct ModelCall {
  std::string op;        // "aten::add"
  std::string overload;  // "Tensor"
  Position position;
  bool training = false;  // its training flag is set, whatever mode the model is in
};

class Model {
 public:
  virtual ~Model() = default;
  // Runs the model on tensors (and what else it takes). May be called with a tracing scope open.
  virtual c10::IValue Run(const std::vector<c10::IValue>& inputs) = 0;
  // The model with memory of its own for what runs write, for one trace: no other thread's run writes there, and its
  // named tensors are those that it writes. Null where runs write nothing, or what the next one is to find.
  virtual std::shared_ptr<Model> ForOneTrace() const { return nullptr; }
  // Keeps what a run may change and the next one would find: what buffers hold and, where the model knows, what its own
  // names are bound to. What else its code keeps is not seen: whoever relies on two runs compares them.
  virtual std::shared_ptr<ModelState> KeepState() const;
  // Throws FailedPrecondition where the model computes something else than what was loaded, because the file that it
  // reads was written. A run does so itself.
  virtual void RequireUnchanged() const {}
  // Parameters and buffers by name, which positions of operators mention.
  virtual std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const { return {}; }
  // The named tensors that are buffers: not learned.
  virtual std::vector<std::string> BufferNames() const { return {}; }
  // Paths of all modules ("layers.0.attention"); empty where the model has none.
  virtual std::vector<std::string> ModulePaths() const { return {}; }
  // Notes for the reader of any run's report, as Report::notes.
  virtual std::vector<std::string> Notes() const { return {}; }
  // The names of the arguments that the model takes, in order; empty where they are not known.
  virtual std::vector<std::string> InputNames() const { return {}; }
  // Complaints about these inputs, as far as the model knows without running; one sentence each.
  virtual std::vector<std::string> Complaints(const std::vector<c10::IValue>& /*inputs*/) const { return {}; }
  // A copy on another device: parameters, buffers and constants; `dtype` as in ScriptOptions. Throws Unimplemented for
  // models that are not read from files, InvalidArgument for a device that this LibTorch cannot compute on.
  virtual std::shared_ptr<Model> To(const c10::Device& device, std::optional<c10::ScalarType> dtype = {}) const;
  // Every operator in the model's code, taken or not; nullopt where there is no code to read.
  virtual std::optional<std::vector<ModelCall>> Calls() const { return std::nullopt; }
};

struct ScriptOptions {
  // Converts parameters and floating-point buffers, for example to float64 for more exact parts.
  std::optional<at::ScalarType> dtype;
  // Notes on the file for the reader of any run's report, as Model::Notes().
  std::vector<std::string> notes;
};

// Loads a TorchScript file, in evaluation mode, on the CPU. The file is a program: load only what you trust. Throws
// NotFound, InvalidArgument (not a TorchScript file), or Unimplemented if the file holds compiled tensor operations
// that tracing cannot see.
std::shared_ptr<Model> LoadTorchScript(const std::string& path, const ScriptOptions& options = {});

// Makes a model of a C++ function of tensors. `named`: what the function reads beside its inputs, for positions;
// `buffers`: which of these are not learned.
std::shared_ptr<Model> FromFunction(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                                    std::vector<std::pair<std::string, at::Tensor>> named = {},
                                    std::vector<std::string> module_paths = {}, std::vector<std::string> buffers = {});

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_MODEL_H_

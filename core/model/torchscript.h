// What TorchScript models can do beyond model.h: come from memory, and tell what their inputs are called.
#ifndef ADDEND_CORE_MODEL_TORCHSCRIPT_H_
#define ADDEND_CORE_MODEL_TORCHSCRIPT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/model.h"

namespace addend {

// As LoadTorchScript, from the bytes of a file; `name` stands for its path in messages.
std::shared_ptr<Model> LoadTorchScriptBytes(const void* data, size_t size, const std::string& name,
                                            const ScriptOptions& options = {});

// A copy of a TorchScript model whose parameters, buffers and constants are on another device; `dtype` as of
// ScriptOptions. Throws Unimplemented for models that are not TorchScript, InvalidArgument for a device that this
// LibTorch cannot compute on.
std::shared_ptr<Model> CopyTo(const Model& model, const at::Device& device, std::optional<at::ScalarType> dtype = {});

// The names of the arguments that a TorchScript model takes, in order; empty for every other model.
std::vector<std::string> InputNames(const Model& model);

// The same model by other methods than forward(): `methods` run one after the other, each on as many of the inputs as
// it has arguments. One gives what it gives, several a dictionary of what they give by their names. Throws
// Unimplemented for models that are not TorchScript, NotFound for a method that it does not have.
std::shared_ptr<Model> MethodsOf(const Model& model, const std::vector<std::string>& methods);

// What a TorchScript model takes and calls, found without running it.
struct ScriptContents {
  struct Argument {
    std::string name;
    std::string type;  // "Tensor", "Optional[Tensor]", "List[Tensor]", ...
    bool has_default = false;
  };
  struct Call {
    std::string op;        // "aten::add"
    std::string overload;  // "Tensor"
    Position position;
    bool training = false;  // its training flag is set, whatever mode the model is in
  };
  std::vector<Argument> arguments;
  std::vector<Call> calls;  // every operator in the source, taken or not, those of submodules included
};
// Throws Unimplemented for models that are not TorchScript.
ScriptContents ContentsOf(const Model& model);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_TORCHSCRIPT_H_

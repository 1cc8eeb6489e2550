// What TorchScript models can do beyond model.h: come from memory, and tell what their inputs are called.
#ifndef ADDEND_CORE_EXPLAIN_TORCHSCRIPT_H_
#define ADDEND_CORE_EXPLAIN_TORCHSCRIPT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/explain/model.h"

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

}  // namespace addend

#endif  // ADDEND_CORE_EXPLAIN_TORCHSCRIPT_H_

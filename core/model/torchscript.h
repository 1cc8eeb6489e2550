// TorchScript models beyond model.h: from memory, on other devices, by other methods, and their contents.
#ifndef ADDEND_CORE_MODEL_TORCHSCRIPT_H_
#define ADDEND_CORE_MODEL_TORCHSCRIPT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// Loads the bytes of a TorchScript file, as LoadTorchScript does; `name` stands for its path in messages.
std::shared_ptr<Model> LoadTorchScriptBytes(const void* data, size_t size, const std::string& name,
                                            const ScriptOptions& options = {});

// Makes a model that runs other methods than forward(): `methods` run one after the other, each on as many of the
// inputs as it has arguments. One method gives its result, several a dictionary of their results by name. Throws
// Unimplemented for models that are not TorchScript, NotFound for a method that the model does not have.
std::shared_ptr<Model> MethodsOf(const Model& model, const std::vector<std::string>& methods);

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_TORCHSCRIPT_H_

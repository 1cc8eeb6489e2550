// Models from files: TorchScript, an exported program or ONNX. The content decides which it is, not the name of the
// file.
#ifndef ADDEND_CORE_LOAD_LOAD_MODEL_H_
#define ADDEND_CORE_LOAD_LOAD_MODEL_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// Loads a model, in evaluation mode, on the CPU. What is read of its archive is compared with the archive's checksums.
// Throws what LoadTorchScript, LoadExported and LoadOnnx throw, and InvalidArgument for an archive that is damaged; the
// error for a file of neither kind says how each is made.
std::shared_ptr<Model> LoadModel(const std::string& path, const ScriptOptions& options = {});
// Loads the bytes of such a file; `name` stands for its path in messages.
std::shared_ptr<Model> LoadModelBytes(const void* data, size_t size, const std::string& name,
                                      const ScriptOptions& options = {});

// The files beside a model that belong to it, as it names them, relative to its folder: weights of an ONNX model.
// Throws what loading it throws.
std::vector<std::string> FilesBeside(const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_LOAD_LOAD_MODEL_H_

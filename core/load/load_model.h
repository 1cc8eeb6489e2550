// Models from files: TorchScript or an exported program. The content decides which it is, not the name of the file.
#ifndef ADDEND_CORE_LOAD_LOAD_MODEL_H_
#define ADDEND_CORE_LOAD_LOAD_MODEL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "core/model/model.h"

namespace addend {

// Loads a model, in evaluation mode, on the CPU. What is read of its archive is compared with the archive's checksums.
// Throws what LoadTorchScript and LoadExported throw, and InvalidArgument for an archive that is damaged; the error for
// a file of neither kind says how each is made.
std::shared_ptr<Model> LoadModel(const std::string& path, const ScriptOptions& options = {});
// Loads the bytes of such a file; `name` stands for its path in messages.
std::shared_ptr<Model> LoadModelBytes(const void* data, size_t size, const std::string& name,
                                      const ScriptOptions& options = {});

}  // namespace addend

#endif  // ADDEND_CORE_LOAD_LOAD_MODEL_H_

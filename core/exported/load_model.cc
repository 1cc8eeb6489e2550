#include "core/exported/load_model.h"

#include "core/exported/exported_model.h"
#include "core/exported/program.h"
#include "core/model/torchscript.h"

namespace addend {

std::shared_ptr<Model> LoadModel(const std::string& path, const ScriptOptions& options) {
  return exported::IsExportedProgram(path) ? LoadExported(path, options) : LoadTorchScript(path, options);
}

std::shared_ptr<Model> LoadModelBytes(const void* data, size_t size, const std::string& name,
                                      const ScriptOptions& options) {
  return exported::IsExportedProgramBytes(data, size) ? LoadExportedBytes(data, size, name, options)
                                                      : LoadTorchScriptBytes(data, size, name, options);
}

std::shared_ptr<Model> CopyModelTo(const Model& model, const c10::Device& device,
                                   std::optional<c10::ScalarType> dtype) {
  if (auto copy = exported::CopyExportedTo(model, device, dtype)) return copy;
  return CopyTo(model, device, dtype);
}

}  // namespace addend

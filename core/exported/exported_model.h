// Exported programs (.pt2) as models: they are executed node by node through LibTorch's dispatcher, as TorchScript is,
// so that whatever records, explains or replays a model works on them.
#ifndef ADDEND_CORE_EXPORTED_EXPORTED_MODEL_H_
#define ADDEND_CORE_EXPORTED_EXPORTED_MODEL_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/exported/program.h"
#include "core/model/model.h"

namespace addend {

// Loads an exported program, on the CPU. Nothing of the file is run but the operators that it names.
//
// The model takes the arguments of the exported forward(), those by name last; or their leaves, in order; or the leaves
// that are tensors. Its result is nested as the exported one, classes as dictionaries by the names of their fields.
// Each run starts with the buffers of the file, whatever the run before wrote to them.
//
// With a dtype, parameters and floating-point buffers are converted, and so is each floating-point type that the file
// names, if the new one holds more or the parameters had it.
//
// Throws NotFound, InvalidArgument (not an exported program, or a malformed one), or Unimplemented, with the node's
// position and what to do, where the program calls what neither this LibTorch nor Addend has.
std::shared_ptr<Model> LoadExported(const std::string& path, const ScriptOptions& options = {});
// Loads the bytes of an archive; `name` stands for its path in messages.
std::shared_ptr<Model> LoadExportedBytes(const void* data, size_t size, const std::string& name,
                                         const ScriptOptions& options = {});

namespace exported {

// Makes the model of a program. `device`: stands for every device that the file names.
std::shared_ptr<Model> ModelOf(std::shared_ptr<const Program> program, const ScriptOptions& options = {},
                               c10::Device device = c10::Device(c10::kCPU));

}  // namespace exported
}  // namespace addend

#endif  // ADDEND_CORE_EXPORTED_EXPORTED_MODEL_H_

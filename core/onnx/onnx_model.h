// ONNX models as models: they are executed node by node through LibTorch's dispatcher, as TorchScript is, so that
// whatever records, explains or replays a model works on them.
#ifndef ADDEND_CORE_ONNX_ONNX_MODEL_H_
#define ADDEND_CORE_ONNX_ONNX_MODEL_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

// Loads an ONNX model, on the CPU. Nothing of the file is run but the operators that it names. Files beside it that
// hold its weights are mapped.
//
// The model takes the inputs of its graph that have no value in the file, in order, and gives its one output, or a
// dictionary of its outputs by their names. Sequences are lists, optionals without a value None. Outputs that are texts
// or maps are left out, with the nodes that only they need; a note names them.
//
// With a dtype, floating-point weights are converted, and so is each floating-point type that the file names, if the
// new one holds more or the weights had it. Sizes are computed as the file says.
//
// Throws NotFound, InvalidArgument (not an ONNX model, or a malformed one), or Unimplemented, with the node and what to
// do, where the model has an operator, a version of it, an attribute or a type that is not supported.
std::shared_ptr<Model> LoadOnnx(const std::string& path, const ScriptOptions& options = {});
// Loads a copy of the bytes of such a file; `name` stands for its path in messages. Weights in other files are refused.
std::shared_ptr<Model> LoadOnnxBytes(const void* data, size_t size, const std::string& name,
                                     const ScriptOptions& options = {});
// Whether bytes are those of an ONNX model, as far as the fields of its outermost message tell.
bool IsOnnxBytes(const void* data, size_t size);

// The files beside an ONNX model that hold its weights, as it names them, in the order of their first use. Throws what
// LoadOnnx() throws.
std::vector<std::string> WeightFilesOf(const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_ONNX_ONNX_MODEL_H_

// Which model computed something: the digest of its file, and what was done to it since.
#ifndef ADDEND_CORE_AUDIT_MODEL_SOURCE_H_
#define ADDEND_CORE_AUDIT_MODEL_SOURCE_H_

#include <c10/core/ScalarType.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model.h"
#include "core/program/recorded_program.h"

namespace addend {

// SHA-256 of a model, as hexadecimal digits. Of a file: that of its bytes. Of the folder of a recorded program: that of
// what `sha256sum program.json weights.safetensors` prints there, so that one digest stands for both. Of an ONNX model
// with weights in files beside it: that of what `sha256sum` prints for model.onnx, as which the model stands there, and
// for each of those files in the order of their first use. Throws NotFound,
// and InvalidArgument for a folder without a program.
std::string Sha256OfModel(const std::string& path);
// Digest of a program that need not be in a folder: that of the folder which SaveProgram() would write.
std::string Sha256OfProgram(const RecordedProgram& program);

// A digest that is computed when it is first asked for, and kept. Any number of threads may ask at once.
class LazyDigest {
 public:
  explicit LazyDigest(std::function<std::string()> compute) : compute_(std::move(compute)) {}
  // Throws what the computation throws, each time.
  const std::string& Get() const;

  // Digest of a file that is about to be read. If its size, its time or its place on the disk has changed when the
  // digest is computed, that throws FailedPrecondition, because it would be the digest of another model.
  static std::shared_ptr<const LazyDigest> OfFile(const std::string& path);
  static std::shared_ptr<const LazyDigest> OfBytes(const void* data, size_t size);
  static std::shared_ptr<const LazyDigest> OfProgram(std::shared_ptr<const RecordedProgram> program);

 private:
  std::function<std::string()> compute_;
  mutable std::mutex mutex_;
  mutable std::optional<std::string> digest_;
};

// Origin of a model: its digest, and how it was loaded.
struct ModelSource {
  std::shared_ptr<const LazyDigest> sha256;  // null: not from a file or a program
  std::optional<c10::ScalarType> dtype;      // what its numbers were converted to
  std::vector<std::string> methods;          // that run in place of forward
  std::string device = "cpu";                // where its numbers are: "cuda", "cuda:1"
};

// Loads a model from a TorchScript file, an exported program or the folder of a recorded program, as `source` says it
// was used. Throws what the loaders throw, and InvalidArgument for a device that LibTorch does not know.
std::shared_ptr<Model> LoadModelAs(const std::string& path, const ModelSource& source);

}  // namespace addend

#endif  // ADDEND_CORE_AUDIT_MODEL_SOURCE_H_

// The files in which a model keeps its weights beside itself.
//
// A model names them, and models come from anywhere. So a name leads to a file in the model's folder or below it, or is
// refused: no absolute path, no "..", no link of either kind, nothing that is no regular file. Otherwise a model could
// show in its outputs what its user may read and its author may not.
#ifndef ADDEND_CORE_ONNX_EXTERNAL_FILES_H_
#define ADDEND_CORE_ONNX_EXTERNAL_FILES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/weights/mapped_file.h"
#include "core/weights/memory_budget.h"

namespace addend::onnx {

// A file beside a model.
struct ExternalFile {
  std::string location;  // as the model names it, without what means nothing: "data/weights.bin"
  weights::Bytes bytes;
};

class ExternalFiles {
 public:
  // The files of a model that is none itself: each is refused.
  ExternalFiles() = default;
  // The files beside the model at `path`.
  explicit ExternalFiles(const std::string& path);

  // Maps the file at a location, unless it is mapped already, and adds its size to the budget. `where` begins messages.
  // Throws InvalidArgument for what does not lie in the model's folder or is no regular file of its own; NotFound if
  // there is no such file; FailedPrecondition for a model that is no file.
  const weights::Bytes& Map(absl::string_view location, const std::string& where, weights::MemoryBudget* budget);

  // The files that were mapped, in the order of their first use.
  const std::vector<ExternalFile>& files() const { return files_; }

 private:
  std::string folder_;                      // empty: none
  std::unique_ptr<Descriptor> descriptor_;  // of the folder, opened at the first use
  std::vector<ExternalFile> files_;
  std::map<std::string, size_t> places_;  // in files_, by location
};

}  // namespace addend::onnx

#endif  // ADDEND_CORE_ONNX_EXTERNAL_FILES_H_

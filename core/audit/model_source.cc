#include "core/audit/model_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/audit/tensors.h"
#include "core/base/error.h"
#include "core/base/file_error.h"
#include "core/load/load_model.h"
#include "core/model/program_model.h"
#include "core/model/torchscript.h"
#include "core/program/program_dtype.h"
#include "core/program/program_file.h"
#include "core/program/sha256.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

constexpr char kGraph[] = "program.json";
constexpr char kOnnx[] = "model.onnx";  // whatever its file is called
constexpr char kWeights[] = "weights.safetensors";

bool IsFolder(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) throw FileError("open", path, errno);
  return S_ISDIR(status.st_mode);
}

// Numbers that change if a file is written or another one takes its place; zeros if there is none.
auto IdentityOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) status = {};
  return std::make_tuple(status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

// Digest of two digests, written as sha256sum prints those of the two files.
std::string DigestOfBoth(const std::string& graph, const std::string& weights) {
  return Sha256(absl::StrCat(graph, "  ", kGraph, "\n", weights, "  ", kWeights, "\n"));
}

}  // namespace

std::string Sha256OfModel(const std::string& path) {
  if (!IsFolder(path)) {
    const std::vector<std::string> beside = FilesBeside(path);
    if (beside.empty()) return Sha256OfFile(path);
    const size_t end = path.rfind('/');
    const std::string folder = end == std::string::npos ? "" : path.substr(0, end + 1);
    std::string listed = absl::StrCat(Sha256OfFile(path), "  ", kOnnx, "\n");
    for (const std::string& file : beside) absl::StrAppend(&listed, Sha256OfFile(folder + file), "  ", file, "\n");
    return Sha256(listed);
  }
  return DigestOfBoth(Sha256OfFile(absl::StrCat(path, "/", kGraph)), Sha256OfFile(absl::StrCat(path, "/", kWeights)));
}

std::string Sha256OfProgram(const RecordedProgram& program) {
  const EncodedProgram encoded = EncodeProgram(program);
  return DigestOfBoth(Sha256(encoded.graph), Sha256(encoded.weights));
}

const std::string& LazyDigest::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!digest_) digest_ = compute_();
  return *digest_;
}

std::shared_ptr<const LazyDigest> LazyDigest::OfFile(const std::string& path) {
  return std::make_shared<const LazyDigest>([path, loaded = IdentityOf(path)] {
    const auto require_same = [&] {
      if (IdentityOf(path) == loaded) return;
      throw FailedPrecondition(absl::StrCat(
          path,
          " is not the file any more that the model was loaded from; load it again, so that its digest is known"));
    };
    require_same();
    std::string digest = Sha256OfModel(path);
    require_same();
    return digest;
  });
}

std::shared_ptr<const LazyDigest> LazyDigest::OfBytes(const void* data, size_t size) {
  Sha256Digest digest;
  digest.Add(static_cast<const char*>(data), size);
  return std::make_shared<const LazyDigest>([hex = digest.Hex()] { return hex; });
}

std::shared_ptr<const LazyDigest> LazyDigest::OfProgram(std::shared_ptr<const RecordedProgram> program) {
  return std::make_shared<const LazyDigest>([program = std::move(program)] { return Sha256OfProgram(*program); });
}

std::shared_ptr<Model> LoadModelAs(const std::string& path, const ModelSource& source) {
  std::shared_ptr<Model> model;
  if (IsFolder(path)) {
    RecordedProgram program = LoadProgram(path);
    if (source.dtype) program = InDtype(program, *source.dtype);
    model = FromProgram(std::make_shared<const RecordedProgram>(std::move(program)));
  } else {
    ScriptOptions options;
    options.dtype = source.dtype;
    model = LoadModel(path, options);
  }
  if (source.device != "cpu") model = model->To(DeviceOfWord(source.device));
  return source.methods.empty() ? model : MethodsOf(*model, source.methods);
}

}  // namespace addend

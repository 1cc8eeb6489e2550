#include "core/program/tensor_io.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_error.h"
#include "core/base/tensor_text.h"
#include "core/base/text.h"
#include "core/program/sha256.h"
#include "core/program/tensor_layout.h"

// Both formats store little-endian numbers, and they are copied as they are.
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor_io.cc needs a little-endian machine"
#endif

namespace addend {
namespace {

// The tensor whose bytes stand there.
at::Tensor CopyToTensor(const StoredTensor& stored, const std::vector<int64_t>& shape, const char* data,
                        uint64_t size) {
  if (stored.dtype->type == at::kBool) {
    // Any other byte in a bool is undefined behaviour later on.
    for (uint64_t i = 0; i < size; ++i) {
      if (static_cast<unsigned char>(data[i]) > 1) {
        throw MalformedFile(stored.place,
                            absl::StrCat("boolean byte ", static_cast<unsigned char>(data[i]), " is neither 0 nor 1"));
      }
    }
  }
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(stored.dtype->type).device(at::kCPU));
  if (size > 0) std::memcpy(tensor.data_ptr(), data, size);
  return tensor;
}

// All of a tensor; `bytes` are the file's.
at::Tensor Decode(const StoredTensor& stored, const std::string& bytes) {
  std::vector<int64_t> shape = stored.shape;
  if (stored.fortran_order) std::reverse(shape.begin(), shape.end());
  at::Tensor tensor = CopyToTensor(stored, shape, bytes.data() + stored.begin, stored.end - stored.begin);
  if (!stored.fortran_order) return tensor;
  std::vector<int64_t> dims(shape.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(dims.size() - 1 - i);
  return tensor.permute(dims).contiguous();
}

// A tensor as the file stores it.
at::Tensor Storable(const std::string& name, const at::Tensor& tensor, const StoredDtype** dtype) {
  if (!tensor.defined())
    throw InvalidArgument(absl::StrCat("tensor ", PrintableName(name), " is undefined and cannot be saved"));
  if (tensor.layout() != at::kStrided) {
    throw InvalidArgument(
        absl::StrCat("tensor ", PrintableName(name), " is not dense and cannot be saved; call to_dense() first"));
  }
  *dtype = FindStoredDtype(tensor.scalar_type());
  if (*dtype == nullptr) {
    throw InvalidArgument(absl::StrCat("tensor ", PrintableName(name), " has dtype ",
                                       at::toString(tensor.scalar_type()),
                                       ", which .safetensors files here cannot hold"));
  }
  return tensor.detach().cpu().resolve_neg().contiguous();
}

// -------------------------------------------------------------------------------------------------------- files

// The place of the tensor that is meant among those of these names; see SelectTensor().
size_t Select(const std::vector<std::string>& names, const TensorPlace& place, const std::vector<std::string>& usual) {
  const auto find = [&](const std::string& name) { return std::find(names.begin(), names.end(), name); };
  const auto at = [&](auto found) { return static_cast<size_t>(found - names.begin()); };
  if (!place.tensor.empty()) {
    if (const auto found = find(place.tensor); found != names.end()) return at(found);
    throw InvalidArgument(
        absl::StrCat(place.path, " has no tensor ", Quoted(place.tensor), "; it has ", Listed(names)));
  }
  for (const std::string& name : usual) {
    if (const auto found = find(name); found != names.end()) return at(found);
  }
  if (names.empty()) throw InvalidArgument(absl::StrCat(place.path, " holds no tensor"));
  if (names.size() == 1) return 0;
  throw InvalidArgument(absl::StrCat(place.path, " holds several tensors (", Listed(names), ") and none is called ",
                                     usual.front(), "; say which with ", place.path, "#NAME"));
}

// The open descriptor that a path stands for, as /dev/stdout does; -1: none.
int DescriptorOf(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int fd = -1;
    if (absl::StartsWith(path, folder) && absl::SimpleAtoi(path.substr(std::strlen(folder)), &fd)) return fd;
  }
  return -1;
}

void WriteDirectly(const std::string& path, const std::string& bytes) {
  // Write to a descriptor that is open already: a newly opened file would have its own offset, and later output would
  // be written over it.
  if (const int own = DescriptorOf(path); own >= 0) {
    const int error = WriteAll(own, bytes.data(), bytes.size());
    if (error != 0) throw FileError("write", path, error);
    return;
  }
  // Appends: others may write there, too.
  Descriptor file(OpenFile(path, O_WRONLY | O_APPEND));
  if (file.get() < 0) throw FileError("write", path, errno);
  const int error = WriteAll(file.get(), bytes.data(), bytes.size());
  if (error != 0) throw FileError("write", path, error);
  if (!file.Close()) throw FileError("write", path, errno);
}

// The path behind symbolic links: replacing a link by a file would surprise. Itself where there is no such file yet.
std::string BehindLinks(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

// Throws FailedPrecondition for a log of decisions that is open, here or in another process: its records would be gone.
// Only logs are locked in this way (see DecisionLog).
void RequireNoOpenLog(const std::string& path) {
  const Descriptor file(OpenFile(path, O_RDONLY | O_NONBLOCK));
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (file.get() < 0 || ::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return;
  throw FailedPrecondition(
      absl::StrCat("cannot write ", path, ": it is open as a log of decisions, whose records would be replaced"));
}

// A new file in the folder of `target`, opened for writing.
int OpenBeside(const std::string& path, const std::string& target, std::string* name) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  while (true) {
    // Not derived from the target's name, which may already be as long as a name can be.
    *name = absl::StrCat(folder, ".addend-", ::getpid(), "-", counter.fetch_add(1), ".tmp");
    const int fd = OpenFile(*name, O_WRONLY | O_CREAT | O_EXCL);
    if (fd >= 0) return fd;
    if (errno != EEXIST) throw FileError("write", path, errno);
  }
}

}  // namespace

const at::Tensor* TensorFile::Find(const std::string& name) const {
  for (const auto& entry : tensors) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

TensorFile DecodeTensorFile(const std::string& bytes, const std::string& name) {
  TensorLayout layout = ReadTensorLayout(bytes, bytes.size(), name);
  TensorFile file;
  file.metadata = std::move(layout.metadata);
  for (const StoredTensor& stored : layout.tensors) file.tensors.emplace_back(stored.name, Decode(stored, bytes));
  return file;
}

std::string ReadFileWhole(const std::string& path) {
  uint64_t size = 0;
  const Descriptor file(OpenToRead(path, &size));
  return ReadAt(file.get(), path, 0, size);
}

TensorFile ReadTensorFile(const std::string& path) { return DecodeTensorFile(ReadFileWhole(path), path); }

std::string TensorFile::Names() const {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
}

TensorPlace ParseTensorPlace(const std::string& text) {
  const size_t hash = text.rfind('#');
  struct stat status = {};
  if (hash == std::string::npos || stat(text.c_str(), &status) == 0) return {text, ""};
  return {text.substr(0, hash), text.substr(hash + 1)};
}

const std::pair<std::string, at::Tensor>& SelectTensor(const TensorFile& file, const TensorPlace& place,
                                                       const std::vector<std::string>& usual) {
  std::vector<std::string> names;
  for (const auto& entry : file.tensors) names.push_back(entry.first);
  return file.tensors[Select(names, place, usual)];
}

TensorLayout ReadLayoutOfFile(const std::string& path) {
  uint64_t size = 0;
  const Descriptor file(OpenToRead(path, &size));
  const std::string beginning = ReadAt(file.get(), path, 0, std::min<uint64_t>(size, kTensorHead));
  const uint64_t head = HeadSize(beginning, size);
  return ReadTensorLayout(head > beginning.size() ? ReadAt(file.get(), path, 0, head) : beginning, size, path);
}

StoredRows::StoredRows(const TensorPlace& place, const std::vector<std::string>& usual) : path_(place.path) {
  TensorLayout layout = ReadLayoutOfFile(path_);
  std::vector<std::string> names;
  for (const StoredTensor& stored : layout.tensors) names.push_back(stored.name);
  stored_ = std::move(layout.tensors[Select(names, place, usual)]);
  metadata_ = std::move(layout.metadata);
  if (stored_.shape.empty())
    throw InvalidArgument(absl::StrCat(stored_.place, " is a single number, which has no rows"));
  if (stored_.fortran_order && stored_.shape.size() > 1) {
    throw InvalidArgument(absl::StrCat(stored_.place,
                                       " is in Fortran order, so that no row stands together; save it "
                                       "in C order, as numpy.ascontiguousarray() gives it"));
  }
}

at::Tensor StoredRows::Read(int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > rows() || count > rows() - first) {
    throw InvalidArgument(absl::StrCat("rows ", first, " to ", first + count - 1, " are asked for, but ", place(),
                                       " has ", rows(), ", counted from 0"));
  }
  std::vector<int64_t> shape = stored_.shape;
  shape[0] = count;
  const uint64_t bytes = rows() == 0 ? 0 : (stored_.end - stored_.begin) / static_cast<uint64_t>(rows());
  const uint64_t size = bytes * static_cast<uint64_t>(count);
  const Descriptor file(OpenToRead(path_));
  const std::string data = ReadAt(file.get(), path_, stored_.begin + bytes * static_cast<uint64_t>(first), size);
  return CopyToTensor(stored_, shape, data.data(), size);
}

std::string EncodeSafetensors(const TensorFile& file) {
  TensorLayout layout;
  layout.metadata = file.metadata;
  std::vector<at::Tensor> stored;
  for (const auto& [name, tensor] : file.tensors) {
    StoredTensor own;
    own.name = name;
    stored.push_back(Storable(name, tensor, &own.dtype));
    own.shape = tensor.sizes().vec();
    own.begin = layout.tensors.size();  // which of them it is
    layout.tensors.push_back(std::move(own));
  }
  std::stable_sort(layout.tensors.begin(), layout.tensors.end(),
                   [](const StoredTensor& a, const StoredTensor& b) { return a.dtype->size > b.dtype->size; });
  std::string bytes = EncodeSafetensorsHead(layout);
  size_t size = bytes.size();
  for (const at::Tensor& tensor : stored) size += tensor.nbytes();
  bytes.reserve(size);
  for (const StoredTensor& own : layout.tensors) {
    const at::Tensor& tensor = stored[own.begin];
    if (tensor.numel() > 0) bytes.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  }
  return bytes;
}

void WriteTensorFile(const std::string& path, const TensorFile& file) {
  std::string bytes;
  try {
    bytes = EncodeSafetensors(file);
  } catch (const Error& error) {
    throw Error(error.code(), absl::StrCat("cannot write ", path, ": ", error.what()));
  }
  WriteFileWhole(path, bytes);
}

void WriteFileWhole(const std::string& path, const std::string& bytes) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && (!S_ISREG(status.st_mode) || absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/"))) {
    return WriteDirectly(path, bytes);
  }
  // A rename asks only the folder for permission; a file that is protected should stay as it is. One that somebody
  // removed since it was looked at protects nothing.
  if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
    throw FileError("write", path, errno);
  }

  const std::string target = BehindLinks(path);
  if (exists) RequireNoOpenLog(path);
  std::string temporary;
  Descriptor file(OpenBeside(path, target, &temporary));
  int error = WriteAll(file.get(), bytes.data(), bytes.size());
  // Keeps who may read the file; where that fails, the new file has the usual permissions.
  if (error == 0 && exists && ::fchmod(file.get(), status.st_mode & 0777) != 0) errno = 0;
  if (!file.Close() && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    throw FileError("write", path, error);
  }
}

std::string Sha256OfFile(const std::string& path) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  uint64_t size = 0;
  const Descriptor file(OpenToRead(path, &size));
  Sha256Digest digest;
  for (uint64_t at = 0; at < size; at += kPiece) {
    const std::string piece = ReadAt(file.get(), path, at, std::min(kPiece, size - at));
    digest.Add(piece.data(), piece.size());
  }
  return digest.Hex();
}

}  // namespace addend

// Reads tensors from .npy and .safetensors files and writes .safetensors; reads and writes whole files, and computes
// their SHA-256.
#ifndef ADDEND_CORE_PROGRAM_TENSOR_IO_H_
#define ADDEND_CORE_PROGRAM_TENSOR_IO_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/program/tensor_layout.h"

namespace addend {

struct TensorFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // in the order of their data in the file
  std::map<std::string, std::string> metadata;              // __metadata__ of .safetensors

  // Null where no tensor has this name.
  const at::Tensor* Find(const std::string& name) const;
  // All names, with commas between them.
  std::string Names() const;
};

// Reads a .npy file (one tensor, named "") or a .safetensors file; the content decides which, not the name. The tensors
// are contiguous, on the CPU, and own their memory. Throws NotFound if there is no such file, and InvalidArgument, with
// the path in the message, for whatever is malformed. No content may crash the reader or make it allocate more than a
// small multiple of the file's size.
TensorFile ReadTensorFile(const std::string& path);
// Reads the content of such a file from memory; `name` stands for the path in messages.
TensorFile DecodeTensorFile(const std::string& bytes, const std::string& name);

// A tensor in a file, "FILE" or "FILE#NAME". If a file has the whole text as its name, the whole text is its path.
// `tensor` is empty if no name is given.
struct TensorPlace {
  std::string path;
  std::string tensor;
};
TensorPlace ParseTensorPlace(const std::string& text);
// Returns the tensor at the place: the named one, else the first of the `usual` names that the file has, else the
// file's only tensor. Throws InvalidArgument that lists the tensors of the file.
const std::pair<std::string, at::Tensor>& SelectTensor(const TensorFile& file, const TensorPlace& place,
                                                       const std::vector<std::string>& usual);

// Reads from the header of a .npy or .safetensors file which tensors it holds, and where. Throws NotFound if there is
// no such file, and InvalidArgument for one that is malformed.
TensorLayout ReadLayoutOfFile(const std::string& path);

// A tensor in a .npy or .safetensors file, of which rows are read without the rest; dimension 0 counts them. Any number
// of threads may read at once.
class StoredRows {
 public:
  // Reads the file's header. The tensor is chosen as SelectTensor() does. Throws NotFound if there is no such file, and
  // InvalidArgument for one that is malformed, for a tensor without dimensions, and for a .npy file in Fortran order,
  // in which rows do not stand together.
  StoredRows(const TensorPlace& place, const std::vector<std::string>& usual);

  // "rows.npy", "rows.safetensors: tensor x": for messages.
  const std::string& place() const { return stored_.place; }
  int64_t rows() const { return stored_.shape[0]; }
  const std::vector<int64_t>& shape() const { return stored_.shape; }
  at::ScalarType dtype() const { return stored_.dtype->type; }
  // The metadata of the file.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // The rows [first, first + count), contiguous, on the CPU. Throws NotFound where the file is gone, and
  // InvalidArgument for rows that there are not, and where the file became shorter.
  at::Tensor Read(int64_t first, int64_t count) const;

 private:
  std::string path_;
  StoredTensor stored_;
  std::map<std::string, std::string> metadata_;
};

// Writes .safetensors. Tensors with larger elements come first, otherwise in the given order: the format allows no
// gaps, and readers that map the file need each tensor aligned. Throws InvalidArgument for what the format cannot hold.
std::string EncodeSafetensors(const TensorFile& file);
void WriteTensorFile(const std::string& path, const TensorFile& file);

// Returns the bytes of a file, as many as it had when it was opened. Throws NotFound if there is none, and
// InvalidArgument for what is no regular file, which may have no end.
std::string ReadFileWhole(const std::string& path);

// Creates a regular file or replaces its content, all or nothing: the bytes go to a temporary file in the same folder,
// which is then renamed. Symbolic links are followed. A path that cannot be replaced (a pipe, a terminal, whatever lies
// under /dev or /proc) is written to directly. Throws FailedPrecondition for a log of decisions that is open.
void WriteFileWhole(const std::string& path, const std::string& bytes);

// Returns the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits. Throws as ReadFileWhole does.
std::string Sha256OfFile(const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_TENSOR_IO_H_

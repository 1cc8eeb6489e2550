// Tensors in files: .npy and .safetensors in, .safetensors out; whole files and their SHA-256.
#ifndef ADDEND_CORE_PROGRAM_TENSOR_IO_H_
#define ADDEND_CORE_PROGRAM_TENSOR_IO_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace addend {

struct TensorFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // in the order of their data in the file
  std::map<std::string, std::string> metadata;              // __metadata__ of .safetensors

  // Null where no tensor has this name.
  const at::Tensor* Find(const std::string& name) const;
  // All names, with commas between them.
  std::string Names() const;
};

// Reads .npy (one tensor, its name is "") or .safetensors; the content decides which, not the name. The tensors are
// contiguous, on the CPU, and own their memory. Throws NotFound where there is no such file and InvalidArgument, with
// the path in the message, for whatever is malformed: no content may crash the reader or make it allocate more than a
// small multiple of the file's size.
TensorFile ReadTensorFile(const std::string& path);
// The same for content that is in memory already; `name` stands for the path in messages.
TensorFile DecodeTensorFile(const std::string& bytes, const std::string& name);

// A tensor in a file, "FILE" or "FILE#NAME"; a file that is called so as a whole comes first. `tensor` is empty where
// no name is given.
struct TensorPlace {
  std::string path;
  std::string tensor;
};
TensorPlace ParseTensorPlace(const std::string& text);
// The tensor that is asked for in the file at the place, else the first of the usual names that there is, else the only
// one. Throws InvalidArgument that says which there are.
const std::pair<std::string, at::Tensor>& SelectTensor(const TensorFile& file, const TensorPlace& place,
                                                       const std::vector<std::string>& usual);

// .safetensors. Tensors with larger elements come first, else in the given order: the format allows no gaps, and
// readers that map the file need each tensor aligned. Throws InvalidArgument for what the format cannot hold.
std::string EncodeSafetensors(const TensorFile& file);
void WriteTensorFile(const std::string& path, const TensorFile& file);

// The bytes of a file. Throws NotFound where there is none.
std::string ReadFileWhole(const std::string& path);

// Replaces the content of a regular file or creates it, all or nothing: the bytes go to a temporary file in the same
// folder, which is then renamed. Symbolic links are followed. What cannot be replaced (a pipe, a terminal, whatever
// lies under /dev or /proc) is written to directly.
void WriteFileWhole(const std::string& path, const std::string& bytes);

// As 64 lower-case hexadecimal digits.
std::string Sha256(const std::string& bytes);
std::string Sha256OfFile(const std::string& path);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_TENSOR_IO_H_

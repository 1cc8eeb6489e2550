// Layout of .npy and .safetensors files: their headers, without the numbers.
#ifndef ADDEND_CORE_PROGRAM_TENSOR_LAYOUT_H_
#define ADDEND_CORE_PROGRAM_TENSOR_LAYOUT_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace addend {

// A type of numbers that these files can hold.
struct StoredDtype {
  at::ScalarType type;
  int64_t size;             // of an element, in bytes
  const char* npy;          // type code without byte order; empty where numpy has no such type
  const char* safetensors;  // its name there
};
// Null where the files cannot hold such numbers.
const StoredDtype* FindStoredDtype(at::ScalarType type);

struct StoredTensor {
  std::string name;   // empty in .npy
  std::string place;  // for messages: "rows.npy", "rows.safetensors: tensor x"
  const StoredDtype* dtype = nullptr;
  std::vector<int64_t> shape;
  bool fortran_order = false;  // the first dimension runs fastest, only in .npy
  uint64_t begin = 0;          // of its bytes, from the beginning of the file
  uint64_t end = 0;
};

struct TensorLayout {
  std::vector<StoredTensor> tensors;            // in the order of their data in the file
  std::map<std::string, std::string> metadata;  // __metadata__ of .safetensors
};

// Reads the header. `head`: the file's beginning, of at least HeadSize() bytes; `size`: of the whole file, in bytes;
// `name` stands for the file in messages. Throws InvalidArgument for whatever is malformed, also where the tensors do
// not take exactly the bytes behind the header.
TensorLayout ReadTensorLayout(const std::string& head, uint64_t size, const std::string& name);

// How many bytes of a file its header takes, and what tells so, but no more than the file has; told by its first
// kTensorHead bytes, or all that it has. 0 for a file of another format.
inline constexpr size_t kTensorHead = 16;
uint64_t HeadSize(const std::string& beginning, uint64_t size);

// The length and the header of a .safetensors file that holds these tensors one behind the other: where each lies is
// told by its shape, not by `begin` and `end`. Throws InvalidArgument for two tensors of one name, and for texts that
// are not UTF-8.
std::string EncodeSafetensorsHead(const TensorLayout& layout);

inline constexpr char kSafetensorsMetadata[] = "__metadata__";
inline constexpr size_t kSafetensorsLength = 8;  // bytes of the length before the header of .safetensors

// Names come from files: whatever they hold, a message stays one line of text.
std::string PrintableName(const std::string& text);
// Every complaint about content: which file, then what is wrong with it.
Error MalformedFile(const std::string& name, const std::string& what);

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_TENSOR_LAYOUT_H_

// Tensors over bytes of a file of weights: nothing is copied where it is mapped and the bytes are aligned.
#ifndef ADDEND_CORE_WEIGHTS_STORAGES_H_
#define ADDEND_CORE_WEIGHTS_STORAGES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/weights/mapped_file.h"
#include "core/weights/memory_budget.h"

namespace addend::weights {

// A storage that tensors share.
struct SharedStorage {
  c10::Storage storage;
  bool holds_booleans = false;  // every byte is 0 or 1: looked at once
};

// Makes a storage of bytes: they themselves, kept by their owner, where they have one and are aligned for elements of
// `alignment` bytes; else a copy.
SharedStorage MakeStorage(const Bytes& bytes, size_t alignment, MemoryBudget* budget);

// A tensor within a storage.
struct Strided {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

// Makes a tensor on the CPU. Throws InvalidArgument, which begins with `where`, if it does not lie within the storage,
// or has truth values that are neither 0 nor 1.
at::Tensor MakeTensor(SharedStorage& storage, const Strided& strided, const std::string& where);

}  // namespace addend::weights

#endif  // ADDEND_CORE_WEIGHTS_STORAGES_H_

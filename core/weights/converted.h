// The types and the device that a model computes in, in place of those of its file.
#ifndef ADDEND_CORE_WEIGHTS_CONVERTED_H_
#define ADDEND_CORE_WEIGHTS_CONVERTED_H_

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>

#include "absl/container/flat_hash_set.h"

namespace addend::weights {

// The type that the model computes with, by the one that its file names; null: no type changes.
using DtypeMap = std::function<c10::ScalarType(c10::ScalarType)>;

// Maps floating-point types, and complex ones, to `dtype` where it holds more, or where weights have the type: `own`.
// `dtype` is a floating-point type.
DtypeMap MapTo(c10::ScalarType dtype, absl::flat_hash_set<c10::ScalarType> own);

// The current device of a type, "cuda:0" for "cuda", as tensors that are made there say.
c10::Device WithIndex(c10::Device device);

}  // namespace addend::weights

#endif  // ADDEND_CORE_WEIGHTS_CONVERTED_H_

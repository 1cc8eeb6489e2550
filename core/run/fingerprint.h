// Fingerprints of what a call gave: they tell, after it ran again, whether it gave the same.
#ifndef ADDEND_CORE_RUN_FINGERPRINT_H_
#define ADDEND_CORE_RUN_FINGERPRINT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace addend {

// A hash of the bits of at most 2048 elements, evenly spread, of each of two one-dimensional tensors; the second may be
// undefined. All NaN are the same.
uint64_t FingerprintOf(const at::Tensor& value, const at::Tensor& reference);

}  // namespace addend

#endif  // ADDEND_CORE_RUN_FINGERPRINT_H_

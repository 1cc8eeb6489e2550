// Numbers that tests draw.
#ifndef ADDEND_CORE_PROGRAM_RANDOM_TESTING_H_
#define ADDEND_CORE_PROGRAM_RANDOM_TESTING_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <cstdint>

namespace addend {

// Normal numbers that depend on nothing but the seed.
inline at::Tensor Random(at::IntArrayRef sizes, uint64_t seed, at::ScalarType dtype = at::kDouble) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(dtype));
}

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RANDOM_TESTING_H_

// A device that is not the CPU, on any machine, for tests: README.md. Loading the library makes it.
#ifndef ADDEND_TESTS_FAR_DEVICE_H_
#define ADDEND_TESTS_FAR_DEVICE_H_

#include <c10/core/Device.h>

#include <cstdint>

namespace addend::far {

at::Device TheDevice();

// How many operators it has computed so far.
int64_t KernelsRun();

}  // namespace addend::far

#endif  // ADDEND_TESTS_FAR_DEVICE_H_

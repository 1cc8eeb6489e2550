// A device that is not the CPU, on any machine, for tests: README.md. Loading the library makes it.
#ifndef ADDEND_TESTS_FAR_DEVICE_H_
#define ADDEND_TESTS_FAR_DEVICE_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

// How often the host has read numbers of the device so far, and so would have waited for a GPU; -1 without the mode
// "count". A program that preloads libfar.so finds it by dlsym.
extern "C" int64_t addend_far_host_reads();

namespace addend::far {

at::Device TheDevice();

// How many operators it has computed so far.
int64_t KernelsRun();

// Sets the ways in which the device differs from the CPU, in the words of README.md, in place of those of the
// environment variable ADDEND_FAR. Throws c10::Error if a word is unknown.
void SetModes(const std::string& modes);

}  // namespace addend::far

#endif  // ADDEND_TESTS_FAR_DEVICE_H_

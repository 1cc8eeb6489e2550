// The state from which random numbers are drawn, kept and put back.
#ifndef ADDEND_CORE_PROGRAM_RANDOM_STATE_H_
#define ADDEND_CORE_PROGRAM_RANDOM_STATE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace addend {

// From which operators on a device draw that are given no generator: the CPU's, where the device has none of its own.
at::Generator DefaultGenerator(const at::Device& device);

// RAII: puts the states of default generators back, so that several runs draw the same.
class RandomState {
 public:
  // Of the CPU, and of the devices on which the tensors are.
  explicit RandomState(const std::vector<at::Tensor>& tensors);
  ~RandomState();
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;
  void Restore();

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RANDOM_STATE_H_

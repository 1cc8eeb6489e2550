// The state of random number generators, saved and restored.
#ifndef ADDEND_CORE_PROGRAM_RANDOM_STATE_H_
#define ADDEND_CORE_PROGRAM_RANDOM_STATE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace addend {

// Returns the generator that operators on a device use if they are given none: the CPU's, where the device has none of
// its own.
at::Generator DefaultGenerator(const at::Device& device);

// States of generators, as they were when each was added.
class GeneratorStates {
 public:
  // Adds one; undefined ones and those that are here already are left out.
  void Add(at::Generator generator);
  void Restore();
  void Clear() { states_.clear(); }

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// RAII: restores the states of default generators, so that several runs draw the same numbers.
class RandomState {
 public:
  // Saves the states of the CPU's generator and of those of the tensors' devices.
  explicit RandomState(const std::vector<at::Tensor>& tensors);
  ~RandomState();
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;
  void Restore();
  // Lets the generators go on as they are: nothing is restored any more.
  void Leave() { states_.Clear(); }

 private:
  GeneratorStates states_;
};

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_RANDOM_STATE_H_

#include "core/program/random_state.h"

#include <ATen/Context.h>

#include <algorithm>
#include <exception>
#include <mutex>

namespace addend {

at::Generator DefaultGenerator(const at::Device& device) {
  try {
    return at::globalContext().defaultGenerator(device);
  } catch (const c10::Error& none) {
    // LibTorch has no other way to say so.
    return at::globalContext().defaultGenerator(at::kCPU);
  }
}

RandomState::RandomState(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices = {at::Device(at::kCPU)};
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) devices.push_back(tensor.device());
  }
  for (const at::Device& device : devices) {
    at::Generator generator = DefaultGenerator(device);
    const bool known =
        std::any_of(states_.begin(), states_.end(), [&](const auto& state) { return state.first == generator; });
    if (known) continue;
    const std::lock_guard<std::mutex> lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }
}

RandomState::~RandomState() {
  try {
    Restore();
  } catch (const std::exception&) {  // a generator that refuses its own state goes on as it is
  }
}

void RandomState::Restore() {
  for (auto& [generator, state] : states_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace addend

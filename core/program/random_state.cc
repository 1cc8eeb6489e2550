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

void GeneratorStates::Add(at::Generator generator) {
  const auto is_this = [&](const auto& state) { return state.first == generator; };
  if (!generator.defined() || std::any_of(states_.begin(), states_.end(), is_this)) return;
  const std::lock_guard<std::mutex> lock(generator.mutex());
  states_.emplace_back(generator, generator.get_state());
}

void GeneratorStates::Restore() {
  for (auto& [generator, state] : states_) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
}

RandomState::RandomState(const std::vector<at::Tensor>& tensors) {
  states_.Add(DefaultGenerator(at::kCPU));
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) states_.Add(DefaultGenerator(tensor.device()));
  }
}

void RandomState::Restore() { states_.Restore(); }

RandomState::~RandomState() {
  try {
    Restore();
  } catch (const std::exception&) {  // a generator that refuses its own state goes on as it is
  }
}

}  // namespace addend

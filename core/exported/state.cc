#include "core/exported/state.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace addend::exported {

std::map<std::string, at::Tensor> Converted(const std::map<std::string, at::Tensor>& tensors,
                                            const std::function<c10::ScalarType(c10::ScalarType)>& dtype,
                                            c10::Device device, bool copy) {
  std::map<std::pair<const void*, c10::ScalarType>, at::Tensor> memories;
  std::map<std::string, at::Tensor> converted;
  for (const auto& [name, given] : tensors) {
    if (!given.defined()) continue;
    const at::Tensor tensor = given.detach();
    const c10::ScalarType type = dtype ? dtype(tensor.scalar_type()) : tensor.scalar_type();
    if (!copy && type == tensor.scalar_type() && device == tensor.device()) {
      converted.emplace(name, tensor);
      continue;
    }
    at::Tensor& memory = memories[{tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()}];
    if (!memory.defined()) {
      // All of the storage, as far as it holds whole elements.
      const auto count = static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size());
      memory = at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {count}, {1}).to(device, type, false, true);
    }
    // Detached: its views then ask for derivatives where it does, and not where `memory` does.
    converted.emplace(name, memory.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset()).detach());
  }
  return converted;
}

}  // namespace addend::exported

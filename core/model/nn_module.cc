#include "core/model/nn_module.h"

namespace addend {

std::shared_ptr<Model> FromModule(const torch::nn::Module& module,
                                  std::function<at::Tensor(const std::vector<at::Tensor>&)> forward) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& item : module.named_parameters()) named.emplace_back(item.key(), item.value());
  std::vector<std::string> buffers;
  for (const auto& item : module.named_buffers()) {
    named.emplace_back(item.key(), item.value());
    buffers.push_back(item.key());
  }
  std::vector<std::string> paths;
  for (const auto& item : module.named_modules(std::string(), /*include_self=*/false)) paths.push_back(item.key());
  return FromFunction(std::move(forward), std::move(named), std::move(paths), std::move(buffers));
}

}  // namespace addend

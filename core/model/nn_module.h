// C++ torch::nn::Modules as models. Apart from model.h, because this header includes LibTorch's C++ frontend.
#ifndef ADDEND_CORE_MODEL_NN_MODULE_H_
#define ADDEND_CORE_MODEL_NN_MODULE_H_

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/model/model.h"

namespace addend {

// Makes a model with the parameters, buffers and paths of `module` that runs `forward`.
std::shared_ptr<Model> FromModule(const torch::nn::Module& module,
                                  std::function<at::Tensor(const std::vector<at::Tensor>&)> forward);

// Makes a model of a module with forward(Tensor) -> Tensor, which is put into evaluation mode and shared.
template <typename M>
std::shared_ptr<Model> FromModule(std::shared_ptr<M> module) {
  module->eval();
  return FromModule(static_cast<const torch::nn::Module&>(*module),
                    [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); });
}

}  // namespace addend

#endif  // ADDEND_CORE_MODEL_NN_MODULE_H_

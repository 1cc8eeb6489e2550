#include "core/model/model.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "core/base/error.h"

namespace addend {
namespace {

class FunctionModel : public Model {
 public:
  FunctionModel(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                std::vector<std::pair<std::string, at::Tensor>> named, std::vector<std::string> paths,
                std::vector<std::string> buffers)
      : function_(std::move(function)),
        named_(std::move(named)),
        paths_(std::move(paths)),
        buffers_(std::move(buffers)) {}

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& input : inputs) {
      if (!input.isTensor()) throw InvalidArgument("a C++ function takes tensors only");
      tensors.push_back(input.toTensor());
    }
    return function_(tensors);
  }
  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override { return named_; }
  std::vector<std::string> BufferNames() const override { return buffers_; }
  std::vector<std::string> ModulePaths() const override { return paths_; }

 private:
  std::function<at::Tensor(const std::vector<at::Tensor>&)> function_;
  std::vector<std::pair<std::string, at::Tensor>> named_;
  std::vector<std::string> paths_;
  std::vector<std::string> buffers_;
};

}  // namespace

std::shared_ptr<Model> Model::To(const c10::Device& /*device*/, std::optional<c10::ScalarType> /*dtype*/) const {
  throw Unimplemented("only models from files can be copied to a device; move this one where it is made");
}

std::shared_ptr<ModelState> Model::KeepState() const {
  const std::vector<std::string> buffers = BufferNames();
  auto state = std::make_shared<KeptTensors>();
  for (const auto& [name, tensor] : NamedTensors()) {
    const bool buffer = std::find(buffers.begin(), buffers.end(), name) != buffers.end();
    state->Add(name, tensor, buffer);
  }
  return state;
}

std::shared_ptr<Model> FromFunction(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                                    std::vector<std::pair<std::string, at::Tensor>> named,
                                    std::vector<std::string> module_paths, std::vector<std::string> buffers) {
  if (!function) throw InvalidArgument("the model function is empty");
  return std::make_shared<FunctionModel>(std::move(function), std::move(named), std::move(module_paths),
                                         std::move(buffers));
}

}  // namespace addend

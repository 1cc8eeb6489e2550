#include "core/explain/model.h"

#include <c10/core/GradMode.h>

#include "core/base/error.h"

namespace addend {
namespace {

class FunctionModel : public Model {
 public:
  FunctionModel(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                std::vector<std::pair<std::string, at::Tensor>> named, std::vector<std::string> paths)
      : function_(std::move(function)), named_(std::move(named)), paths_(std::move(paths)) {}

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& input : inputs) {
      if (!input.isTensor()) throw InvalidArgument("a C++ function takes tensors only");
      tensors.push_back(input.toTensor());
    }
    return function_(tensors);
  }
  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override { return named_; }
  std::vector<std::string> ModulePaths() const override { return paths_; }

 private:
  std::function<at::Tensor(const std::vector<at::Tensor>&)> function_;
  std::vector<std::pair<std::string, at::Tensor>> named_;
  std::vector<std::string> paths_;
};

}  // namespace

std::shared_ptr<Model> FromFunction(std::function<at::Tensor(const std::vector<at::Tensor>&)> function,
                                    std::vector<std::pair<std::string, at::Tensor>> named,
                                    std::vector<std::string> module_paths) {
  if (!function) throw InvalidArgument("the model function is empty");
  return std::make_shared<FunctionModel>(std::move(function), std::move(named), std::move(module_paths));
}

}  // namespace addend

// Arguments of eager calls, and how they are bound to the schema of an operator.
#ifndef ADDEND_CORE_EAGER_ARGUMENT_H_
#define ADDEND_CORE_EAGER_ARGUMENT_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/composition/composition.h"
#include "core/intercept/operator.h"

namespace addend {

// One argument of a call. It converts from what operators take: compositions, tensors, numbers, bools, text, dtypes,
// devices, lists of these, std::nullopt for None.
class Argument {
 public:
  enum class Form {
    kNone,
    kTensor,  // of numbers without parts
    kComposition,
    kVariable,     // a composition that an in-place operator gives a new state
    kConstant,     // a number, bool, text, device or list of numbers, as LibTorch passes it
    kEnumeration,  // a dtype, layout or memory format, which LibTorch passes as an integer
    kList,         // anything in a list
  };

  // NOLINTBEGIN(google-explicit-constructor): arguments are written as they are.
  Argument(std::nullopt_t) {}
  Argument(const Composition& composition)
      : form_(Form::kComposition), composition_(std::make_shared<const Composition>(composition)) {}
  // An argument that the operator writes: after the call the variable holds the new state.
  Argument(Composition* variable);
  Argument(const at::Tensor& tensor);
  Argument(const TensorOrComposition& either);
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Argument(T number) : form_(Form::kConstant) {
    if constexpr (std::is_same_v<T, bool>) {
      constant_ = number;
    } else if constexpr (std::is_integral_v<T>) {
      constant_ = static_cast<int64_t>(number);
    } else {
      constant_ = static_cast<double>(number);
    }
  }
  Argument(const at::Scalar& number) : form_(Form::kConstant), constant_(number) {}
  Argument(const char* text) : Argument(std::string(text)) {}
  Argument(const std::string& text) : form_(Form::kConstant), constant_(text) {}
  Argument(at::ScalarType dtype) : form_(Form::kEnumeration), constant_(static_cast<int64_t>(dtype)) {}
  Argument(at::Layout layout) : form_(Form::kEnumeration), constant_(static_cast<int64_t>(layout)) {}
  Argument(at::MemoryFormat format) : form_(Form::kEnumeration), constant_(static_cast<int64_t>(format)) {}
  Argument(at::Device device) : form_(Form::kConstant), constant_(device) {}
  // A value as LibTorch's interpreter would pass it. Tensors in it have no parts.
  Argument(const c10::IValue& value);
  Argument(at::IntArrayRef list) : form_(Form::kConstant), constant_(list.vec()) {}
  Argument(const std::vector<int64_t>& list) : form_(Form::kConstant), constant_(list) {}
  Argument(const std::vector<double>& list) : form_(Form::kConstant), constant_(list) {}
  Argument(const std::vector<bool>& list);
  // Lists of tensors and compositions; std::nullopt in a list is None.
  Argument(std::vector<Argument> list) : form_(Form::kList), list_(std::move(list)) {}
  template <typename T, typename = std::enable_if_t<std::is_same_v<T, at::Tensor> || std::is_same_v<T, Composition> ||
                                                    std::is_same_v<T, TensorOrComposition>>>
  Argument(const std::vector<T>& list) : Argument(std::vector<Argument>(list.begin(), list.end())) {}
  template <typename T>
  Argument(const std::optional<T>& optional) : Argument(optional ? Argument(*optional) : Argument(std::nullopt)) {}
  // NOLINTEND(google-explicit-constructor)

  Form form() const { return form_; }
  const std::string& name() const { return name_; }
  const at::Tensor& tensor() const { return tensor_; }
  const Composition* composition() const { return form_ == Form::kVariable ? variable_ : composition_.get(); }
  Composition* variable() const { return variable_; }
  const c10::IValue& constant() const { return constant_; }
  const std::vector<Argument>& list() const { return list_; }

  // "composition f32[2, 3] of 4", "f32[2]", "3", "[f32[2], None]"
  std::string Describe() const;

 private:
  friend Argument Named(std::string name, Argument argument);

  Form form_ = Form::kNone;
  std::string name_;
  at::Tensor tensor_;
  std::shared_ptr<const Composition> composition_;
  Composition* variable_ = nullptr;
  c10::IValue constant_;
  std::vector<Argument> list_;
};

// A keyword argument: Named("alpha", 2).
Argument Named(std::string name, Argument argument);

// An operator with the argument for each parameter of its schema; null: the default.
struct BoundCall {
  Operator op;
  std::vector<const Argument*> arguments;
};

// Finds the operator ("aten::add.Tensor", or "aten::add" where the arguments fit one overload best) and binds the
// arguments, which must outlive the result. Throws NotFound if there is no such operator, and InvalidArgument that says
// which argument is wrong and what it should be.
BoundCall Bind(const std::string& name, const std::vector<Argument>& arguments);

// Makes the arguments as the dispatcher takes them. `tensor_of`: gives the tensor that stands for an argument that is a
// tensor or a composition.
Stack MakeStack(const BoundCall& call, const std::function<at::Tensor(const Argument&)>& tensor_of);

}  // namespace addend

#endif  // ADDEND_CORE_EAGER_ARGUMENT_H_

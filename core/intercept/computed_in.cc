#include "core/intercept/computed_in.h"

#include <cstddef>

#include "core/intercept/replace_tensors.h"

namespace addend {
namespace {

// `own`, or what stands for it in a computation in `dtype`: that dtype, or its complex type, where own is narrower.
at::ScalarType WideDtype(at::ScalarType own, at::ScalarType dtype) {
  switch (own) {
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
      return dtype;
    case at::kComplexHalf:
    case at::kComplexFloat:
      return dtype == at::kDouble ? at::kComplexDouble : at::kComplexFloat;
    default:
      return own;
  }
}

at::Tensor Wide(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() ? tensor.to(WideDtype(tensor.scalar_type(), dtype)) : tensor;
}

}  // namespace

bool TakesFromTable(const c10::FunctionSchema& schema) { return schema.name() == "aten::embedding"; }

void WidenArguments(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack) {
  const size_t first = stack->size() - schema.arguments().size();
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    if (schema.arguments()[a].alias_info() != nullptr) continue;
    c10::IValue& argument = (*stack)[first + a];
    argument = ReplaceTensors(argument, [&](const at::Tensor& tensor) { return Wide(tensor, dtype); });
  }
}

void WidenResults(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack) {
  const size_t first = stack->size() - schema.returns().size();
  for (size_t r = 0; r < schema.returns().size(); ++r) {
    if (schema.returns()[r].alias_info() != nullptr) continue;
    c10::IValue& result = (*stack)[first + r];
    result = ReplaceTensors(result, [&](const at::Tensor& tensor) { return Wide(tensor, dtype); });
  }
}

Operator Operator::ComputedIn(at::ScalarType dtype) const {
  Operator wide = *this;
  wide.computed_in_ = dtype;
  return wide;
}

void Operator::AskForItsDtype(Stack* stack) const {
  if (computed_in_ == at::ScalarType::Undefined) return;
  const auto& arguments = schema().arguments();
  const size_t first = stack->size() - arguments.size();
  for (size_t a = 0; a < arguments.size(); ++a) {
    c10::IValue& argument = (*stack)[first + a];
    const std::string& name = arguments[a].name();
    if (!argument.isInt() || (name != "dtype" && name != "out_dtype")) continue;
    const auto asked = static_cast<at::ScalarType>(argument.toInt());
    argument = static_cast<int64_t>(WideDtype(asked, computed_in_));
  }
}

}  // namespace addend

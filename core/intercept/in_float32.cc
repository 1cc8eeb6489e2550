#include "core/intercept/in_float32.h"

#include <cstddef>

#include "core/intercept/replace_tensors.h"

namespace addend {
namespace {

bool IsHalf(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

at::Tensor Wide(const at::Tensor& tensor) {
  return tensor.defined() && IsHalf(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

}  // namespace

bool TakesFromTable(const c10::FunctionSchema& schema) { return schema.name() == "aten::embedding"; }

void WidenArguments(const c10::FunctionSchema& schema, Stack* stack) {
  const size_t first = stack->size() - schema.arguments().size();
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    if (schema.arguments()[a].alias_info() != nullptr) continue;
    c10::IValue& argument = (*stack)[first + a];
    argument = ReplaceTensors(argument, Wide);
  }
}

void WidenResults(Stack* stack) {
  for (c10::IValue& result : *stack) result = ReplaceTensors(result, Wide);
}

Operator Operator::InFloat32() const {
  Operator wide = *this;
  wide.in_float32_ = true;
  return wide;
}

void Operator::AskForFloat32(Stack* stack) const {
  if (!in_float32_) return;
  const auto& arguments = schema().arguments();
  const size_t first = stack->size() - arguments.size();
  for (size_t a = 0; a < arguments.size(); ++a) {
    c10::IValue& argument = (*stack)[first + a];
    const std::string& name = arguments[a].name();
    const bool asks = argument.isInt() && (name == "dtype" || name == "out_dtype");
    if (asks && IsHalf(static_cast<at::ScalarType>(argument.toInt()))) argument = static_cast<int64_t>(at::kFloat);
  }
}

}  // namespace addend

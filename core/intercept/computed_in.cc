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

// Whether numbers of this dtype are those of a computation in `dtype`, real or complex.
bool IsOf(at::ScalarType own, at::ScalarType dtype) {
  return own == dtype || own == (dtype == at::kDouble ? at::kComplexDouble : at::kComplexFloat);
}

}  // namespace

bool TakesFromTable(const c10::FunctionSchema& schema) { return schema.name() == "aten::embedding"; }

bool WidenArguments(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack) {
  const size_t first = stack->size() - schema.arguments().size();
  bool reads_numbers = false;
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    if (schema.arguments()[a].alias_info() != nullptr) continue;
    c10::IValue& argument = (*stack)[first + a];
    argument = ReplaceTensors(argument, [&](const at::Tensor& tensor) {
      const at::Tensor wide = Wide(tensor, dtype);
      reads_numbers = reads_numbers || (wide.defined() && IsOf(wide.scalar_type(), dtype));
      return wide;
    });
  }
  return reads_numbers;
}

WrittenWide::WrittenWide(const c10::FunctionSchema& schema, at::ScalarType dtype, Stack* stack) {
  const size_t first = stack->size() - schema.arguments().size();
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    const c10::AliasInfo* alias = schema.arguments()[a].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    c10::IValue& argument = (*stack)[first + a];
    argument = ReplaceTensors(argument, [&](const at::Tensor& tensor) {
      const at::Tensor wide = Wide(tensor, dtype);
      if (!wide.is_same(tensor)) copies_.push_back({tensor, wide});
      return wide;
    });
  }
}

void WrittenWide::PutBack(const c10::FunctionSchema& schema, Stack* stack) const {
  for (const Copy& copy : copies_) {
    // An out= argument may have got another size.
    if (copy.own.sizes() != copy.wide.sizes()) copy.own.resize_(copy.wide.sizes());
    copy.own.copy_(copy.wide);
  }
  const size_t first = stack->size() - schema.returns().size();
  for (size_t r = first; r < stack->size(); ++r) {
    (*stack)[r] = ReplaceTensors((*stack)[r], [&](const at::Tensor& tensor) {
      for (const Copy& copy : copies_) {
        if (tensor.is_same(copy.wide)) return copy.own;
      }
      return tensor;
    });
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
  // A view reads bytes as another dtype: those of a wider one are other bytes.
  if (computed_in_ == at::ScalarType::Undefined || schema().name() == "aten::view") return;
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

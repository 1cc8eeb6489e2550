#include "core/linearize/rerun.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>

#include "core/linearize/call_at_hand.h"
#include "core/program/written_aside.h"

namespace addend {

CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments) {
  const c10::FunctionSchema& schema = call.op.schema();
  return {RuleName(schema.name()), schema.overload_name(), &schema, std::move(arguments)};
}

std::vector<at::Tensor> Rerun(const Call& call, const std::vector<at::Tensor>& operands) {
  return Rerun(call, call.arguments, operands);
}

Stack StackOf(const Call& call, const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& operands,
              bool without_out) {
  Stack stack;
  size_t k = 0;
  const auto& arguments = call.op.schema().arguments();
  for (size_t a = 0; a < given.size(); ++a) {
    std::vector<at::Tensor> own;
    while (k < operands.size() && call.operands[k].argument == static_cast<int16_t>(a)) own.push_back(operands[k++]);
    if (without_out && arguments[a].is_out()) continue;
    const c10::TypePtr type = arguments[a].type();
    const bool optional_list = type->kind() == c10::TypeKind::ListType &&
                               type->expect<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType;
    if (optional_list && given[a].isIntList()) {
      c10::impl::GenericList list(type->expect<c10::ListType>()->getElementType());
      size_t next = 0;
      for (const int64_t present : given[a].toIntVector()) {
        list.push_back(present ? c10::IValue(own[next++]) : c10::IValue());
      }
      stack.emplace_back(list);
    } else if (type->kind() == c10::TypeKind::ListType && (!own.empty() || given[a].isNone())) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : own) list.push_back(tensor);
      stack.emplace_back(list);
    } else if (!own.empty()) {
      stack.emplace_back(own[0]);
    } else {
      stack.push_back(given[a]);
    }
  }
  return stack;
}

std::vector<at::Tensor> Rerun(const Call& call, const std::vector<c10::IValue>& given,
                              const std::vector<at::Tensor>& operands) {
  // out= forms are not differentiated: what asks for derivatives gets the form that returns its result.
  std::optional<Operator> functional;
  if (c10::GradMode::is_enabled()) functional = call.op.WithoutOut();
  std::vector<at::Tensor> own = operands;
  for (size_t k = 0; k < own.size(); ++k) {
    const c10::Argument& argument = call.op.schema().arguments()[call.operands[k].argument];
    if (argument.is_out()) {
      own[k] = at::empty({0}, own[k].options());
    } else if (call.operands[k].written || MayBeWrittenAside(argument)) {
      own[k] = own[k].clone();
    }
  }
  Stack stack = StackOf(call, given, own, functional.has_value());
  (functional ? *functional : call.op).Run(&stack);
  return TensorsIn(stack);
}

}  // namespace addend

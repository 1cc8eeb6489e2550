#include "core/program/invoke.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>

#include "core/program/recorder.h"
#include "core/program/view.h"
#include "core/program/written_aside.h"

namespace addend {
namespace {

std::vector<int16_t> PositionsOf(const Call& call) {
  std::vector<int16_t> positions;
  for (const Operand& operand : call.operands) positions.push_back(operand.argument);
  return positions;
}

// The element type of a list of tensors, optional or not; null for every other type.
c10::TypePtr TensorListElement(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType) type = type->expectRef<c10::OptionalType>().getElementType();
  if (type->kind() != c10::TypeKind::ListType) return nullptr;
  const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
  const bool optional = element->kind() == c10::TypeKind::OptionalType;
  const c10::TypePtr inner = optional ? element->expectRef<c10::OptionalType>().getElementType() : element;
  return inner->kind() == c10::TypeKind::TensorType ? element : nullptr;
}

}  // namespace

StackRecipe::StackRecipe(const Call& call) : StackRecipe(call.op.schema(), PositionsOf(call), /*without_out=*/false) {}

StackRecipe::StackRecipe(const c10::FunctionSchema& schema, const std::vector<int16_t>& positions, bool without_out) {
  const auto& arguments = schema.arguments();
  size_t k = 0;
  for (size_t a = 0; a < arguments.size(); ++a) {
    Argument own;
    while (k < positions.size() && positions[k] == static_cast<int16_t>(a)) {
      aside_.push_back(MayBeWrittenAside(arguments[a]));
      ++own.tensors;
      ++k;
    }
    own.may_lack = arguments[a].type()->kind() == c10::TypeKind::OptionalType;
    if (without_out && arguments[a].is_out()) {
      own.kind = Argument::Kind::kLeftOut;
    } else if (c10::TypePtr element = TensorListElement(arguments[a].type())) {
      const bool optional = element->kind() == c10::TypeKind::OptionalType;
      own.kind = optional ? Argument::Kind::kOptionalList : Argument::Kind::kList;
      own.element = std::move(element);
    } else if (own.tensors > 0) {
      own.kind = Argument::Kind::kTensor;
    }
    arguments_.push_back(std::move(own));
  }
}

Stack StackRecipe::Make(const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& tensors) const {
  Stack stack;
  stack.reserve(given.size());
  size_t k = 0;
  for (size_t a = 0; a < given.size(); ++a) {
    const Argument& own = arguments_[a];
    const size_t first = k;
    k += own.tensors;
    if (own.kind == Argument::Kind::kLeftOut) continue;
    const bool list = own.kind == Argument::Kind::kList || own.kind == Argument::Kind::kOptionalList;
    if (own.kind == Argument::Kind::kOptionalList && given[a].isIntList()) {
      c10::impl::GenericList made(own.element);
      size_t next = first;
      for (const int64_t present : given[a].toIntVector()) {
        made.push_back(present && next < k ? c10::IValue(tensors[next++]) : c10::IValue());
      }
      stack.emplace_back(std::move(made));
    } else if (list && (own.tensors > 0 || (given[a].isNone() && !own.may_lack))) {
      c10::List<at::Tensor> made;
      for (size_t t = first; t < k; ++t) made.push_back(tensors[t]);
      stack.emplace_back(std::move(made));
    } else if (own.kind == Argument::Kind::kTensor) {
      stack.emplace_back(tensors[first]);
    } else {
      stack.push_back(given[a]);
    }
  }
  return stack;
}

Invoked Invoke(const Call& call, const StackRecipe& recipe, const std::function<const at::Tensor&(size_t)>& storage,
               bool plain) {
  Invoked invoked;
  std::vector<at::Tensor> operands;
  operands.reserve(call.operands.size());
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Operand& operand = call.operands[k];
    if (!operand.written || operand.storage < 0) continue;
    const auto [own, is_new] = invoked.written.try_emplace(operand.storage);
    if (is_new) own->second = storage(k).clone();
  }
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const Operand& operand = call.operands[k];
    if (operand.storage < 0) {
      operands.emplace_back();
      continue;
    }
    const auto own = invoked.written.empty() ? invoked.written.end() : invoked.written.find(operand.storage);
    at::Tensor tensor = GivenAgain(own != invoked.written.end() ? own->second : storage(k), operand);
    operands.push_back(!operand.written && recipe.WritesAside(k) ? tensor.clone() : tensor);
    if (operand.written) invoked.outputs.push_back(std::move(tensor));
  }
  Stack stack = recipe.Make(call.arguments, operands);
  call.op.Run(&stack);
  if (plain) {
    for (c10::IValue& result : ResultsOf(call.op, stack)) {
      if (!result.isTensor() && !result.isTensorList()) invoked.plain.push_back(std::move(result));
    }
  }
  if (invoked.outputs.empty()) invoked.outputs = TensorsIn(stack);
  return invoked;
}

std::vector<at::Tensor> Invoke(const Call& call, const std::vector<at::Tensor>& operands) {
  return Invoke(call, call.arguments, operands);
}

std::vector<at::Tensor> Invoke(const Call& call, const std::vector<c10::IValue>& arguments,
                               const std::vector<at::Tensor>& operands) {
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
    if (call.operands[k].requires_grad && !c10::GradMode::is_enabled()) own[k] = AsGiven(own[k], call.operands[k]);
  }
  Stack stack = StackRecipe(call.op.schema(), PositionsOf(call), functional.has_value()).Make(arguments, own);
  (functional ? *functional : call.op).Run(&stack);
  return TensorsIn(stack);
}

}  // namespace addend

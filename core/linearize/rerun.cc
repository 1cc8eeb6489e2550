#include "core/linearize/rerun.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>

#include "core/base/host_read.h"
#include "core/linearize/call_at_hand.h"
#include "core/linearize/view.h"
#include "core/program/written_aside.h"

namespace addend {

CallArguments ArgumentsOf(const Call& call, std::vector<c10::IValue> arguments) {
  const c10::FunctionSchema& schema = call.op.schema();
  return {RuleName(schema.name()), schema.overload_name(), &schema, std::move(arguments)};
}

std::vector<at::Tensor> Rerun(const Call& call, const std::vector<at::Tensor>& operands) {
  return Rerun(call, call.arguments, operands);
}

StackRecipe::StackRecipe(const Call& call, bool without_out) {
  const auto& arguments = call.op.schema().arguments();
  size_t k = 0;
  for (size_t a = 0; a < arguments.size(); ++a) {
    Argument own;
    while (k < call.operands.size() && call.operands[k].argument == static_cast<int16_t>(a)) {
      ++own.operands;
      ++k;
    }
    const c10::TypePtr type = arguments[a].type();
    if (without_out && arguments[a].is_out()) {
      own.kind = Argument::Kind::kLeftOut;
    } else if (type->kind() == c10::TypeKind::ListType) {
      own.element = type->expect<c10::ListType>()->getElementType();
      own.kind =
          own.element->kind() == c10::TypeKind::OptionalType ? Argument::Kind::kOptionalList : Argument::Kind::kList;
    } else if (own.operands > 0) {
      own.kind = Argument::Kind::kTensor;
    }
    arguments_.push_back(std::move(own));
  }
}

Stack StackRecipe::Make(const std::vector<c10::IValue>& given, const std::vector<at::Tensor>& operands) const {
  Stack stack;
  stack.reserve(given.size());
  size_t k = 0;
  for (size_t a = 0; a < given.size(); ++a) {
    const Argument& own = arguments_[a];
    const size_t first = k;
    k += own.operands;
    if (own.kind == Argument::Kind::kLeftOut) continue;
    const bool list = own.kind == Argument::Kind::kList || own.kind == Argument::Kind::kOptionalList;
    if (own.kind == Argument::Kind::kOptionalList && given[a].isIntList()) {
      c10::impl::GenericList made(own.element);
      size_t next = first;
      for (const int64_t present : given[a].toIntVector()) {
        made.push_back(present ? c10::IValue(operands[next++]) : c10::IValue());
      }
      stack.emplace_back(std::move(made));
    } else if (list && (own.operands > 0 || given[a].isNone())) {
      c10::List<at::Tensor> made;
      for (size_t o = first; o < k; ++o) made.push_back(operands[o]);
      stack.emplace_back(std::move(made));
    } else if (own.kind == Argument::Kind::kTensor) {
      stack.emplace_back(operands[first]);
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
    if (call.operands[k].requires_grad && !c10::GradMode::is_enabled()) own[k] = AsGiven(own[k], call.operands[k]);
  }
  Stack stack = StackRecipe(call, functional.has_value()).Make(given, own);
  (functional ? *functional : call.op).Run(&stack);
  return TensorsIn(stack);
}

bool HasLayout(const at::Tensor& tensor, const Operand& operand) {
  return tensor.defined() && tensor.scalar_type() == operand.dtype && tensor.sizes() == operand.geometry.sizes &&
         tensor.strides() == operand.geometry.strides && tensor.storage_offset() == operand.geometry.offset;
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  // equal() takes NaN for different from itself.
  if (ReadEqual(a, b)) return true;
  return ReadFlag(a.eq(b).logical_or_(a.ne(a).logical_and_(b.ne(b))).all());
}

}  // namespace addend

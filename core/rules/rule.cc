#include "core/rules/rule.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/host_read.h"
#include "core/base/views.h"
#include "core/rules/for_loops.h"
#include "core/rules/kernels.h"

namespace addend {

std::string KindName(Kind kind) {
  switch (kind) {
    case Kind::kStart:
      return "Start";
    case Kind::kLinear:
      return "Linear";
    case Kind::kAffine:
      return "Affine";
    case Kind::kPointwise:
      return "Pointwise";
    case Kind::kBilinear:
      return "Bilinear";
    case Kind::kSelection:
      return "Selection";
    case Kind::kOpaque:
      return "Opaque";
    case Kind::kRewrite:
      return "Rewrite";
    case Kind::kPath:
      return "Path";
    case Kind::kAbsorbed:
      return "Absorbed";
  }
  return "?";
}

ValuesRead Rule::Reads(int decomposed) const {
  if (made_of_sizes) return {false, false};
  if (multiplies) return {decomposed > 1, false};
  return {};
}

Rows LinearMap::TransposeRows(const Rows& cotangents) const {
  const auto first = std::find_if(cotangents.begin(), cotangents.end(), [](const auto& g) { return g.defined(); });
  if (first == cotangents.end()) throw Internal("there is no cotangent to transpose");
  std::vector<Rows> by_input;
  for (int64_t r = 0; r < first->size(0); ++r) {
    Rows one;
    for (const at::Tensor& g : cotangents) one.push_back(g.defined() ? Select(g, 0, r) : g);
    const Rows back = Transpose(one);
    by_input.resize(back.size());
    for (size_t k = 0; k < back.size(); ++k) by_input[k].push_back(back[k]);
  }
  Rows result;
  for (const Rows& rows : by_input) {
    result.push_back(rows.size() == 1 ? Unsqueezed(rows[0], 0) : at::stack(rows, 0));
  }
  return result;
}

void LinearMap::AddTo(at::Tensor&, const Rows&) const { throw Internal("this linear map does not accumulate"); }

int RuleCall::OperandAt(std::string_view argument) const {
  const int position = At(argument);
  if (position < 0) return -1;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].argument == position && operands[k].value.defined()) return static_cast<int>(k);
  }
  return -1;
}

const RuleOperand* RuleCall::Find(std::string_view argument) const {
  const int k = OperandAt(argument);
  return k < 0 ? nullptr : &operands[k];
}

const RuleOperand& RuleCall::Require(std::string_view argument) const {
  const RuleOperand* operand = Find(argument);
  if (operand == nullptr) {
    throw Unimplemented(absl::StrCat(name, ".", overload, " without a tensor for ", std::string(argument)));
  }
  return *operand;
}

bool RuleCall::Decomposed(std::string_view argument) const {
  const RuleOperand* operand = Find(argument);
  return operand != nullptr && operand->decomposed;
}

bool RuleCall::IsNone(std::string_view argument) const {
  return CallArguments::IsNone(argument) && Find(argument) == nullptr;
}

at::Tensor RuleCall::Move(int operand) const {
  const RuleOperand& own = operands[operand];
  return MoveOf(own.value, own.reference, own.finite);
}

at::Tensor MoveOf(const at::Tensor& value, const at::Tensor& reference, bool finite) {
  if (ForFlatLoops(value, reference)) {
    const at::Tensor move = at::empty(value.sizes(), value.options());
    DispatchReal(value.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      Moves(value.data_ptr<T>(), reference.data_ptr<T>(), move.data_ptr<T>(), value.numel());
    });
    return move;
  }
  at::Tensor move = value - reference;
  if (finite) return move;
  at::Tensor same = value.eq(reference);
  // x != x is NaN. On the CPU one look tells that there is none; elsewhere looking takes longer: Note [Host reads].
  if (!move.device().is_cpu() || ReadFlag(at::isnan(move.sum()))) {
    same = same.logical_or_(value.ne(value).logical_and(reference.ne(reference)));
  }
  return move.masked_fill_(same, 0);
}

}  // namespace addend

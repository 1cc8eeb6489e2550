// Comparisons, logic, bits, and the choice by a condition.
#include <ATen/ATen.h>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results Equal(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return at::eq(x.a, *x.b_number);
  return x.a_number ? at::eq(x.b, *x.a_number) : at::eq(x.a, x.b);
}

Results Less(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return at::lt(x.a, *x.b_number);
  return x.a_number ? at::gt(x.b, *x.a_number) : at::lt(x.a, x.b);
}

Results LessOrEqual(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return at::le(x.a, *x.b_number);
  return x.a_number ? at::ge(x.b, *x.a_number) : at::le(x.a, x.b);
}

Results Greater(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return at::gt(x.a, *x.b_number);
  return x.a_number ? at::lt(x.b, *x.a_number) : at::gt(x.a, x.b);
}

Results GreaterOrEqual(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return at::ge(x.a, *x.b_number);
  return x.a_number ? at::le(x.b, *x.a_number) : at::ge(x.a, x.b);
}

// An operator of two tensors, whatever they are.
template <typename Combine>
Results OfTwo(const Context& context, const Combine& combine) {
  const Operands x = TwoOperands(context);
  return combine(x.a, x.b);
}

Results And(const Context& context) {
  return OfTwo(context, [](const Tensor& a, const Tensor& b) { return at::logical_and(a, b); });
}

Results Or(const Context& context) {
  return OfTwo(context, [](const Tensor& a, const Tensor& b) { return at::logical_or(a, b); });
}

Results Xor(const Context& context) {
  return OfTwo(context, [](const Tensor& a, const Tensor& b) { return at::logical_xor(a, b); });
}

// An operator of the bits of two tensors.
template <typename Combine>
Results OfBits(const Context& context, const Combine& combine) {
  const Operands x = TwoOperands(context);
  return InRange(context, combine(x.a, x.b));
}

Results BitwiseAnd(const Context& context) {
  return OfBits(context, [](const Tensor& a, const Tensor& b) { return at::bitwise_and(a, b); });
}

Results BitwiseOr(const Context& context) {
  return OfBits(context, [](const Tensor& a, const Tensor& b) { return at::bitwise_or(a, b); });
}

Results BitwiseXor(const Context& context) {
  return OfBits(context, [](const Tensor& a, const Tensor& b) { return at::bitwise_xor(a, b); });
}

// The bits of the elements of input 0, as the file has them.
int64_t NumBits(const Context& context) {
  const Datum& x = context.Input(0);
  return x.IsWidened() ? BitsOf(x.integers)
                       : 8 * static_cast<int64_t>(c10::elementSize(context.Tensor(0).scalar_type()));
}

// Elements of type uint64 shifted to the left, which int64 has to hold.
Tensor HeldShift(const Context& context, const Tensor& x, const Tensor& count, const Tensor& fits) {
  const Tensor shifted = at::bitwise_left_shift(x, count);
  const Tensor comes_back = at::logical_and(at::ge(shifted, 0), at::eq(at::bitwise_right_shift(shifted, count), x));
  RequireHeld(context, at::logical_or(comes_back, at::logical_not(fits)));
  return shifted;
}

// A shift by as many bits as there are, or by a negative number, leaves copies of the sign bit: processors differ
// there.
Results BitShift(const Context& context) {
  const std::string direction = context.TextAttribute("direction");
  if (direction != "LEFT" && direction != "RIGHT") throw context.Invalid("the direction is neither LEFT nor RIGHT");
  const Operands x = TwoOperands(context);
  const int64_t last = NumBits(context) - 1;
  const Tensor fits = at::logical_and(at::ge(x.b, 0), at::le(x.b, last));
  const Tensor count = at::clamp(x.b, 0, last);
  if (direction == "LEFT") {
    const bool is_held = context.Input(0).integers == DataType::kUint64;
    const Tensor shifted = is_held ? HeldShift(context, x.a, count, fits) : at::bitwise_left_shift(x.a, count);
    return InRange(context, at::mul(shifted, fits));
  }
  const bool is_signed = x.a.scalar_type() != at::kByte && !context.Input(0).IsWidened();
  return InRange(context,
                 at::where(fits, at::bitwise_right_shift(x.a, count),
                           is_signed ? at::bitwise_right_shift(x.a, at::full_like(x.a, last)) : at::zeros_like(x.a)));
}

Results IsInf(const Context& context) {
  const Tensor x = context.Tensor(0);
  const bool negative = context.FlagAttribute("detect_negative", true);
  const bool positive = context.FlagAttribute("detect_positive", true);
  if (negative && positive) return at::isinf(x);
  if (positive) return at::isposinf(x);
  return negative ? at::isneginf(x) : at::zeros_like(x, x.options().dtype(at::kBool));
}

Results Where(const Context& context) { return at::where(context.Tensor(0), context.Tensor(1), context.Tensor(2)); }

}  // namespace

void RegisterComparisons(OperatorTable& table) {
  table.Add("Equal", 1, Equal).Inputs(2).Attributes(OldBroadcast());
  table.Add("Less", 1, Less).Inputs(2).Attributes(OldBroadcast());
  table.Add("LessOrEqual", 12, LessOrEqual).Inputs(2);
  table.Add("Greater", 1, Greater).Inputs(2).Attributes(OldBroadcast());
  table.Add("GreaterOrEqual", 12, GreaterOrEqual).Inputs(2);
  table.Add("And", 1, And).Inputs(2).Attributes(OldBroadcast());
  table.Add("Or", 1, Or).Inputs(2).Attributes(OldBroadcast());
  table.Add("Xor", 1, Xor).Inputs(2).Attributes(OldBroadcast());
  table.Add("Not", 1, [](const Context& c) -> Results { return at::logical_not(c.Tensor(0)); });
  table.Add("BitwiseAnd", 18, BitwiseAnd).Inputs(2);
  table.Add("BitwiseOr", 18, BitwiseOr).Inputs(2);
  table.Add("BitwiseXor", 18, BitwiseXor).Inputs(2);
  table.Add("BitwiseNot", 18, [](const Context& c) { return InRange(c, at::bitwise_not(c.Tensor(0))); });
  table.Add("BitShift", 11, BitShift).Inputs(2).Attributes({"direction"});
  table.Add("IsNaN", 9, [](const Context& c) -> Results { return at::isnan(c.Tensor(0)); });
  table.Add("IsInf", 10, IsInf).Attributes({"detect_negative", "detect_positive"});
  table.Add("Where", 9, Where).Inputs(3).KeepsIntegers();
  table.ReadUnsigned({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr",
                      "BitwiseXor", "BitwiseNot", "BitShift"});
}

}  // namespace addend::onnx

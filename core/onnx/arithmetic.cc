// Arithmetic, powers and functions of one number.
#include <ATen/ATen.h>

#include <cmath>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results Add(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return InRange(context, at::add(x.a, *x.b_number));
  return InRange(context, x.a_number ? at::add(x.b, *x.a_number) : at::add(x.a, x.b));
}

Results Sub(const Context& context) {
  const Operands x = TwoOperands(context);
  if (x.b_number) return InRange(context, at::sub(x.a, *x.b_number));
  return InRange(context, x.a_number ? at::rsub(x.b, *x.a_number) : at::sub(x.a, x.b));
}

// Throws where a product of type uint64 may be more than int64 holds: its lowest bits would not tell.
void RequireHeldProduct(const Context& context, const Operands& x) {
  if (context.Input(0).integers != DataType::kUint64) return;
  constexpr double kMost = 0x1p63 * (1 - 0x1p-50);  // factors and product are rounded
  RequireHeld(context, at::lt(at::mul(x.a.to(at::kDouble), x.b.to(at::kDouble)), kMost));
}

Results Mul(const Context& context) {
  const Operands x = TwoOperands(context);
  RequireHeldProduct(context, x);
  if (x.b_number) return InRange(context, at::mul(x.a, *x.b_number));
  return InRange(context, x.a_number ? at::mul(x.b, *x.a_number) : at::mul(x.a, x.b));
}

Results Div(const Context& context) {
  const Operands x = TwoOperands(context);
  if (c10::isIntegralType(x.a.scalar_type(), /*includeBool=*/false)) {
    return InRange(context, x.b_number ? at::div(x.a, *x.b_number, "trunc") : at::div(x.a, x.b, "trunc"));
  }
  if (x.b_number) return at::div(x.a, *x.b_number);
  return x.a_number && x.a_number->toDouble() == 1 ? at::reciprocal(x.b) : at::div(x.a, x.b);
}

// The remainder has the sign of the divisor, or with `fmod` that of the dividend.
Results Mod(const Context& context) {
  const Operands x = TwoOperands(context);
  if (context.FlagAttribute("fmod", false)) {
    return InRange(context, x.b_number ? at::fmod(x.a, *x.b_number) : at::fmod(x.a, x.b));
  }
  if (!c10::isFloatingType(x.a.scalar_type())) {
    return InRange(context, x.b_number ? at::remainder(x.a, *x.b_number) : at::remainder(x.a, x.b));
  }
  // A remainder of zero has the sign, too.
  return at::copysign(at::remainder(x.a, x.b), x.b);
}

// The result has the type of the base, which has a sign.
Results Pow(const Context& context) {
  if (context.Input(0).IsWidened()) throw context.Refused("a base of a type without sign is not supported");
  const Operands x = TwoOperands(context);
  const at::ScalarType type = x.a.scalar_type();
  const bool rounds = c10::isIntegralType(type, /*includeBool=*/false) && c10::isFloatingType(x.b.scalar_type());
  const Tensor base = rounds ? InType(x.a, at::kDouble) : x.a;
  if (x.b_number) return InType(at::pow(base, *x.b_number), type);
  if (x.a_number && type == x.b.scalar_type()) return at::pow(*x.a_number, x.b);
  return InType(at::pow(base, x.b), type);
}

// One to many operands, of which the last two are combined until one is left.
template <typename Combine>
Results Combined(const Context& context, const Combine& combine) {
  Tensor result = context.Tensor(0);
  for (size_t k = 1; k < context.num_inputs(); ++k) {
    const Tensor next = context.Tensor(k);
    const auto number = next.dim() <= result.dim() ? context.Number(k) : c10::nullopt;
    result = combine(result, next, number);
  }
  return result;
}

bool IsNumber(const c10::optional<at::Scalar>& number) {
  return number && !(number->isFloatingPoint() && std::isnan(number->toDouble()));
}

Results Max(const Context& context) {
  return Combined(context, [](const Tensor& a, const Tensor& b, const c10::optional<at::Scalar>& number) {
    return IsNumber(number) ? at::clamp_min(a, *number) : at::maximum(a, b);
  });
}

Results Min(const Context& context) {
  return Combined(context, [](const Tensor& a, const Tensor& b, const c10::optional<at::Scalar>& number) {
    return IsNumber(number) ? at::clamp_max(a, *number) : at::minimum(a, b);
  });
}

Tensor SumOf(const Context& context) {
  Tensor sum = context.Tensor(0);
  for (size_t k = 1; k < context.num_inputs(); ++k) sum = at::add(sum, context.Tensor(k));
  return sum;
}

Results Sum(const Context& context) { return SumOf(context); }

Results Mean(const Context& context) {
  const Tensor sum = SumOf(context);
  return context.num_inputs() == 1 ? sum : at::div(sum, static_cast<int64_t>(context.num_inputs()));
}

// Clips by inputs, or by attributes before version 11.
Results Clip(const Context& context) {
  const Tensor x = context.Tensor(0);
  c10::optional<at::Scalar> least, most;
  if (context.version() < 11) {
    if (context.HasAttribute("min")) least = context.FloatAttribute("min");
    if (context.HasAttribute("max")) most = context.FloatAttribute("max");
  } else {
    least = context.Number(1);
    most = context.Number(2);
    if (context.Has(1) != least.has_value() || context.Has(2) != most.has_value()) {
      const Tensor lower = context.OptionalTensor(1), upper = context.OptionalTensor(2);
      return at::clamp(x, lower.defined() ? c10::optional<Tensor>(lower) : c10::nullopt,
                       upper.defined() ? c10::optional<Tensor>(upper) : c10::nullopt);
    }
  }
  return least || most ? at::clamp(x, least, most) : x;
}

// A line of an operator of one tensor.
void AddFunction(OperatorTable& table, const char* name, int64_t since, OperatorFunction function) {
  table.Add(name, since, function).Attributes({"consumed_inputs"});
}

void AddFunctions(OperatorTable& table) {
  AddFunction(table, "Abs", 1, [](const Context& c) -> Results { return at::abs(c.Tensor(0)); });
  AddFunction(table, "Acos", 7, [](const Context& c) -> Results { return at::acos(c.Tensor(0)); });
  AddFunction(table, "Acosh", 9, [](const Context& c) -> Results { return at::acosh(c.Tensor(0)); });
  AddFunction(table, "Asin", 7, [](const Context& c) -> Results { return at::asin(c.Tensor(0)); });
  AddFunction(table, "Asinh", 9, [](const Context& c) -> Results { return at::asinh(c.Tensor(0)); });
  AddFunction(table, "Atan", 7, [](const Context& c) -> Results { return at::atan(c.Tensor(0)); });
  AddFunction(table, "Atanh", 9, [](const Context& c) -> Results { return at::atanh(c.Tensor(0)); });
  AddFunction(table, "Ceil", 1, [](const Context& c) -> Results { return at::ceil(c.Tensor(0)); });
  AddFunction(table, "Cos", 7, [](const Context& c) -> Results { return at::cos(c.Tensor(0)); });
  AddFunction(table, "Cosh", 9, [](const Context& c) -> Results { return at::cosh(c.Tensor(0)); });
  AddFunction(table, "Erf", 9, [](const Context& c) -> Results { return at::erf(c.Tensor(0)); });
  AddFunction(table, "Exp", 1, [](const Context& c) -> Results { return at::exp(c.Tensor(0)); });
  AddFunction(table, "Floor", 1, [](const Context& c) -> Results { return at::floor(c.Tensor(0)); });
  AddFunction(table, "Log", 1, [](const Context& c) -> Results { return at::log(c.Tensor(0)); });
  AddFunction(table, "Neg", 1, [](const Context& c) -> Results { return at::neg(c.Tensor(0)); });
  AddFunction(table, "Reciprocal", 1, [](const Context& c) -> Results { return at::reciprocal(c.Tensor(0)); });
  AddFunction(table, "Round", 11, [](const Context& c) -> Results { return at::round(c.Tensor(0)); });
  AddFunction(table, "Sign", 9, [](const Context& c) -> Results { return at::sign(c.Tensor(0)); });
  AddFunction(table, "Sin", 7, [](const Context& c) -> Results { return at::sin(c.Tensor(0)); });
  AddFunction(table, "Sinh", 9, [](const Context& c) -> Results { return at::sinh(c.Tensor(0)); });
  AddFunction(table, "Sqrt", 1, [](const Context& c) -> Results { return at::sqrt(c.Tensor(0)); });
  AddFunction(table, "Tan", 7, [](const Context& c) -> Results { return at::tan(c.Tensor(0)); });
}

}  // namespace

void RegisterArithmetic(OperatorTable& table) {
  table.Add("Add", 1, Add).Inputs(2).Attributes(OldBroadcast());
  table.Add("Sub", 1, Sub).Inputs(2).Attributes(OldBroadcast());
  table.Add("Mul", 1, Mul).Inputs(2).Attributes(OldBroadcast());
  table.Add("Div", 1, Div).Inputs(2).Attributes(OldBroadcast());
  table.Add("Pow", 1, Pow).Inputs(2).Attributes(OldBroadcast());
  table.Add("Mod", 10, Mod).Inputs(2).Attributes({"fmod"});
  table.Add("Max", 1, Max).InputsFrom(1).Attributes({"consumed_inputs"});
  table.Add("Min", 1, Min).InputsFrom(1).Attributes({"consumed_inputs"});
  table.Add("Sum", 1, Sum).InputsFrom(1).Attributes({"consumed_inputs"});
  table.Add("Mean", 1, Mean).InputsFrom(1).Attributes({"consumed_inputs"});
  table.Add("Clip", 1, Clip).Attributes({"min", "max", "consumed_inputs"});
  table.Add("Clip", 11, Clip).Inputs(1, 3);
  table.KeepIntegers({"Clip", "Max", "Min"});
  table.ReadUnsigned({"Add", "Sub", "Mul", "Div", "Pow", "Mod"});
  AddFunctions(table);
}

}  // namespace addend::onnx

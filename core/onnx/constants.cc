// Constants, sizes, and changes of type.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/operands.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

using at::Tensor;

Results Constant(const Context& context) {
  if (context.HasAttribute("value")) return context.TensorAttribute("value");
  const auto constant = [&](const Tensor& tensor) { return context.placement().ConstantOf(tensor, /*copy=*/false); };
  const TracingPause pause;
  if (context.HasAttribute("value_float")) {
    return constant(at::scalar_tensor(context.FloatAttribute("value_float"), at::kFloat));
  }
  if (context.HasAttribute("value_int")) {
    return constant(at::scalar_tensor(context.IntAttribute("value_int"), at::kLong));
  }
  if (context.HasAttribute("value_floats")) {
    return constant(at::tensor(context.FloatsAttribute("value_floats"), at::kFloat));
  }
  if (context.HasAttribute("value_ints")) return constant(at::tensor(context.IntsAttribute("value_ints"), at::kLong));
  throw context.Invalid("no attribute says which constant it is");
}

Results ConstantOfShape(const Context& context) {
  const std::vector<int64_t> sizes = context.Integers(0);
  if (!context.HasAttribute("value")) return at::zeros(sizes, context.Options(context.TypeOf(DataType::kFloat)));
  const Datum& value = context.TensorAttribute("value");
  if (!value.IsKnown() || value.known.numel() != 1) throw context.Invalid("the value is not one number");
  const at::Scalar number = [&] {
    const TracingPause pause;
    return value.known.item();
  }();
  if (!value.HoldsIntegers()) return at::full(sizes, number, context.Options(context.TensorOf(value).scalar_type()));
  const at::TensorOptions options = context.Options(HolderOf(value.integers).value());
  return Held(context, at::full(sizes, number, options), value.integers);
}

// The descent of what a value's own sizes say.
Descent DescentOfSizes(const Datum& datum) {
  if (datum.IsKnown() || datum.descent == Descent::kConstants) return Descent::kConstants;
  return Descent::kSizes;
}

Results Shape(const Context& context) {
  const std::vector<int64_t> sizes = context.Tensor(0).sizes().vec();
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto bound = [&](const char* name, int64_t otherwise) {
    const int64_t place = context.IntAttribute(name, otherwise);
    return std::clamp<int64_t>(place < 0 ? place + rank : place, 0, rank);
  };
  const int64_t start = bound("start", 0);
  const int64_t end = std::max(start, bound("end", rank));
  const TracingPause pause;
  const std::vector<int64_t> chosen(sizes.begin() + start, sizes.begin() + end);
  return Datum::Known(at::tensor(chosen, at::kLong), DescentOfSizes(context.Input(0)));
}

Results Size(const Context& context) {
  const int64_t count = context.Tensor(0).numel();
  const TracingPause pause;
  return Datum::Known(at::scalar_tensor(count, at::kLong), DescentOfSizes(context.Input(0)));
}

// The result of a conversion to an integer that does not hold the number is undefined: processors differ.
void RequireFitting(const Context& context, const Tensor& x, DataType type) {
  if (!c10::isFloatingType(x.scalar_type()) || x.numel() == 0) return;
  const TracingPause pause;
  const Tensor wide = at::trunc(x.to(at::kDouble));
  const double least = wide.min().item<double>(), most = wide.max().item<double>();
  const int bits = type == DataType::kUint64 ? 64 - 1 : BitsOf(type);
  const double limit = std::ldexp(1.0, IsSigned(type) ? bits - 1 : bits);
  const double start = IsSigned(type) ? -limit : 0;
  if (least >= start && most < limit) return;
  throw context.Invalid(
      absl::StrCat("casts ", least >= start ? most : least, " to ", NameOf(type), ", which does not hold it"));
}

// Integers that are not of the tensor's own type, rounded from an input or of few bits, as integers of another type.
Results CastOfIntegers(const Context& context, DataType to) {
  const DataType from = IntegersOf(context, 0);
  if (from == to) return context.Input(0);
  const bool fits = IsSigned(to) ? BitsOf(from) + (IsSigned(from) ? 0 : 1) <= BitsOf(to)
                                 : !IsSigned(from) && BitsOf(from) <= BitsOf(to);
  if (fits) return Integers(context, WholeNumbers(context, 0), to);
  throw context.Refused(absl::StrCat("it casts integers of type ", NameOf(from), " to ", NameOf(to),
                                     ", which may not hold them; that is not supported"));
}

// A cast to a type that LibTorch has. Integers in a wider type are cast by their lowest bits, as others are.
Results CastTo(const Context& context, at::ScalarType type) {
  const Datum& input = context.Input(0);
  const bool to_integers = c10::isIntegralType(type, /*includeBool=*/false);
  if (input.HoldsIntegers() && !input.IsWidened() && to_integers) return CastOfIntegers(context, DataTypeOf(type));
  const Tensor x = context.Tensor(0);
  if (input.HoldsIntegers()) return InType(x, type);
  if (x.scalar_type() == type) return input;
  if (to_integers) RequireFitting(context, x, DataTypeOf(type));
  const bool is_float = c10::isFloatingType(x.scalar_type());
  if (is_float && type == at::kByte) return Integers(context, at::trunc(x), DataType::kUint8);
  if (is_float && type == at::kChar) return Integers(context, at::trunc(x), DataType::kInt8);
  return x.to(type);
}

// A cast to a type without sign that a wider type holds.
Results CastToUnsigned(const Context& context, DataType to) {
  const Datum& input = context.Input(0);
  if (input.HoldsIntegers() && !input.IsWidened()) return CastOfIntegers(context, to);
  if (input.integers == to) return input;
  const Tensor x = context.Tensor(0);
  if (c10::isIntegralType(x.scalar_type(), /*includeBool=*/false)) return AsUnsigned(context, x, to);
  RequireFitting(context, x, to);
  return Held(context, x.to(HolderOf(to).value()), to);
}

Results Cast(const Context& context) {
  const DataType to = context.NamedType("to");
  return IsWidened(to) ? CastToUnsigned(context, to) : CastTo(context, context.TypeOf(to));
}

Results CastLike(const Context& context) {
  const DataType like = context.Input(1).integers;
  if (IsWidened(like)) return CastToUnsigned(context, like);
  return CastTo(context, like == DataType::kUndefined ? context.Tensor(1).scalar_type() : context.TypeOf(like));
}

Results Identity(const Context& context) { return context.Input(0); }

}  // namespace

void RegisterConstants(OperatorTable& table) {
  table.Add("Constant", 1, Constant)
      .Inputs(0)
      .Attributes({"value", "value_float", "value_floats", "value_int", "value_ints"});
  table.Add("ConstantOfShape", 9, ConstantOfShape).Attributes({"value"}).Known(KnownIf::kInputsConstant);
  table.Add("Shape", 1, Shape).Attributes({"start", "end"}).ReadsIntegers();
  table.Add("Size", 1, Size).ReadsIntegers();
  table.Add("Cast", 6, Cast).Attributes({"to", "saturate", "round_mode"}).ReadsIntegers();
  table.Add("CastLike", 15, CastLike).Inputs(2).Attributes({"saturate", "round_mode"}).ReadsIntegers();
  table.Add("Identity", 1, Identity);
}

}  // namespace addend::onnx

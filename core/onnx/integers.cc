#include "core/onnx/integers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/tensor_text.h"
#include "core/onnx/operands.h"
#include "core/onnx/to_tensor.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// float32 at least, which holds integers of 16 bits.
Tensor Wide(const Tensor& x) { return c10::elementSize(x.scalar_type()) < 4 ? x.to(at::kFloat) : x; }

}  // namespace

DataType IntegersOf(const Context& context, size_t k) {
  const Datum& input = context.Input(k);
  if (input.HoldsIntegers()) return input.integers;
  const Tensor x = context.Tensor(k);
  if (c10::isIntegralType(x.scalar_type(), /*includeBool=*/false)) return DataTypeOf(x.scalar_type());
  throw context.Invalid(absl::StrCat("input ", k, " is ", TensorText(x), ", where integers are needed"));
}

DataType DataTypeOf(c10::ScalarType type) {
  for (int32_t number = 1; IsDataType(number); ++number) {
    if (ScalarTypeOf(static_cast<DataType>(number)) == type) return static_cast<DataType>(number);
  }
  return DataType::kUndefined;
}

std::pair<int64_t, int64_t> RangeOf(const Context& context, DataType type) {
  constexpr DataType kTypes[] = {DataType::kUint8, DataType::kInt8, DataType::kUint16, DataType::kInt16,
                                 DataType::kUint4, DataType::kInt4, DataType::kUint2,  DataType::kInt2};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
    throw context.Refused(absl::StrCat("it quantizes to ", NameOf(type), ", which is not supported"));
  }
  const int64_t half = int64_t{1} << (BitsOf(type) - 1);
  return IsSigned(type) ? std::make_pair(-half, half - 1) : std::make_pair(int64_t{0}, 2 * half - 1);
}

Tensor AsIntegers(const Tensor& whole, DataType type) {
  return type == DataType::kInt32 ? whole.to(at::kLong).to(at::kInt) : whole.to(HolderOf(type).value());
}

Tensor WholeNumbers(const Context& context, size_t k) {
  const DataType type = IntegersOf(context, k);
  const Tensor x = context.Tensor(k);
  if (c10::isFloatingType(x.scalar_type())) return x;
  return x.to(BitsOf(type) > 16 ? at::kDouble : at::kFloat);
}

Tensor WithoutZero(const Context& context, size_t k, size_t zero, int64_t dim) {
  const Tensor whole = WholeNumbers(context, k);
  if (!context.Has(zero)) return whole;
  const Tensor point = InType(WholeNumbers(context, zero), whole.scalar_type());
  return at::sub(whole, AlongDim(point, whole.dim() == 0 ? 0 : context.Axis(dim, whole.dim()), whole.dim()));
}

Datum Integers(const Context& context, const Tensor& whole, DataType type) {
  if (context.is_known() || context.descent() != Descent::kContent) {
    Datum integers = Numbers(context, AsIntegers(whole, type));
    if (!ScalarTypeOf(type)) integers.integers = type;
    return integers;
  }
  Datum integers = Datum::Of(Wide(whole), Descent::kContent);
  integers.integers = type;
  return integers;
}

Datum Numbers(const Context& context, Tensor tensor) {
  return context.is_known() ? Datum::Known(std::move(tensor), context.descent())
                            : Datum::Of(std::move(tensor), context.descent());
}

DataType IntegersOfAll(const Context& context, const std::vector<Datum>& values) {
  const DataType type = values.empty() ? DataType::kUndefined : values[0].integers;
  for (const Datum& value : values) {
    if (value.integers != type) throw context.Invalid("it is given integers of different types");
  }
  return type;
}

Datum Held(const Context& context, Tensor integers, DataType type) {
  Datum held = Numbers(context, std::move(integers));
  held.integers = type;
  return held;
}

Datum AsUnsigned(const Context& context, const Tensor& integers, DataType type) {
  const c10::ScalarType holder = HolderOf(type).value();
  const bool is_narrow = c10::elementSize(integers.scalar_type()) < c10::elementSize(holder);
  const Tensor wide = is_narrow ? integers.to(holder) : integers;
  if (type != DataType::kUint64) {
    return Held(context, InType(at::bitwise_and(wide, GreatestOf(type)), holder), type);
  }
  RequireHeld(context, at::ge(wide, 0));
  return Held(context, wide, type);
}

Results InRange(const Context& context, const Tensor& result) {
  const DataType type = IntegersOfAll(context, context.inputs());
  return IsWidened(type) ? Results(AsUnsigned(context, result, type)) : Results(result);
}

void RequireHeld(const Context& context, const Tensor& holds) {
  if (context.Holds(Numbers(context, at::all(holds)))) return;
  throw context.Refused(absl::StrCat("it gives a uint64 above ", GreatestOf(DataType::kUint64),
                                     ", the greatest int64, ", "which is not supported"));
}

Tensor AsCondition(const Context& context, const Tensor& numbers) {
  if (context.is_known() || context.descent() != Descent::kContent) return numbers;
  // Digits and exponent as integers, which hold all of a number. Floats that are read back from a cast alone would be
  // the floats that were cast; behind arithmetic of integers they are conditions.
  constexpr int kDigits = std::numeric_limits<double>::digits;
  const auto [mantissa, exponent] = at::frexp(InType(numbers, at::kDouble));
  const Tensor digits = at::mul(at::mul(mantissa, static_cast<double>(int64_t{1} << kDigits)).to(at::kLong), 1);
  const Tensor unit = at::pow(2.0, at::sub(exponent, kDigits).to(at::kDouble));
  const Tensor same = InType(at::mul(digits.to(at::kDouble), unit), numbers.scalar_type());
  return at::masked_fill(same, at::logical_not(at::isfinite(numbers)), std::numeric_limits<double>::quiet_NaN());
}

Tensor ScalesOf(const Context& context, size_t k) {
  const Tensor scales = context.Tensor(k);
  return context.Input(k).descent == Descent::kContent ? AsCondition(context, scales) : scales;
}

Datum Rounded(const Context& context, const Tensor& numbers, const Tensor& zero, DataType type) {
  const auto [least, most] = RangeOf(context, type);
  Tensor whole = at::round(Wide(numbers));
  if (zero.defined()) whole = at::add(whole, InType(zero, whole.scalar_type()));
  return Integers(context, at::clamp(whole, least, most), type);
}

OwnGrid InOwnGrid(const Context& context, const Tensor& x) {
  constexpr int kMost = 255;
  const Tensor wide = Wide(x);
  const Tensor ends =
      AsCondition(context, at::stack({at::clamp_max(at::min(wide), 0), at::clamp_min(at::max(wide), 0)}, /*dim=*/0));
  const Tensor least = at::select(ends, 0, 0);
  const Tensor range = at::sub(at::select(ends, 0, 1), least);
  const Tensor scale = at::div(at::masked_fill(range, at::eq(range, 0), kMost), kMost);
  const Tensor zero = at::clamp(at::round(at::div(at::neg(least), scale)), 0, kMost);
  const Tensor whole = at::add(at::round(at::div(wide, scale)), zero);
  // Both roundings together may pass the greatest integer by one. A clamp would also saturate a baseline in the grid of
  // the value.
  return {at::sub(whole, at::gt(whole, kMost).to(whole.scalar_type())), scale, zero};
}

Tensor AlongDim(const Tensor& levels, int64_t dim, int64_t rank) {
  if (levels.dim() > 1) return levels;
  if (levels.numel() == 1) return at::reshape(levels, {});
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes.at(static_cast<size_t>(dim)) = levels.numel();
  return at::reshape(levels, sizes);
}

Tensor WholeProduct(const Context& context, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  const Tensor left = WithoutZero(context, a, a_zero, context.Rank(a) < 2 ? -1 : -2);
  const Tensor right = WithoutZero(context, b, b_zero, -1);
  if (left.dim() > 0) RequireNoWrap(context, left.size(-1), a, b);
  return at::matmul(InType(left, at::kDouble), InType(right, at::kDouble));
}

void RequireNoWrap(const Context& context, int64_t terms, size_t a, size_t b) {
  // The largest distance from a zero point.
  const auto most = [&](size_t k) {
    const auto [least, greatest] = RangeOf(context, IntegersOf(context, k));
    return greatest - least;
  };
  if (terms <= std::numeric_limits<int32_t>::max() / (most(a) * most(b))) return;
  throw context.Refused(absl::StrCat("it sums ", terms, " products of integers, which may be more than 32 bits hold"));
}

}  // namespace addend::onnx

// Quantization. Integers that are rounded from numbers that descend from an input's content are refused; constants, and
// integers that a model takes as its input, are computed. Products of integers are exact: float64 holds their sums.
#include <ATen/ATen.h>

#include "absl/strings/str_cat.h"
#include "core/base/tensor_text.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/operands.h"
#include "core/onnx/plain_convolution.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// The smallest and the largest number of a type of 8 or 16 bits.
std::pair<int64_t, int64_t> RangeOf(const Context& context, c10::ScalarType type) {
  if (type == at::kByte) return {0, 255};
  if (type == at::kChar) return {-128, 127};
  if (type == at::kShort) return {-32768, 32767};
  throw context.Refused(absl::StrCat("it quantizes to ", DtypeWord(type), ", which is not supported"));
}

// Scales or zero points for every element of a tensor: one, one for each place on an axis, or one for each block.
Tensor ForElements(const Context& context, const Tensor& levels, const Tensor& x) {
  if (levels.numel() == 1 && levels.dim() <= 1) return at::reshape(levels, {});
  const int64_t axis = context.Axis(context.version() < 13 ? 1 : context.IntAttribute("axis", 1), x.dim());
  const int64_t block = context.IntAttribute("block_size", 0);
  if (block == 0) {
    if (levels.dim() != 1) throw context.Invalid("scales of several dimensions need a block_size");
    std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
    sizes[static_cast<size_t>(axis)] = levels.numel();
    return at::reshape(levels, sizes);
  }
  if (block < 0 || levels.dim() != x.dim()) throw context.Invalid("the blocks have not the dimensions of the input");
  return at::narrow(at::repeat_interleave(levels, block, axis), axis, 0, x.size(axis));
}

// The type that an attribute names; nothing where it is not there, or undefined.
c10::optional<c10::ScalarType> NamedType(const Context& context, const char* name) {
  if (context.IntAttribute(name, 0) == 0) return c10::nullopt;
  return context.TypeAttribute(name);
}

// Whole numbers of a type, saturated. `numbers` are rounded half to even before the zero point is added.
Tensor Saturated(const Context& context, const Tensor& numbers, const Tensor& zero, c10::ScalarType type) {
  const auto [least, most] = RangeOf(context, type);
  Tensor whole = at::round(numbers);
  if (zero.defined()) whole = at::add(whole, InType(zero, whole.scalar_type()));
  return at::clamp(whole, least, most).to(type);
}

Results QuantizeLinear(const Context& context) {
  context.RefuseQuantizing(0);
  context.RefuseQuantizing(1);
  const Tensor x = context.Tensor(0), scale = context.Tensor(1), zero = context.OptionalTensor(2);
  const c10::ScalarType type =
      zero.defined() ? zero.scalar_type() : NamedType(context, "output_dtype").value_or(at::kByte);
  const c10::ScalarType compute = NamedType(context, "precision").value_or(scale.scalar_type());
  const Tensor divided = at::div(InType(x, compute), InType(ForElements(context, scale, x), compute));
  const Tensor whole = Saturated(context, divided, zero.defined() ? ForElements(context, zero, x) : zero, type);
  const DataType packed = context.Input(2).packed;
  if (packed == DataType::kUndefined) return whole;
  const int64_t count = int64_t{1} << BitsOf(packed), least = IsSigned(packed) ? -count / 2 : 0;
  return at::clamp(whole, least, least + count - 1);
}

Results DequantizeLinear(const Context& context) {
  const Tensor x = context.Tensor(0), scale = context.Tensor(1), zero = context.OptionalTensor(2);
  if (c10::isFloatingType(x.scalar_type())) throw context.Invalid("the input holds no integers");
  const c10::ScalarType type = NamedType(context, "output_dtype").value_or(scale.scalar_type());
  const c10::ScalarType compute = c10::elementSize(type) < 4 ? at::kFloat : type;
  Tensor numbers = x;
  if (zero.defined()) numbers = at::sub(InType(x, at::kInt), InType(ForElements(context, zero, x), at::kInt));
  return InType(at::mul(InType(numbers, compute), InType(ForElements(context, scale, x), compute)), type);
}

// The range of the numbers, with zero in it, in 255 steps.
Results DynamicQuantizeLinear(const Context& context) {
  context.RefuseQuantizing(0);
  const Tensor x = context.Tensor(0);
  const Tensor least = at::clamp_max(at::min(x), 0), most = at::clamp_min(at::max(x), 0);
  const Tensor range = at::sub(most, least);
  const Tensor scale = at::div(at::masked_fill(range, at::eq(range, 0), 1), 255);
  const Tensor zero = at::clamp(at::round(at::div(at::neg(least), scale)), 0, 255).to(at::kByte);
  return {Saturated(context, at::div(x, scale), zero, at::kByte), scale, zero};
}

// Input k as whole numbers in float64, without its zero point. `dim`: the one of which each place may have its own.
Tensor Whole(const Context& context, size_t k, size_t zero, int64_t dim) {
  const Tensor x = context.Tensor(k);
  if (c10::isFloatingType(x.scalar_type())) throw context.Invalid(absl::StrCat("input ", k, " holds no integers"));
  const Tensor wide = x.to(at::kDouble);
  Tensor point = context.OptionalTensor(zero);
  if (!point.defined()) return wide;
  if (point.dim() == 1 && point.numel() > 1) {
    std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
    sizes[static_cast<size_t>(context.Axis(dim, x.dim()))] = point.numel();
    point = at::reshape(point, sizes);
  }
  return at::sub(wide, point.to(at::kDouble));
}

// Sums beyond 32 bits wrap.
Tensor Int32(const Tensor& whole) { return whole.to(at::kLong).to(at::kInt); }

Results MatMulInteger(const Context& context) {
  const int64_t rows = context.Rank(0) < 2 ? -1 : -2;
  return Int32(at::matmul(Whole(context, 0, 2, rows), Whole(context, 1, 3, -1)));
}

Results ConvInteger(const Context& context) {
  return Int32(PlainConvolution(context, Whole(context, 0, 2, 1), Whole(context, 1, 3, 0), c10::nullopt));
}

// A scale for each place of a dimension of the result, or one.
Tensor ScaleAt(const Tensor& scale, int64_t dim, int64_t rank) {
  if (scale.dim() > 1) return scale;
  if (scale.numel() == 1) return at::reshape(scale, {});
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(dim)] = scale.numel();
  return at::reshape(scale, sizes);
}

// Products of integers as integers of the result's scale and zero point, inputs 6 and 7. `scale`: that of the products.
Tensor Requantized(const Context& context, const Tensor& whole, const Tensor& scale) {
  const Tensor zero = context.Tensor(7);
  const Tensor factor = at::div(scale, context.Tensor(6));
  return Saturated(context, at::mul(whole, InType(factor, at::kDouble)), zero, zero.scalar_type());
}

void RefuseScales(const Context& context) {
  for (const size_t k : {1, 4, 6}) context.RefuseQuantizing(k);
}

Results QLinearMatMul(const Context& context) {
  RefuseScales(context);
  const Tensor whole = at::matmul(Whole(context, 0, 2, -2), Whole(context, 3, 5, -1));
  const Tensor rows = ScaleAt(context.Tensor(1), whole.dim() - 2, whole.dim());
  return Requantized(context, whole, at::mul(rows, context.Tensor(4)));
}

Results QLinearConv(const Context& context) {
  RefuseScales(context);
  c10::optional<Tensor> bias = BiasOf(context, 8);
  if (bias) bias = bias->to(at::kDouble);
  const Tensor whole = PlainConvolution(context, Whole(context, 0, 2, 1), Whole(context, 3, 5, 0), bias);
  return Requantized(context, whole, at::mul(context.Tensor(1), ScaleAt(context.Tensor(4), 1, whole.dim())));
}

}  // namespace

void RegisterQuantized(OperatorTable& table) {
  table.Add("QuantizeLinear", 10, QuantizeLinear)
      .Inputs(2, 3)
      .Attributes({"axis", "block_size", "output_dtype", "precision", "saturate"});
  table.Add("DequantizeLinear", 10, DequantizeLinear).Inputs(2, 3).Attributes({"axis", "block_size", "output_dtype"});
  table.Add("DynamicQuantizeLinear", 11, DynamicQuantizeLinear);
  table.Add("MatMulInteger", 10, MatMulInteger).Inputs(2, 4);
  table.Add("ConvInteger", 10, ConvInteger).Inputs(2, 4).Attributes(ConvolutionAttributes());
  table.Add("QLinearMatMul", 10, QLinearMatMul).Inputs(8);
  table.Add("QLinearConv", 10, QLinearConv).Inputs(8, 9).Attributes(ConvolutionAttributes());
}

}  // namespace addend::onnx

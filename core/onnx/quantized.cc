// Quantization. Integers that are rounded from what descends from an input stay floating-point numbers; see Note
// [Integers as floats] in datum.h. Products of integers are exact: float64 holds their sums.
#include <ATen/ATen.h>

#include <algorithm>

#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/operands.h"
#include "core/onnx/plain_convolution.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// Scales or zero points for every element of a tensor: one, one for each place on an axis, or one for each block.
Tensor ForElements(const Context& context, const Tensor& levels, const Tensor& x) {
  if (levels.numel() == 1 && levels.dim() <= 1) return at::reshape(levels, {});
  const int64_t axis = context.Axis(context.IntAttribute("axis", 1), x.dim());
  const int64_t block = context.IntAttribute("block_size", 0);
  if (block == 0) {
    if (levels.dim() != 1) throw context.Invalid("scales of several dimensions need a block_size");
    return AlongDim(levels, axis, x.dim());
  }
  if (block < 0 || levels.dim() != x.dim()) throw context.Invalid("the blocks have not the dimensions of the input");
  return at::narrow(at::repeat_interleave(levels, block, axis), axis, 0, x.size(axis));
}

// The type that an attribute names; undefined where it is not there.
DataType NamedType(const Context& context, const char* name) {
  return context.IntAttribute(name, 0) == 0 ? DataType::kUndefined : context.NamedType(name);
}

// The type of a number that an attribute names, or that of a tensor.
c10::ScalarType ComputedIn(const Context& context, const char* name, const Tensor& otherwise) {
  const DataType named = NamedType(context, name);
  return named == DataType::kUndefined ? otherwise.scalar_type() : context.TypeOf(named);
}

DataType QuantizedType(const Context& context) {
  if (context.Has(2)) return IntegersOf(context, 2);
  const DataType named = NamedType(context, "output_dtype");
  return named == DataType::kUndefined ? DataType::kUint8 : named;
}

Results QuantizeLinear(const Context& context) {
  const Tensor x = context.Tensor(0), scale = ScalesOf(context, 1);
  const c10::ScalarType compute = ComputedIn(context, "precision", scale);
  const Tensor numbers = at::div(InType(x, compute), InType(ForElements(context, scale, x), compute));
  const Tensor zero = context.Has(2) ? ForElements(context, WholeNumbers(context, 2), x) : Tensor();
  return Rounded(context, numbers, zero, QuantizedType(context));
}

Results DequantizeLinear(const Context& context) {
  const Tensor scale = ScalesOf(context, 1);
  Tensor numbers = WholeNumbers(context, 0);
  if (context.Has(2)) {
    const Tensor zero = ForElements(context, WholeNumbers(context, 2), numbers);
    numbers = at::sub(numbers, InType(zero, numbers.scalar_type()));
  }
  const c10::ScalarType type = ComputedIn(context, "output_dtype", scale);
  const c10::ScalarType compute = c10::elementSize(type) < 4 ? at::kFloat : type;
  const Tensor units = InType(ForElements(context, scale, numbers), compute);
  return Numbers(context, InType(at::mul(InType(numbers, compute), units), type));
}

Results DynamicQuantizeLinear(const Context& context) {
  const OwnGrid grid = InOwnGrid(context, context.Tensor(0));
  return std::vector<Datum>{Integers(context, grid.whole, DataType::kUint8), Numbers(context, grid.scale),
                            Integers(context, grid.zero, DataType::kUint8)};
}

// ---------------------------------------------------------------------------------------------------------- products

// The convolution of inputs x and w, of which each channel of the result may have its own zero point.
Tensor WholeConvolution(const Context& context, size_t x_zero, size_t w, size_t w_zero,
                        const c10::optional<Tensor>& bias) {
  const Tensor weight = WithoutZero(context, w, w_zero, 0);
  if (weight.dim() > 0 && weight.size(0) > 0) RequireNoWrap(context, weight.numel() / weight.size(0), 0, w);
  return PlainConvolution(context, InType(WithoutZero(context, 0, x_zero, 1), at::kDouble), InType(weight, at::kDouble),
                          bias);
}

Results MatMulInteger(const Context& context) {
  return Integers(context, WholeProduct(context, 0, 2, 1, 3), DataType::kInt32);
}

Results ConvInteger(const Context& context) {
  return Integers(context, WholeConvolution(context, 2, 1, 3, c10::nullopt), DataType::kInt32);
}

// Products of integers as integers of the result's scale and zero point, inputs 6 and 7. `scale`: that of the products.
// They are rounded from the type of the scales, as ONNX Runtime does.
Results Requantized(const Context& context, const Tensor& whole, const Tensor& scale) {
  const Tensor factor = at::div(scale, ScalesOf(context, 6));
  const Tensor numbers = at::mul(InType(whole, factor.scalar_type()), factor);
  return Rounded(context, numbers, WholeNumbers(context, 7), IntegersOf(context, 7));
}

Results QLinearMatMul(const Context& context) {
  const Tensor whole = WholeProduct(context, 0, 2, 3, 5);
  const Tensor rows = AlongDim(ScalesOf(context, 1), std::max<int64_t>(whole.dim() - 2, 0), whole.dim());
  return Requantized(context, whole, at::mul(rows, ScalesOf(context, 4)));
}

Results QLinearConv(const Context& context) {
  c10::optional<Tensor> bias;
  if (context.Has(8)) bias = InType(WholeNumbers(context, 8), at::kDouble);
  const Tensor whole = WholeConvolution(context, 2, 3, 5, bias);
  return Requantized(context, whole, at::mul(ScalesOf(context, 1), AlongDim(ScalesOf(context, 4), 1, whole.dim())));
}

}  // namespace

void RegisterQuantized(OperatorTable& table) {
  const auto add = [&](const char* name, int64_t since, OperatorFunction function) -> OperatorRow& {
    return table.Add(name, since, function).ReadsIntegers();
  };
  add("QuantizeLinear", 10, QuantizeLinear)
      .Inputs(2, 3)
      .Attributes({"axis", "block_size", "output_dtype", "precision", "saturate"})
      .Note(kRoundsNote);
  add("DequantizeLinear", 10, DequantizeLinear).Inputs(2, 3).Attributes({"axis", "block_size", "output_dtype"});
  add("DynamicQuantizeLinear", 11, DynamicQuantizeLinear).Note(kOwnGridNote);
  add("MatMulInteger", 10, MatMulInteger).Inputs(2, 4);
  add("ConvInteger", 10, ConvInteger).Inputs(2, 4).Attributes(ConvolutionAttributes());
  add("QLinearMatMul", 10, QLinearMatMul).Inputs(8).Note(kRoundsNote);
  add("QLinearConv", 10, QLinearConv).Inputs(8, 9).Attributes(ConvolutionAttributes()).Note(kRoundsNote);

  // ONNX Runtime's own, for types and blocks that the standard had not.
  const auto add_own = [&](const char* name, OperatorFunction function) -> OperatorRow& {
    return table.AddTo(kMicrosoftDomain, name, 1, function).ReadsIntegers().Inputs(2, 3);
  };
  add_own("QuantizeLinear", QuantizeLinear).Attributes({"axis", "block_size"}).Note(kRoundsNote);
  add_own("DequantizeLinear", DequantizeLinear).Attributes({"axis", "block_size"});
}

}  // namespace addend::onnx

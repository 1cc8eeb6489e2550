// Operators of com.microsoft for quantized models: those into which ONNX Runtime turns a chain of DequantizeLinear, an
// operator of floats, and QuantizeLinear; products with integers; weights of few bits. See Note [Integers as floats] in
// datum.h.
#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/onnx/context.h"
#include "core/onnx/families.h"
#include "core/onnx/integers.h"
#include "core/onnx/microsoft.h"
#include "core/onnx/operands.h"

namespace addend::onnx {
namespace {

using at::Tensor;

// ---------------------------------------------------------------------------------- between integers, one by one

// Input k in units of its scale, without its zero point. Its scale and zero point are the inputs behind it.
Tensor Units(const Context& context, size_t k) { return WithoutZero(context, k, k + 2, -1); }

// A scale of a whole tensor.
Tensor OneScale(const Context& context, size_t k) {
  const Tensor scale = ScalesOf(context, k);
  if (scale.numel() != 1) throw context.Refused(absl::StrCat("input ", k, " holds more than one scale"));
  return at::reshape(scale, {});
}

Tensor Dequantized(const Context& context, size_t k) {
  const Tensor scale = OneScale(context, k + 1);
  return at::mul(InType(Units(context, k), scale.scalar_type()), scale);
}

// Numbers in units of the result's scale as its integers. `zero`: the input that is its zero point, of whose type they
// are; else of that of input `like`.
Results Quantized(const Context& context, const Tensor& numbers, size_t zero, size_t like) {
  const bool has_zero = context.Has(zero);
  const Tensor point = has_zero ? at::reshape(WholeNumbers(context, zero), {}) : Tensor();
  return Rounded(context, numbers, point, IntegersOf(context, has_zero ? zero : like));
}

Results QLinearAdd(const Context& context) {
  const Tensor sum = at::add(Dequantized(context, 0), Dequantized(context, 3));
  return Quantized(context, at::div(sum, OneScale(context, 6)), 7, 0);
}

Results QLinearMul(const Context& context) {
  const Tensor scale = at::div(at::mul(OneScale(context, 1), OneScale(context, 4)), OneScale(context, 6));
  const Tensor product = at::mul(Units(context, 0), Units(context, 3));
  return Quantized(context, at::mul(InType(product, scale.scalar_type()), scale), 7, 0);
}

Results QLinearSigmoid(const Context& context) {
  return Quantized(context, at::div(at::sigmoid(Dequantized(context, 0)), OneScale(context, 3)), 4, 0);
}

Results QLinearLeakyRelu(const Context& context) {
  const Tensor y = at::leaky_relu(Dequantized(context, 0), context.FloatAttribute("alpha", 0.01));
  return Quantized(context, at::div(y, OneScale(context, 3)), 4, 0);
}

// Before version 13 of the standard's operator all dimensions from the axis on are one.
Results QLinearSoftmax(const Context& context) {
  const Tensor x = Dequantized(context, 0);
  const int64_t axis = context.Axis(context.IntAttribute("axis", -1), x.dim());
  const Tensor y = context.IntAttribute("opset") < 13 ? at::reshape(at::softmax(at::flatten(x, axis), axis), x.sizes())
                                                      : at::softmax(x, axis);
  return Quantized(context, at::div(y, OneScale(context, 3)), 4, 0);
}

Results QLinearGlobalAveragePool(const Context& context) {
  const Tensor x = Dequantized(context, 0);
  const bool channels_last = context.FlagAttribute("channels_last", false);
  std::vector<int64_t> dims;
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(channels_last ? dim - 1 : dim);
  if (dims.empty()) throw context.Invalid("the input has no spatial dimension");
  return Quantized(context, at::div(at::mean(x, dims, /*keepdim=*/true), OneScale(context, 3)), 4, 0);
}

// Inputs: scale and zero point of the result, then tensors with scale and zero point.
Results QLinearConcat(const Context& context) {
  std::vector<Tensor> parts;
  for (size_t k = 2; k + 2 < context.num_inputs(); k += 3) parts.push_back(Dequantized(context, k));
  if (parts.empty()) throw context.Invalid("it has no tensor");
  const Tensor all = at::cat(parts, context.Axis(context.IntAttribute("axis"), parts[0].dim()));
  return Quantized(context, at::div(all, OneScale(context, 0)), 1, 2);
}

// A condition, two tensors with scale and zero point, scale and zero point of the result.
Results QLinearWhere(const Context& context) {
  const Tensor chosen = at::where(context.Tensor(0), Dequantized(context, 1), Dequantized(context, 4));
  return Quantized(context, at::div(chosen, OneScale(context, 7)), 8, 1);
}

// ------------------------------------------------------------------------------------------------ products

// Inputs: A and B with scale and zero point each, a bias of integers in their common scale, scale and zero point of the
// result, which is of floats without these.
Results QGemm(const Context& context) {
  Tensor a = WithoutZero(context, 0, 2, -1);
  Tensor b = WithoutZero(context, 3, 5, context.FlagAttribute("transB", false) ? 0 : -1);
  if (a.dim() != 2 || b.dim() != 2) throw context.Invalid("an operand is no matrix");
  if (context.FlagAttribute("transA", false)) a = at::t(a);
  if (context.FlagAttribute("transB", false)) b = at::t(b);
  RequireNoWrap(context, a.size(1), 0, 3);
  Tensor whole = at::mm(InType(a, at::kDouble), InType(b, at::kDouble));
  if (context.Has(6)) whole = at::add(whole, InType(WholeNumbers(context, 6), at::kDouble));
  Tensor scale = at::mul(OneScale(context, 1), AlongDim(ScalesOf(context, 4), 1, 2));
  const double alpha = context.FloatAttribute("alpha", 1);
  if (alpha != 1) scale = at::mul(scale, alpha);
  const Tensor numbers = InType(whole, scale.scalar_type());
  if (!context.Has(7)) return std::vector<Datum>{Numbers(context, at::mul(numbers, scale))};
  return Quantized(context, at::mul(numbers, at::div(scale, OneScale(context, 7))), 8, 0);
}

// Products as floats, with a bias of floats, input `bias`.
Results AsFloats(const Context& context, const Tensor& whole, const Tensor& scale, size_t bias) {
  const Tensor y = at::mul(InType(whole, scale.scalar_type()), scale);
  return std::vector<Datum>{Numbers(context, context.Has(bias) ? at::add(y, context.Tensor(bias)) : y)};
}

// Inputs: A, B, their scales, their zero points, a bias.
Results MatMulIntegerToFloat(const Context& context) {
  const Tensor whole = WholeProduct(context, 0, 4, 1, 5);
  return AsFloats(context, whole, at::mul(OneScale(context, 2), ScalesOf(context, 3)), 6);
}

// Inputs: floats, which are quantized in a grid of their own, B, its scales and zero points, a bias.
Results DynamicQuantizeMatMul(const Context& context) {
  const OwnGrid grid = InOwnGrid(context, context.Tensor(0));
  const Tensor a = at::sub(grid.whole, grid.zero), b = WithoutZero(context, 1, 3, -1);
  const Tensor whole = at::matmul(InType(a, at::kDouble), InType(b, at::kDouble));
  return AsFloats(context, whole, at::mul(grid.scale, ScalesOf(context, 2)), 4);
}

// Inputs: numbers, weights and biases of query, key and value, scales of numbers and weights, mask, zero points of
// numbers and weights, past.
Results QAttention(const Context& context) {
  const Tensor whole = WholeProduct(context, 0, 6, 1, 7);
  const Tensor scale = at::mul(OneScale(context, 3), ScalesOf(context, 4));
  const Tensor all = at::add(at::mul(InType(whole, scale.scalar_type()), scale), context.Tensor(2));
  return AttentionOf(context, all, /*mask=*/5, /*past=*/8, /*bias=*/std::nullopt);
}

// The inputs of EmbedLayerNormalization without positions, five of which are integers: their scales are six inputs
// behind them, their zero points eleven.
Results QEmbedLayerNormalization(const Context& context) {
  const auto table = [&](size_t k) {
    const Tensor scale = OneScale(context, k + 6);
    return at::mul(InType(WithoutZero(context, k, k + 11, -1), scale.scalar_type()), scale);
  };
  return EmbeddingsOf(context, table, /*places=*/Tensor());
}

// --------------------------------------------------------------------------------------------- weights of few bits

// Bytes as the numbers of `bits` bits that are packed in the last dimension, the lowest bits first.
Tensor Unpacked(const Context& context, const Tensor& bytes, int64_t bits) {
  if (bytes.scalar_type() != at::kByte) throw context.Invalid("packed numbers are no bytes");
  if (bits == 8) return bytes;
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < 8; first += bits) {
    parts.push_back(at::bitwise_and(at::bitwise_right_shift(bytes, first), (int64_t{1} << bits) - 1));
  }
  return at::flatten(at::stack(parts, -1), -2);
}

// Weights of N rows of K numbers, in blocks that have a scale and a zero point each.
Tensor BlockWeights(const Context& context, int64_t rows, int64_t size) {
  const int64_t bits = context.IntAttribute("bits", 4), block = context.IntAttribute("block_size");
  if (bits != 2 && bits != 4 && bits != 8) throw context.Refused(absl::StrCat("weights of ", bits, " bits"));
  if (rows < 1 || size < 1 || block < 1) throw context.Invalid("a size is not positive");
  const int64_t blocks = (size - 1) / block + 1;
  const Tensor scales = at::reshape(context.Tensor(2), {rows, blocks});
  const auto in_type = [&](const Tensor& numbers) { return InType(numbers, scales.scalar_type()); };
  Tensor zeros;
  if (!context.Has(3)) {
    zeros = at::full_like(scales, static_cast<double>(int64_t{1} << (bits - 1)));
  } else if (context.Tensor(3).scalar_type() == at::kByte) {
    const Tensor packed = Unpacked(context, at::reshape(context.Tensor(3), {rows, -1}), bits);
    zeros = in_type(at::narrow(packed, 1, 0, blocks));
  } else {
    zeros = in_type(at::reshape(context.Tensor(3), {rows, blocks}));
  }
  const Tensor weights = in_type(at::narrow(
      at::flatten(at::reshape(Unpacked(context, context.Tensor(1), bits), {rows, blocks, -1}), 1), 1, 0, size));
  const auto for_weights = [&](const Tensor& levels) {
    if (context.Has(4)) return at::index_select(levels, 1, context.Tensor(4));
    return at::narrow(at::repeat_interleave(levels, block, 1), 1, 0, size);
  };
  return at::mul(at::sub(weights, for_weights(zeros)), for_weights(scales));
}

Tensor UnpackedWeights(const Context& context) {
  return BlockWeights(context, context.IntAttribute("N"), context.IntAttribute("K"));
}

// Inputs: numbers, weights, their scales and zero points, the block of each of the K numbers, a bias.
Results MatMulNBits(const Context& context) {
  const Tensor x = context.Tensor(0), unpacked = context.MadeOnce();
  const Tensor weights = InType(unpacked.defined() ? unpacked : UnpackedWeights(context), x.scalar_type());
  const Tensor y = at::matmul(x, at::t(weights));
  return context.Has(5) ? at::add(y, context.Tensor(5)) : y;
}

}  // namespace

void RegisterMicrosoftQuantized(OperatorTable& table) {
  const auto add = [&](const char* name, OperatorFunction function) -> OperatorRow& {
    return table.AddTo(kMicrosoftDomain, name, 1, function).ReadsIntegers();
  };
  const auto add_rounding = [&](const char* name, OperatorFunction function) -> OperatorRow& {
    return add(name, function).Note(kRoundsNote);
  };
  add_rounding("QLinearAdd", QLinearAdd).Inputs(7, 8);
  add_rounding("QLinearMul", QLinearMul).Inputs(7, 8);
  add_rounding("QLinearSigmoid", QLinearSigmoid).Inputs(4, 5);
  add_rounding("QLinearLeakyRelu", QLinearLeakyRelu).Inputs(4, 5).Attributes({"alpha"});
  add_rounding("QLinearSoftmax", QLinearSoftmax).Inputs(5).Attributes({"axis", "opset"});
  add_rounding("QLinearGlobalAveragePool", QLinearGlobalAveragePool).Inputs(5).Attributes({"channels_last"});
  add_rounding("QLinearConcat", QLinearConcat).InputsFrom(5).Attributes({"axis"});
  add_rounding("QLinearWhere", QLinearWhere).Inputs(9);
  add_rounding("QGemm", QGemm).Inputs(6, 9).Attributes({"alpha", "transA", "transB"});
  add("MatMulIntegerToFloat", MatMulIntegerToFloat).Inputs(4, 7);
  add("DynamicQuantizeMatMul", DynamicQuantizeMatMul).Inputs(3, 5).Note(kOwnGridNote);
  add("QAttention", QAttention)
      .Inputs(5, 9)
      .Attributes(
          {"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "scale", "unidirectional"});
  add("QEmbedLayerNormalization", QEmbedLayerNormalization).Inputs(18).Attributes({"epsilon"});
  // How much of it may be computed in fewer bits changes nothing here.
  add("MatMulNBits", MatMulNBits)
      .Inputs(3, 6)
      .Attributes({"K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"})
      .MakesOnce(UnpackedWeights);
}

}  // namespace addend::onnx

// Quantization: integers as the runtime has them. What becomes of parts is tests/onnx/quantized_parts_test.cc.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr int32_t kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt16 = 5, kInt4 = 22, kUint4 = 21;

Tensor Uint8(const std::vector<int64_t>& values) { return at::tensor(values).to(at::kByte); }
Tensor Int8(const std::vector<int64_t>& values) { return at::tensor(values).to(at::kChar); }

TEST(Quantized, ConstantsAreDequantizedByAxis) {
  const Tensor q = at::randint(-128, 128, {4, 6}, at::kChar);
  const Tensor scale = at::rand({6}) + 0.1, zero = at::randint(-9, 9, {6}, at::kChar);
  const Tensor y = NodeModel("DequantizeLinear").Constant(q).Constant(scale).Constant(zero).Run()[0];
  EXPECT_TRUE(at::allclose(y, (q.to(at::kFloat) - zero) * scale));
  const Tensor rows = at::rand({4}) + 0.1;
  const Tensor by_row =
      NodeModel("DequantizeLinear").Constant(q).Constant(rows).Attribute(IntAttribute("axis", 0)).Run()[0];
  EXPECT_TRUE(at::allclose(by_row, q.to(at::kFloat) * rows.unsqueeze(1)));
}

// Half to even, then the zero point, then saturation; of constants and of inputs.
TEST(Quantized, RoundsHalfToEven) {
  const Tensor x = at::tensor({0.5F, 1.5F, 2.5F, -0.5F, 300.0F, -300.0F});
  const Tensor one = at::tensor(1.0F), three = Uint8({3}).reshape({}), expected = Uint8({3, 5, 5, 3, 255, 0});
  EXPECT_TRUE(at::equal(NodeModel("QuantizeLinear").Constant(x).Constant(one).Constant(three).Run()[0], expected));
  EXPECT_TRUE(at::equal(NodeModel("QuantizeLinear").Input(x).Constant(one).Constant(three).Run()[0], expected));
  const Tensor without = NodeModel("QuantizeLinear").Input(x).Constant(one).Run()[0];
  EXPECT_TRUE(at::equal(without, Uint8({0, 2, 2, 0, 255, 0})));
}

// x / 0.5 by a type of few bits, or of 16, and back.
Tensor ThereAndBack(const Tensor& x, int32_t type, int64_t zero, const std::string& raw, bool by_zero) {
  std::vector<std::string> inputs{"x0", "scale"};
  std::vector<MessageWriter> initializers{FloatTensor("scale", {}, {0.5F})};
  if (by_zero) {
    inputs.emplace_back("zero");
    initializers.push_back(TensorMessage("zero", type, {}).Bytes(9, raw));
  } else {
    EXPECT_EQ(zero, 0);
  }
  MessageWriter quantize = NodeMessage("QuantizeLinear", inputs, {"q"});
  if (!by_zero) quantize.Message(5, IntAttribute("output_dtype", type));
  inputs[0] = "q";
  const auto model = ModelOfNodes({quantize, NodeMessage("DequantizeLinear", inputs, {"y"})}, 1, initializers, 21);
  return ResultOf(*model, {x});
}

TEST(Quantized, SaturatesAtTheBitsOfItsType) {
  const Tensor x = at::tensor({-1e6F, -3.7F, -0.3F, 0.2F, 0.9F, 3.4F, 1e6F});
  struct Case {
    int32_t type;
    int64_t zero;
    std::string raw;
    double least, most;
  };
  const std::string eight_below("\xf8", 1);  // -8
  for (const Case& c : {Case{kUint8, 128, "\x80", 0, 255}, Case{kInt8, -8, eight_below, -128, 127},
                        Case{kUint16, 513, "\x01\x02", 0, 65535}, Case{kInt16, 513, "\x01\x02", -32768, 32767},
                        Case{kUint4, 5, "\x05", 0, 15}, Case{kInt4, -3, "\x0d", -8, 7}}) {
    const auto expected = [&](int64_t zero) {
      return ((x / 0.5).round() + zero).clamp(c.least, c.most).sub(zero) * 0.5;
    };
    EXPECT_TRUE(at::equal(ThereAndBack(x, c.type, c.zero, c.raw, /*by_zero=*/true), expected(c.zero))) << c.type;
    EXPECT_TRUE(at::equal(ThereAndBack(x, c.type, 0, "", /*by_zero=*/false), expected(0))) << c.type;
  }
}

// A scale for each block of two rows, of which the last is cut.
TEST(Quantized, BlocksHaveTheirOwnScales) {
  const Tensor x = at::randn({5, 3}) * 10, scale = at::rand({3, 3}) + 0.1;
  const Tensor wide = scale.repeat_interleave(2, 0).narrow(0, 0, 5);
  const Tensor y = NodeModel("QuantizeLinear", "", 21)
                       .Input(x)
                       .Constant(scale)
                       .Constant(at::zeros({3, 3}, at::kChar))
                       .Attribute(IntAttribute("axis", 0))
                       .Attribute(IntAttribute("block_size", 2))
                       .Run()[0];
  EXPECT_TRUE(at::equal(y, (x / wide).round().clamp(-128, 127).to(at::kChar)));
}

// The range is [-1, 4], in 255 steps.
TEST(Quantized, FindsTheRangeOfWhatItRounds) {
  const Tensor x = at::tensor({-1.0F, 0.0F, 0.6F, 4.0F});
  const auto y = NodeModel("DynamicQuantizeLinear").Input(x).Run(3);
  EXPECT_TRUE(at::equal(y[0], Uint8({0, 51, 82, 255})));
  EXPECT_FLOAT_EQ(y[1].item<float>(), 5.0F / 255);
  EXPECT_EQ(y[2].item<int64_t>(), 51);
  // Zero is in the range, and a range of nothing has the scale 1.
  EXPECT_TRUE(
      at::equal(NodeModel("DynamicQuantizeLinear").Input(at::tensor({1.0F, 4.0F})).Run(3)[0], Uint8({64, 255})));
  const auto none = NodeModel("DynamicQuantizeLinear").Input(at::zeros({3})).Run(3);
  EXPECT_TRUE(at::equal(none[0], Uint8({0, 0, 0})));
  EXPECT_EQ(none[1].item<float>(), 1);
}

// Both roundings together would give 256.
TEST(Quantized, TheGreatestNumberIsTheGreatestInteger) {
  for (int64_t k = 0; k < 200; ++k) {
    const Tensor x = at::randn({2});
    const auto y = NodeModel("DynamicQuantizeLinear").Input(x).Run(3);
    const Tensor expected = ((x / y[1]).round() + y[2].to(at::kFloat)).clamp(0, 255).to(at::kByte);
    EXPECT_TRUE(at::equal(y[0], expected)) << x;
  }
}

TEST(Quantized, IntegersOfAnInputAreMultiplied) {
  const Tensor a = at::randint(0, 256, {3, 5}, at::kByte), b = at::randint(0, 256, {5, 4}, at::kByte);
  const Tensor rows = at::randint(0, 256, {3}, at::kByte), columns = at::randint(0, 256, {4}, at::kByte);
  const Tensor y = NodeModel("MatMulInteger").Input(a).Constant(b).Constant(rows).Constant(columns).Run()[0];
  const Tensor expected = (a.to(at::kLong) - rows.to(at::kLong).unsqueeze(1)).mm(b.to(at::kLong) - columns);
  EXPECT_TRUE(at::equal(y, expected.to(at::kInt)));
}

// float32 would round sums of so many products; 32 bits would not hold those of more.
TEST(Quantized, SumsAreExact) {
  const Tensor a = at::full({1, 3001}, 255).to(at::kByte), b = at::full({3001, 1}, 255).to(at::kByte);
  const Tensor y = NodeModel("MatMulInteger").Input(a).Constant(b).Run()[0];
  EXPECT_EQ(y.item<int64_t>(), int64_t{3001} * 255 * 255);
  const Tensor c = at::full({1, 40000}, 255).to(at::kByte);
  ExpectError(absl::StatusCode::kUnimplemented, {"node (MatMulInteger)", "40000 products"},
              [&] { NodeModel("MatMulInteger").Input(c).Constant(c.t().contiguous()).Run(); });
}

TEST(Quantized, ProductsAreRoundedToTheScaleOfTheResult) {
  const Tensor x = at::randint(0, 256, {2, 3, 6, 6}, at::kByte), w = at::randint(-128, 128, {4, 3, 3, 3}, at::kChar);
  const Tensor scales = at::rand({4}) * 0.01 + 0.001, bias = at::randint(-900, 900, {4}, at::kInt);
  const auto model = [&](NodeModel node) {
    return node.Input(x)
        .Constant(at::tensor(0.02F))
        .Constant(Uint8({100}).reshape({}))
        .Constant(w)
        .Constant(scales)
        .Constant(Int8({0, 0, 0, 0}))
        .Constant(at::tensor(0.03F))
        .Constant(Uint8({7}).reshape({}))
        .Constant(bias)
        .Attribute(IntsAttribute("pads", {1, 1, 1, 1}))
        .Run()[0];
  };
  const Tensor sums = at::conv2d(x.to(at::kDouble) - 100, w.to(at::kDouble), bias.to(at::kDouble), 1, 1);
  const Tensor factor = (at::tensor(0.02F) * scales / at::tensor(0.03F)).reshape({1, 4, 1, 1});
  const Tensor expected = ((sums.to(at::kFloat) * factor).round() + 7).clamp(0, 255).to(at::kByte);
  EXPECT_TRUE(at::equal(model(NodeModel("QLinearConv")), expected));
}

// Operators that choose elements give integers of the same type; others say that they would not.
TEST(Quantized, IntegersAreChosenAndNotComputedWith) {
  const Tensor x = at::randn({2, 6});
  const std::vector<MessageWriter> initializers{FloatTensor("scale", {}, {0.1F}), IntegerTensor("shape", {2}, {3, 4})};
  const auto behind = [&](const std::vector<MessageWriter>& nodes) {
    std::vector<MessageWriter> all{NodeMessage("QuantizeLinear", {"x0", "scale"}, {"q"})};
    all.insert(all.end(), nodes.begin(), nodes.end());
    return ModelOfNodes(all, 1, initializers);
  };
  const auto moved = behind({NodeMessage("Reshape", {"q", "shape"}, {"r"}), NodeMessage("Max", {"r", "r"}, {"y"})});
  const Tensor y = ResultOf(*moved, {x});
  EXPECT_TRUE(at::equal(y, (x / 0.1F).round().clamp(0, 255).to(at::kByte).reshape({3, 4})));
  const auto added = behind({NodeMessage("Add", {"q", "q"}, {"y"}, "sum")});
  ExpectError(absl::StatusCode::kUnimplemented, {"node sum (Add)", "integers of type uint8"},
              [&] { ResultOf(*added, {x}); });
}

TEST(Quantized, ACastGivesIntegersToo) {
  const auto cast = [](const std::string& from, const std::string& to, int64_t type) {
    return With(NodeMessage("Cast", {from}, {to}), {IntAttribute("to", type)});
  };
  const Tensor x = at::tensor({-2.7F, 0.4F, 99.9F});
  EXPECT_TRUE(at::equal(ResultOf(*ModelOfNodes({cast("x0", "y", 3)}, 1), {x}), Int8({-2, 0, 99})));
  const auto twice = ModelOfNodes({cast("x0", "q", 3), cast("q", "wide", 6), cast("wide", "y", 1)}, 1);
  EXPECT_TRUE(at::equal(ResultOf(*twice, {x}), at::tensor({-2.0F, 0.0F, 99.0F})));
  ExpectError(absl::StatusCode::kUnimplemented, {"(Cast)", "int8 to uint8"}, [&] {
    ResultOf(*ModelOfNodes({cast("x0", "q", 3), cast("q", "y", 2)}, 1), {x});
  });
}

}  // namespace
}  // namespace addend::onnx

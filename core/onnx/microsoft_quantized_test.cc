// Operators of ONNX Runtime for quantized models, held to what they stand for.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

NodeModel Microsoft(const std::string& op) { return NodeModel(op, "com.microsoft"); }
Tensor Uint8(int64_t value) { return at::scalar_tensor(value, at::kByte); }
Tensor Scale(float value) { return at::scalar_tensor(value, at::kFloat); }
Tensor RandomUint8(at::IntArrayRef sizes) { return at::randint(0, 256, sizes, at::kByte); }
Tensor RandomInt8(at::IntArrayRef sizes) { return at::randint(-128, 128, sizes, at::kChar); }

// Numbers in [0, 255] around 7, by the scale of the result.
Tensor Rounded(const Tensor& y, double scale) { return (y / scale).round().add(7).clamp(0, 255).to(at::kByte); }
// Integers by a division that another order of operations may round otherwise.
bool NearlyEqual(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && (a.to(at::kInt) - b.to(at::kInt)).abs().max().item<int>() <= 1;
}

TEST(MicrosoftQuantized, SumsAndProductsAreRounded) {
  const Tensor a = RandomUint8({3, 4}), b = RandomUint8({4});
  const Tensor x = (a.to(at::kDouble) - 100) * 0.02, z = (b.to(at::kDouble) - 90) * 0.03;
  const auto node = [&](const std::string& op) {
    return Microsoft(op)
        .Input(a)
        .Constant(Scale(0.02F))
        .Constant(Uint8(100))
        .Input(b)
        .Constant(Scale(0.03F))
        .Constant(Uint8(90))
        .Constant(Scale(0.05F))
        .Constant(Uint8(7))
        .Run()[0];
  };
  EXPECT_TRUE(NearlyEqual(node("QLinearAdd"), Rounded(x + z, 0.05)));
  EXPECT_TRUE(NearlyEqual(node("QLinearMul"), Rounded(x * z, 0.05)));
}

TEST(MicrosoftQuantized, FunctionsAreRounded) {
  const Tensor a = RandomUint8({2, 3, 4, 4});
  const Tensor x = (a.to(at::kDouble) - 100) * 0.02;
  const auto node = [&](const std::string& op, float scale) {
    NodeModel model = Microsoft(op);
    return model.Input(a).Constant(Scale(0.02F)).Constant(Uint8(100)).Constant(Scale(scale)).Constant(Uint8(7));
  };
  EXPECT_TRUE(NearlyEqual(node("QLinearSigmoid", 0.005F).Run()[0], Rounded(x.sigmoid(), 0.005)));
  EXPECT_TRUE(NearlyEqual(node("QLinearLeakyRelu", 0.02F).Attribute(FloatAttribute("alpha", 0.25F)).Run()[0],
                          Rounded(x.maximum(x * 0.25), 0.02)));
  EXPECT_TRUE(
      NearlyEqual(node("QLinearGlobalAveragePool", 0.01F).Run()[0], Rounded(x.mean({2, 3}, /*keepdim=*/true), 0.01)));
  EXPECT_TRUE(NearlyEqual(node("QLinearGlobalAveragePool", 0.01F).Attribute(IntAttribute("channels_last", 1)).Run()[0],
                          Rounded(x.mean({1, 2}, /*keepdim=*/true), 0.01)));
  const auto softmax = [&](int64_t opset) {
    return node("QLinearSoftmax", 0.005F)
        .Attribute(IntAttribute("axis", 2))
        .Attribute(IntAttribute("opset", opset))
        .Run()[0];
  };
  EXPECT_TRUE(NearlyEqual(softmax(13), Rounded(x.softmax(2), 0.005)));
  EXPECT_TRUE(NearlyEqual(softmax(12), Rounded(x.flatten(2).softmax(2).reshape(x.sizes()), 0.005)));
}

TEST(MicrosoftQuantized, ChoicesAreRoundedToOneScale) {
  const Tensor a = RandomUint8({2, 3}), b = RandomUint8({2, 3}), chosen = at::randint(0, 2, {2, 3}, at::kBool);
  const Tensor x = (a.to(at::kDouble) - 100) * 0.02, z = (b.to(at::kDouble) - 90) * 0.03;
  const Tensor joined = Microsoft("QLinearConcat")
                            .Constant(Scale(0.05F))
                            .Constant(Uint8(7))
                            .Input(a)
                            .Constant(Scale(0.02F))
                            .Constant(Uint8(100))
                            .Input(b)
                            .Constant(Scale(0.03F))
                            .Constant(Uint8(90))
                            .Attribute(IntAttribute("axis", 1))
                            .Run()[0];
  EXPECT_TRUE(NearlyEqual(joined, Rounded(at::cat({x, z}, 1), 0.05)));
  const Tensor y = Microsoft("QLinearWhere")
                       .Input(chosen)
                       .Input(a)
                       .Constant(Scale(0.02F))
                       .Constant(Uint8(100))
                       .Input(b)
                       .Constant(Scale(0.03F))
                       .Constant(Uint8(90))
                       .Constant(Scale(0.05F))
                       .Constant(Uint8(7))
                       .Run()[0];
  EXPECT_TRUE(NearlyEqual(y, Rounded(at::where(chosen, x, z), 0.05)));
}

// The bias is of integers, in the scale of the products; without a scale the result is of floats.
TEST(MicrosoftQuantized, GemmHasItsBiasInsideOfTheScale) {
  const Tensor a = RandomUint8({3, 5}), b = RandomInt8({4, 5}), bias = at::randint(-999, 999, {4}, at::kInt);
  const Tensor scales = at::rand({4}) * 0.01 + 0.001;
  const auto node = [&] {
    NodeModel model = Microsoft("QGemm");
    return model.Input(a)
        .Constant(Scale(0.02F))
        .Constant(Uint8(100))
        .Constant(b)
        .Constant(scales)
        .Constant(at::zeros({4}, at::kChar))
        .Constant(bias)
        .Attribute(IntAttribute("transB", 1));
  };
  const Tensor sums = (a.to(at::kDouble) - 100).mm(b.to(at::kDouble).t()) + bias;
  const Tensor expected = sums * (scales * 0.02F);
  EXPECT_TRUE(at::allclose(node().Run()[0].to(at::kDouble), expected, 1e-5, 1e-6));
  EXPECT_TRUE(NearlyEqual(node().Constant(Scale(0.05F)).Constant(Uint8(7)).Run()[0],
                          Rounded(expected, Scale(0.05F).item<float>())));
}

// The chain: DynamicQuantizeLinear, MatMulInteger, a cast, a product with both scales, and a sum.
TEST(MicrosoftQuantized, DynamicProductsAreAChainOfTheStandard) {
  const Tensor x = at::randn({3, 5}), b = RandomInt8({5, 4}), scales = at::rand({4}) * 0.01 + 0.001;
  const Tensor zeros = at::randint(-9, 9, {4}, at::kChar), bias = at::randn({4});
  const auto own = NodeModel("DynamicQuantizeLinear").Input(x).Run(3);
  const Tensor whole = NodeModel("MatMulInteger").Input(own[0]).Constant(b).Input(own[2]).Constant(zeros).Run()[0];
  const Tensor expected = whole.to(at::kFloat) * (own[1] * scales) + bias;
  const Tensor y =
      Microsoft("DynamicQuantizeMatMul").Input(x).Constant(b).Constant(scales).Constant(zeros).Constant(bias).Run()[0];
  EXPECT_TRUE(at::allclose(y, expected, 1e-6, 1e-6));
  const Tensor z = Microsoft("MatMulIntegerToFloat")
                       .Input(own[0])
                       .Constant(b)
                       .Input(own[1])
                       .Constant(scales)
                       .Input(own[2])
                       .Constant(zeros)
                       .Constant(bias)
                       .Run()[0];
  EXPECT_TRUE(at::allclose(z, expected, 1e-6, 1e-6));
}

TEST(MicrosoftQuantized, AttentionIsThatOfDequantizedNumbers) {
  const Tensor a = RandomUint8({2, 3, 8}), w = RandomInt8({8, 24}), b = at::randn({24});
  const Tensor scales = at::rand({24}) * 0.005 + 0.001, lengths = at::tensor({2, 3}, at::kInt);
  const Tensor expected = Microsoft("Attention")
                              .Input((a.to(at::kFloat) - 100) * 0.02)
                              .Constant(w.to(at::kFloat) * scales)
                              .Constant(b)
                              .Input(lengths)
                              .Attribute(IntAttribute("num_heads", 2))
                              .Run()[0];
  const Tensor y = Microsoft("QAttention")
                       .Input(a)
                       .Constant(w)
                       .Constant(b)
                       .Constant(Scale(0.02F))
                       .Constant(scales)
                       .Input(lengths)
                       .Constant(Uint8(100))
                       .Attribute(IntAttribute("num_heads", 2))
                       .Run()[0];
  EXPECT_TRUE(at::allclose(y, expected, 1e-3, 1e-4));
}

// Two rows of six numbers of 4 bits in blocks of four, of which the second is cut: rows of 2 blocks of 2 bytes.
TEST(MicrosoftQuantized, WeightsOfFewBitsAreUnpacked) {
  const Tensor x = at::randn({3, 6});
  const Tensor packed = at::tensor({0x21, 0x43, 0x65, 0, 0xba, 0xdc, 0xfe, 0}).to(at::kByte).reshape({2, 2, 2});
  const Tensor whole = at::tensor({1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15}).to(at::kFloat).reshape({2, 6});
  const Tensor scales = at::rand({2, 2}) + 0.1;
  const auto node = [&] {
    NodeModel model = Microsoft("MatMulNBits");
    return model.Attribute(IntAttribute("K", 6))
        .Attribute(IntAttribute("N", 2))
        .Attribute(IntAttribute("bits", 4))
        .Attribute(IntAttribute("block_size", 4))
        .Input(x)
        .Constant(packed)
        .Constant(scales.reshape({4}));
  };
  const Tensor wide = scales.repeat_interleave(4, 1).narrow(1, 0, 6);
  EXPECT_TRUE(at::allclose(node().Run()[0], x.mm(((whole - 8) * wide).t()), 1e-4, 1e-5));
  // Zero points of 4 bits, those of a row in a byte; then such of floats, and a bias.
  const Tensor zeros = at::tensor({3, 9, 0, 15}).to(at::kFloat).reshape({2, 2}).repeat_interleave(4, 1).narrow(1, 0, 6);
  const Tensor expected = x.mm(((whole - zeros) * wide).t());
  EXPECT_TRUE(at::allclose(node().Constant(at::tensor({0x93, 0xf0}).to(at::kByte)).Run()[0], expected, 1e-4, 1e-5));
  const Tensor bias = at::randn({2});
  const Tensor floats = at::tensor({3.0F, 9.0F, 0.0F, 15.0F});
  EXPECT_TRUE(at::allclose(node().Constant(floats).None().Constant(bias).Run()[0], expected + bias, 1e-4, 1e-5));
  // The block of each number as an input.
  const Tensor blocks = at::tensor({1, 0, 1, 0, 1, 0}, at::kInt);
  EXPECT_TRUE(at::allclose(node().None().Constant(blocks).Run()[0],
                           x.mm(((whole - 8) * scales.index_select(1, blocks)).t()), 1e-4, 1e-5));
}

// Constants are unpacked when the model is loaded: no run has an operator for it.
TEST(MicrosoftQuantized, WeightsOfFewBitsAreUnpackedOnce) {
  const Tensor packed = at::randint(0, 256, {3, 2, 8}, at::kByte), scales = at::rand({6}) + 0.1, x = at::randn({4, 32});
  const auto bytes = [](const Tensor& tensor) {
    return std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  };
  const MessageWriter constant_weights = TensorMessage("w", 2, {3, 2, 8}).Bytes(9, bytes(packed));
  const MessageWriter constant_scales = TensorMessage("s", 1, {6}).Bytes(9, bytes(scales));
  const auto load = [&](const std::vector<std::string>& inputs, const std::vector<MessageWriter>& initializers) {
    MessageWriter node = NodeMessage("MatMulNBits", inputs, {"y"}, "", "com.microsoft");
    node = With(node,
                {IntAttribute("K", 32), IntAttribute("N", 3), IntAttribute("bits", 4), IntAttribute("block_size", 16)});
    return ModelOfNodes({node}, 3 - initializers.size(), initializers, 17, 0, "com.microsoft");
  };
  const auto once = load({"x0", "w", "s"}, {constant_weights, constant_scales});
  EXPECT_THAT(OperatorsOf(*once, {x}), testing::ElementsAre("aten::t", "aten::matmul"));
  // Weights that are an input are unpacked in the run, to the same numbers.
  const auto each = load({"x0", "x1", "s"}, {constant_scales});
  EXPECT_TRUE(at::equal(ResultOf(*once, {x}), ResultOf(*each, {x, packed})));
  EXPECT_THAT(OperatorsOf(*each, {x, packed}), testing::Contains("aten::bitwise_and"));
  // In double precision the weights are those of double precision.
  const auto wide = once->To(c10::Device(c10::kCPU), at::kDouble);
  const Tensor number = at::stack({packed.bitwise_and(15), packed.bitwise_right_shift(4)}, -1).reshape({3, 32});
  const Tensor units = scales.to(at::kDouble).reshape({3, 2}).repeat_interleave(16, 1);
  EXPECT_TRUE(at::allclose(ResultOf(*wide, {x.to(at::kDouble)}),
                           x.to(at::kDouble).mm(((number.to(at::kDouble) - 8) * units).t()), 1e-13, 1e-13));
}

}  // namespace
}  // namespace addend::onnx

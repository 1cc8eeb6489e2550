// Parts of quantized models: those of the model before it was quantized, to the steps of the grid.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend {
namespace {

using at::Tensor;
using onnx::FloatTensor;
using onnx::MessageWriter;
using onnx::NodeMessage;
using testing::Contains;
using testing::HasSubstr;

std::vector<float> Floats(const Tensor& tensor) {
  const Tensor flat = tensor.to(at::kFloat).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

MessageWriter Weights(const std::string& name, const Tensor& tensor) {
  return FloatTensor(name, tensor.sizes().vec(), Floats(tensor));
}

MessageWriter Bytes(const std::string& name, const Tensor& tensor) {
  const Tensor packed = tensor.to(at::kChar).contiguous();
  return onnx::TensorMessage(name, 3, tensor.sizes().vec())
      .Bytes(9, std::string(static_cast<const char*>(packed.data_ptr()), packed.nbytes()));
}

// One number as a zero point of type uint8.
MessageWriter ZeroPoint(const std::string& name, int64_t value) {
  return onnx::TensorMessage(name, 2, {}).Bytes(9, std::string(1, static_cast<char>(value)));
}

// Two layers with a relu between them, as a model of floats and quantized in two ways.
struct Network {
  Tensor a = at::randn({12, 40}) * 0.3, b = at::randn({40}) * 0.1, c = at::randn({40, 5}) * 0.2;

  std::shared_ptr<Model> Plain() const {
    return onnx::ModelOfNodes({NodeMessage("MatMul", {"x0", "a"}, {"p"}), NodeMessage("Add", {"p", "b"}, {"s"}),
                               NodeMessage("Relu", {"s"}, {"h"}), NodeMessage("MatMul", {"h", "c"}, {"y"})},
                              1, {Weights("a", a), Weights("b", b), Weights("c", c)});
  }

  // Q and DQ before each product, with fixed grids; weights as integers.
  std::shared_ptr<Model> Fixed() const {
    std::vector<MessageWriter> initializers = Integers();
    initializers.push_back(FloatTensor("step", {}, {8.0F / 255}));
    initializers.push_back(ZeroPoint("middle", 128));
    initializers.push_back(ZeroPoint("zero", 0));
    return onnx::ModelOfNodes(
        {NodeMessage("QuantizeLinear", {"x0", "step", "middle"}, {"xq"}),
         NodeMessage("DequantizeLinear", {"xq", "step", "middle"}, {"x"}),
         NodeMessage("DequantizeLinear", {"aq", "as"}, {"a"}), NodeMessage("MatMul", {"x", "a"}, {"p"}),
         NodeMessage("Add", {"p", "b"}, {"s"}), NodeMessage("Relu", {"s"}, {"r"}),
         NodeMessage("QuantizeLinear", {"r", "step", "zero"}, {"hq"}),
         NodeMessage("DequantizeLinear", {"hq", "step", "zero"}, {"h"}),
         NodeMessage("DequantizeLinear", {"cq", "cs"}, {"c"}), NodeMessage("MatMul", {"h", "c"}, {"y"})},
        1, initializers);
  }

  // Grids that each run finds.
  std::shared_ptr<Model> Dynamic() const {
    const auto layer = [](const std::string& x, const std::string& w, const std::string& y) {
      return std::vector<MessageWriter>{NodeMessage("DynamicQuantizeLinear", {x}, {x + "q", x + "s", x + "z"}),
                                        NodeMessage("MatMulInteger", {x + "q", w + "q", x + "z"}, {x + "i"}),
                                        With(NodeMessage("Cast", {x + "i"}, {x + "f"}), {onnx::IntAttribute("to", 1)}),
                                        NodeMessage("Mul", {x + "s", w + "s"}, {x + "u"}),
                                        NodeMessage("Mul", {x + "f", x + "u"}, {y})};
    };
    std::vector<MessageWriter> nodes = layer("x0", "a", "p");
    nodes.push_back(NodeMessage("Add", {"p", "b"}, {"s"}));
    nodes.push_back(NodeMessage("Relu", {"s"}, {"h"}));
    for (MessageWriter& node : layer("h", "c", "y")) nodes.push_back(std::move(node));
    return onnx::ModelOfNodes(nodes, 1, Integers());
  }

 private:
  static Tensor ScaleOf(const Tensor& weights) { return weights.abs().max() / 127; }
  std::vector<MessageWriter> Integers() const {
    return {Bytes("aq", (a / ScaleOf(a)).round()), Weights("as", ScaleOf(a)), Weights("b", b),
            Bytes("cq", (c / ScaleOf(c)).round()), Weights("cs", ScaleOf(c))};
  }
};

double Correlation(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(at::kDouble) - a.to(at::kDouble).mean(), y = b.to(at::kDouble) - b.to(at::kDouble).mean();
  return ((x * y).sum() / (x.norm() * y.norm())).item<double>();
}

// The parts are the model's own, add up, and are alike to those before it was quantized.
void ExpectLike(const std::shared_ptr<Model>& quantized, const Network& network, const Input& input,
                const std::string& note) {
  const Composition expected = TracedModel(network.Plain()).Decompose({input}).outputs[0].composition;
  const Decomposition found = TracedModel(quantized).Decompose({input});
  const Composition& parts = found.outputs[0].composition;
  const Tensor value = onnx::ResultOf(*quantized, {input.value});
  EXPECT_TRUE(at::allclose(parts.recovery(), value, 1e-5, 1e-5));
  const double move = (value - parts.reference()).abs().max().item<double>();
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-5 * move);
  EXPECT_GT(Correlation(parts.components(), expected.components()), 0.99);
  EXPECT_THAT(found.report.notes, Contains(HasSubstr(note)));
}

TEST(QuantizedParts, AreAlikeToThoseOfFloats) {
  at::manual_seed(7);
  const Network network;
  const Tensor x = at::randn({1, 12}), other = at::randn({1, 12});
  for (const Baseline& baseline : {Baseline::Of(0.0), Baseline::Of(other)}) {
    const Input input = SplitInput(x, {1}, baseline);
    ExpectLike(network.Fixed(), network, input, "the model is quantized: a step");
    ExpectLike(network.Dynamic(), network, input, "the model is quantized while it runs");
  }
}

// Every input has its part, also those that are neither the least nor the greatest.
TEST(QuantizedParts, OfADynamicModelAreThoseOfItsGrid) {
  const Tensor x = at::tensor({-1.0F, 0.25F, 0.6F, 4.0F}).reshape({1, 4});
  const Tensor b = at::tensor({0.5F, 0.0F, -0.3F, 2.0F}).reshape({1, 4});
  const auto model = onnx::ModelOfNodes({NodeMessage("DynamicQuantizeLinear", {"x0"}, {"q", "s", "z"}),
                                         NodeMessage("DequantizeLinear", {"q", "s", "z"}, {"y"})},
                                        1);
  const Composition parts = TracedModel(model).Decompose({SplitInput(x, {1}, Baseline::Of(b))}).outputs[0].composition;
  // The grid is the value's at both ends.
  const double scale = 5.0 / 255;
  const Tensor expected = ((x.to(at::kDouble) / scale).round() - (b.to(at::kDouble) / scale).round()) * scale;
  EXPECT_TRUE(at::allclose(parts.components().squeeze(1).to(at::kDouble), at::diag(expected[0]), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(parts.leftover(), at::zeros_like(parts.leftover())));
}

// With a fixed grid the reference is the model on the baseline, saturated where that is.
TEST(QuantizedParts, OfAFixedGridAreTheStepsThatAreCrossed) {
  const Tensor x = at::tensor({0.26F, -1.2F, 3.1F, 900.0F}).reshape({1, 4});
  const Tensor b = at::tensor({0.24F, 0.9F, -900.0F, 2.0F}).reshape({1, 4});
  const auto model = onnx::ModelOfNodes({NodeMessage("QuantizeLinear", {"x0", "step", "zero"}, {"q"}),
                                         NodeMessage("DequantizeLinear", {"q", "step", "zero"}, {"y"})},
                                        1, {FloatTensor("step", {}, {0.5F}), ZeroPoint("zero", 128)});
  const Composition parts = TracedModel(model).Decompose({SplitInput(x, {1}, Baseline::Of(b))}).outputs[0].composition;
  EXPECT_TRUE(at::equal(parts.reference(), at::tensor({0.0F, 1.0F, -64.0F, 2.0F}).reshape({1, 4})));
  const Tensor steps = at::tensor({0.5F, -2.0F, 67.0F, 61.5F});
  EXPECT_TRUE(at::allclose(parts.components().squeeze(1), at::diag(steps), 1e-6, 1e-6));
}

}  // namespace
}  // namespace addend

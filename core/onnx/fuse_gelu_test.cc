// GELU by erf is one operator, whatever the order of its factors; what only looks like it stays as it is.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::Contains;
using testing::ElementsAre;

std::vector<MessageWriter> Numbers(float root = std::sqrt(2.0F)) {
  return {FloatTensor("root", {}, {root}), FloatTensor("inverse", {}, {std::sqrt(0.5F)}), FloatTensor("one", {}, {1}),
          FloatTensor("half", {}, {0.5F})};
}

// The factors of 1 + erf(x / sqrt(2)), which is `sum`.
using Factors = std::vector<MessageWriter>;

Factors SumThenHalf() {
  return {NodeMessage("Mul", {"x0", "sum"}, {"product"}), NodeMessage("Mul", {"product", "half"}, {"y"})};
}

std::vector<MessageWriter> Nodes(const Factors& factors, const MessageWriter& scaling) {
  std::vector<MessageWriter> nodes{scaling, NodeMessage("Erf", {"scaled"}, {"erf"}, "/act/Erf"),
                                   NodeMessage("Add", {"erf", "one"}, {"sum"})};
  nodes.insert(nodes.end(), factors.begin(), factors.end());
  return nodes;
}

MessageWriter Division() { return NodeMessage("Div", {"x0", "root"}, {"scaled"}); }

Tensor Rows() { return at::linspace(-4, 4, 12).reshape({3, 4}); }

TEST(FuseGelu, FindsAnyOrderOfFactors) {
  const Factors orders[] = {
      SumThenHalf(),
      {NodeMessage("Mul", {"x0", "half"}, {"p"}), NodeMessage("Mul", {"p", "sum"}, {"y"})},
      {NodeMessage("Mul", {"half", "sum"}, {"p"}), NodeMessage("Mul", {"p", "x0"}, {"y"})},
      {NodeMessage("Mul", {"sum", "x0"}, {"p"}), NodeMessage("Mul", {"half", "p"}, {"y"})},
  };
  const MessageWriter scalings[] = {Division(), NodeMessage("Mul", {"x0", "inverse"}, {"scaled"}),
                                    NodeMessage("Mul", {"inverse", "x0"}, {"scaled"})};
  const Tensor x = Rows().to(at::kDouble);
  const Tensor expected = (x * (at::erf(x / std::sqrt(2.0)) + 1) / 2).to(at::kFloat);
  for (const Factors& factors : orders) {
    for (const MessageWriter& scaling : scalings) {
      const auto model = ModelOfNodes(Nodes(factors, scaling), 1, Numbers());
      EXPECT_THAT(OperatorsOf(*model, {Rows()}), ElementsAre("aten::gelu"));
      EXPECT_TRUE(at::allclose(ResultOf(*model, {Rows()}), expected, 1e-5, 1e-6));
    }
  }
}

// PyTorch's older exporter writes each number as a node.
TEST(FuseGelu, ReadsNodesOfConstants) {
  std::vector<MessageWriter> nodes;
  const std::pair<std::string, float> numbers[] = {{"root", std::sqrt(2.0F)}, {"one", 1.0F}, {"half", 0.5F}};
  for (const auto& [name, number] : numbers) {
    nodes.push_back(With(NodeMessage("Constant", {}, {name}), {TensorAttribute("value", at::scalar_tensor(number))}));
  }
  for (const MessageWriter& node : Nodes(SumThenHalf(), Division())) nodes.push_back(node);
  EXPECT_THAT(OperatorsOf(*ModelOfNodes(nodes, 1), {Rows()}), ElementsAre("aten::gelu"));
}

TEST(FuseGelu, LeavesOtherFunctionsAsTheyAre) {
  const auto stays = [](const std::vector<MessageWriter>& nodes, const std::vector<MessageWriter>& numbers,
                        size_t inputs = 1) {
    const auto model = ModelOfNodes(nodes, inputs, numbers);
    EXPECT_THAT(OperatorsOf(*model, std::vector<Tensor>(inputs, Rows())), Contains("aten::erf"));
    return ResultOf(*model, std::vector<Tensor>(inputs, Rows()));
  };
  // Another divisor.
  const Tensor other = stays(Nodes(SumThenHalf(), Division()), Numbers(1.5F));
  EXPECT_TRUE(at::allclose(other, Rows() * (at::erf(Rows() / 1.5) + 1) * 0.5));
  // Another factor than what erf reads.
  stays(Nodes({NodeMessage("Mul", {"x1", "sum"}, {"p"}), NodeMessage("Mul", {"p", "half"}, {"y"})}, Division()),
        Numbers(), 2);
  // A number between that something else reads.
  stays(Nodes({NodeMessage("Mul", {"x0", "sum"}, {"p"}), NodeMessage("Mul", {"p", "half"}, {"h"}),
               NodeMessage("Add", {"h", "erf"}, {"y"})},
              Division()),
        Numbers());
  // The sum twice.
  stays(Nodes({NodeMessage("Mul", {"sum", "sum"}, {"p"}), NodeMessage("Mul", {"p", "half"}, {"y"})}, Division()),
        Numbers());
}

TEST(FuseGelu, LeavesWhatIsAnOutputItself) {
  const std::vector<MessageWriter> nodes =
      Nodes({NodeMessage("Mul", {"x0", "sum"}, {"y"}), NodeMessage("Mul", {"y", "half"}, {"z"})}, Division());
  EXPECT_THAT(OperatorsOf(*ModelOfNodes(nodes, 1, Numbers()), {Rows()}), Contains("aten::erf"));
}

}  // namespace
}  // namespace addend::onnx

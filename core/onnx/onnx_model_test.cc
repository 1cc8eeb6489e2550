// ONNX models as models: how they are run, on models written by hand. Operators are held to the suite in tests/onnx.
#include "core/onnx/onnx_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/intercept/tracing_scope.h"
#include "core/model/run_model.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"
#include "core/onnx/operators.h"
#include "core/onnx/plan.h"
#include "core/onnx/run.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using c10::IValue;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::shared_ptr<Model> Load(const GraphParts& parts, const std::vector<MessageWriter>& functions = {},
                            const ScriptOptions& options = {}) {
  MessageWriter model = ModelMessage(GraphMessage(parts), functions);
  if (!functions.empty()) model.Message(8, OperatorSet("own", 1));
  return LoadOnnxBytes(model.bytes().data(), model.bytes().size(), "model.onnx", options);
}

Tensor RunOne(Model& model, const std::vector<IValue>& inputs) { return RunModel(model, inputs, "x").toTensor(); }

MessageWriter ReferenceAttribute(const std::string& name, const std::string& to) {
  return MessageWriter().Bytes(1, name).Bytes(21, to).Integer(20, 1);
}

// A graph of one input, x, of n x 3, and one output, y, whose sizes nobody says.
GraphParts Parts(std::vector<MessageWriter> nodes, std::vector<MessageWriter> initializers = {}) {
  GraphParts parts;
  parts.nodes = std::move(nodes);
  parts.initializers = std::move(initializers);
  parts.inputs = {ValueInfo("x", {-1, 3})};
  parts.outputs = {ValueInfo("y", {-1, 3})};
  return parts;
}

TEST(OnnxModel, RunsNodesAndNamesWhatItReads) {
  const auto model = Load(Parts({NodeMessage("Mul", {"x", "w"}, {"h"}), NodeMessage("Relu", {"h"}, {"y"})},
                                {FloatTensor("w", {3}, {1, 2, -1})}));
  EXPECT_TRUE(at::equal(RunOne(*model, {at::ones({2, 3})}), at::tensor({1.0F, 2.0F, 0.0F}).expand({2, 3})));
  EXPECT_THAT(model->InputNames(), ElementsAre("x"));
  ASSERT_EQ(model->NamedTensors().size(), 1);
  EXPECT_EQ(model->NamedTensors()[0].first, "w");
  EXPECT_THAT(model->BufferNames(), IsEmpty());
  EXPECT_EQ(model->Calls()->at(0).op, "onnx::Mul");
}

TEST(OnnxModel, SeveralOutputsAreADictionary) {
  GraphParts parts = Parts({NodeMessage("Relu", {"x"}, {"y"}), NodeMessage("Neg", {"y"}, {"z"})});
  parts.outputs.push_back(ValueInfo("z", {-1, 3}));
  const IValue result = RunModel(*Load(parts), {at::ones({1, 3})}, "x");
  EXPECT_EQ(result.toGenericDict().at("z").toTensor().sum().item<float>(), -3);
}

TEST(OnnxModel, ComputesSizesOutsideOfTheTrace) {
  GraphParts parts = Parts({NodeMessage("Shape", {"x"}, {"sizes"}), NodeMessage("Mul", {"sizes", "two"}, {"twice"}),
                            NodeMessage("Pow", {"x", "half"}, {"y"})},
                           {IntegerTensor("two", {1}, {2}), FloatTensor("half", {1}, {0.5F})});
  parts.outputs.push_back(ValueInfo("twice", {2}));
  const auto model = Load(parts);
  EXPECT_THAT(OperatorsOf(*model, {at::ones({2, 3})}), ElementsAre("aten::pow"));
  const IValue result = RunModel(*model, {at::full({2, 3}, 4.0)}, "x");
  EXPECT_TRUE(at::equal(result.toGenericDict().at("twice").toTensor(), at::tensor({4, 6}, at::kLong)));
  EXPECT_EQ(result.toGenericDict().at("y").toTensor()[0][0].item<float>(), 2);
}

// A recording has to make them anew for other sizes.
TEST(OnnxModel, TensorsOfAsManyElementsAsASizeSaysAreTraced) {
  const auto model =
      Load(Parts({NodeMessage("Shape", {"x"}, {"sizes"}), NodeMessage("ConstantOfShape", {"sizes"}, {"zeros"}),
                  NodeMessage("Add", {"x", "zeros"}, {"y"})}));
  EXPECT_THAT(OperatorsOf(*model, {at::ones({2, 3})}), Contains("aten::zeros"));
  // The length of a vector of sizes is known.
  const auto known =
      Load(Parts({NodeMessage("Shape", {"x"}, {"sizes"}), NodeMessage("Shape", {"sizes"}, {"rank"}),
                  NodeMessage("ConstantOfShape", {"rank"}, {"zeros"}),
                  NodeMessage("Add", {"sizes", "zeros"}, {"numbers"}), NodeMessage("Size", {"numbers"}, {"two"}),
                  NodeMessage("Cast", {"two"}, {"float_two"}).Message(5, IntAttribute("to", 1)),
                  NodeMessage("Mul", {"x", "float_two"}, {"y"})}));
  EXPECT_THAT(OperatorsOf(*known, {at::ones({2, 3})}), ElementsAre("aten::mul"));
}

TEST(OnnxModel, FunctionsGetTheAttributesOfTheirCalls) {
  // def leaky(a; slope = 0.5): return LeakyRelu(a, alpha=slope)
  MessageWriter function;
  function.Bytes(1, "leaky").Bytes(4, "a").Bytes(5, "r");
  function.Message(7, With(NodeMessage("LeakyRelu", {"a"}, {"r"}), {ReferenceAttribute("alpha", "slope")}));
  function.Message(9, OperatorSet("", 17)).Bytes(10, "own").Message(11, FloatAttribute("slope", 0.5F));
  const MessageWriter plain = NodeMessage("leaky", {"x"}, {"h"}, "", "own");
  const MessageWriter given = With(NodeMessage("leaky", {"h"}, {"y"}, "", "own"), {FloatAttribute("slope", 0.25F)});
  const auto model = Load(Parts({plain, given}), {function});
  EXPECT_EQ(RunOne(*model, {at::full({1, 3}, -8.0)})[0][0].item<float>(), -1);
}

TEST(OnnxModel, BranchesReadValuesAroundThem) {
  GraphParts yes, no;
  yes.nodes = {NodeMessage("Mul", {"x", "w"}, {"branch"})};
  yes.outputs = {ValueInfo("branch", {-1, 3})};
  no.nodes = {NodeMessage("Neg", {"x"}, {"other"})};
  no.outputs = {ValueInfo("other", {-1, 3})};
  const MessageWriter node = With(NodeMessage("If", {"c"}, {"y"}), {GraphAttribute("then_branch", GraphMessage(yes)),
                                                                    GraphAttribute("else_branch", GraphMessage(no))});
  for (const int64_t truth : {0, 1}) {
    const auto model =
        Load(Parts({node}, {FloatTensor("w", {1}, {3}), TensorMessage("c", 9, {}).PackedIntegers(5, {truth})}));
    EXPECT_EQ(RunOne(*model, {at::ones({1, 3})})[0][0].item<float>(), truth == 1 ? 3 : -1);
  }
}

// y = x * 2^turns, and the turns' states.
GraphParts Doubling(int64_t turns) {
  GraphParts body;
  body.nodes = {NodeMessage("Add", {"state", "state"}, {"next"}), NodeMessage("Identity", {"next"}, {"row"}),
                NodeMessage("Identity", {"condition"}, {"goes_on"})};
  body.inputs = {ValueInfo("turn", {}), ValueInfo("condition", {}), ValueInfo("state", {-1, 3})};
  body.outputs = {ValueInfo("goes_on", {}), ValueInfo("next", {-1, 3}), ValueInfo("row", {1, 3})};
  GraphParts parts = Parts(
      {With(NodeMessage("Loop", {"turns", "", "x"}, {"y", "rows"}), {GraphAttribute("body", GraphMessage(body))})},
      {IntegerTensor("turns", {}, {turns})});
  parts.outputs.push_back(ValueInfo("rows", {-1, 1, 3}));
  return parts;
}

TEST(OnnxModel, LoopsCollectRows) {
  for (const int64_t turns : {0, 3}) {
    const IValue result = RunModel(*Load(Doubling(turns)), {at::ones({1, 3})}, "x");
    EXPECT_EQ(result.toGenericDict().at("y").toTensor()[0][0].item<float>(), turns == 0 ? 1 : 8);
    EXPECT_EQ(result.toGenericDict().at("rows").toTensor().sizes(), at::IntArrayRef({turns, 1, 3}));
  }
}

TEST(OnnxModel, EndlessLoopsEnd) {
  GraphParts body;
  body.nodes = {NodeMessage("Identity", {"condition"}, {"goes_on"})};
  body.inputs = {ValueInfo("turn", {}), ValueInfo("condition", {})};
  body.outputs = {ValueInfo("goes_on", {})};
  const std::string bytes =
      ModelMessage(GraphMessage(Parts({With(NodeMessage("Loop", {}, {}), {GraphAttribute("body", GraphMessage(body))}),
                                       NodeMessage("Relu", {"x"}, {"y"})})))
          .bytes();
  weights::Bytes view;
  view.data = const_cast<char*>(bytes.data());  // only read
  view.size = bytes.size();
  const auto plan = MakePlan(CheckModel(ReadModelProto(view, "model.onnx")), ExternalFiles());
  const Datum x = Datum::Of(at::ones({1, 3}), Descent::kContent);
  ExpectError(absl::StatusCode::kUnimplemented, {"the loops of the model run more than 1000 nodes"},
              [&] { RunPlan(*plan, {}, Placement(), {x}, /*most_nodes=*/1000); });
}

TEST(OnnxModel, RefusesByName) {
  const auto refuse = [](const MessageWriter& node, const std::string& why) {
    ExpectError(absl::StatusCode::kUnimplemented, {why}, [&] { Load(Parts({node})); });
  };
  refuse(NodeMessage("NoSuch", {"x"}, {"y"}), "the node that makes y (NoSuch) is of an operator that is not supported");
  refuse(NodeMessage("Swish", {"x"}, {"y"}), "of version 17 of its operator set");
  refuse(NodeMessage("StringNormalizer", {"x"}, {"y"}), "is refused: tensors of LibTorch hold no texts; turn texts");
  refuse(With(NodeMessage("Relu", {"x"}, {"y"}, "r"), {FloatAttribute("slope", 1)}),
         "node r (Relu) has the attribute slope");
  ExpectError(absl::StatusCode::kInvalidArgument, {"has 1 inputs; the operator takes 2"},
              [] { Load(Parts({NodeMessage("Add", {"x"}, {"y"})})); });
}

TEST(OnnxModel, RefusesNoOperatorThatItRuns) {
  for (const auto& [name, why] : Operators().refused()) EXPECT_EQ(Operators().rows().count(name), 0) << name.second;
}

TEST(OnnxModel, RefusesCastsThatDoNotFit) {
  const auto model = Load(Parts({With(NodeMessage("Cast", {"x"}, {"y"}), {IntAttribute("to", 6)})}));
  EXPECT_EQ(RunOne(*model, {at::full({1, 3}, -1.5)})[0][0].item<int>(), -1);
  ExpectError(absl::StatusCode::kInvalidArgument, {"casts 3e+09 to int32"}, [&] {
    RunOne(*model, {at::full({1, 3}, 3e9)});
  });
}

TEST(OnnxModel, ComplainsOfInputs) {
  GraphParts parts = Parts({NodeMessage("Add", {"x", "b"}, {"y"})});
  parts.inputs.push_back(ValueInfo("b", {3}));
  const auto model = Load(parts);
  EXPECT_THAT(model->Complaints({at::ones({2, 3}), at::ones({3})}), IsEmpty());
  EXPECT_THAT(
      model->Complaints({at::ones({2, 4}), at::ones({3}, at::kLong)}),
      ElementsAre("input x, dimension 1: 4, the model takes 3 only", "input b is int64, the model takes float32"));
  EXPECT_THAT(model->Complaints({at::ones({3})}), ElementsAre("the model takes 2 inputs (x, b), not 1"));
}

TEST(OnnxModel, SizesOfOneNameAreEqual) {
  const auto complaints = [](const std::string& name) {
    const MessageWriter size = MessageWriter().Bytes(2, name);
    const MessageWriter shape = MessageWriter().Message(1, size).Message(1, size);
    const MessageWriter type = MessageWriter().Message(1, MessageWriter().Integer(1, 1).Message(2, shape));
    GraphParts parts = Parts({NodeMessage("Relu", {"x"}, {"y"})});
    parts.inputs = {MessageWriter().Bytes(1, "x").Message(2, type)};
    return Load(parts)->Complaints({at::ones({2, 3})});
  };
  EXPECT_THAT(complaints("n"), testing::SizeIs(1));
  // A writer that knows no size may write this for each.
  EXPECT_THAT(complaints("?"), IsEmpty());
}

TEST(OnnxModel, ComputesInAnotherType) {
  ScriptOptions options;
  options.dtype = at::kDouble;
  const auto model = Load(
      Parts({NodeMessage("Mul", {"x", "w"}, {"h"}), With(NodeMessage("Cast", {"h"}, {"y"}), {IntAttribute("to", 1)})},
            {FloatTensor("w", {3}, {1, 2, 3})}),
      {}, options);
  EXPECT_EQ(RunOne(*model, {at::ones({1, 3}, at::kDouble)}).scalar_type(), at::kDouble);
  EXPECT_EQ(model->NamedTensors()[0].second.scalar_type(), at::kDouble);
  const auto narrow = model->To(at::kCPU, at::kFloat);
  EXPECT_EQ(RunOne(*narrow, {at::ones({1, 3})}).scalar_type(), at::kFloat);
}

// A caller may release the bytes that a model was made of.
TEST(OnnxModel, KeepsTheBytesOfItsFile) {
  auto bytes = std::make_unique<std::string>(
      ModelMessage(GraphMessage(Parts({NodeMessage("Add", {"x", "w"}, {"y"})}, {FloatTensor("w", {3}, {1, 2, 3})})))
          .bytes());
  const auto model = LoadOnnxBytes(bytes->data(), bytes->size(), "model.onnx");
  EXPECT_TRUE(IsOnnxBytes(bytes->data(), bytes->size()));
  bytes.reset();
  EXPECT_EQ(RunOne(*model, {at::zeros({1, 3})})[0][2].item<float>(), 3);
  ExpectError(absl::StatusCode::kInvalidArgument, {"no.onnx is not an ONNX model"},
              [] { LoadOnnxBytes("PK", 2, "no.onnx"); });
}

}  // namespace
}  // namespace addend::onnx

// ONNX models explained: what front end, rules and report say together.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/explain/input.h"
#include "core/model/model.h"
#include "core/model/run_model.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_model.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kFloat = 1, kInt32 = 6, kInt64 = 7;

MessageWriter CastTo(const std::string& from, const std::string& to, int64_t type, const std::string& name = "") {
  return With(NodeMessage("Cast", {from}, {to}, name), {IntAttribute("to", type)});
}

// A value of an output or input that is no tensor of floats: TypeProto has tensors in field 1, sequences in 4, maps
// in 5.
MessageWriter Info(const std::string& name, const MessageWriter& type) {
  return MessageWriter().Bytes(1, name).Message(2, type);
}

MessageWriter TensorType(int64_t data_type) {
  return MessageWriter().Message(1, MessageWriter().Integer(1, data_type));
}

MessageWriter MapType() {
  return MessageWriter().Message(5, MessageWriter().Integer(1, kInt64).Message(2, TensorType(kFloat)));
}

MessageWriter ListOf(const MessageWriter& type) { return MessageWriter().Message(4, MessageWriter().Message(1, type)); }

GraphParts Parts(std::vector<MessageWriter> nodes, std::vector<MessageWriter> initializers = {}) {
  GraphParts parts;
  parts.nodes = std::move(nodes);
  parts.initializers = std::move(initializers);
  parts.inputs = {ValueInfo("x", {4})};
  parts.outputs = {ValueInfo("y", {4})};
  return parts;
}

std::shared_ptr<Model> Load(const GraphParts& parts, const std::vector<std::pair<std::string, int64_t>>& domains = {}) {
  MessageWriter model = ModelMessage(GraphMessage(parts));
  for (const auto& [domain, version] : domains) model.Message(8, OperatorSet(domain, version));
  return LoadOnnxBytes(model.bytes().data(), model.bytes().size(), "model.onnx");
}

const Tensor& Value() {
  static const Tensor& value = *new Tensor(at::tensor({0.51F, -1.32F, 2.77F, 0.04F}));
  return value;
}

// Each element of x is a component; the baseline is zero.
Decomposition Explain(const std::shared_ptr<Model>& model, DecomposeOptions options = {}) {
  Input input;
  input.value = Value();
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Of(0.0);
  return TracedModel(model).Decompose({input}, options);
}

// ------------------------------------------------------------------------------------------------ casts and back again

// Integers between two casts are steps: each element's own, in proportion.
TEST(Casts, ToIntegersAndBackAreSteps) {
  for (const int64_t type : {kInt32, kInt64}) {
    const auto model =
        Load(Parts({NodeMessage("Mul", {"x", "ten"}, {"h"}), CastTo("h", "q", type), CastTo("q", "y", kFloat)},
                   {FloatTensor("ten", {1}, {10})}));
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      DecomposeOptions options;
      options.direction = direction;
      const Composition parts = Explain(model, options).outputs[0].composition;
      EXPECT_TRUE(at::equal(parts.components().sum(0), at::tensor({5.0F, -13.0F, 27.0F, 0.0F})));
      EXPECT_TRUE(at::equal(parts.components(), at::diag(at::tensor({5.0F, -13.0F, 27.0F, 0.0F}))));
      EXPECT_EQ(parts.leftover().abs().max().item<float>(), 0);
    }
  }
}

TEST(Casts, ToIntegersWithoutSignAreStepsToo) {
  for (const int64_t type : {4, 12, 13}) {  // uint16, uint32, uint64
    const auto model = Load(Parts({NodeMessage("Mul", {"x", "ten"}, {"p"}), NodeMessage("Add", {"p", "twenty"}, {"h"}),
                                   CastTo("h", "q", type), CastTo("q", "y", kFloat)},
                                  {FloatTensor("ten", {1}, {10}), FloatTensor("twenty", {1}, {20})}));
    const Composition parts = Explain(model).outputs[0].composition;
    EXPECT_TRUE(at::equal(parts.components(), at::diag(at::tensor({5.0F, -14.0F, 27.0F, 0.0F}))));
    EXPECT_EQ(parts.leftover().abs().max().item<float>(), 0);
  }
}

// A layer that is quantised by its own largest number, with arithmetic on the integers: these are conditions then, and
// only the scale carries components. The table says nothing of the other elements, and the report has to.
TEST(Casts, BehindArithmeticOfIntegersAreToldOf) {
  const auto model = Load(Parts({NodeMessage("ReduceMax", {"x"}, {"scale"}), NodeMessage("Div", {"x", "scale"}, {"d"}),
                                 NodeMessage("Mul", {"d", "steps"}, {"h"}), CastTo("h", "q", kInt32, "/quantize/Cast"),
                                 NodeMessage("Mul", {"q", "q"}, {"square"}), CastTo("square", "f", kFloat),
                                 NodeMessage("Mul", {"f", "scale"}, {"y"})},
                                {FloatTensor("steps", {1}, {100})}));
  Input input;
  input.value = Value();
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Of(1.0);
  const Decomposition result = TracedModel(model).Decompose({input});
  const Composition parts = result.outputs[0].composition;
  EXPECT_EQ(parts.components()[0].abs().max().item<float>(), 0);  // which is the fault that is told of
  EXPECT_THAT(result.report.notes,
              Contains(AllOf(HasSubstr("conditions or indices depend on the input"),
                             HasSubstr("on the baseline some are others"), HasSubstr("/quantize/Cast"))));
  DecomposeOptions options;
  options.policy.conditions = Conditions::kBaseline;
  const Composition step = TracedModel(model).Decompose({input}, options).outputs[0].composition;
  EXPECT_GT(step.leftover().abs().max().item<float>(), 1);
}

TEST(Casts, WithoutAnyWayBackAreRefused) {
  GraphParts parts = Parts({CastTo("x", "y", kInt64)});
  parts.outputs = {Info("y", TensorType(kInt64))};
  ExpectError(absl::StatusCode::kInvalidArgument, {"no floating-point or complex tensor"},
              [&] { Explain(Load(parts)); });
}

// ---------------------------------------------------------------------------------------------------------- half types

// softmax(scale * x w) in float16, of which each operand is a constant of the file.
GraphParts HalfModel(const Tensor& weight) {
  constexpr int32_t kHalf = 10;
  const Tensor half = weight.to(at::kHalf), scale = at::full({1}, 0.5, at::kHalf);
  const auto constant = [](const std::string& name, const Tensor& tensor) {
    return TensorMessage(name, kHalf, tensor.sizes().vec())
        .Bytes(9, std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()));
  };
  GraphParts parts =
      Parts({NodeMessage("MatMul", {"x", "w"}, {"h"}), NodeMessage("Mul", {"h", "scale"}, {"s"}),
             CastTo("s", "wide", kFloat), CastTo("wide", "narrow", kHalf), NodeMessage("Softmax", {"narrow"}, {"y"})},
            {constant("w", half), constant("scale", scale)});
  parts.inputs = {Info("x", TensorType(kHalf))};
  parts.outputs = {Info("y", TensorType(kHalf))};
  return parts;
}

// Parts are complete in float32, and a note tells of it. A model that was converted to float32 gives the same parts and
// needs no note.
TEST(HalfTypes, AreExplainedInFloat32) {
  const Tensor weight = at::arange(-6, 10, at::kFloat).reshape({4, 4}) / 8;  // which float16 holds
  Input input;
  input.value = Value().to(at::kHalf).reshape({1, 4});
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  DecomposeOptions options;
  options.policy.compute_dtype = ComputeDtype::kFloat32;
  const auto model = Load(HalfModel(weight));
  const Decomposition result = TracedModel(model).Decompose({input}, options);
  const Composition parts = result.outputs[0].composition;
  const Tensor wide = input.value.to(at::kFloat);
  const Tensor expected = at::softmax(wide.matmul(weight) * 0.5, -1);
  EXPECT_TRUE(at::allclose(parts.components().sum(0) + parts.reference(), expected, 1e-6, 1e-6));
  EXPECT_TRUE(at::allclose(parts.reference(), at::full({1, 4}, 0.25), 1e-6, 1e-6));
  EXPECT_LE(parts.leftover().abs().max().item<float>(), 1e-6);
  EXPECT_THAT(result.report.notes, Contains(HasSubstr("computed in float32 from tensors of half types")));

  input.value = wide;
  const Decomposition converted =
      TracedModel(model->To(c10::Device(c10::kCPU), at::kFloat)).Decompose({input}, DecomposeOptions());
  EXPECT_TRUE(at::allclose(converted.outputs[0].composition.components(), parts.components(), 1e-6, 1e-6));
  EXPECT_THAT(converted.report.notes, Not(Contains(HasSubstr("half types"))));
}

// ------------------------------------------------------------------------------------------------------------- outputs

// A classifier as converters write it: a label that is a text, and a map, beside the scores.
GraphParts Classifier() {
  GraphParts parts =
      Parts({NodeMessage("Relu", {"x"}, {"y"}), NodeMessage("LabelEncoder", {"y"}, {"label"}, "", "ai.onnx.ml"),
             NodeMessage("StringConcat", {"label", "suffix"}, {"text"}),
             NodeMessage("DictVectorizer", {"y"}, {"map"}, "", "ai.onnx.ml"),
             NodeMessage("SequenceConstruct", {"map"}, {"maps"})},
            {TensorMessage("suffix", 8, {1}).Bytes(6, "!")});
  parts.outputs = {Info("text", TensorType(8)), ValueInfo("y", {4}), Info("map", MapType()),
                   Info("maps", ListOf(MapType()))};
  return parts;
}

TEST(Outputs, TextsAndMapsAreLeftOutAndNamed) {
  const auto model = Load(Classifier(), {{"ai.onnx.ml", 3}});
  EXPECT_TRUE(at::equal(RunModel(*model, {Value()}, "x").toTensor(), at::relu(Value())));
  EXPECT_THAT(model->Notes(),
              Contains("outputs of the model are left out, because they are texts or maps: text, map, maps"));
  const Decomposition result = Explain(model);
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.components().sum(0), at::relu(Value())));
}

TEST(Outputs, WhatOthersNeedIsNotLeftOut) {
  GraphParts parts = Classifier();
  parts.nodes.push_back(NodeMessage("Shape", {"text"}, {"sizes"}));
  parts.outputs.push_back(Info("sizes", TensorType(kInt64)));
  ExpectError(absl::StatusCode::kUnimplemented, {"suffix", "string"}, [&] { Load(parts, {{"ai.onnx.ml", 3}}); });
}

TEST(Outputs, AModelWithoutNumbersIsRefused) {
  GraphParts parts = Classifier();
  parts.outputs.erase(parts.outputs.begin() + 1);
  ExpectError(absl::StatusCode::kUnimplemented, {"gives texts or maps only (text, map, maps)"}, [&] {
    Load(parts, {{"ai.onnx.ml", 3}});
  });
}

// ----------------------------------------------------------------------------------------------------------- positions

TEST(Positions, AreNodesWhereNoSourceIsKnown) {
  const auto model = Load(Parts({NodeMessage("Greater", {"x", "zero"}, {"mask"}, "model/dense/Greater"),
                                 CastTo("mask", "m", kFloat), NodeMessage("Mul", {"x", "m"}, {"y"}, "/head/Mul")},
                                {FloatTensor("zero", {1}, {0.1F})}));
  const Decomposition result = Explain(model);
  EXPECT_THAT(result.report.notes, Contains(AllOf(HasSubstr("conditions or indices depend on the input"),
                                                  HasSubstr("aten::gt (op #0, model/dense/Greater)"))));
}

TEST(Positions, OfNodesWithoutNamesAreWhatTheyMake) {
  const auto model = Load(Parts({NodeMessage("Greater", {"x", "zero"}, {"mask"}), CastTo("mask", "m", kFloat),
                                 NodeMessage("Mul", {"x", "m"}, {"y"})},
                                {FloatTensor("zero", {1}, {0.1F})}));
  EXPECT_THAT(Explain(model).report.notes, Contains(HasSubstr("aten::gt (op #0, mask)")));
}

}  // namespace
}  // namespace addend::onnx

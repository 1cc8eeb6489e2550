// A pipeline of features, trees and a probability, explained from end to end and from a saved program.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/model/program_model.h"
#include "core/model/run_model.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_model.h"
#include "core/onnx/onnx_testing.h"
#include "core/program/program_file.h"
#include "core/program/recorded_program.h"
#include "core/recording/record_program.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr char kDomain[] = "ai.onnx.ml";
constexpr int64_t kFeatures = 3;

// Scaled features, of which the third is a category: 3 trees, two of them of all features.
std::string Pipeline(const std::string& transform) {
  const auto node = [](const char* op_type, const std::vector<std::string>& in, const std::vector<std::string>& out,
                       const std::vector<MessageWriter>& attributes) {
    return With(NodeMessage(op_type, in, out, op_type, kDomain), attributes);
  };
  GraphParts parts;
  parts.nodes = {
      node("Scaler", {"x"}, {"scaled"},
           {FloatsAttribute("offset", {1, -2, 0}), FloatsAttribute("scale", {0.5F, 3, 1})}),
      node("TreeEnsembleClassifier", {"scaled"}, {"label", "scores"},
           {IntsAttribute("nodes_treeids", {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2}),
            IntsAttribute("nodes_nodeids", {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2}),
            IntsAttribute("nodes_featureids", {0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 2, 0, 0}),
            FloatsAttribute("nodes_values", {0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2, 0, 0}),
            TextsAttribute("nodes_modes", {"BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "BRANCH_EQ",
                                           "LEAF", "LEAF", "LEAF", "BRANCH_NEQ", "LEAF", "LEAF"}),
            IntsAttribute("nodes_truenodeids", {1, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0}),
            IntsAttribute("nodes_falsenodeids", {4, 3, 0, 0, 0, 4, 3, 0, 0, 0, 2, 0, 0}),
            IntsAttribute("class_treeids", {0, 0, 0, 1, 1, 1, 2, 2}),
            IntsAttribute("class_nodeids", {2, 3, 4, 2, 3, 4, 1, 2}),
            IntsAttribute("class_ids", {0, 0, 0, 0, 0, 0, 0, 0}),
            FloatsAttribute("class_weights", {0.5F, -1, 2, 0.25F, -0.75F, 1.5F, -0.125F, 1}),
            IntsAttribute("classlabels_int64s", {0, 1}), FloatsAttribute("base_values", {0.375F}),
            TextAttribute("post_transform", transform)}),
      node("ZipMap", {"scores"}, {"probabilities"}, {IntsAttribute("classlabels_int64s", {0, 1})})};
  parts.inputs = {ValueInfo("x", {-1, kFeatures})};
  parts.outputs = {MessageWriter().Bytes(1, "probabilities")};
  MessageWriter model;
  model.Integer(1, 8)
      .Message(7, GraphMessage(parts))
      .Message(8, OperatorSet("", 17))
      .Message(8, OperatorSet(kDomain, 3));
  return model.bytes();
}

std::shared_ptr<Model> Load(const std::string& transform) {
  const std::string bytes = Pipeline(transform);
  return LoadOnnxBytes(bytes.data(), bytes.size(), "pipeline.onnx");
}

Tensor Rows() { return at::tensor({3.0F, -1.0F, 2.0F, -1.0F, -3.0F, 1.0F, 0.5F, -1.5F, 2.0F}).reshape({3, kFeatures}); }
Tensor BaselineRow() { return at::tensor({0.0F, -2.5F, 0.0F}); }

Tensor ScoresOf(Model& model, const Tensor& x) { return RunModel(model, {x}, "x").toTensor(); }

// Shapley values of the whole model, by all coalitions: [features, rows, scores].
Tensor ByCoalitions(Model& model) {
  const Tensor x = Rows(), b = BaselineRow().expand_as(x);
  std::vector<Tensor> worth;
  for (int64_t set = 0; set < 1 << kFeatures; ++set) {
    Tensor row = b.clone();
    for (int64_t j = 0; j < kFeatures; ++j) {
      if ((set >> j & 1) != 0) row.select(1, j).copy_(x.select(1, j));
    }
    worth.push_back(ScoresOf(model, row).to(at::kDouble));
  }
  std::vector<Tensor> shares;
  const double by_size[] = {1.0 / 3, 1.0 / 6, 1.0 / 3};
  for (int64_t j = 0; j < kFeatures; ++j) {
    Tensor share = at::zeros_like(worth[0]);
    for (int64_t set = 0; set < 1 << kFeatures; ++set) {
      if ((set >> j & 1) != 0) continue;
      const int64_t size = (set & 1) + (set >> 1 & 1) + (set >> 2 & 1);
      share = share + (worth[static_cast<size_t>(set | 1 << j)] - worth[static_cast<size_t>(set)]) * by_size[size];
    }
    shares.push_back(share);
  }
  return at::stack(shares);
}

Input SplitByFeature() {
  Input input;
  input.value = Rows();
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(BaselineRow());
  return input;
}

TEST(PipelineOfTrees, ContributionsAreShapleyValues) {
  const std::shared_ptr<Model> model = Load("NONE");
  const Tensor expected = ByCoalitions(*model);
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    DecomposeOptions options;
    options.policy.preset = preset;
    const Decomposition result = TracedModel(model).Decompose({SplitByFeature()}, options);
    ASSERT_EQ(result.outputs.size(), 1U);
    const Composition& parts = result.outputs[0].composition;
    EXPECT_TRUE(at::allclose(parts.components().to(at::kDouble), expected, 1e-5, 1e-6)) << parts.components();
    EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-6);
    EXPECT_TRUE(at::allclose(parts.reference(), ScoresOf(*model, BaselineRow().expand({3, kFeatures}))));
    EXPECT_GT(expected.abs().sum().item<double>(), 1);
  }
}

TEST(PipelineOfTrees, ProbabilitiesAreExplainedCompletely) {
  const std::shared_ptr<Model> model = Load("LOGISTIC");
  AttributeOptions options;
  options.targets = {ParseTarget("0,1"), ParseTarget("2,0")};
  const Attribution result = Attribute(TracedModel(model), {SplitByFeature()}, options);
  const Tensor value = ScoresOf(*model, Rows()), reference = ScoresOf(*model, BaselineRow().expand({3, kFeatures}));
  ASSERT_EQ(result.targets.size(), 2U);
  EXPECT_NEAR(result.targets[0].value, value[0][1].item<double>(), 1e-6);
  EXPECT_NEAR(result.targets[0].reference, reference[0][1].item<double>(), 1e-6);
  for (const Contributions& own : result.targets) {
    double sum = own.reference;
    for (const double contribution : own.contributions) sum += contribution;
    EXPECT_NEAR(sum, own.value, 1e-6);
  }
}

// Exporters cast categories to integers before they encode them.
TEST(PipelineOfCategories, ContributionsPassThroughTheCast) {
  GraphParts parts;
  parts.nodes = {
      With(NodeMessage("Cast", {"x"}, {"codes"}), {IntAttribute("to", 7)}),
      With(NodeMessage("OneHotEncoder", {"codes"}, {"hot"}, "", kDomain), {IntsAttribute("cats_int64s", {0, 1, 2})}),
      NodeMessage("Flatten", {"hot"}, {"flat"}),
      With(NodeMessage("LinearRegressor", {"flat"}, {"y"}, "", kDomain), {FloatsAttribute("coefficients", {1, 5, 7})})};
  parts.inputs = {ValueInfo("x", {-1, 1})};
  parts.outputs = {MessageWriter().Bytes(1, "y")};
  MessageWriter message;
  message.Integer(1, 8).Message(7, GraphMessage(parts)).Message(8, OperatorSet("", 17));
  message.Message(8, OperatorSet(kDomain, 1));
  const std::shared_ptr<Model> model = LoadOnnxBytes(message.bytes().data(), message.bytes().size(), "codes.onnx");
  Input input;
  input.value = at::tensor({1.0F, 2.0F, 0.0F}).reshape({3, 1});
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  const Composition parted = TracedModel(model).Decompose({input}).outputs[0].composition;
  EXPECT_TRUE(at::equal(parted.components().flatten(), at::tensor({4.0F, 6.0F, 0.0F})));
  EXPECT_TRUE(at::equal(parted.reference().flatten(), at::ones({3})));
  EXPECT_TRUE(at::equal(parted.leftover().flatten(), at::zeros({3})));
}

TEST(PipelineOfTrees, ASavedProgramIsExplainedAlike) {
  const std::shared_ptr<Model> model = Load("NONE");
  const Recording recording = Record(*model, {Rows()});
  const Decomposition expected = TracedModel(model).Decompose({SplitByFeature()});
  const std::string folder = testing::TempDir() + "trees";
  SaveProgram(*recording.program, folder);
  const std::shared_ptr<Model> saved = FromProgram(std::make_shared<const RecordedProgram>(LoadProgram(folder)));
  const Decomposition found = TracedModel(saved).Decompose({SplitByFeature()});
  EXPECT_TRUE(at::equal(found.outputs[0].composition.components(), expected.outputs[0].composition.components()));
  // Rows that the program was not recorded with go other ways through the trees.
  const Tensor other = at::flip(Rows(), {0}) * -1;
  EXPECT_TRUE(at::equal(ScoresOf(*saved, other), ScoresOf(*model, other)));
}

}  // namespace
}  // namespace addend::onnx

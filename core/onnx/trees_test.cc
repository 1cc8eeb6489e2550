// Ensembles of trees as files write them. What they give for classes is what ONNX Runtime 1.32 gives.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr char kDomain[] = "ai.onnx.ml";
const float kNan = std::numeric_limits<float>::quiet_NaN();

testing::AssertionResult Holds(const Tensor& result, const std::vector<double>& elements) {
  const Tensor flat = at::flatten(result).to(at::kDouble);
  const Tensor expected = at::tensor(elements, at::kDouble);
  if (flat.sizes() == expected.sizes() && at::allclose(flat, expected, 1e-6, 1e-7)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << flat << " instead of " << expected;
}

Tensor Column(const std::vector<float>& numbers) { return at::tensor(numbers).reshape({-1, 1}); }

// One branch of feature 0 at zero, with a leaf on each side: 1 where the comparison holds, 2 where it does not.
NodeModel Stump(const std::string& op_type, const std::string& mode = "BRANCH_LEQ", int64_t missing_true = 0) {
  NodeModel model(op_type, kDomain, 17, 3);
  model.Attribute(IntsAttribute("nodes_treeids", {0, 0, 0}))
      .Attribute(IntsAttribute("nodes_nodeids", {0, 1, 2}))
      .Attribute(IntsAttribute("nodes_featureids", {0, 0, 0}))
      .Attribute(FloatsAttribute("nodes_values", {0, 0, 0}))
      .Attribute(TextsAttribute("nodes_modes", {mode, "LEAF", "LEAF"}))
      .Attribute(IntsAttribute("nodes_truenodeids", {1, 0, 0}))
      .Attribute(IntsAttribute("nodes_falsenodeids", {2, 0, 0}))
      .Attribute(IntsAttribute("nodes_missing_value_tracks_true", {missing_true, 0, 0}));
  return model;
}

NodeModel Regressor(const std::string& mode = "BRANCH_LEQ", int64_t missing_true = 0) {
  NodeModel model = Stump("TreeEnsembleRegressor", mode, missing_true);
  model.Attribute(IntsAttribute("target_treeids", {0, 0}))
      .Attribute(IntsAttribute("target_nodeids", {1, 2}))
      .Attribute(IntsAttribute("target_ids", {0, 0}))
      .Attribute(FloatsAttribute("target_weights", {1, 2}));
  return model;
}

TEST(Trees, EachModeComparesAsItsNameSays) {
  struct Mode {
    const char* name;
    std::vector<double> below_at_above;
    double missing;
  };
  for (const Mode& mode : std::vector<Mode>{{"BRANCH_LEQ", {1, 1, 2}, 2},
                                            {"BRANCH_LT", {1, 2, 2}, 2},
                                            {"BRANCH_GTE", {2, 1, 1}, 2},
                                            {"BRANCH_GT", {2, 2, 1}, 2},
                                            {"BRANCH_EQ", {2, 1, 2}, 2},
                                            {"BRANCH_NEQ", {1, 2, 1}, 1}}) {
    SCOPED_TRACE(mode.name);
    EXPECT_TRUE(Holds(Regressor(mode.name).Input(Column({-1, 0, 1})).Run()[0], mode.below_at_above));
    EXPECT_TRUE(Holds(Regressor(mode.name, 0).Input(Column({kNan})).Run()[0], {mode.missing}));
    EXPECT_TRUE(Holds(Regressor(mode.name, 1).Input(Column({kNan})).Run()[0], {1}));
  }
}

// Two trees of which one is a leaf alone, with their nodes in another order than their numbers; one row of integers.
TEST(Trees, NodesStandInAnyOrder) {
  NodeModel model("TreeEnsembleRegressor", kDomain, 17, 3);
  model.Input(at::tensor({3, -5}, at::kLong))
      .Attribute(IntsAttribute("nodes_treeids", {7, 7, 4, 7, 7, 7}))
      .Attribute(IntsAttribute("nodes_nodeids", {9, 2, 0, 5, 1, 3}))
      .Attribute(IntsAttribute("nodes_featureids", {0, 1, 0, 0, 0, 0}))
      .Attribute(FloatsAttribute("nodes_values", {0, -4.5, 0, 0, 3, 0}))
      .Attribute(TextsAttribute("nodes_modes", {"LEAF", "BRANCH_GTE", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF"}))
      .Attribute(IntsAttribute("nodes_truenodeids", {0, 9, 0, 0, 2, 0}))
      .Attribute(IntsAttribute("nodes_falsenodeids", {0, 3, 0, 0, 5, 0}))
      .Attribute(IntAttribute("n_targets", 2))
      .Attribute(IntsAttribute("target_treeids", {7, 7, 7, 4, 7}))
      .Attribute(IntsAttribute("target_nodeids", {9, 3, 3, 0, 5}))
      .Attribute(IntsAttribute("target_ids", {0, 1, 0, 0, 0}))
      .Attribute(FloatsAttribute("target_weights", {1, 10, 100, 1000, 10000}));
  EXPECT_TRUE(Holds(model.Run()[0], {1100, 10}));
}

TEST(Trees, AveragesAndAddsBaseValues) {
  NodeModel model = Regressor();
  model.Input(Column({-1, 1})).Attribute(TextAttribute("aggregate_function", "AVERAGE"));
  EXPECT_TRUE(Holds(NodeModel(model).Attribute(FloatsAttribute("base_values", {0.5})).Run()[0], {1.5, 2.5}));
  EXPECT_TRUE(Holds(model.Run()[0], {1, 2}));
  NodeModel probit = Regressor();
  probit.Input(Column({-1})).Attribute(TextAttribute("post_transform", "PROBIT"));
  probit.Attribute(FloatsAttribute("base_values", {-0.3F}));
  EXPECT_TRUE(Holds(probit.Run()[0], {0.52440051}));  // the normal quantile of 0.7
}

// A threshold in double precision parts what single precision does not.
TEST(Trees, DoublePrecisionIsComparedAsItIs) {
  const auto run = [](const Tensor& x) {
    NodeModel model("TreeEnsembleRegressor", kDomain, 17, 3);
    model.Input(x)
        .Attribute(IntsAttribute("nodes_treeids", {0, 0, 0}))
        .Attribute(IntsAttribute("nodes_nodeids", {0, 1, 2}))
        .Attribute(IntsAttribute("nodes_featureids", {0, 0, 0}))
        .Attribute(TensorAttribute("nodes_values_as_tensor", at::tensor({1.0 / 3, 0.0, 0.0}, at::kDouble)))
        .Attribute(TextsAttribute("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}))
        .Attribute(IntsAttribute("nodes_truenodeids", {1, 0, 0}))
        .Attribute(IntsAttribute("nodes_falsenodeids", {2, 0, 0}))
        .Attribute(IntsAttribute("target_treeids", {0, 0}))
        .Attribute(IntsAttribute("target_nodeids", {1, 2}))
        .Attribute(IntsAttribute("target_ids", {0, 0}))
        .Attribute(TensorAttribute("target_weights_as_tensor", at::tensor({1.0, 2.0}, at::kDouble)));
    return model.Run()[0];
  };
  const Tensor third = at::full({1, 1}, 1.0 / 3, at::kDouble);
  EXPECT_TRUE(Holds(run(third), {1}));
  EXPECT_TRUE(Holds(run(third + 1e-12), {2}));
  EXPECT_EQ(run(third).scalar_type(), at::kFloat);
}

// ONNX Runtime adds base values to the scores of those targets only of which a row meets a weight.
TEST(Trees, BaseValuesNeedAScoreOfEachTarget) {
  const auto model = [](const std::vector<int64_t>& leaves, const std::vector<int64_t>& targets) {
    NodeModel stump = Stump("TreeEnsembleRegressor");
    stump.Input(Column({-1, 1}))
        .Attribute(IntAttribute("n_targets", 2))
        .Attribute(IntsAttribute("target_treeids", std::vector<int64_t>(leaves.size(), 0)))
        .Attribute(IntsAttribute("target_nodeids", leaves))
        .Attribute(IntsAttribute("target_ids", targets))
        .Attribute(FloatsAttribute("target_weights", std::vector<float>(leaves.size(), 0.5F)));
    return stump;
  };
  const MessageWriter base = FloatsAttribute("base_values", {1, 2});
  EXPECT_TRUE(Holds(model({1, 1, 2, 2}, {0, 1, 0, 1}).Attribute(base).Run()[0], {1.5, 2.5, 1.5, 2.5}));
  EXPECT_TRUE(Holds(model({1, 2}, {0, 1}).Run()[0], {0.5, 0, 0, 0.5}));
  ExpectError(absl::StatusCode::kUnimplemented, {"TreeEnsembleRegressor", "no tree gives target 0", "no base value"},
              [&] {
                model({1, 2}, {0, 1}).Attribute(base).Run();
              });
}

NodeModel Classifier(const std::vector<int64_t>& labels, const std::vector<int64_t>& ids,
                     const std::vector<float>& weights, const std::string& transform) {
  NodeModel model = Stump("TreeEnsembleClassifier");
  std::vector<int64_t> leaves;
  for (size_t k = 0; k < ids.size(); ++k) leaves.push_back(k < ids.size() / 2 ? 1 : 2);
  model.Input(Column({-1, 1}))
      .Attribute(IntsAttribute("class_treeids", std::vector<int64_t>(ids.size(), 0)))
      .Attribute(IntsAttribute("class_nodeids", leaves))
      .Attribute(IntsAttribute("class_ids", ids))
      .Attribute(FloatsAttribute("class_weights", weights))
      .Attribute(IntsAttribute("classlabels_int64s", labels))
      .Attribute(TextAttribute("post_transform", transform));
  return model;
}

TEST(Trees, TwoClassesWithOneScore) {
  const auto expect = [](NodeModel model, const std::vector<double>& labels, const std::vector<double>& scores) {
    const std::vector<Tensor> results = model.Run(2);
    EXPECT_TRUE(Holds(results[0], labels));
    EXPECT_TRUE(Holds(results[1], scores));
  };
  expect(Classifier({5, 9}, {0, 0}, {-1, 2}, "NONE"), {5, 9}, {1, -1, -2, 2});
  expect(Classifier({5, 9}, {0, 0}, {0.2F, 0.7F}, "NONE"), {5, 9}, {0.8, 0.2, 0.3, 0.7});
  expect(Classifier({5, 9}, {0, 0}, {-1, 2}, "LOGISTIC"), {5, 9}, {0.7310586, 0.2689414, 0.11920292, 0.8807971});
  expect(Classifier({5, 9}, {0, 0}, {-1, 2}, "NONE").Attribute(FloatsAttribute("base_values", {0.3F})), {5, 9},
         {0.7, -0.7, -2.3, 2.3});
  ExpectError(absl::StatusCode::kUnimplemented, {"TreeEnsembleClassifier", "otherwise than the standard"}, [] {
    Classifier({5, 9}, {0, 0}, {-1, 2}, "SOFTMAX").Run(2);
  });
  ExpectError(absl::StatusCode::kUnimplemented, {"TreeEnsembleClassifier", "base_values"}, [] {
    Classifier({5, 9}, {0, 0}, {-1, 2}, "NONE").Attribute(FloatsAttribute("base_values", {1, 2})).Run(2);
  });
  ExpectError(absl::StatusCode::kUnimplemented, {"TreeEnsembleClassifier", "no tree gives class 0"}, [] {
    Classifier({5, 9}, {1, 1}, {-1, 2}, "NONE").Run(2);
  });
}

TEST(Trees, SeveralClasses) {
  const std::vector<Tensor> results =
      Classifier({5, 6, 7}, {0, 1, 2, 0, 1, 2}, {0.2F, 0, 0, 0, 0.7F, 0}, "SOFTMAX").Run(2);
  EXPECT_TRUE(Holds(results[0], {5, 6}));
  EXPECT_TRUE(Holds(results[1], {0.37915242, 0.31042379, 0.31042379, 0.24914334, 0.50171331, 0.24914334}));
  const std::vector<Tensor> without_zero =
      Classifier({5, 6, 7}, {0, 1, 2, 0, 1, 2}, {1, 0, 2, 0, -3, 0}, "SOFTMAX_ZERO").Run(2);
  EXPECT_TRUE(Holds(without_zero[1], {0.26894142, 0, 0.73105858, 0, 1, 0}));
}

// TreeEnsemble of version 5: a set of numbers, a branch of all modes, leaves apart.
NodeModel Ensemble(const Tensor& x, const Tensor& modes, const Tensor& splits) {
  NodeModel model("TreeEnsemble", kDomain, 17, 5);
  model.Input(x)
      .Attribute(IntsAttribute("tree_roots", {0}))
      .Attribute(IntsAttribute("nodes_featureids", {0, 1}))
      .Attribute(TensorAttribute("nodes_modes", modes))
      .Attribute(TensorAttribute("nodes_splits", splits))
      .Attribute(IntsAttribute("nodes_truenodeids", {0, 1}))
      .Attribute(IntsAttribute("nodes_trueleafs", {1, 1}))
      .Attribute(IntsAttribute("nodes_falsenodeids", {1, 2}))
      .Attribute(IntsAttribute("nodes_falseleafs", {0, 1}))
      .Attribute(IntsAttribute("nodes_missing_value_tracks_true", {1, 0}))
      .Attribute(IntsAttribute("leaf_targetids", {0, 0, 0}))
      .Attribute(TensorAttribute("leaf_weights", at::tensor({1.0, 2.0, 4.0}).to(splits.scalar_type())));
  return model;
}

TEST(Trees, MembersOfASet) {
  const Tensor modes = at::tensor({6, 1}, at::kByte);
  const Tensor x = at::tensor({1.5F, 0.0F, 7.0F, 0.0F, 2.0F, -1.0F, 2.0F, 1.0F, kNan, 0.0F}).reshape({5, 2});
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    NodeModel model = Ensemble(x.to(type), modes, at::tensor({0.0, 0.5}).to(type));
    model.Attribute(TensorAttribute("membership_values", at::tensor({1.5, 7.0, double{kNan}}).to(type)));
    const Tensor y = model.Run()[0];
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_TRUE(Holds(y, {1, 1, 2, 4, 1}));
  }
}

TEST(Trees, TransformsAndAggregatesByNumber) {
  const Tensor modes = at::tensor({0, 1}, at::kByte), splits = at::tensor({0.0F, 0.5F});
  const Tensor x = at::tensor({1.0F, 0.0F}).reshape({1, 2});
  EXPECT_TRUE(Holds(Ensemble(x, modes, splits).Attribute(IntAttribute("aggregate_function", 0)).Run()[0], {2}));
  const auto transformed = [&](int64_t number) {
    NodeModel two = Ensemble(x, modes, splits);
    return two.Attribute(IntAttribute("n_targets", 2)).Attribute(IntAttribute("post_transform", number)).Run()[0];
  };
  EXPECT_TRUE(Holds(transformed(3), {1, 0}));
  for (const int64_t number : {1, 2}) {
    ExpectError(absl::StatusCode::kUnimplemented, {"(ai.onnx.ml.TreeEnsemble)", "ONNX Runtime the reverse"},
                [&] { transformed(number); });
  }
  ExpectError(absl::StatusCode::kUnimplemented, {"(ai.onnx.ml.TreeEnsemble)", "MIN", "SUM and AVERAGE"},
              [&] { Ensemble(x, modes, splits).Attribute(IntAttribute("aggregate_function", 2)).Run(); });
}

TEST(Trees, RefusesWhatIsNoEnsemble) {
  const auto expect = [](absl::StatusCode code, const std::string& what, const MessageWriter& attribute) {
    ExpectError(code, {"(ai.onnx.ml.TreeEnsembleRegressor)", what}, [&] {
      // An attribute that is given twice is refused, so that each spoils one that is left out.
      NodeModel model("TreeEnsembleRegressor", kDomain, 17, 3);
      model.Input(Column({1})).Attribute(attribute);
      const std::string spoilt = attribute.bytes();
      const auto add = [&](const std::string& name, const MessageWriter& usual) {
        if (spoilt.find(name) == std::string::npos) model.Attribute(usual);
      };
      add("nodes_treeids", IntsAttribute("nodes_treeids", {0, 0, 0}));
      add("nodes_nodeids", IntsAttribute("nodes_nodeids", {0, 1, 2}));
      add("nodes_featureids", IntsAttribute("nodes_featureids", {0, 0, 0}));
      add("nodes_values", FloatsAttribute("nodes_values", {0, 0, 0}));
      add("nodes_modes", TextsAttribute("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}));
      add("nodes_truenodeids", IntsAttribute("nodes_truenodeids", {1, 0, 0}));
      add("nodes_falsenodeids", IntsAttribute("nodes_falsenodeids", {2, 0, 0}));
      add("target_treeids", IntsAttribute("target_treeids", {0, 0}));
      add("target_nodeids", IntsAttribute("target_nodeids", {1, 2}));
      add("target_ids", IntsAttribute("target_ids", {0, 0}));
      add("target_weights", FloatsAttribute("target_weights", {1, 2}));
      model.Run();
    });
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  expect(invalid, "tree 0 has no node 7", IntsAttribute("nodes_truenodeids", {7, 0, 0}));
  expect(invalid, "has two roots", IntsAttribute("nodes_falsenodeids", {1, 0, 0}));
  expect(invalid, "no path leads", IntsAttribute("nodes_truenodeids", {0, 0, 0}));
  expect(invalid, "two nodes of one number", IntsAttribute("nodes_nodeids", {0, 1, 1}));
  expect(invalid, "is none", TextsAttribute("nodes_modes", {"BRANCH_ABOUT", "LEAF", "LEAF"}));
  expect(invalid, "has 2 elements, not 3", FloatsAttribute("nodes_values", {0, 0}));
  expect(invalid, "a weight belongs to a branch", IntsAttribute("target_nodeids", {0, 2}));
  expect(invalid, "two weights of one target", IntsAttribute("target_nodeids", {1, 1}));
  expect(invalid, "of target 1 of 1", IntsAttribute("target_ids", {0, 1}));
  expect(invalid, "feature 3 of rows with 1", IntsAttribute("nodes_featureids", {3, 0, 0}));
  expect(absl::StatusCode::kUnimplemented, "MAX, of which no exact", TextAttribute("aggregate_function", "MAX"));
  expect(absl::StatusCode::kUnimplemented, "of a single score", TextAttribute("post_transform", "LOGISTIC"));
}

}  // namespace
}  // namespace addend::onnx

// Features that are scaled, chosen, filled in and encoded.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
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

NodeModel Model(const char* op_type, int64_t version = 1) { return NodeModel(op_type, kDomain, 17, version); }

testing::AssertionResult Holds(const Tensor& result, const std::vector<double>& elements) {
  const Tensor flat = at::flatten(result).to(at::kDouble);
  const Tensor expected = at::tensor(elements, at::kDouble);
  if (flat.sizes() == expected.sizes() && at::allclose(flat, expected, 1e-6, 1e-7)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << flat << " instead of " << expected;
}

Tensor Rows() { return at::tensor({3.0F, -4.0F, 0.0F, 0.0F}).reshape({2, 2}); }

TEST(Features, AreScaled) {
  NodeModel model = Model("Scaler");
  model.Input(Rows()).Attribute(FloatsAttribute("offset", {1, 2})).Attribute(FloatsAttribute("scale", {0.5F, 2}));
  EXPECT_TRUE(Holds(model.Run()[0], {1, -12, -0.5, -4}));
}

TEST(Features, AreNormalized) {
  const auto run = [](const char* norm) {
    return Model("Normalizer").Input(Rows()).Attribute(TextAttribute("norm", norm)).Run()[0];
  };
  EXPECT_TRUE(Holds(run("L1"), {3.0 / 7, -4.0 / 7, 0, 0}));
  EXPECT_TRUE(Holds(run("L2"), {0.6, -0.8, 0, 0}));
  EXPECT_TRUE(Holds(run("MAX"), {1, -4.0 / 3, 0, 0}));
}

TEST(Features, AreFilledIn) {
  const Tensor x = at::tensor({kNan, 2.0F, 3.0F, kNan}).reshape({2, 2});
  NodeModel missing = Model("Imputer");
  missing.Attribute(FloatsAttribute("imputed_value_floats", {7, 8}))
      .Attribute(FloatAttribute("replaced_value_float", kNan));
  EXPECT_TRUE(Holds(missing.Input(x).Run()[0], {7, 2, 3, 8}));
  NodeModel number = Model("Imputer");
  number.Attribute(FloatsAttribute("imputed_value_floats", {0.1F}))
      .Attribute(FloatAttribute("replaced_value_float", 3));
  EXPECT_TRUE(Holds(number.Input(Rows()).Run()[0], {0.1F, -4, 0, 0}));
  NodeModel infinite = Model("Imputer");
  const float infinity = std::numeric_limits<float>::infinity();
  infinite.Attribute(FloatsAttribute("imputed_value_floats", {5}))
      .Attribute(FloatAttribute("replaced_value_float", infinity));
  EXPECT_TRUE(Holds(infinite.Input(at::tensor({infinity, -infinity, 2.0F})).Run()[0], {5, -infinity, 2}));
  NodeModel integer = Model("Imputer");
  integer.Attribute(IntsAttribute("imputed_value_int64s", {9})).Attribute(IntAttribute("replaced_value_int64", 2));
  EXPECT_TRUE(Holds(integer.Input(at::tensor({1, 2, 3}, at::kLong)).Run()[0], {1, 9, 3}));
}

TEST(Features, AreMadeBinary) {
  NodeModel model = Model("Binarizer");
  model.Input(at::tensor({0.5F, 0.25F, -1.0F, kNan})).Attribute(FloatAttribute("threshold", 0.25F));
  EXPECT_TRUE(Holds(model.Run()[0], {1, 0, 0, 0}));
}

TEST(Features, AreChosenAndJoined) {
  EXPECT_TRUE(Holds(Model("ArrayFeatureExtractor").Input(Rows()).Constant(at::tensor({1, 0}, at::kLong)).Run()[0],
                    {-4, 3, 0, 0}));
  NodeModel list = Model("ArrayFeatureExtractor");
  const Tensor chosen = list.Input(at::tensor({5.0F, 6.0F})).Constant(at::tensor({1, 1, 0}, at::kLong)).Run()[0];
  EXPECT_EQ(chosen.sizes(), (at::IntArrayRef{1, 3}));
  EXPECT_TRUE(Holds(chosen, {6, 6, 5}));
  NodeModel joined = Model("FeatureVectorizer");
  joined.Input(Rows()).Input(at::tensor({1, 2}, at::kLong).reshape({2, 1}));
  EXPECT_TRUE(Holds(joined.Attribute(IntsAttribute("inputdimensions", {2, 1})).Run()[0], {3, -4, 1, 0, 0, 2}));
}

TEST(Features, AreEncoded) {
  const auto hot = [](const Tensor& x, int64_t zeros) {
    NodeModel model = Model("OneHotEncoder");
    model.Input(x).Attribute(IntsAttribute("cats_int64s", {1, 4})).Attribute(IntAttribute("zeros", zeros));
    return model.Run()[0];
  };
  const Tensor floats = hot(at::tensor({1.0F, 4.5F, 3.0F}).reshape({3, 1}), 1);
  EXPECT_EQ(floats.sizes(), (at::IntArrayRef{3, 1, 2}));
  EXPECT_TRUE(Holds(floats, {1, 0, 0, 1, 0, 0}));
  EXPECT_TRUE(Holds(hot(at::tensor({4, 1}, at::kLong), 0), {0, 1, 1, 0}));
  ExpectError(absl::StatusCode::kInvalidArgument, {"OneHotEncoder", "none of the categories"},
              [&] { hot(at::tensor({3}, at::kLong), 0); });
  NodeModel to_float = Model("LabelEncoder", 2);
  to_float.Attribute(IntsAttribute("keys_int64s", {3, 5})).Attribute(FloatsAttribute("values_floats", {0.1F, -2}));
  to_float.Attribute(FloatAttribute("default_float", 9));
  EXPECT_TRUE(Holds(to_float.Input(at::tensor({5, 4, 3}, at::kLong)).Run()[0], {-2, 9, 0.1F}));
  NodeModel to_integer = Model("LabelEncoder", 4);
  to_integer.Attribute(TensorAttribute("keys_tensor", at::tensor({0.5, 2.0}, at::kDouble)));
  to_integer.Attribute(TensorAttribute("values_tensor", at::tensor({7, 8}, at::kLong)));
  to_integer.Attribute(TensorAttribute("default_tensor", at::tensor({-3}, at::kLong)));
  const Tensor codes = to_integer.Input(at::tensor({2.0, 0.5, 1.0}, at::kDouble)).Run()[0];
  EXPECT_EQ(codes.scalar_type(), at::kLong);
  EXPECT_TRUE(Holds(codes, {8, 7, -3}));
}

TEST(Features, TextsAndMapsAreRefusedWhenTheModelIsLoaded) {
  const auto expect = [](const NodeModel& model, const std::string& what) {
    ExpectError(absl::StatusCode::kUnimplemented, {"node (", what}, [&] { model.Run(); });
  };
  const Tensor x = at::tensor({1, 2}, at::kLong);
  expect(Model("LabelEncoder", 2)
             .Input(x)
             .Attribute(IntsAttribute("keys_int64s", {1}))
             .Attribute(TextsAttribute("values_strings", {"a"})),
         "texts (values_strings)");
  expect(Model("OneHotEncoder").Input(x).Attribute(TextsAttribute("cats_strings", {"a"})), "texts (cats_strings)");
  for (const char* op_type : {"CastMap", "DictVectorizer", "CategoryMapper"}) {
    expect(Model(op_type).Input(x), "is refused: ");
  }
}

}  // namespace
}  // namespace addend::onnx

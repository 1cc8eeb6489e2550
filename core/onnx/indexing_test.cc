// Traps of indices that the suite of ONNX does not have.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::Contains;
using testing::ElementsAre;

// Baselines of ids are known to embeddings.
TEST(OnnxIndexing, IdsOfRowsOfWeightsAreEmbedded) {
  std::vector<float> numbers(24);
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(k);
  const auto model = ModelOfNodes({NodeMessage("Gather", {"w", "x0"}, {"y"})}, 1, {FloatTensor("w", {8, 3}, numbers)});
  const Tensor ids = at::tensor({7, 0}, at::kLong);
  EXPECT_THAT(OperatorsOf(*model, {ids}), ElementsAre("aten::embedding"));
  EXPECT_EQ(ResultOf(*model, {ids})[0][0].item<float>(), 21);
  const Tensor from_the_end = at::tensor({-1, 0}, at::kLong);
  EXPECT_EQ(ResultOf(*model, {from_the_end})[0][0].item<float>(), 21);
  EXPECT_THAT(OperatorsOf(*model, {from_the_end}), ElementsAre("aten::index"));
}

TEST(OnnxIndexing, IndicesBeyondTheEndAreErrors) {
  const Tensor beyond = at::full({1, 1}, 4, at::kLong);
  for (const char* op : {"Gather", "GatherElements", "GatherND"}) {
    const auto model = ModelOfNodes({NodeMessage(op, {"x0", "x1"}, {"y"})}, 2);
    ExpectError(absl::StatusCode::kInvalidArgument, {op}, [&] { ResultOf(*model, {at::ones({4, 4}), beyond}); });
  }
  for (const char* reduction : {"add", "max"}) {
    const auto model = ModelOfNodes(
        {With(NodeMessage("ScatterND", {"x0", "x1", "x2"}, {"y"}), {TextAttribute("reduction", reduction)})}, 3);
    // The place would be one of the next row.
    const Tensor place = at::tensor({0, 5}, at::kLong).reshape({1, 2});
    ExpectError(absl::StatusCode::kInvalidArgument, {"ScatterND"}, [&] {
      ResultOf(*model, {at::ones({4, 4}), place, at::ones({1})});
    });
  }
}

TEST(OnnxIndexing, EqualElementsStayInOrder) {
  const Tensor x = at::tensor({1.0F, 3.0F, 3.0F, 1.0F});
  const auto top = ModelOfNodes({NodeMessage("TopK", {"x0", "k"}, {"v", "y"})}, 1, {IntegerTensor("k", {1}, {3})});
  EXPECT_TRUE(at::equal(ResultOf(*top, {x}), at::tensor({1, 2, 0}, at::kLong)));
  const auto last =
      ModelOfNodes({With(NodeMessage("ArgMax", {"x0"}, {"y"}), {IntAttribute("select_last_index", 1)})}, 1);
  EXPECT_EQ(ResultOf(*last, {x}).item<int64_t>(), 2);
  const auto first = ModelOfNodes({NodeMessage("ArgMin", {"x0"}, {"y"})}, 1);
  EXPECT_EQ(ResultOf(*first, {x}).item<int64_t>(), 0);
}

// A range of numbers that are computed from an input is made of operators that their components pass.
TEST(OnnxIndexing, RangesFromAnInputAreComposed) {
  const auto model = ModelOfNodes({NodeMessage("Range", {"x0", "end", "step"}, {"y"})}, 1,
                                  {FloatTensor("end", {}, {3.0F}), FloatTensor("step", {}, {0.5F})});
  const Tensor start = at::scalar_tensor(1.25);
  EXPECT_TRUE(at::equal(ResultOf(*model, {start}), at::tensor({1.25F, 1.75F, 2.25F, 2.75F})));
  EXPECT_THAT(OperatorsOf(*model, {start}), Contains("aten::add"));
}

TEST(OnnxIndexing, RangesAreTakenUpToTheLimit) {
  const auto model =
      ModelOfNodes({NodeMessage("Range", {"a", "b", "c"}, {"y"})}, 0,
                   {IntegerTensor("a", {}, {9}), IntegerTensor("b", {}, {2}), IntegerTensor("c", {}, {2})});
  EXPECT_EQ(ResultOf(*model, {}).numel(), 0);
}

TEST(OnnxIndexing, NotANumberIsOneGroup) {
  const auto model = ModelOfNodes({NodeMessage("Unique", {"x0"}, {"u", "", "", "y"})}, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(
      at::equal(ResultOf(*model, {at::tensor({nan, 2.0F, nan, 1.0F, 2.0F})}), at::tensor({1, 2, 2}, at::kLong)));
}

}  // namespace
}  // namespace addend::onnx

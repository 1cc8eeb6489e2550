// Attention of the standard, where the suite does not look.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

NodeModel Attention(const Tensor& query, const Tensor& key) {
  NodeModel model("Attention", "", 24);
  model.Input(query).Input(key).Input(key);
  return model;
}

// Some read it as one for all keys, some as one for the first key alone.
TEST(Attention, RefusesAMaskOfOneKey) {
  const Tensor x = at::randn({1, 2, 3, 4});
  ExpectError(absl::StatusCode::kUnimplemented, {"node (Attention)", "a mask of one key"}, [&] {
    Attention(x, x).Input(at::zeros({3, 1})).Run();
  });
}

TEST(Attention, RefusesScoresThatRuntimesComputeInTwoWays) {
  const Tensor x = at::randn({1, 2, 3, 4});
  const auto scores = [&](int64_t mode, float softcap) {
    return Attention(x, x)
        .Attribute(IntAttribute("qk_matmul_output_mode", mode))
        .Attribute(FloatAttribute("softcap", softcap))
        .Run(4)[3];
  };
  const Tensor raw = x.matmul(x.transpose(2, 3)) / 2;
  EXPECT_TRUE(at::allclose(scores(2, 0), raw, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(scores(3, 2), (at::tanh(raw / 2) * 2).softmax(-1), 1e-4, 1e-5));
  ExpectError(absl::StatusCode::kUnimplemented, {"node (Attention)", "qk_matmul_output_mode 1"}, [&] { scores(1, 2); });
}

// A query without a key gives zeros, also behind a mask of numbers.
TEST(Attention, QueriesWithoutKeysGiveZeros) {
  const Tensor x = at::randn({1, 2, 3, 4});
  Tensor mask = at::zeros({3, 3});
  mask[1].fill_(-INFINITY);
  const Tensor y = Attention(x, x).Input(mask).Run()[0];
  EXPECT_TRUE(y.isfinite().all().item<bool>());
  EXPECT_EQ(y.select(2, 1).abs().max().item<float>(), 0);
  EXPECT_GT(y.select(2, 0).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace addend::onnx

// Integers of 4 and 2 bits, which are constants of the file: they saturate at their own ends, also once they were
// moved.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/data_type.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;

constexpr int64_t kOpset = 25;  // the first with types of two bits

MessageWriter Packed(const std::string& name, DataType type, const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& bytes) {
  return TensorMessage(name, static_cast<int32_t>(type), dims).PackedIntegers(5, bytes);
}

// Nodes on the constants x = [-100, -2, 0.5, 3, 100], one = 1 and zero. y has to be added to an input, or it would be a
// constant.
Tensor Constants(std::vector<MessageWriter> nodes, std::vector<MessageWriter> more) {
  nodes.push_back(With(NodeMessage("Cast", {"q"}, {"number"}), {IntAttribute("to", 1)}));
  nodes.push_back(NodeMessage("Add", {"x0", "number"}, {"y"}));
  more.push_back(FloatTensor("x", {5}, {-100, -2, 0.5F, 3, 100}));
  more.push_back(FloatTensor("one", {}, {1}));
  return ResultOf(*ModelOfNodes(nodes, 1, more, kOpset), {at::zeros({1})});
}

TEST(PackedIntegers, SaturateAtTheirOwnEnds) {
  const auto quantized = [](DataType type, int64_t zero) {
    return Constants({NodeMessage("QuantizeLinear", {"x", "one", "zero"}, {"q"})}, {Packed("zero", type, {}, {zero})});
  };
  EXPECT_TRUE(at::equal(quantized(DataType::kInt4, 1), at::tensor({-8.0F, -1.0F, 1.0F, 4.0F, 7.0F})));
  EXPECT_TRUE(at::equal(quantized(DataType::kUint4, 3), at::tensor({0.0F, 1.0F, 3.0F, 6.0F, 15.0F})));
  EXPECT_TRUE(at::equal(quantized(DataType::kInt2, 0), at::tensor({-2.0F, -2.0F, 0.0F, 1.0F, 1.0F})));
  EXPECT_TRUE(at::equal(quantized(DataType::kUint2, 1), at::tensor({0.0F, 0.0F, 1.0F, 3.0F, 3.0F})));
  // Eight bits, as before.
  EXPECT_TRUE(at::equal(quantized(DataType::kInt8, 1), at::tensor({-99.0F, -1.0F, 1.0F, 4.0F, 101.0F})));
  EXPECT_TRUE(at::equal(quantized(DataType::kUint8, 1), at::tensor({0.0F, 0.0F, 1.0F, 4.0F, 101.0F})));
}

TEST(PackedIntegers, KeepTheirTypeWhereTheyAreMoved) {
  for (const char* op : {"Identity", "Flatten", "Transpose", "Squeeze"}) {
    const Tensor y =
        Constants({NodeMessage(op, {"wide"}, {"moved"}), NodeMessage("Reshape", {"moved", "sizes"}, {"zero"}),
                   NodeMessage("QuantizeLinear", {"x", "one", "zero"}, {"q"})},
                  {Packed("wide", DataType::kInt4, {1, 1}, {1}), IntegerTensor("sizes", {1}, {1})});
    EXPECT_TRUE(at::equal(y, at::tensor({-8.0F, -1.0F, 1.0F, 4.0F, 7.0F}))) << op;
  }
  // The result of a quantization has the type too.
  const Tensor twice = Constants({NodeMessage("QuantizeLinear", {"x", "one", "zero"}, {"first"}),
                                  NodeMessage("Gather", {"first", "last"}, {"seven"}),
                                  NodeMessage("QuantizeLinear", {"x", "one", "seven"}, {"q"})},
                                 {Packed("zero", DataType::kInt4, {}, {0}), IntegerTensor("last", {}, {4})});
  EXPECT_TRUE(at::equal(twice, at::tensor({-8.0F, 5.0F, 7.0F, 7.0F, 7.0F})));
}

TEST(PackedIntegers, LoseTheirTypeInCasts) {
  const Tensor y = Constants({With(NodeMessage("Cast", {"four"}, {"zero"}), {IntAttribute("to", 3)}),
                              NodeMessage("QuantizeLinear", {"x", "one", "zero"}, {"q"})},
                             {Packed("four", DataType::kInt4, {}, {1})});
  EXPECT_TRUE(at::equal(y, at::tensor({-99.0F, -1.0F, 1.0F, 4.0F, 101.0F})));
  ExpectError(absl::StatusCode::kUnimplemented, {"elements of type int4 are not computed with"}, [] {
    Constants({NodeMessage("CastLike", {"x", "four"}, {"q"})}, {Packed("four", DataType::kInt4, {}, {1})});
  });
}

TEST(PackedIntegers, AreDequantized) {
  const Tensor y = Constants({NodeMessage("DequantizeLinear", {"numbers", "half", "zero"}, {"q"})},
                             {Packed("numbers", DataType::kInt4, {4}, {0x21, 0x8f}), FloatTensor("half", {}, {0.5F}),
                              Packed("zero", DataType::kInt4, {}, {2})});
  EXPECT_TRUE(at::equal(y, at::tensor({-0.5F, 0.0F, -1.5F, -5.0F})));
}

}  // namespace
}  // namespace addend::onnx

// uint16, uint32 and uint64, which LibTorch lacks: held to the unsigned arithmetic of C++, which is that of ONNX
// Runtime.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/onnx/node_testing.h"
#include "core/onnx/onnx_testing.h"

namespace addend::onnx {
namespace {

using at::Tensor;
using testing::Contains;

constexpr int32_t kFloat = 1, kUint8 = 2, kUint16 = 4, kInt16 = 5, kInt32 = 6, kInt64 = 7, kBool = 9, kUint32 = 12,
                  kUint64 = 13;
constexpr int64_t kOpset = 26;  // the first with BitCast

template <typename T>
constexpr int32_t kTypeOf = sizeof(T) == 2   ? kUint16
                            : sizeof(T) == 4 ? kUint32
                                             : kUint64;

// Numbers as the type that holds them.
template <typename T>
Tensor Wide(const std::vector<T>& numbers) {
  return at::tensor(std::vector<int64_t>(numbers.begin(), numbers.end())).to(sizeof(T) == 2 ? at::kInt : at::kLong);
}

Tensor Truths(const std::vector<int64_t>& numbers) { return at::tensor(numbers).to(at::kBool); }

template <typename T>
MessageWriter Constant(const std::string& name, const std::vector<int64_t>& dims, const std::vector<T>& numbers) {
  return TensorMessage(name, kTypeOf<T>, dims)
      .Bytes(9, std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)));
}

// Nodes that make y of inputs x0, x1, ... of one type.
std::shared_ptr<Model> ModelOf(int32_t type, size_t num_inputs, const std::vector<MessageWriter>& nodes,
                               const std::vector<MessageWriter>& initializers = {}) {
  return ModelOfNodes(nodes, num_inputs, initializers, kOpset, type);
}

MessageWriter CastTo(const std::string& from, const std::string& to, int64_t type) {
  return With(NodeMessage("Cast", {from}, {to}), {IntAttribute("to", type)});
}

MessageWriter Shift(const std::string& direction) {
  return With(NodeMessage("BitShift", {"x0", "x1"}, {"y"}), {TextAttribute("direction", direction)});
}

// y = op(a, b), with b as an input and as a constant of the file.
template <typename T>
void ExpectOfTwo(const MessageWriter& node, const std::vector<T>& a, const std::vector<T>& b, const Tensor& expected) {
  const Tensor found = ResultOf(*ModelOf(kTypeOf<T>, 2, {node}), {Wide(a), Wide(b)});
  EXPECT_TRUE(at::equal(found, expected)) << found << expected;
  EXPECT_EQ(found.scalar_type(), expected.scalar_type());
  const auto size = static_cast<int64_t>(b.size());
  EXPECT_TRUE(at::equal(ResultOf(*ModelOf(kTypeOf<T>, 1, {node}, {Constant("x1", {size}, b)}), {Wide(a)}), expected));
}

template <typename T>
class Unsigned : public testing::Test {};
using Types = testing::Types<uint16_t, uint32_t>;
TYPED_TEST_SUITE(Unsigned, Types);

// Results beyond the range are their lowest bits.
TYPED_TEST(Unsigned, ArithmeticIsThatOfProcessors) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  const std::vector<T> a{0, 1, 7, kMost, kMost, static_cast<T>(kMost / 2 + 1), 1000};
  const std::vector<T> b{1, 2, 3, kMost, 2, static_cast<T>(kMost / 2 + 2), 7};
  const auto expect = [&](const std::string& op, uint64_t (*combine)(uint64_t, uint64_t)) {
    std::vector<T> expected;
    for (size_t k = 0; k < a.size(); ++k) expected.push_back(static_cast<T>(combine(a[k], b[k])));
    ExpectOfTwo(NodeMessage(op, {"x0", "x1"}, {"y"}), a, b, Wide(expected));
  };
  expect("Add", [](uint64_t x, uint64_t y) { return x + y; });
  expect("Sub", [](uint64_t x, uint64_t y) { return x - y; });
  expect("Mul", [](uint64_t x, uint64_t y) { return x * y; });
  expect("Div", [](uint64_t x, uint64_t y) { return x / y; });
  expect("Mod", [](uint64_t x, uint64_t y) { return x % y; });
  expect("BitwiseAnd", [](uint64_t x, uint64_t y) { return x & y; });
  expect("BitwiseOr", [](uint64_t x, uint64_t y) { return x | y; });
  expect("BitwiseXor", [](uint64_t x, uint64_t y) { return x ^ y; });
  expect("Max", [](uint64_t x, uint64_t y) { return x > y ? x : y; });
  expect("Min", [](uint64_t x, uint64_t y) { return x < y ? x : y; });
}

TYPED_TEST(Unsigned, OneNumberIsAnOperandToo) {
  using T = TypeParam;
  const std::vector<T> a{0, 1, 9};
  const auto result = [&](const std::string& op, bool first) {
    const std::vector<std::string> inputs =
        first ? std::vector<std::string>{"five", "x0"} : std::vector<std::string>{"x0", "five"};
    return ResultOf(*ModelOf(kTypeOf<T>, 1, {NodeMessage(op, inputs, {"y"})}, {Constant<T>("five", {}, {5})}),
                    {Wide(a)});
  };
  const auto negative = [](int number) { return static_cast<T>(0 - number); };
  EXPECT_TRUE(at::equal(result("Sub", false), Wide<T>({negative(5), negative(4), 4})));
  EXPECT_TRUE(at::equal(result("Sub", true), Wide<T>({5, 4, negative(4)})));
  EXPECT_TRUE(at::equal(result("Mul", true), Wide<T>({0, 5, 45})));
}

TYPED_TEST(Unsigned, BitsAreShiftedAndTurned) {
  using T = TypeParam;
  constexpr T kBits = 8 * sizeof(T), kMost = std::numeric_limits<T>::max();
  const std::vector<T> a{1, 3, kMost, kMost, 5}, b{0, static_cast<T>(kBits - 1), 4, kBits, static_cast<T>(kBits + 3)};
  std::vector<T> left, right, turned;
  for (size_t k = 0; k < a.size(); ++k) {
    left.push_back(b[k] >= kBits ? 0 : static_cast<T>(uint64_t{a[k]} << b[k]));
    right.push_back(b[k] >= kBits ? 0 : static_cast<T>(uint64_t{a[k]} >> b[k]));
    turned.push_back(static_cast<T>(~a[k]));
  }
  ExpectOfTwo(Shift("LEFT"), a, b, Wide(left));
  ExpectOfTwo(Shift("RIGHT"), a, b, Wide(right));
  EXPECT_TRUE(at::equal(ResultOf(*ModelOf(kTypeOf<T>, 1, {NodeMessage("BitwiseNot", {"x0"}, {"y"})}), {Wide(a)}),
                        Wide(turned)));
}

TYPED_TEST(Unsigned, InputsBeyondTheRangeAreRefused) {
  using T = TypeParam;
  const auto model = ModelOf(kTypeOf<T>, 1, {NodeMessage("Identity", {"x0"}, {"y"})});
  const int64_t most = std::numeric_limits<T>::max();
  const auto holder = sizeof(T) == 2 ? at::kInt : at::kLong;
  EXPECT_TRUE(at::equal(ResultOf(*model, {at::tensor({most}).to(holder)}), at::tensor({most}).to(holder)));
  for (const int64_t beyond : {int64_t{-1}, most + 1}) {
    ExpectError(
        absl::StatusCode::kInvalidArgument,
        {"input x0 holds " + std::to_string(beyond) + ", the model takes uint", " from 0 to " + std::to_string(most)},
        [&] {
          ResultOf(*model, {at::tensor({most, beyond}).to(holder)});
        });
  }
  ExpectError(absl::StatusCode::kInvalidArgument, {"input x0 is float32, the model takes int", ", for its uint"},
              [&] { ResultOf(*model, {at::ones({1})}); });
}

// --------------------------------------------------------------------------------------------------------- 64 bits

constexpr int64_t kHalf = int64_t{1} << 62;

TEST(Uint64, ArithmeticIsThatOfProcessorsWhereInt64HoldsIt) {
  const std::vector<uint64_t> a{6, uint64_t{1} << 62, 1000}, b{6, uint64_t{1} << 61, 7};
  const auto expect = [&](const MessageWriter& node, const std::vector<uint64_t>& expected) {
    ExpectOfTwo(node, a, b, Wide(expected));
  };
  const auto node = [](const std::string& op) { return NodeMessage(op, {"x0", "x1"}, {"y"}); };
  expect(node("Add"), {12, (uint64_t{1} << 62) + (uint64_t{1} << 61), 1007});
  expect(node("Sub"), {0, uint64_t{1} << 61, 993});
  expect(node("Div"), {1, 2, 142});
  expect(node("Mod"), {0, 0, 6});
  expect(node("BitwiseXor"), {0, (uint64_t{1} << 62) | (uint64_t{1} << 61), 1000 ^ 7});
  ExpectOfTwo<uint64_t>(node("Mul"), {6, uint64_t{1} << 31}, {7, uint64_t{1} << 31}, Wide<uint64_t>({42, kHalf}));
  ExpectOfTwo<uint64_t>(Shift("LEFT"), {3, 1, 9}, {4, 62, 64}, Wide<uint64_t>({48, kHalf, 0}));
  ExpectOfTwo<uint64_t>(Shift("RIGHT"), {3, kHalf, 9}, {1, 62, 64}, Wide<uint64_t>({1, 1, 0}));
}

TEST(Uint64, ResultsThatInt64DoesNotHoldAreRefused) {
  const auto refuse = [](const MessageWriter& node, int64_t a, int64_t b) {
    ExpectError(absl::StatusCode::kUnimplemented, {"gives a uint64 above 9223372036854775807"}, [&] {
      ResultOf(*ModelOf(kUint64, 2, {node}), {at::tensor({int64_t{1}, a}), at::tensor({int64_t{1}, b})});
    });
  };
  const auto node = [](const std::string& op) { return NodeMessage(op, {"x0", "x1"}, {"y"}); };
  refuse(node("Add"), kHalf, kHalf);
  refuse(node("Sub"), 1, 2);
  refuse(node("Mul"), int64_t{1} << 32, int64_t{1} << 31);
  refuse(node("Mul"), int64_t{1} << 33, int64_t{1} << 32);  // whose lowest 64 bits are a small number
  refuse(Shift("LEFT"), 1, 63);
  refuse(Shift("LEFT"), 3, 63);
  const auto turned = ModelOf(kUint64, 1, {NodeMessage("BitwiseNot", {"x0"}, {"y"})});
  ExpectError(absl::StatusCode::kUnimplemented, {"gives a uint64"},
              [&] { ResultOf(*turned, {at::tensor({int64_t{1}})}); });
}

// A recording compares what it reads, so that other inputs are refused there too.
TEST(Uint64, ARecordingSeesWhatIsHeld) {
  const auto model = ModelOf(kUint64, 2, {NodeMessage("Sub", {"x0", "x1"}, {"y"})});
  EXPECT_THAT(OperatorsOf(*model, {Wide<uint64_t>({5}), Wide<uint64_t>({2})}), Contains("aten::is_nonzero"));
}

TEST(Uint64, ConstantsThatInt64DoesNotHoldAreRefused) {
  ExpectError(
      absl::StatusCode::kUnimplemented,
      {"model.onnx: the tensor c holds the number 9223372036854775808; of uint64 those up to 9223372036854775807"}, [] {
        ModelOf(kUint64, 1, {NodeMessage("Max", {"x0", "c"}, {"y"})},
                {Constant<uint64_t>("c", {2}, {1, uint64_t{1} << 63})});
      });
  ExpectError(absl::StatusCode::kInvalidArgument, {"input x0 holds -1, the model takes uint64 from 0 to"}, [] {
    ResultOf(*ModelOf(kUint64, 1, {NodeMessage("Identity", {"x0"}, {"y"})}), {at::tensor({int64_t{-1}})});
  });
}

// ------------------------------------------------------------------------------------------------- casts and choices

TEST(UnsignedCasts, AreByTheLowestBits) {
  const auto cast = [](int32_t from, int64_t to, const Tensor& x) {
    return ResultOf(*ModelOf(from, 1, {CastTo("x0", "y", to)}), {x});
  };
  const std::vector<uint16_t> few{0, 300, 40000, 65535};
  const std::vector<uint32_t> many{0, 70000, 3000000000, 4294967295};
  EXPECT_TRUE(at::equal(cast(kUint16, kFloat, Wide(few)), at::tensor({0.0F, 300.0F, 40000.0F, 65535.0F})));
  EXPECT_TRUE(at::equal(cast(kUint16, kInt16, Wide(few)), at::tensor({0, 300, 40000 - 65536, -1}).to(at::kShort)));
  EXPECT_TRUE(at::equal(cast(kUint16, kUint8, Wide(few)), at::tensor({0, 300 - 256, 40000 % 256, 255}).to(at::kByte)));
  EXPECT_TRUE(at::equal(cast(kUint16, kUint64, Wide(few)), at::tensor({0, 300, 40000, 65535}, at::kLong)));
  EXPECT_TRUE(at::equal(cast(kUint32, kUint16, Wide(many)),
                        Wide<uint16_t>({0, 70000 - 65536, static_cast<uint16_t>(3000000000), 65535})));
  EXPECT_TRUE(at::equal(
      cast(kUint32, kInt32, Wide(many)),
      at::tensor({int64_t{0}, int64_t{70000}, int64_t{3000000000} - (int64_t{1} << 32), int64_t{-1}}).to(at::kInt)));
  EXPECT_TRUE(at::equal(cast(kUint32, kBool, Wide(many)), Truths({0, 1, 1, 1})));
  const Tensor with_sign = at::tensor({-1, -70000, 5}, at::kInt);
  EXPECT_TRUE(at::equal(cast(kInt32, kUint16, with_sign), Wide<uint16_t>({65535, static_cast<uint16_t>(-70000), 5})));
  EXPECT_TRUE(
      at::equal(cast(kInt32, kUint32, with_sign), Wide<uint32_t>({4294967295, static_cast<uint32_t>(-70000), 5})));
  EXPECT_TRUE(at::equal(cast(kBool, kUint16, Truths({0, 1})), Wide<uint16_t>({0, 1})));
  ExpectError(absl::StatusCode::kUnimplemented, {"gives a uint64 above"}, [&] { cast(kInt32, kUint64, with_sign); });
}

// A float beyond the range is refused, as for other types: processors differ.
TEST(UnsignedCasts, OfFloatsHaveToFit) {
  const auto cast = [](int64_t to, const Tensor& x) {
    return ResultOf(*ModelOf(kFloat, 1, {CastTo("x0", "y", to)}), {x});
  };
  EXPECT_TRUE(at::equal(cast(kUint16, at::tensor({0.9F, 65535.0F, -0.5F})), Wide<uint16_t>({0, 65535, 0})));
  EXPECT_TRUE(at::equal(cast(kUint32, at::tensor({4294967040.0F})), Wide<uint32_t>({4294967040})));
  const std::vector<std::pair<int64_t, float>> beyond{
      {kUint16, 65536.0F}, {kUint16, -1.0F}, {kUint32, 0x1p32F}, {kUint64, 0x1p63F}, {kUint64, NAN}};
  for (const auto& [type, number] : beyond) {
    ExpectError(absl::StatusCode::kInvalidArgument, {"to uint", ", which does not hold it"},
                [&, to = type, x = number] {
                  cast(to, at::tensor({1.0F, x}));
                });
  }
}

TEST(UnsignedCasts, AreLikeAnotherValue) {
  const auto model =
      ModelOf(kInt64, 1, {NodeMessage("CastLike", {"x0", "like"}, {"q"}), NodeMessage("Add", {"q", "q"}, {"y"})},
              {Constant<uint16_t>("like", {1}, {7})});
  EXPECT_TRUE(
      at::equal(ResultOf(*model, {at::tensor({-1, 40000}, at::kLong)}), Wide<uint16_t>({65534, 80000 - 65536})));
}

TEST(UnsignedCasts, OfBitsReadThem) {
  const auto cast = [](int32_t from, int64_t to, const Tensor& x) {
    return ResultOf(*ModelOf(from, 1, {With(NodeMessage("BitCast", {"x0"}, {"y"}), {IntAttribute("to", to)})}), {x});
  };
  EXPECT_TRUE(at::equal(cast(kUint16, kInt16, Wide<uint16_t>({1, 65535})), at::tensor({1, -1}).to(at::kShort)));
  EXPECT_TRUE(at::equal(cast(kInt16, kUint16, at::tensor({1, -1}).to(at::kShort)), Wide<uint16_t>({1, 65535})));
  EXPECT_TRUE(at::equal(cast(kUint32, kFloat, Wide<uint32_t>({0x3f800000, 0xbf800000})), at::tensor({1.0F, -1.0F})));
  EXPECT_TRUE(at::equal(cast(kFloat, kUint32, at::tensor({1.0F, -1.0F})), Wide<uint32_t>({0x3f800000, 0xbf800000})));
  ExpectError(absl::StatusCode::kInvalidArgument, {"different numbers of bits"},
              [&] { cast(kUint16, kInt32, Wide<uint16_t>({1})); });
}

// Moved elements keep their type: arithmetic behind the move wraps by it.
TEST(UnsignedChoices, KeepTheirType) {
  const std::vector<uint32_t> x{5, 4294967295, 0, 9};
  const auto doubled = [&](std::vector<MessageWriter> nodes, std::vector<MessageWriter> more = {}) {
    nodes.push_back(NodeMessage("Add", {"q", "q"}, {"y"}));
    more.push_back(IntegerTensor("places", {2}, {1, 3}));
    more.push_back(IntegerTensor("count", {1}, {2}));
    more.push_back(IntegerTensor("square", {2}, {2, 2}));
    more.push_back(TensorMessage("mask", kBool, {4}).PackedIntegers(5, {0, 1, 0, 1}));
    return ResultOf(*ModelOf(kUint32, 1, nodes, more), {Wide(x)});
  };
  EXPECT_TRUE(at::equal(doubled({NodeMessage("Gather", {"x0", "places"}, {"q"})}), Wide<uint32_t>({4294967294, 18})));
  EXPECT_TRUE(
      at::equal(doubled({NodeMessage("TopK", {"x0", "count"}, {"q", "at"})}), Wide<uint32_t>({4294967294, 18})));
  EXPECT_TRUE(at::equal(doubled({NodeMessage("Reshape", {"x0", "square"}, {"s"}),
                                 With(NodeMessage("Split", {"s"}, {"p", "q"}), {IntAttribute("num_outputs", 2)})}),
                        Wide<uint32_t>({0, 18}).reshape({1, 2})));
  EXPECT_TRUE(
      at::equal(doubled({NodeMessage("Where", {"mask", "x0", "zero"}, {"q"})}, {Constant<uint32_t>("zero", {1}, {0})}),
                Wide<uint32_t>({0, 4294967294, 0, 18})));
  EXPECT_TRUE(at::equal(
      doubled({NodeMessage("Clip", {"x0", "", "most"}, {"q"})}, {Constant<uint32_t>("most", {}, {4294967295})}),
      Wide<uint32_t>({10, 4294967294, 0, 18})));
  EXPECT_TRUE(at::equal(
      doubled({With(
          NodeMessage("ConstantOfShape", {"count"}, {"q"}),
          {MessageWriter().Bytes(1, "value").Message(5, Constant<uint32_t>("", {1}, {4294967295})).Integer(20, 4)})}),
      Wide<uint32_t>({4294967294, 4294967294})));
}

TEST(UnsignedChoices, PlacesAreIntegersOfTheirOwn) {
  const auto model = ModelOf(kUint32, 1,
                             {With(NodeMessage("ArgMax", {"x0"}, {"at"}), {IntAttribute("keepdims", 0)}),
                              NodeMessage("Sub", {"at", "nine"}, {"y"})},
                             {IntegerTensor("nine", {}, {9})});
  EXPECT_EQ(ResultOf(*model, {Wide<uint32_t>({5, 8, 7})}).item<int64_t>(), 1 - 9);
}

TEST(UnsignedChoices, ComparisonsAndPowersReadThem) {
  const std::vector<uint64_t> a{1, 5, uint64_t{1} << 40}, b{2, 5, 7};
  const auto node = [](const std::string& op) { return NodeMessage(op, {"x0", "x1"}, {"y"}); };
  ExpectOfTwo(node("Equal"), a, b, Truths({0, 1, 0}));
  ExpectOfTwo(node("Less"), a, b, Truths({1, 0, 0}));
  ExpectOfTwo(node("LessOrEqual"), a, b, Truths({1, 1, 0}));
  ExpectOfTwo(node("Greater"), a, b, Truths({0, 0, 1}));
  ExpectOfTwo(node("GreaterOrEqual"), a, b, Truths({0, 1, 1}));
  const auto power =
      ModelOf(kUint32, 1, {NodeMessage("Pow", {"base", "x0"}, {"y"})}, {FloatTensor("base", {3}, {1, 2, 3})});
  EXPECT_TRUE(at::allclose(ResultOf(*power, {Wide<uint32_t>({4, 5, 6})}), at::tensor({1.0F, 32.0F, 729.0F})));
}

// A body of a loop gets and gives rows with their type, also where they are constants.
TEST(UnsignedChoices, RowsOfAScanKeepTheirType) {
  GraphParts body;
  body.nodes = {NodeMessage("Add", {"row", "row"}, {"twice"})};
  body.inputs = {MessageWriter().Bytes(1, "row")};
  body.outputs = {MessageWriter().Bytes(1, "twice")};
  const MessageWriter scan = With(NodeMessage("Scan", {"rows"}, {"y"}),
                                  {GraphAttribute("body", GraphMessage(body)), IntAttribute("num_scan_inputs", 1)});
  const std::vector<uint16_t> rows{1, 40000};
  const Tensor expected = Wide<uint16_t>({2, 80000 - 65536});
  EXPECT_TRUE(at::equal(ResultOf(*ModelOf(kUint16, 1, {NodeMessage("Identity", {"x0"}, {"rows"}), scan}), {Wide(rows)}),
                        expected));
  EXPECT_TRUE(at::equal(ResultOf(*ModelOf(kUint16, 1, {scan}, {Constant("rows", {2}, rows)}), {Wide(rows)}), expected));
}

TEST(UnsignedChoices, SequencesKeepTheirType) {
  const auto model = ModelOf(kUint16, 1,
                             {NodeMessage("SplitToSequence", {"x0"}, {"parts"}),
                              With(NodeMessage("ConcatFromSequence", {"parts"}, {"q"}), {IntAttribute("axis", 0)}),
                              NodeMessage("Add", {"q", "q"}, {"y"})});
  EXPECT_TRUE(at::equal(ResultOf(*model, {Wide<uint16_t>({40000, 3})}), Wide<uint16_t>({80000 - 65536, 6})));
}

TEST(UnsignedChoices, OtherOperatorsRefuseThem) {
  for (const char* op : {"Neg", "ReduceSum", "Abs", "Softmax"}) {
    ExpectError(
        absl::StatusCode::kUnimplemented,
        {std::string("(") + op + ")", "computes with integers of type uint16, which stand in a wider type here"}, [&] {
          ResultOf(*ModelOf(kUint16, 1, {NodeMessage(op, {"x0"}, {"y"})}), {Wide<uint16_t>({1, 2})});
        });
  }
  ExpectError(absl::StatusCode::kInvalidArgument, {"integers of different types"}, [] {
    ResultOf(*ModelOf(kUint16, 1, {NodeMessage("Add", {"x0", "c"}, {"y"})}, {IntegerTensor("c", {1}, {1})}),
             {Wide<uint16_t>({1, 2})});
  });
}

}  // namespace
}  // namespace addend::onnx

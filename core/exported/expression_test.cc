// Numbers as Python computes them, and expressions of them.
#include "core/exported/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/exported/numbers.h"

namespace addend::exported {
namespace {

using c10::IValue;
using testing::ElementsAre;

IValue Compute(const std::string& target, const std::vector<IValue>& arguments) {
  return FindNumberFunction(target)(arguments);
}

TEST(Numbers, DivideAsPythonDoes) {
  EXPECT_EQ(Compute("_operator.floordiv", {int64_t{-7}, int64_t{2}}).toInt(), -4);
  EXPECT_EQ(Compute("_operator.mod", {int64_t{-7}, int64_t{2}}).toInt(), 1);
  EXPECT_EQ(Compute("_operator.mod", {int64_t{7}, int64_t{-2}}).toInt(), -1);
  EXPECT_EQ(Compute("_operator.truediv", {int64_t{7}, int64_t{2}}).toDouble(), 3.5);
  EXPECT_EQ(Compute("_operator.floordiv", {7.5, int64_t{2}}).toDouble(), 3.0);
  EXPECT_THROW(Compute("_operator.floordiv", {int64_t{1}, int64_t{0}}), Error);
  EXPECT_THROW(Compute("_operator.mod", {int64_t{1}, int64_t{0}}), Error);
  EXPECT_THROW(Compute("_operator.truediv", {1.0, 0.0}), Error);
  // Results of Python for 1.0 // 0.1, -1.0 // 0.1, 1.0 // -0.1 and 7.5 // -2.
  EXPECT_EQ(Compute("_operator.floordiv", {1.0, 0.1}).toDouble(), 9.0);
  EXPECT_EQ(Compute("_operator.floordiv", {-1.0, 0.1}).toDouble(), -10.0);
  EXPECT_EQ(Compute("_operator.floordiv", {1.0, -0.1}).toDouble(), -10.0);
  EXPECT_EQ(Compute("_operator.floordiv", {7.5, int64_t{-2}}).toDouble(), -4.0);
}

TEST(Numbers, TakeNoMoreArgumentsThanTheyKnow) {
  EXPECT_EQ(Compute("builtins.round", {2.5}).toInt(), 2);
  EXPECT_THROW(Compute("builtins.round", {2.345, int64_t{2}}), Error);
  EXPECT_THROW(Compute("math.log", {8.0, int64_t{2}}), Error);
}

TEST(Numbers, KeepTheirKinds) {
  EXPECT_EQ(Compute("_operator.add", {true, int64_t{2}}).toInt(), 3);
  EXPECT_EQ(Compute("_operator.mul", {0.5, int64_t{4}}).toDouble(), 2.0);
  EXPECT_EQ(Compute("_operator.pow", {int64_t{2}, int64_t{10}}).toInt(), 1024);
  EXPECT_EQ(Compute("_operator.pow", {int64_t{2}, int64_t{-1}}).toDouble(), 0.5);
  EXPECT_TRUE(Compute("_operator.and_", {true, true}).isBool());
  EXPECT_EQ(Compute("torch.sym_max", {int64_t{2}, int64_t{5}}).toInt(), 5);
  EXPECT_EQ(Compute("torch.sym_min", {int64_t{2}, 5.0}).toDouble(), 2.0);
  EXPECT_EQ(Compute("math.ceil", {2.1}).toInt(), 3);
  EXPECT_EQ(Compute("math.trunc", {-2.9}).toInt(), -2);
  EXPECT_EQ(Compute("torch.sym_sum", {c10::List<int64_t>({1, 2, 3})}).toInt(), 6);
  EXPECT_EQ(Compute("torch.sym_ite", {false, int64_t{1}, int64_t{2}}).toInt(), 2);
  EXPECT_TRUE(Compute("torch.sym_not", {false}).toBool());
  EXPECT_EQ(Compute("torch._sym_sqrt", {int64_t{16}}).toDouble(), 4.0);
  EXPECT_EQ(FindNumberFunction("os.system"), nullptr);
}

TEST(Numbers, DoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(Compute("_operator.add", {most, int64_t{1}}), Error);
  EXPECT_THROW(Compute("_operator.mul", {most, int64_t{2}}), Error);
  EXPECT_THROW(Compute("_operator.pow", {int64_t{10}, int64_t{40}}), Error);
  EXPECT_THROW(Compute("_operator.neg", {std::numeric_limits<int64_t>::min()}), Error);
  EXPECT_THROW(Compute("_operator.floordiv", {std::numeric_limits<int64_t>::min(), int64_t{-1}}), Error);
  EXPECT_THROW(Compute("math.ceil", {1e30}), Error);
  EXPECT_THROW(Compute("_operator.lshift", {int64_t{1}, int64_t{70}}), Error);
  EXPECT_THROW(Compute("_operator.add", {int64_t{1}}), Error);
  EXPECT_THROW(Compute("_operator.add", {int64_t{1}, IValue("a")}), Error);
  EXPECT_THROW(Compute("math.sqrt", {-1.0}), Error);
}

std::optional<IValue> Evaluated(const std::string& text) {
  const auto expression = Expression::Parse(text);
  if (!expression) return std::nullopt;
  const std::map<std::string, int64_t> known = {
      {"s0", 6}, {"s1", 4}, {"L['x'].size()[1]", 4}, {"L['x'][0].shape[0]", 3}};
  return expression->Evaluate([&](const std::string& name) -> std::optional<IValue> {
    const auto found = known.find(name);
    if (found == known.end()) return std::nullopt;
    return IValue(found->second);
  });
}

TEST(Expression, ReadsWhatSympyWrites) {
  EXPECT_EQ(Evaluated("Symbol('s0', positive=True, integer=True)")->toInt(), 6);
  EXPECT_EQ(Evaluated("Add(Symbol('s0', integer=True), Integer(-1))")->toInt(), 5);
  EXPECT_EQ(Evaluated("Mul(Integer(2), Symbol('s0'), Symbol('s1'))")->toInt(), 48);
  EXPECT_EQ(Evaluated("FloorDiv(Symbol('s0'), Integer(4))")->toInt(), 1);
  EXPECT_EQ(Evaluated("Max(Integer(1), Symbol('s1'))")->toInt(), 4);
  EXPECT_EQ(Evaluated("Pow(Symbol('s1'), Integer(2))")->toInt(), 16);
  EXPECT_THAT(Expression::Parse("Add(Symbol('s0'), Symbol('u1'))")->Names(), ElementsAre("s0", "u1"));
}

TEST(Expression, ReadsGuards) {
  EXPECT_TRUE(Evaluated("L['x'].size()[1] >= 2 and not s0 == 5")->toBool());
  EXPECT_TRUE(Evaluated("2 <= s1 < 5")->toBool());
  EXPECT_FALSE(Evaluated("2 <= s1 < 4")->toBool());
  EXPECT_TRUE(Evaluated("(s0 * L['x'][0].shape[0]) % 9 == 0 or False")->toBool());
  EXPECT_EQ(Evaluated("-s0 ** 2 + 1.5")->toDouble(), -34.5);
  EXPECT_EQ(Evaluated("s0 // 4 - 7 / 2")->toDouble(), -2.5);
}

TEST(Expression, LeavesTheRest) {
  EXPECT_FALSE(Evaluated("s7 + 1"));
  EXPECT_FALSE(Expression::Parse("isinstance(x, list)"));
  EXPECT_FALSE(Expression::Parse("x[1:2] == 3"));
  EXPECT_FALSE(Expression::Parse("1 +"));
  EXPECT_FALSE(Expression::Parse(""));
  EXPECT_FALSE(Expression::Parse("'abc"));
  EXPECT_FALSE(Expression::Parse(std::string(100000, '(')));
  EXPECT_FALSE(Expression::Parse(std::string(100000, '-') + "1"));
  EXPECT_FALSE(Expression::Parse("99999999999999999999999"));
}

}  // namespace
}  // namespace addend::exported

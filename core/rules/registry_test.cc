#include "core/rules/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace addend {
namespace {

using testing::ElementsAre;

Rule Named(const std::string& name, Kind kind = Kind::kLinear) { return {name, kind, nullptr}; }

std::vector<std::string> NamesOf(const Registry& registry) {
  std::vector<std::string> names;
  for (const Rule* rule : registry.All()) names.push_back(rule->name);
  return names;
}

TEST(RegistryTest, FindsTheOverloadBeforeTheOperator) {
  Registry registry;
  registry.Register(Named("aten::max", Kind::kSelection));
  registry.Register(Named("aten::max.dim", Kind::kOpaque));
  const Rule* overload = registry.Find("aten::max", "aten::max.dim");
  ASSERT_NE(overload, nullptr);
  EXPECT_EQ(overload->name, "aten::max.dim");
  const Rule* other = registry.Find("aten::max", "aten::max.other");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->name, "aten::max");
  EXPECT_EQ(registry.Find("aten::max", "aten::max"), other);
}

TEST(RegistryTest, FindsNothingForOtherNames) {
  Registry registry;
  EXPECT_EQ(registry.Find("aten::relu", "aten::relu"), nullptr);
  registry.Register(Named("aten::pow.Tensor_Scalar"));
  EXPECT_EQ(registry.Find("aten::pow", "aten::pow.Tensor_Tensor"), nullptr);
  EXPECT_EQ(registry.Find("aten::po", "aten::po"), nullptr);
  EXPECT_EQ(registry.Find("", ""), nullptr);
}

TEST(RegistryTest, RegisterReplacesARuleOfTheSameName) {
  Registry registry;
  registry.Register(Named("aten::relu", Kind::kPointwise));
  registry.Register(Named("aten::relu", Kind::kOpaque));
  EXPECT_THAT(NamesOf(registry), ElementsAre("aten::relu"));
  EXPECT_EQ(registry.Find("aten::relu", "aten::relu")->kind, Kind::kOpaque);
}

TEST(RegistryTest, AllIsInTheOrderOfNames) {
  Registry registry;
  for (const char* name : {"mine::b", "aten::max.dim", "aten::relu", "aten::max"}) registry.Register(Named(name));
  EXPECT_THAT(NamesOf(registry), ElementsAre("aten::max", "aten::max.dim", "aten::relu", "mine::b"));
}

TEST(RegistryTest, ACopyLeavesTheDefaultAlone) {
  const size_t before = Registry::Default().All().size();
  Registry mine = Registry::Default();
  mine.Register(Named("mine::operator"));
  mine.Register(Named("aten::relu", Kind::kOpaque));
  EXPECT_EQ(mine.All().size(), before + 1);
  EXPECT_EQ(Registry::Default().All().size(), before);
  EXPECT_EQ(Registry::Default().Find("mine::operator", "mine::operator"), nullptr);
  EXPECT_EQ(Registry::Default().Find("aten::relu", "aten::relu")->kind, Kind::kPointwise);
}

TEST(RegistryTest, DefaultRulesAreComplete) {
  const auto rules = Registry::Default().All();
  EXPECT_GT(rules.size(), 100u);
  for (const Rule* rule : rules) {
    EXPECT_TRUE(rule->build) << rule->name;
    const std::string space = rule->name.substr(0, rule->name.find("::"));
    EXPECT_TRUE(space == "aten" || space == "torchvision" || space == "addend") << rule->name;
    // Rules serve the in-place form as well and stand under the plain name.
    EXPECT_NE(rule->name.back(), '_') << rule->name;
  }
  EXPECT_EQ(&Registry::Default(), &Registry::Default());
}

TEST(RegistryTest, MarksSayWhereValuesComeFrom) {
  const auto mark = [](const char* name) { return Registry::Default().Find(name, name)->mark; };
  EXPECT_EQ(mark("aten::softmax"), kFreezeAttention);
  EXPECT_EQ(mark("aten::_softmax"), kFreezeAttention);
  EXPECT_EQ(mark("aten::rsqrt"), kFreezeNormalizer);
  EXPECT_EQ(mark("aten::sqrt"), kFreezeNormalizer);
  EXPECT_EQ(mark("aten::sigmoid"), kFreezeGate);
  EXPECT_EQ(mark("aten::relu"), kFreezeNothing);
  for (const char* name : {"aten::mul", "aten::div", "aten::clone", "aten::native_dropout", "aten::masked_fill"}) {
    EXPECT_TRUE(Registry::Default().Find(name, name)->keeps_marks) << name;
  }
}

TEST(KindTest, NamesAreDistinct) {
  std::vector<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(Kind::kAbsorbed); ++kind) {
    names.push_back(KindName(static_cast<Kind>(kind)));
  }
  EXPECT_THAT(names, testing::Each(testing::Ne("?")));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace addend

#include "core/program/module_paths.h"

#include <gtest/gtest.h>

namespace addend {
namespace {

TEST(ResolveModulePath, FindsTheModuleThatTheScriptAbbreviates) {
  const std::vector<std::string> known = {"",         "head",        "head.10",   "layers", "layers.0", "layers.0.fc",
                                          "layers.1", "layers.1.fc", "xlayers.20"};
  EXPECT_EQ(ResolveModulePath("0.fc", "", known), "layers.0.fc");
  EXPECT_EQ(ResolveModulePath("0", "", known), "layers.0");
  EXPECT_EQ(ResolveModulePath("10", "", known), "head.10");
  EXPECT_EQ(ResolveModulePath("layers.1", "", known), "layers.1");
  EXPECT_EQ(ResolveModulePath("head", "", known), "head");
  EXPECT_EQ(ResolveModulePath("", "", known), "");
}

TEST(ResolveModulePath, LeavesWhatSeveralModulesCouldBe) {
  const std::vector<std::string> known = {"a.fc", "b.fc", "c.a.fc"};
  EXPECT_EQ(ResolveModulePath("fc", "", known), "fc");
  EXPECT_EQ(ResolveModulePath("a.fc", "", known), "a.fc");
  EXPECT_EQ(ResolveModulePath("d.fc", "", known), "d.fc");
  // A parameter settles it.
  EXPECT_EQ(ResolveModulePath("fc", "b.fc.weight", known), "b.fc");
  EXPECT_EQ(ResolveModulePath("fc", "c.a.fc.bias", known), "c.a.fc");
  EXPECT_EQ(ResolveModulePath("", "c.a.fc.bias", known), "c.a.fc");
}

// Its last name is the module's: where that comes earlier too, the path is of the earlier one.
TEST(ResolveModulePath, EndsWhereTheScriptEnds) {
  EXPECT_EQ(ResolveModulePath("0", "", {"0.0", "1.0"}), "1.0");
  EXPECT_EQ(ResolveModulePath("0.1", "", {"kids.0.kids.1.kids.1", "kids.0.kids.0.kids.1"}), "kids.0.kids.0.kids.1");
}

}  // namespace
}  // namespace addend

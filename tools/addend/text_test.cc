#include "tools/addend/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace addend::cli {
namespace {

constexpr char kUmlaut[] = "gr\u00fcn";   // 4 columns, 5 bytes
constexpr char kHan[] = "\u6f22\u5b57";   // 4 columns, 2 characters
constexpr char kCombining[] = "e\u0301";  // 1 column, 2 characters

TEST(TextTest, WidthCountsColumns) {
  EXPECT_EQ(DisplayWidth(""), 0);
  EXPECT_EQ(DisplayWidth("green"), 5);
  EXPECT_EQ(DisplayWidth(kUmlaut), 4);
  EXPECT_EQ(DisplayWidth(kHan), 4);
  EXPECT_EQ(DisplayWidth(kCombining), 1);
}

TEST(TextTest, CleanLeavesOneLineOfUtf8) {
  EXPECT_EQ(Clean(kUmlaut), kUmlaut);
  EXPECT_EQ(Clean("a\nb\tc\x1b[31m"), "a b c [31m");
  EXPECT_EQ(Clean("a\u0085b\u2028c"), "a b c");
  // A byte that begins nothing, a sequence that breaks off, an overlong form, a surrogate.
  EXPECT_EQ(Clean("\xff"), "?");
  EXPECT_EQ(Clean("x\xc3"), "x?");
  EXPECT_EQ(Clean("\xc0\xaf"), "??");
  EXPECT_EQ(Clean("\xed\xa0\x80"), "???");
}

TEST(TextTest, CutsToWidthAtEitherEnd) {
  const Terminal ascii = {80, false};
  const Terminal utf8 = {80, true};
  EXPECT_EQ(CutEnd("abcdef", 6, ascii), "abcdef");
  EXPECT_EQ(CutEnd("abcdefg", 6, ascii), "abc...");
  EXPECT_EQ(CutEnd("abcdefg", 6, utf8), "abcde\u2026");
  EXPECT_EQ(CutStart("abcdefg", 6, ascii), "...efg");
  EXPECT_EQ(CutStart("abcdefg", 6, utf8), "\u2026cdefg");
  // Never through a character, and a wide one that does not fit is left out.
  EXPECT_EQ(CutEnd(std::string(kHan) + kHan, 6, utf8), std::string(kHan) + "\u2026");
  EXPECT_EQ(CutEnd(std::string(kHan) + kHan, 7, ascii), std::string(kHan) + "...");
  EXPECT_EQ(CutEnd(std::string(kUmlaut) + kUmlaut, 6, ascii), "gr\u00fc...");
}

TEST(TextTest, PadsByColumns) {
  EXPECT_EQ(PadRight(kUmlaut, 6), std::string(kUmlaut) + "  ");
  EXPECT_EQ(PadLeft(kHan, 6), std::string("  ") + kHan);
  EXPECT_EQ(PadLeft("abc", 2), "abc");
}

// The first of the three variables that is set decides, as in POSIX.
TEST(TextTest, Utf8FollowsTheLocale) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
  EXPECT_FALSE(StdoutTerminal().utf8);
  setenv("LANG", "de_DE.UTF-8", 1);
  EXPECT_TRUE(StdoutTerminal().utf8);
  setenv("LC_CTYPE", "C.utf8", 1);
  EXPECT_TRUE(StdoutTerminal().utf8);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(StdoutTerminal().utf8);
}

}  // namespace
}  // namespace addend::cli

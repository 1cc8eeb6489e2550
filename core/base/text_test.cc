#include "core/base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace addend {
namespace {

TEST(OneLine, KeepsWhatCanBeSeen) {
  EXPECT_EQ(OneLine("x = self.fc(\"a\\b\")  # <b>&amp;</b>"), "x = self.fc(\"a\\b\")  # <b>&amp;</b>");
  const std::string words = "\xc3\xa9\xe2\x94\x82\xf0\x9f\x99\x82";
  EXPECT_EQ(OneLine(words), words);
  EXPECT_EQ(OneLine(""), "");
}

TEST(OneLine, NothingMovesTheCursorOrChangesColours) {
  EXPECT_EQ(OneLine("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(OneLine("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(OneLine(std::string("a\0b", 3)), "a\\x00b");
  // The one-byte form of the escape sequence's start, as the code point U+009B.
  EXPECT_EQ(OneLine("\xc2\x9b"), "\\x9b");
}

TEST(OneLine, MarksOfDirectionShow) {
  EXPECT_EQ(OneLine("a\xe2\x80\xae"
                    "b\xe2\x81\xa6"
                    "c\xe2\x80\xa8"),
            "a\\u202eb\\u2066c\\u2028");
}

TEST(OneLine, BytesThatAreNoUtf8Show) {
  EXPECT_EQ(OneLine("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(OneLine("\xe2\x94"), "\\xe2\\x94");                    // cut off
  EXPECT_EQ(OneLine("\xc0\xaf"), "\\xc0\\xaf");                    // '/' in two bytes
  EXPECT_EQ(OneLine("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // in three
  EXPECT_EQ(OneLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a surrogate pair
  EXPECT_EQ(OneLine("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond the last code point
}

TEST(Shortened, KeepsBothEndsAndCountsWhatIsLeftOut) {
  EXPECT_EQ(Shortened("short", 100), "short");
  const std::string long_text = "begin" + std::string(50000000, '9') + "end";
  const std::string shown = Shortened(long_text, 200);
  EXPECT_LE(shown.size(), 200u);
  EXPECT_EQ(shown.substr(0, 5), "begin");
  EXPECT_EQ(shown.substr(shown.size() - 3), "end");
  const size_t kept = shown.size() - shown.find(") ... ") - 6 + shown.find(" ... (");
  const std::string mark = " ... (" + std::to_string(long_text.size() - kept) + " bytes left out) ... ";
  EXPECT_NE(shown.find(mark), std::string::npos);
}

TEST(Shortened, CutsThroughNoCharacter) {
  for (const std::string character : {"\xc3\xa9", "\xe2\x94\x82", "\xf0\x9f\x99\x82"}) {
    for (size_t before = 0; before < 4; ++before) {
      std::string text(before, 'x');
      while (text.size() < 1000) text += character;
      const std::string shown = Shortened(text, 100);
      EXPECT_EQ(OneLine(shown), shown);
      EXPECT_LE(shown.size(), 100u);
    }
  }
}

TEST(Quoted, IsOneLineOfBoundedLength) {
  EXPECT_EQ(Quoted("a b"), "a b");
  EXPECT_EQ(Quoted(std::string("2\0\n", 3)), "2\\x00\\n");
  EXPECT_LE(Quoted(std::string(1000000, '\0')).size(), 2 * kMostQuoted);
}

TEST(ShellWord, IsReadAgainByAShell) {
  EXPECT_EQ(ShellWord("/a/b-c_1.json"), "/a/b-c_1.json");
  EXPECT_EQ(ShellWord("my log.jsonl"), "'my log.jsonl'");
  EXPECT_EQ(ShellWord("it's; $x"), "'it'\\''s; $x'");
  EXPECT_EQ(ShellWord("\xc3\xa4"), "'\xc3\xa4'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(Listed, TellsHowManyMoreThereAre) {
  EXPECT_EQ(Listed({}), "");
  EXPECT_EQ(Listed({"a", "b"}), "a, b");
  const std::string list = Listed(std::vector<std::string>(100000, "name"));
  EXPECT_LT(list.size(), 2000u);
  EXPECT_EQ(list.substr(0, 12), "name, name, ");
  EXPECT_EQ(list.substr(list.size() - 5), " more");
  EXPECT_LT(Listed({std::string(1000000, 'x'), "b"}).size(), 2000u);
}

}  // namespace
}  // namespace addend

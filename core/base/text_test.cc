#include "core/base/text.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace addend

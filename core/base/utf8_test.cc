#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace addend {
namespace {

TEST(Utf8, CharactersStayAndOtherBytesAreReplaced) {
  const std::string words = "K\xc3\xb6ln \xe2\x94\x82 \xf0\x9f\x99\x82";
  EXPECT_TRUE(IsUtf8(words));
  EXPECT_EQ(ToUtf8(words), words);
  const std::string unknown = "\xef\xbf\xbd";
  EXPECT_EQ(ToUtf8(""), "");
  EXPECT_EQ(ToUtf8("M\xfcnchen"), "M" + unknown + "nchen");
  EXPECT_EQ(ToUtf8("\xe2\x94"), unknown + unknown);                // cut off
  EXPECT_EQ(ToUtf8("\xc0\xaf."), unknown + unknown + ".");         // longer than need be
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), unknown + unknown + unknown);  // half of a surrogate pair
  for (const char* text : {"M\xfcnchen", "\xe2\x94", "\xc0\xaf.", "\xed\xa0\x80"}) {
    EXPECT_FALSE(IsUtf8(text));
    EXPECT_TRUE(IsUtf8(ToUtf8(text)));
  }
}

}  // namespace
}  // namespace addend

#include "core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"

namespace addend {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Dump, KeepsTheOrderOfKeysAndIsUtf8) {
  const Json record = {{"z", 1}, {"a", "\xff"}, {"n", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_EQ(Dump(record), "{\"z\":1,\"a\":\"\xef\xbf\xbd\",\"n\":null}");
  EXPECT_EQ(Dump({{"a", 1}}, 1), "{\n \"a\": 1\n}");
}

TEST(FillPage, NoTextEndsTheScriptElement) {
  const std::string page = "<script type=\"application/json\">__ADDEND_DATA__</script>";
  const std::string filled = FillPage(page, {{"name", "</script><script>alert(1)</script><!--"}});
  EXPECT_THAT(filled, HasSubstr("\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\\u003c!--"));
  EXPECT_EQ(filled.find("</script>"), filled.rfind("</script>"));
  EXPECT_THAT(filled, Not(HasSubstr("__ADDEND_DATA__")));
}

TEST(FillPage, TheMarkerInTheDataStays) {
  EXPECT_EQ(FillPage("<p>__ADDEND_DATA__</p>", "__ADDEND_DATA__"), "<p>\"__ADDEND_DATA__\"</p>");
}

TEST(FillPage, RefusesAPageWithoutMarker) { EXPECT_THROW(FillPage("<p></p>", Json::object()), Error); }

}  // namespace
}  // namespace addend

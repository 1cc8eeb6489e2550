#include "core/audit/canonical_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::HasSubstr;

// The numbers of RFC 8785, appendix B, by the bits of the double.
TEST(CanonicalNumberTest, IsThatOfTheRfc) {
  const std::pair<uint64_t, const char*> published[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : published) {
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    EXPECT_EQ(CanonicalNumber(number), text);
  }
}

TEST(CanonicalNumberTest, ReadsBackAsTheSameDouble) {
  std::mt19937_64 random(7);
  for (int k = 0; k < 200000; ++k) {
    const uint64_t bits = random();
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number)) continue;
    const std::string text = CanonicalNumber(number);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
    // And through the parser that logs are read with.
    ASSERT_EQ(ReadJson(text, "it").get<double>(), number) << text;
    ASSERT_EQ(CanonicalJson(ReadJson(text, "it")), text);
  }
}

TEST(CanonicalNumberTest, ReadsBackWhereParsersSeeIntegers) {
  std::mt19937_64 random(8);
  for (int k = 0; k < 20000; ++k) {
    // Whole numbers on both sides of 2^53, 2^63, 2^64 and 1e21.
    const double number = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 20));
    for (const double signed_number : {number, -number}) {
      const std::string text = CanonicalNumber(signed_number);
      ASSERT_EQ(CanonicalJson(ReadJson(text, "it")), text);
      ASSERT_EQ(ReadJson(text, "it").get<double>(), signed_number) << text;
    }
  }
}

TEST(CanonicalJsonTest, HasOneTextForAValue) {
  // The example of RFC 8785, section 3.2.3: keys by their UTF-16 code units.
  const Json keys = Json::parse(
      "{\"\\u20ac\": \"Euro Sign\", \"\\r\": \"Carriage Return\", \"\\ufb33\": \"Hebrew Letter Dalet With Dagesh\", "
      "\"1\": \"One\", \"\\ud83d\\ude00\": \"Emoji: Grinning Face\", \"\\u0080\": \"Control\", "
      "\"\\u00f6\": \"Latin Small Letter O With Diaeresis\"}");
  EXPECT_EQ(
      CanonicalJson(keys),
      "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\",\"\xC3\xB6\":\"Latin Small Letter O With "
      "Diaeresis\",\"\xE2\x82\xAC\":\"Euro Sign\",\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\",\"\xEF\xAC\xB3\":"
      "\"Hebrew Letter Dalet With Dagesh\"}");
  // The example of section 3.2.2.
  const Json all = Json::parse(
      "{\"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], \"string\": "
      "\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\", \"literals\": [null, true, false]}");
  EXPECT_EQ(
      CanonicalJson(all),
      "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\"string\":\"\xE2\x82"
      "\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
  EXPECT_EQ(CanonicalJson(Json::parse("{ \"b\" : 1.0 , \"a\" : [ ] }")), "{\"a\":[],\"b\":1}");
}

TEST(CanonicalJsonTest, RefusesWhatHasNone) {
  const auto message = [](const Json& value) { return MessageOf([&] { CanonicalJson(value); }); };
  EXPECT_THAT(message(Json("\xC3\x28")), HasSubstr("not UTF-8"));
  EXPECT_THAT(message(Json{{"\xC3\x28", 1}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(message((int64_t{1} << 53) + 1), HasSubstr("2^53"));
  EXPECT_THAT(message(-(int64_t{1} << 53) - 1), HasSubstr("2^53"));
  EXPECT_THAT(message(std::numeric_limits<uint64_t>::max()), HasSubstr("2^53"));
  EXPECT_THAT(message(std::numeric_limits<double>::infinity()), HasSubstr("finite"));
  EXPECT_EQ(CanonicalJson(int64_t{1} << 53), "9007199254740992");
}

TEST(CanonicalJsonTest, RefusesDeepNests) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(CanonicalJson(ReadJson(nested(kMostNested), "it")), nested(kMostNested));
  for (const size_t depth : {size_t{kMostNested} + 2, size_t{1000000}}) {
    EXPECT_THAT(MessageOf([&] { ReadJson(nested(depth), "it"); }), HasSubstr("nested more than 64"));
  }
  EXPECT_THAT(MessageOf([&] { ReadJson("{\"a\":1", "it"); }), HasSubstr("it is no JSON"));
}

TEST(ReadJsonTest, RefusesTextsOfWhichAValueWouldLoseSomething) {
  for (const char* lost : {"1234567890123456789012", "18446744073709551616", "-9223372036854775809"}) {
    EXPECT_THAT(MessageOf([&] { ReadJson(absl::StrCat("{\"number\": [", lost, "]}"), "it"); }),
                HasSubstr(absl::StrCat("it holds the integer ", lost, ", which has more digits")));
  }
  EXPECT_THAT(MessageOf([] { ReadJson(R"({"a": 1, "b": {"c": 1, "c": 2}})", "it"); }),
              HasSubstr("it has the key \"c\" twice"));
  // Integers that a number holds, keys of objects side by side, numbers that are no integers.
  for (const char* kept : {"100000000000000000000000", "18446744073709551615", "-9223372036854775808",
                           R"([{"a":1},{"a":2}])", R"({"a":{"a":1}})", "0.1", "12345678901234567.89", "1e300"}) {
    EXPECT_EQ(MessageOf([&] { ReadJson(kept, "it"); }), "(no error)") << kept;
  }
}

TEST(RecordedNumberTest, KeepsWhatIsNotFinite) {
  for (const double number :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0.25}) {
    EXPECT_EQ(NumberOf(RecordedNumber(number)), number);
  }
  EXPECT_TRUE(std::isnan(NumberOf(RecordedNumber(std::nan("")))));
  EXPECT_THAT(MessageOf([] { NumberOf(Json("0.25")); }), HasSubstr("none"));
}

}  // namespace
}  // namespace addend

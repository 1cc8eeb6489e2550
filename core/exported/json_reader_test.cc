#include "core/exported/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace addend::exported {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Function>
auto Read(const std::string& text, Function read) {
  MemoryBudget budget("f", text.size());
  JsonReader json(text, "f: e", &budget);
  auto value = read(json);
  json.End();
  return value;
}

template <typename Function>
std::string Refusal(const std::string& text, Function read) {
  try {
    Read(text, [&](JsonReader& json) {
      read(json);
      return 0;
    });
  } catch (const Error& e) {
    return e.what();
  }
  return "read";
}

std::string Skipped(const std::string& text) {
  return Refusal(text, [](JsonReader& json) { json.Skip(); });
}

double Float(const std::string& text) {
  return Read(text, [](JsonReader& json) { return json.Float(); });
}

std::string String(const std::string& text) {
  return Read(text, [](JsonReader& json) { return json.String(); });
}

TEST(JsonReader, ReadsNumbers) {
  const auto integer = [](const std::string& text) {
    return Read(text, [](JsonReader& json) { return json.Integer(); });
  };
  EXPECT_EQ(integer(" 0 "), 0);
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Float("-0.5e1"), -5);
  EXPECT_EQ(Float("3"), 3);
  EXPECT_EQ(Float("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(Float("1e-400"), 0);
  EXPECT_EQ(Float("0.1"), 0.1);
}

TEST(JsonReader, ReadsWhatIsNoNumberWithAndWithoutQuotes) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* quote : {"", "\""}) {
    const auto quoted = [&](const std::string& word) { return quote + word + quote; };
    EXPECT_EQ(Float(quoted("Infinity")), infinity);
    EXPECT_EQ(Float(quoted("-Infinity")), -infinity);
    EXPECT_TRUE(std::isnan(Float(quoted("NaN"))));
  }
  EXPECT_EQ(Skipped("[NaN, Infinity, -Infinity]"), "read");
  for (const char* text : {"nan", "Nan", "-NaN", "Inf", "+Infinity", "Infinity1", "\"inf\"", "\"1\""}) {
    EXPECT_NE(Refusal(text, [](JsonReader& json) { json.Float(); }), "read") << text;
  }
}

TEST(JsonReader, ReadsStrings) {
  EXPECT_EQ(String(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(String(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(String("\"\xc3\xa9\xf0\x9f\x98\x80\""), "\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(String(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(String("\"" + std::string(1000, 'x') + "\""), std::string(1000, 'x'));
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "tru",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:2}",
                           "{\"a\" 1}",
                           "01",
                           "-",
                           "+1",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "0x1",
                           "--1",
                           "-Inf",
                           "\"",
                           "\"a",
                           "\"\\",
                           "\"\\\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\n\"",
                           "\"\x01\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xe2\x82\"",
                           "\"\xf5\x80\x80\x80\"",
                           "1 2",
                           "[] []",
                           "// x\n1",
                           "'a'",
                           "1e999",
                           "]",
                           "}",
                           ","}) {
    EXPECT_NE(Skipped(text), "read") << text;
  }
  EXPECT_NE(Skipped(std::string("1\0", 2)), "read");
}

TEST(JsonReader, BoundsDepth) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(Skipped(nested(256)), "read");
  EXPECT_THAT(Skipped(nested(257)), HasSubstr("more than 256 levels"));
  EXPECT_THAT(Skipped(std::string(1000000, '[')), HasSubstr("more than 256 levels"));
}

TEST(JsonReader, NamesThePlace) {
  const std::string refusal = Refusal(R"({"a": [0, {"b\n": tru}]})", [](JsonReader& json) {
    json.Object([&](const std::string&) {
      json.Array([&] {
        if (json.Next() == JsonReader::Kind::kNumber) return json.Skip();
        json.Object([&](const std::string&) { json.Bool(); });
      });
    });
  });
  EXPECT_EQ(refusal, R"(f: e: /a/1/b\n (byte 18): is neither true nor false)");
}

TEST(JsonReader, RefusesAKeyTwice) {
  EXPECT_THAT(
      Refusal(R"({"a": 1, "a": 1})", [](JsonReader& json) { json.Object([&](const std::string&) { json.Skip(); }); }),
      HasSubstr("has \"a\" twice"));
}

TEST(JsonReader, UnionsHaveOneKey) {
  const auto read = [](JsonReader& json) { json.Union([&](const std::string&) { json.Skip(); }); };
  EXPECT_EQ(Refusal(R"({"a": 1})", read), "read");
  EXPECT_THAT(Refusal("{}", read), HasSubstr("exactly one key"));
  EXPECT_THAT(Refusal(R"({"a": 1, "b": 2})", read), HasSubstr("exactly one key"));
}

TEST(JsonReader, UnknownFieldsMaySayNothing) {
  const auto read = [](JsonReader& json) { json.SkipUnknown("new"); };
  for (const char* text : {"null", "false", "0", "0.0", "\"\"", "[]", "[ ]", "{}"}) {
    EXPECT_EQ(Refusal(text, read), "read") << text;
  }
  for (const char* text : {"true", "1", "-0.5", "NaN", "\"x\"", "[0]", "{\"a\": 0}"}) {
    EXPECT_THAT(Refusal(text, read), HasSubstr("\"new\" is not known to this version")) << text;
  }
}

TEST(JsonReader, TakesFromTheBudget) {
  const std::string text = "[" + std::string(1000, ' ') + "\"" + std::string(1000, 'x') + "\"]";
  MemoryBudget budget("f", 0);
  const uint64_t before = budget.left();
  JsonReader skipped(text, "f", &budget);
  skipped.Skip();
  EXPECT_EQ(budget.left(), before);
  JsonReader kept(text, "f", &budget);
  kept.Array([&] { kept.String(); });
  EXPECT_LE(budget.left(), before - 1000);
}

}  // namespace
}  // namespace addend::exported

#include "core/program/call_arguments.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/program/program_builder.h"

namespace addend {
namespace {

TEST(PlainText, WritesNumbersAsPythonDoes) {
  const std::vector<std::pair<double, const char*>> cases = {{0.0, "0.0"},
                                                             {-0.0, "-0.0"},
                                                             {1.0, "1.0"},
                                                             {0.1, "0.1"},
                                                             {-2.5, "-2.5"},
                                                             {1e-4, "0.0001"},
                                                             {1e-5, "1e-05"},
                                                             {1.25e-7, "1.25e-07"},
                                                             {123456.0, "123456.0"},
                                                             {1e15, "1000000000000000.0"},
                                                             {1e16, "1e+16"},
                                                             {-3.3895313892515355e+38, "-3.3895313892515355e+38"},
                                                             {1.0 / 3.0, "0.3333333333333333"},
                                                             {5e-324, "5e-324"},
                                                             {1e100, "1e+100"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(PlainText(number), text);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PlainText(std::vector<double>{infinity, -infinity, infinity - infinity}), "[inf, -inf, nan]");
}

TEST(PlainText, WritesEverythingElse) {
  EXPECT_EQ(PlainText(c10::IValue()), "None");
  EXPECT_EQ(PlainText(true), "True");
  EXPECT_EQ(PlainText(std::vector<int64_t>{2, -1}), "[2, -1]");
  EXPECT_EQ(PlainText(c10::complex<double>(1, -2)), "(1-2j)");
  EXPECT_EQ(PlainText(c10::Device("meta")), "meta");
  EXPECT_EQ(PlainText("a\n\x1b[1m"), "a\\n\\x1b[1m");
  EXPECT_EQ(PlainText(c10::ivalue::Tuple::create({c10::IValue(1), c10::IValue(false)})), "(1, False)");
  EXPECT_EQ(PlainText(static_cast<int64_t>(at::kBFloat16), CallArgument::Meaning::kDtype), "torch.bfloat16");
}

TEST(PlainJson, HasAFormForEveryNumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Dump(PlainJson(std::vector<double>{1.5, -infinity})), "[1.5,\"-inf\"]");
  EXPECT_EQ(Dump(PlainJson(c10::IValue())), "null");
  EXPECT_EQ(Dump(PlainJson(c10::complex<double>(1, 2))), "\"(1+2j)\"");
  EXPECT_EQ(Dump(PlainJson(static_cast<int64_t>(at::kHalf), CallArgument::Meaning::kDtype)), "\"float16\"");
  EXPECT_EQ(Dump(PlainJson("</script>\xff")), "\"</script>\xef\xbf\xbd\"");
}

TEST(ArgumentsOf, KnowsWhatIntegersMeanAndWhatHasToBeNamed) {
  ProgramBuilder builder;
  builder.Call("aten::full", "",
               {BuiltArgument::Plain(std::vector<int64_t>{3, 3}), BuiltArgument::Plain(0.5),
                BuiltArgument::Plain(static_cast<int64_t>(at::kBFloat16)), BuiltArgument::Plain(c10::IValue()),
                BuiltArgument::Plain(c10::Device("meta"))},
               {{3, 3}});
  const auto arguments = ArgumentsOf(builder.call());
  ASSERT_EQ(arguments.size(), 6u);
  EXPECT_FALSE(arguments[1].keyword_only);
  EXPECT_TRUE(arguments[2].keyword_only);
  EXPECT_EQ(arguments[2].name, "dtype");
  EXPECT_EQ(arguments[2].meaning, CallArgument::Meaning::kDtype);
  EXPECT_EQ(arguments[3].meaning, CallArgument::Meaning::kLayout);
  EXPECT_TRUE(arguments[3].is_default);
  EXPECT_FALSE(arguments[4].is_default);
}

}  // namespace
}  // namespace addend

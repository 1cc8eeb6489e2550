#include "core/base/readable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace addend {
namespace {

using testing::ElementsAre;

TEST(Readable, LinesBreakAtSpaces) {
  EXPECT_THAT(Lines("one two three", 80), ElementsAre("one two three"));
  EXPECT_THAT(Lines("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(Lines("one two three", 7, 2), ElementsAre("one two", "  three"));
  EXPECT_THAT(Lines("incomprehensible it is", 5), ElementsAre("incomprehensible", "it is"));
}

TEST(Readable, AnyMeasureDecidesWhatFits) {
  const Measure narrow = [](uint32_t code) { return code == 'i' ? 0.25 : 1.0; };
  EXPECT_EQ(WidthOf("ii", narrow), 0.5);
  EXPECT_EQ(Fitting("iiiiab", 2, narrow), 5u);
  EXPECT_EQ(CutEnd("iiiiab", 2, ".", narrow), "iiii.");
  EXPECT_THAT(Lines("ii ii ii", 2, 0, narrow), ElementsAre("ii ii", "ii"));
  // A mark stays with the character that it joins.
  EXPECT_EQ(Fitting("e\u0301x", 1), 3u);
}

TEST(Readable, NumbersOfOneColumnShareTheirDecimals) {
  const NumberFormat format({1.21636, -0.4507, 12.0}, 4);
  EXPECT_EQ(format(1.21636), "1.22");
  EXPECT_EQ(format(-12), "-12.00");
  EXPECT_EQ(format.Signed(1.21636), "+1.22");
  EXPECT_EQ(format.Signed(-0.4507), "-0.45");
  // Numbers that round to zero have no sign.
  EXPECT_EQ(format(-0.001), "0.00");
  EXPECT_EQ(format.Signed(0.001), "0.00");
  EXPECT_EQ(format(std::nan("")), "nan");
  EXPECT_EQ(format(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Readable, ExtremeNumbersHaveExponents) {
  const NumberFormat small({1.5e-9}, 3);
  EXPECT_EQ(small.Signed(1.5e-9), "+1.50e-09");
  EXPECT_EQ(small(0), "0.000000000");
  EXPECT_EQ(NumberFormat({2.5e12}, 3)(2.5e12), "2.50e+12");
  EXPECT_EQ(NumberFormat({}, 4)(0), "0.0");
  // Among numbers that are far smaller.
  EXPECT_EQ(NumberFormat({1}, 4)(std::numeric_limits<double>::max()).size(), 313u);
  EXPECT_EQ(Small(0), "0");
  EXPECT_EQ(Small(2.14e-7), "2.1e-07");
  EXPECT_EQ(Number(711.2, 3), "711");
  EXPECT_EQ(Number(-1.2345e-8, 3), "-1.23e-08");
}

TEST(Readable, CountsAreEnglish) {
  EXPECT_EQ(Plural(1, "word"), "1 word");
  EXPECT_EQ(Plural(0, "word"), "0 words");
}

}  // namespace
}  // namespace addend

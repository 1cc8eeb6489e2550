#include "core/explain/target.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// [1, 3]: two components, reference and leftover of three classes.
Composition Parts() {
  const at::Tensor components = at::tensor({1.0, 2.0, 3.0, -4.0, 5.0, 6.0}, at::kDouble).view({2, 1, 3});
  return Composition(components, at::tensor({0.5, 0.25, 0.0}, at::kDouble).view({1, 3}),
                     at::tensor({0.0, 0.0, 1.0}, at::kDouble).view({1, 3}));
}
at::Tensor Value() { return Parts().recovery(); }

TEST(ParseTarget, ReadsElementsAndDifferences) {
  EXPECT_TRUE(ParseTarget("top1").top1);
  EXPECT_THAT(ParseTarget("3").index, ElementsAre(3));
  EXPECT_THAT(ParseTarget("0,3").index, ElementsAre(0, 3));
  EXPECT_THAT(ParseTarget("0,3-0,5").subtract, ElementsAre(0, 5));
  EXPECT_THAT(ParseTarget("-1").index, ElementsAre(-1));
  EXPECT_TRUE(ParseTarget("-1").subtract.empty());
  EXPECT_THAT(ParseTarget("0,-1,3").index, ElementsAre(0, -1, 3));
  EXPECT_THAT(ParseTarget("0,-1,3-0,-2,-5").index, ElementsAre(0, -1, 3));
  EXPECT_THAT(ParseTarget("0,-1,3-0,-2,-5").subtract, ElementsAre(0, -2, -5));
  EXPECT_THAT(ParseTarget("3--1").subtract, ElementsAre(-1));
  for (const char* bad : {"", "-", "3-", "--1", "top2", "a", "1-2-3", "1,", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(MessageOf([&] { ParseTarget(bad); }), HasSubstr("is not understood")) << bad;
  }
}

TEST(Contribute, TakesTheLargestElement) {
  const Contributions top = Contribute(Value(), Parts(), ParseTarget("top1"));
  EXPECT_THAT(top.index, ElementsAre(0, 2));
  EXPECT_THAT(top.contributions, ElementsAre(3, 6));
  EXPECT_EQ(top.leftover, 1);
  EXPECT_EQ(top.recovery, 10);
  EXPECT_EQ(top.conditioning, 1);
}

TEST(Contribute, LeavesOutLeadingDimensionsOfSizeOne) {
  const Contributions first = Contribute(Value(), Parts(), ParseTarget("0"));
  EXPECT_THAT(first.index, ElementsAre(0, 0));
  EXPECT_THAT(first.contributions, ElementsAre(1, -4));
  EXPECT_EQ(first.mass, 5.5);
  EXPECT_NEAR(first.conditioning, 5.0 / 3, 1e-15);
}

TEST(Contribute, CountsFromTheEnd) {
  EXPECT_THAT(Contribute(Value(), Parts(), ParseTarget("-1")).contributions, ElementsAre(3, 6));
  const Contributions difference = Contribute(Value(), Parts(), ParseTarget("-1,-1--1,-3"));
  EXPECT_THAT(difference.index, ElementsAre(0, 2));
  EXPECT_THAT(difference.subtract, ElementsAre(0, 0));
  EXPECT_THAT(difference.contributions, ElementsAre(2, 10));
  EXPECT_THAT(MessageOf([] { Contribute(Value(), Parts(), ParseTarget("-4")); }), HasSubstr("target -4 does not fit"));
}

TEST(FindElements, TakesTheLastPositionOfASequence) {
  // The largest of all is at the first position.
  const at::Tensor logits = at::tensor({9.0, 1.0, 2.0, 0.0, 5.0, 4.0}, at::kDouble).view({1, 2, 3});
  EXPECT_THAT(FindElements(logits, ParseTarget("top1")).index, ElementsAre(0, 1, 1));
  EXPECT_THAT(FindElements(logits.view({1, 1, 2, 3}), ParseTarget("top1")).index, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(MessageOf([&] {
                FindElements(logits.view({2, 1, 3}), ParseTarget("top1"));
              }),
              HasSubstr("more than one largest element"));
}

TEST(Contribute, SubtractsElementByElement) {
  const Contributions difference = Contribute(Value(), Parts(), ParseTarget("2-0"));
  EXPECT_THAT(difference.contributions, ElementsAre(2, 10));
  EXPECT_EQ(difference.reference, -0.5);
  EXPECT_EQ(difference.value, Value()[0][2].item<double>() - Value()[0][0].item<double>());
}

TEST(Contribute, SaysWhatDoesNotFit) {
  EXPECT_THAT(MessageOf([] { Contribute(Value(), Parts(), ParseTarget("3")); }), HasSubstr("does not fit"));
  EXPECT_THAT(MessageOf([] { Contribute(Value(), Parts(), ParseTarget("0,0,0")); }), HasSubstr("shape [1, 3]"));
  const at::Tensor two = at::zeros({2, 3}, at::kDouble);
  EXPECT_THAT(MessageOf([&] { Contribute(two, Composition::FromParts({two}), ParseTarget("top1")); }),
              HasSubstr("more than one largest element"));
}

}  // namespace
}  // namespace addend

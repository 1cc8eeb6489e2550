#include "core/explain/target.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

TEST(ParseTarget, ReadsWhatDistributionsSay) {
  using Quantity = Target::Quantity;
  EXPECT_EQ(ParseTarget("probability:3").quantity, Quantity::kProbability);
  EXPECT_THAT(ParseTarget("probability:3").index, ElementsAre(3));
  EXPECT_EQ(ParseTarget("log_probability:0,-1,42").quantity, Quantity::kLogProbability);
  EXPECT_THAT(ParseTarget("log_probability:0,-1,42").index, ElementsAre(0, -1, 42));
  EXPECT_TRUE(ParseTarget("log_probability:top1").top1);
  EXPECT_EQ(ParseTarget("entropy").quantity, Quantity::kEntropy);
  EXPECT_TRUE(ParseTarget("entropy").index.empty());
  EXPECT_THAT(ParseTarget("entropy:0,-2").index, ElementsAre(0, -2));
  EXPECT_EQ(ParseTarget("continuation:12,55,7").quantity, Quantity::kContinuation);
  EXPECT_THAT(ParseTarget("continuation:12,55,7").ids, ElementsAre(12, 55, 7));
  const Target sum = ParseTarget("sum:3-5+log_probability:top1+entropy:1");
  EXPECT_EQ(sum.quantity, Quantity::kSum);
  ASSERT_EQ(sum.parts.size(), 3u);
  EXPECT_EQ(sum.parts[0], ParseTarget("3-5"));
  EXPECT_EQ(sum.parts[1], ParseTarget("log_probability:top1"));
  EXPECT_EQ(sum.parts[2], ParseTarget("entropy:1"));
  for (const char* bad : {"probability", "probability:", "log_probability:a", "logprob:3", "entropy:", "entropy:a",
                          "continuation", "continuation:", "continuation:top1", "sum", "sum:", "sum:3+", "sum:sum:3",
                          "Entropy", ":3", "probability:probability:3"}) {
    EXPECT_THAT(MessageOf([&] { ParseTarget(bad); }), HasSubstr("is not understood")) << bad;
  }
  EXPECT_THAT(
      MessageOf([] { ParseTarget("log_probability:3-5"); }),
      HasSubstr("the difference of two log-probabilities of one position is that of the elements themselves, 3-5"));
}

TEST(TargetText, IsWhatParseTargetReads) {
  for (const char* text : {"top1", "()", "3", "0,-1,3", "3-5", "0,3--1,-2", "probability:top1", "probability:0,3",
                           "log_probability:-1", "entropy", "entropy:5", "entropy:0,-1", "continuation:12,55,7",
                           "sum:3+5-7+entropy+continuation:1,2", "sum:0,2,:,-4:20+1+:3,0", "sum::"}) {
    EXPECT_EQ(TargetText(ParseTarget(text)), text);
    EXPECT_EQ(ParseTarget(TargetText(ParseTarget(text))), ParseTarget(text));
  }
}

TEST(Contribute, TakesTheLargestElement) {
  const Contributions top = Contribute(Value(), Parts(), ParseTarget("top1"));
  EXPECT_THAT(top.target.index, ElementsAre(0, 2));
  EXPECT_THAT(top.contributions, ElementsAre(3, 6));
  EXPECT_EQ(top.leftover, 1);
  EXPECT_EQ(top.recovery, 10);
  EXPECT_EQ(top.conditioning, 1);
}

TEST(Contribute, LeavesOutLeadingDimensionsOfSizeOne) {
  const Contributions first = Contribute(Value(), Parts(), ParseTarget("0"));
  EXPECT_THAT(first.target.index, ElementsAre(0, 0));
  EXPECT_THAT(first.contributions, ElementsAre(1, -4));
  EXPECT_EQ(first.mass, 5.5);
  EXPECT_NEAR(first.conditioning, 5.0 / 2.5, 1e-15);  // over the value, which is smaller than the move
}

TEST(Contribute, CountsFromTheEnd) {
  EXPECT_THAT(Contribute(Value(), Parts(), ParseTarget("-1")).contributions, ElementsAre(3, 6));
  const Contributions difference = Contribute(Value(), Parts(), ParseTarget("-1,-1--1,-3"));
  EXPECT_THAT(difference.target.index, ElementsAre(0, 2));
  EXPECT_THAT(difference.target.subtract, ElementsAre(0, 0));
  EXPECT_THAT(difference.contributions, ElementsAre(2, 10));
  EXPECT_THAT(MessageOf([] { Contribute(Value(), Parts(), ParseTarget("-4")); }), HasSubstr("target -4 does not fit"));
}

TEST(FindElements, RegionsAreTheSumOfTheirElements) {
  const at::Tensor value = at::arange(24, at::kDouble).reshape({1, 2, 3, 4});
  const auto sum_of = [&](const char* text) {
    return Contribute(value, Composition::FromParts({value}), ParseTarget(text));
  };
  EXPECT_EQ(sum_of("sum:0,1,:,:").value, value[0][1].sum().item<double>());
  EXPECT_EQ(sum_of("sum:1,-2:,1:3").value, (value[0][1].narrow(0, 1, 2).narrow(1, 1, 2).sum().item<double>()));
  EXPECT_EQ(sum_of("sum::,:,0+0,0,0").value, value.select(3, 0).sum().item<double>());
  EXPECT_EQ(TargetText(sum_of("sum:1,0:3,1:3").target), "sum:0,1,:,1:3");
  for (const char* bad : {"sum:0,2,:,:", "sum:1,1:1,:", "sum:0:1,:,:,:,:", "sum:0,:,2:5"}) {
    EXPECT_THAT(MessageOf([&] { sum_of(bad); }), HasSubstr("does not fit an output of shape")) << bad;
  }
  EXPECT_THAT(MessageOf([] { ParseTarget("0,:"); }), HasSubstr("is not understood"));
  for (const char* text : {"treated,0,0-control,0,0", "sum:start,5+end,9"}) {
    EXPECT_THAT(MessageOf([&] { ParseTarget(text); }), HasSubstr("explain one number of each output")) << text;
  }
  EXPECT_THAT(MessageOf([] { ParseTarget("hm"); }), Not(HasSubstr("each output")));
}

TEST(FindElements, KnowsTheOnlyElementByNoIndex) {
  EXPECT_TRUE(FindElements(at::ones({}, at::kDouble), ParseTarget("()")).index.empty());
  EXPECT_THAT(FindElements(at::ones({1, 1}, at::kDouble), ParseTarget("()")).index, ElementsAre(0, 0));
  EXPECT_THAT(MessageOf([] {
                FindElements(at::ones({1, 3}, at::kDouble), ParseTarget("()"));
              }),
              HasSubstr("target () does not fit an output of shape"));
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

// A class alone is what a language model says next.
TEST(FindElements, TakesAClassOfTheLastPosition) {
  const at::Tensor logits = at::zeros({1, 4, 3}, at::kDouble);
  const auto place = [](const at::Tensor& value, const char* target) {
    return FindElements(value, ParseTarget(target)).index;
  };
  for (const char* word : {"", "probability:", "log_probability:"}) {
    const auto of = [&](const char* index) { return std::string(word) + index; };
    EXPECT_THAT(place(logits, of("2").c_str()), ElementsAre(0, 3, 2));
    EXPECT_THAT(place(logits, of("-1").c_str()), ElementsAre(0, 3, 2));
    EXPECT_THAT(place(logits, of("1,2").c_str()), ElementsAre(0, 1, 2));
    EXPECT_THAT(place(logits, of("0,-2,2").c_str()), ElementsAre(0, 2, 2));
    EXPECT_THAT(place(logits[0].narrow(0, 0, 1), of("2").c_str()), ElementsAre(0, 2));
    // Rows of a matrix may be examples.
    EXPECT_THAT(MessageOf([&] { place(logits[0], of("2").c_str()); }), HasSubstr("does not fit"));
    EXPECT_THAT(MessageOf([&] { place(logits.view({4, 1, 3}), of("2").c_str()); }), HasSubstr("does not fit"));
    EXPECT_THAT(MessageOf([&] { place(logits, of("3").c_str()); }), HasSubstr("does not fit"));
  }
  EXPECT_THAT(FindElements(logits, ParseTarget("2-0")).subtract, ElementsAre(0, 3, 0));
  EXPECT_THAT(place(logits, "entropy"), ElementsAre(0, 3));
  EXPECT_THAT(place(logits, "entropy:1"), ElementsAre(0, 1));
  EXPECT_THAT(place(logits, "entropy:0,-1"), ElementsAre(0, 3));
  EXPECT_THAT(place(logits[0][0], "entropy"), ElementsAre());
  EXPECT_THAT(MessageOf([&] { place(logits[0], "entropy"); }), HasSubstr("more than one distribution"));
  EXPECT_THAT(MessageOf([&] { place(logits, "entropy:4"); }), HasSubstr("target entropy:4 does not fit"));
  EXPECT_THAT(MessageOf([&] { place(logits[0][0][0], "entropy"); }), HasSubstr("a single number"));
  EXPECT_THAT(MessageOf([&] { place(logits[0][0][0], "probability:top1"); }), HasSubstr("a single number"));
  EXPECT_THAT(place(logits, "continuation:0,1,2"), ElementsAre(0));
  EXPECT_THAT(place(logits[0], "continuation:0,1,2"), ElementsAre());
  EXPECT_THAT(MessageOf([&] { place(logits, "continuation:0,1,2,0"); }), HasSubstr("has 4 ids, but the input has 4"));
  EXPECT_THAT(MessageOf([&] { place(logits, "continuation:3"); }), HasSubstr("does not fit"));
  EXPECT_THAT(MessageOf([&] { place(logits, "continuation:-1"); }), HasSubstr("does not fit"));
  EXPECT_THAT(MessageOf([&] {
                place(logits.view({2, 2, 3}), "continuation:1");
              }),
              HasSubstr("needs an output of the shape [1, positions, classes], not [2, 2, 3]"));
  EXPECT_THAT(MessageOf([&] { place(logits[0][0], "continuation:1"); }), HasSubstr("positions, classes"));
}

TEST(FindElements, FindsTheTargetOfAnExample) {
  const at::Tensor logits = at::zeros({2, 4, 3}, at::kDouble);
  EXPECT_THAT(FindElementsOfEach(logits, {ParseTarget("log_probability:2")})[1].index, ElementsAre(1, 3, 2));
  EXPECT_THAT(FindElementsOfEach(logits, {ParseTarget("1,2-0")})[1].subtract, ElementsAre(1, 3, 0));
  EXPECT_THAT(FindElementsOfEach(logits, {ParseTarget("entropy")})[1].index, ElementsAre(1, 3));
  EXPECT_THAT(FindElementsOfEach(logits, {ParseTarget("continuation:1,2")})[1].index, ElementsAre(1));
  EXPECT_THAT(FindElementsOfEach(logits, {ParseTarget("sum:2+entropy:0")})[1].parts[1].index, ElementsAre(1, 0));
  EXPECT_THAT(FindElementsOfEach(logits[0], {ParseTarget("top1")})[3].index, ElementsAre(3, 0));
  EXPECT_THAT(MessageOf([&] { FindElementsOfEach(logits, {ParseTarget("0,3,2")}); }), HasSubstr("does not fit"));
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

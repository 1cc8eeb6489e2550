#include "core/document/components.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::ElementsAre;

ExplainedInput Of(const at::Tensor& value, Split split, const std::string& name = "x") {
  Input input;
  input.name = name;
  input.value = value;
  input.split = std::move(split);
  return DescribeInput(input);
}

std::vector<std::string> NamesOf(const Components& components) {
  std::vector<std::string> names;
  for (const Component& component : components.list) names.push_back(component.name);
  return names;
}

Components Named(const std::vector<ExplainedInput>& inputs) {
  int64_t numc = 0;
  for (const ExplainedInput& own : inputs) numc += NumComponents(own.input);
  return NameComponents(inputs, numc);
}

TEST(NameComponents, CallsPixelsByRowAndColumn) {
  const Components pixels = Named({Of(at::zeros({1, 3, 2, 2}), Split::AlongDims({-2, -1}))});
  EXPECT_EQ(pixels.kind, "image");
  EXPECT_EQ(pixels.noun, "pixel");
  EXPECT_THAT(NamesOf(pixels), ElementsAre("row 0, column 0", "row 0, column 1", "row 1, column 0", "row 1, column 1"));
}

TEST(NameComponents, KnowsAnImageByItsShapeOrByWord) {
  const auto kind = [](const at::Tensor& value, std::vector<int64_t> dims, const std::string& stated = "") {
    ExplainedInput own = Of(value, Split::AlongDims(std::move(dims)));
    own.stated_kind = stated;
    return Named({own}).kind;
  };
  EXPECT_EQ(kind(at::zeros({1, 1, 2, 2}), {2, 3}), "image");
  // Two samples are no picture, and three dimensions may be a sequence.
  EXPECT_EQ(kind(at::zeros({2, 1, 2, 2}), {2, 3}), "list");
  EXPECT_EQ(kind(at::zeros({3, 2, 2}), {1, 2}), "list");
  EXPECT_EQ(kind(at::zeros({3, 2, 2}), {1, 2}, "image"), "image");
  EXPECT_EQ(kind(at::zeros({1, 1, 2, 2}), {2, 3}, "table"), "list");
  EXPECT_EQ(kind(at::zeros({1, 1, 2, 2}), {1, 2}), "list");
  EXPECT_EQ(kind(at::zeros({1, 1, 2, 2}, at::kComplexFloat), {2, 3}), "list");
  // The pixels are not all components.
  ExplainedInput behind = Of(at::zeros({1, 1, 2, 2}), Split::AlongDims({2, 3}));
  behind.input.first_component = 1;
  EXPECT_EQ(NameComponents({behind}, 5).kind, "list");
  EXPECT_EQ(NameComponents({behind}, 5).list[0].name, "component 0");
}

TEST(NameComponents, CallsColumnsAndOtherPositions) {
  const Components table = Named({Of(at::zeros({1, 2}), Split::AlongDims({1}))});
  EXPECT_EQ(table.kind, "table");
  EXPECT_EQ(table.noun, "feature");
  EXPECT_THAT(NamesOf(table), ElementsAre("column 0", "column 1"));
  const Components steps = Named({Of(at::zeros({1, 2, 5}), Split::AlongDims({1}))});
  EXPECT_EQ(steps.kind, "list");
  EXPECT_EQ(steps.noun, "component");
  EXPECT_THAT(NamesOf(steps), ElementsAre("position 0", "position 1"));
  EXPECT_THAT(NamesOf(Named({Of(at::zeros({2, 2}), Split::AlongDims({0, 1}))})),
              ElementsAre("[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"));
  EXPECT_THAT(NamesOf(Named({Of(at::zeros({3}), Split::ByLabels(at::tensor({0, 1, -1})))})),
              ElementsAre("component 0", "component 1"));
}

TEST(NameComponents, PutsTheInputBeforeNamesThatNobodyChose) {
  ExplainedInput left = Of(at::zeros({1, 2}), Split::AlongDims({1}), "left");
  left.names = {"mine"};
  ExplainedInput right = Of(at::zeros({1, 2}), Split::AlongDims({1}), "right");
  right.own_names = {"age", "height"};
  const Components both = Named({left, Of(at::zeros({1}), Split::Plain(), "plain"), right});
  EXPECT_EQ(both.kind, "table");
  EXPECT_THAT(NamesOf(both), ElementsAre("mine", "left: column 1", "right: age", "right: height"));
  left.names = {"a", "b", "c"};
  EXPECT_THAT(MessageOf([&] { Named({left}); }), testing::HasSubstr("left has 2 components, but 3 names"));
}

TEST(NameComponents, SpellsWords) {
  ExplainedInput ids = Of(at::arange(3).view({1, 3}), Split::AlongDims({1}));
  EXPECT_EQ(Named({ids}).kind, "list");
  ids.own_names = {"big", "cat", "!"};
  ids.sentence = "big  cat!";
  const Components words = Named({ids});
  EXPECT_EQ(words.kind, "text");
  EXPECT_EQ(words.noun, "token");
  EXPECT_THAT(NamesOf(words), ElementsAre("big  ", "cat", "!"));
  EXPECT_EQ(words.text, "big  cat!");
  // Names that are not those words stay as they are.
  ids.names = {"one", "two", "three"};
  EXPECT_THAT(NamesOf(Named({ids})), ElementsAre("one", "two", "three"));
}

TEST(DescribeInput, SaysSplitAndBaseline) {
  EXPECT_EQ(Of(at::zeros({2}), Split::Plain()).baseline, "");
  EXPECT_EQ(Of(at::zeros({2}), Split::Plain()).split, "plain");
  EXPECT_EQ(Of(at::zeros({2}), Split::AlongDims({0})).baseline, "0");
  EXPECT_EQ(Of(at::arange(2), Split::AlongDims({0})).baseline, "token 0");
  EXPECT_EQ(Of(at::zeros({2}), Split::Parts(at::zeros({1, 2}))).baseline, "what the parts leave over");
  Input input;
  input.value = at::zeros({2});
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Of(at::zeros({2}));
  EXPECT_EQ(DescribeInput(input).baseline, "tensor");
  EXPECT_TRUE(DescribeInput(input).baseline_given);
  input.baseline = Baseline::Named("blur");
  EXPECT_EQ(DescribeInput(input).baseline, "blur");
}

TEST(AddValues, KnowsComponentsThatAreOneNumber) {
  Input input;
  input.value = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  input.split = Split::ByLabels(at::tensor({0, 1, 1, -1}));
  input.baseline = Baseline::Of(0.5);
  const std::vector<ExplainedInput> inputs = {DescribeInput(input)};
  Components components = Named(inputs);
  AddValues(inputs, Prepare({input}), components);
  EXPECT_EQ(components.list[0].value, 1);
  EXPECT_EQ(components.list[0].baseline, 0.5);
  EXPECT_EQ(components.list[1].value, std::nullopt);
}

TEST(AddValues, LeavesOutComponentsOfTwoInputsAndIds) {
  Input numbers;
  numbers.value = at::tensor({1.0, 2.0}, at::kDouble);
  numbers.split = Split::AlongDims({0});
  Input ids;
  ids.value = at::tensor({7}, at::kLong);
  ids.split = Split::AlongDims({0});
  ids.first_component = 1;
  const std::vector<ExplainedInput> inputs = {DescribeInput(numbers), DescribeInput(ids)};
  Components components = NameComponents(inputs, 2);
  AddValues(inputs, Prepare({numbers, ids}), components);
  EXPECT_EQ(components.list[0].value, 1);
  EXPECT_EQ(components.list[1].value, std::nullopt);
}

TEST(ImageOf, HasTheMeanOfTheChannelsAndTheRangeWithTheBaseline) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ExplainedInput own = Of(at::tensor({1.0, 2.0, nan, 4.0, 3.0, 4.0, 0.0, 8.0}, at::kDouble).view({1, 2, 2, 2}),
                          Split::AlongDims({2, 3}));
  own.input.baseline = Baseline::Of(-1.0);
  const auto image = ImageOf({own}, Named({own}));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->height, 2);
  EXPECT_EQ(image->width, 2);
  EXPECT_EQ(image->channels, 2);
  EXPECT_THAT(image->values, ElementsAre(2, 3, testing::IsNan(), 6));
  EXPECT_EQ(image->value_min, -1);
  EXPECT_EQ(image->value_max, 6);
  own.input.baseline = Baseline::Of(at::full({2, 1, 1}, 9.0, at::kDouble));
  EXPECT_EQ(ImageOf({own}, Named({own}))->value_max, 9);
  EXPECT_FALSE(ImageOf({}, Components()).has_value());
}

}  // namespace
}  // namespace addend

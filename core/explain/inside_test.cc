// Splits that start inside the model, beside the same model cut in two by hand.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Made before a model runs, which would make it in its first run only.
const Tensor& kWeight = Weight();

// An attention of two heads of three, whose heads are joined and mixed.
Tensor Heads(const Tensor& x) {
  const Tensor q = x.mm(kWeight).view({-1, 2, 3}).transpose(0, 1);
  const Tensor mixed = at::softmax(q.bmm(q.transpose(1, 2)), -1).bmm(q);
  return mixed.transpose(0, 1).contiguous();
}
Tensor Rest(const Tensor& heads, const Tensor& x) {
  return at::layer_norm(at::gelu(heads.flatten(1).mm(kWeight)) + x, {6});
}

TracedModel Whole() {
  return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return Rest(Heads(in[0]), in[0]); }));
}

const char* const kHeads = "aten::contiguous";

struct Case {
  std::string name;
  Split split;
  Tensor baseline;
};

std::vector<Case> Cases() {
  Tensor labels = at::arange(2, at::kLong).view({1, 2, 1}).expand({4, 2, 3}).clone();
  labels.select(0, 1).fill_(-1);
  return {{"heads", Split::AlongDims({1}), at::zeros({1}, at::kDouble)},
          {"neurons", Split::AlongDims({1, 2}), Random({4, 2, 3}, 9)},
          {"some_without_label", Split::ByLabels(labels), Random({2, 3}, 9)}};
}

class Inside : public testing::TestWithParam<int> {
 protected:
  const Case case_ = Cases()[GetParam()];
  const Tensor x_ = Random({4, 6}, 1);

  std::vector<Input> Cut() const {
    return {Input::Plain(x_), Input::Inside(kHeads, case_.split, Baseline::Of(case_.baseline))};
  }
  // The second half, given what the first one computes.
  std::vector<Input> ByHand() const {
    Input heads;
    heads.value = Heads(x_);
    heads.split = case_.split;
    heads.baseline = Baseline::Of(case_.baseline);
    return {heads, Input::Plain(x_)};
  }
  TracedModel Half() const {
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return Rest(in[0], in[1]); }));
  }
};

TEST_P(Inside, IsTheSecondHalfOfTheModel) {
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    DecomposeOptions options;
    options.policy.preset = preset;
    const Decomposition cut = Whole().Decompose(Cut(), options);
    const Decomposition by_hand = Half().Decompose(ByHand(), options);
    const Composition& a = cut.outputs[0].composition;
    const Composition& b = by_hand.outputs[0].composition;
    EXPECT_EQ(cut.numc, by_hand.numc);
    ASSERT_EQ(cut.inside.size(), 1u);
    EXPECT_TRUE(at::equal(cut.inside[0], Heads(x_)));
    EXPECT_TRUE(by_hand.inside.empty());
    EXPECT_TRUE(at::equal(cut.outputs[0].value, Rest(Heads(x_), x_)));
    EXPECT_TRUE(at::allclose(a.reference(), b.reference(), 1e-14, 1e-14));
    EXPECT_TRUE(at::allclose(a.components(), b.components(), 1e-11, 1e-13));
    EXPECT_TRUE(at::allclose(a.leftover(), b.leftover(), 1e-11, 1e-13));
    EXPECT_GT(a.components().abs().max().item<double>(), 0.1);
  }
}

TEST_P(Inside, IsAttributedElementByElement) {
  AttributeOptions options;
  options.policy.preset = Preset::kFaithful;
  options.targets[0].top1 = false;
  options.targets[0].index = {2, 4};
  const Attribution cut = Attribute(Whole(), Cut(), options);
  const Attribution by_hand = Attribute(Half(), ByHand(), options);
  ASSERT_EQ(cut.inputs.size(), 2u);
  EXPECT_FALSE(cut.inputs[0].defined());
  ASSERT_EQ(cut.inside.size(), 1u);
  EXPECT_TRUE(at::equal(cut.inside[0], Heads(x_)));
  EXPECT_TRUE(at::allclose(cut.inputs[1], by_hand.inputs[0], 1e-11, 1e-13));
  EXPECT_EQ(cut.targets[0].contributions.size(), by_hand.targets[0].contributions.size());
  for (size_t c = 0; c < cut.targets[0].contributions.size(); ++c) {
    EXPECT_NEAR(cut.targets[0].contributions[c], by_hand.targets[0].contributions[c], 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Inside, testing::Range(0, 3), [](const auto& info) { return Cases()[info.param].name; });

// A view into a larger storage that is written later, beside what the storage holds besides.
TEST(InsideTensors, MayBeViewsAndBeWrittenLater) {
  const Tensor x = Random({2, 6}, 1);
  const Tensor baseline = Random({2, 3}, 2);
  const TracedModel model(FromFunction([](const std::vector<Tensor>& in) {
    const Tensor y = in[0].mm(kWeight);
    const Tensor part = y.narrow(1, 2, 3);
    const Tensor before = part.exp();
    part.mul_(2);
    return at::cat({before, y.sin()}, 1);
  }));
  const Decomposition found = model.Decompose(
      {Input::Plain(x), Input::Inside("aten::narrow", Split::AlongDims({1}), Baseline::Of(baseline))}, [] {
        DecomposeOptions options;
        options.policy.preset = Preset::kFaithful;
        return options;
      }());
  const auto rest = [&](const Tensor& part) {
    Tensor y = x.mm(kWeight);
    y.narrow(1, 2, 3).copy_(part * 2);
    return at::cat({part.exp(), y.sin()}, 1);
  };
  const Composition& parts = found.outputs[0].composition;
  EXPECT_TRUE(at::allclose(found.outputs[0].value, rest(x.mm(kWeight).narrow(1, 2, 3)), 1e-14, 1e-14));
  EXPECT_TRUE(at::allclose(parts.reference(), rest(baseline), 1e-14, 1e-14));
  EXPECT_TRUE(at::allclose(parts.recovery(), found.outputs[0].value, 1e-12, 1e-12));
  EXPECT_EQ(found.numc, 3);
  EXPECT_TRUE(at::equal(found.inside[0], x.mm(kWeight).narrow(1, 2, 3)));
  // Columns that have nothing to do with the part have no components.
  EXPECT_EQ(parts.components().narrow(2, 3, 2).abs().max().item<double>(), 0);
}

TEST(InsideTensors, TellWhatDoesNotFit) {
  const Tensor x = Random({4, 6}, 1);
  const Baseline zero = Baseline::Of(0.0);
  const auto message = [&](const std::vector<Input>& inputs) { return MessageOf([&] { Whole().Decompose(inputs); }); };
  Input split = Input::Plain(x);
  split.split = Split::AlongDims({1});
  EXPECT_THAT(message({split, Input::Inside(kHeads, Split::AlongDims({1}), zero)}),
              HasSubstr("the arguments are plain"));
  EXPECT_THAT(message({Input::Inside(kHeads, Split::AlongDims({1}), zero), Input::Plain(x)}),
              HasSubstr("arguments are listed before"));
  EXPECT_THAT(message({Input::Plain(x), Input::Inside(kHeads, Split::Plain(), zero)}),
              HasSubstr("along dimensions or by labels"));
  EXPECT_THAT(message({Input::Plain(x), Input::Inside(kHeads, Split::AlongDims({3}), zero)}),
              HasSubstr("aten::contiguous of shape f64[4, 2, 3] has no dimension 3"));
  EXPECT_THAT(message({Input::Plain(x), Input::Inside("aten::conv2d", Split::AlongDims({1}), zero)}),
              HasSubstr("does not call aten::conv2d"));
  const Input first = Input::Inside("#0", Split::AlongDims({1}), zero);
  EXPECT_THAT(message({Input::Plain(x), first, Input::Inside(kHeads, Split::AlongDims({1}), zero)}),
              HasSubstr("depends on another split already"));
  // A probe of an operator before the split.
  DecomposeOptions options;
  options.probes = {"aten::softmax"};
  EXPECT_THAT(MessageOf([&] {
                Whole().Decompose({Input::Plain(x), Input::Inside(kHeads, Split::AlongDims({1}), zero)}, options);
              }),
              HasSubstr("aten::softmax does not depend on what is split"));
  int runs = 0;
  const TracedModel other(FromFunction(
      [&](const std::vector<Tensor>& in) { return ++runs % 2 == 1 ? in[0].mm(kWeight).exp() : in[0].sin().exp(); }));
  EXPECT_THAT(MessageOf([&] { other.Decompose({Input::Plain(x), first}); }), HasSubstr("when it ran again"));
}

// The model runs twice: once to be searched, and once to be decomposed.
TEST(InsideState, TheSecondRunBeginsAsTheFirstOneDid) {
  const Tensor h = at::zeros({1, 4}, at::kDouble);
  const auto step = [](const Tensor& x, const Tensor& state) { return at::tanh(x * 2 + state); };
  const TracedModel model(FromFunction(
      [h, step](const std::vector<Tensor>& in) {
        const Tensor next = step(in[0], h);
        h.copy_(next);
        return next;
      },
      {{"h", h}}, {}, {"h"}));
  const Tensor x = Random({1, 4}, 1);
  const Tensor first = step(x, at::zeros({1, 4}, at::kDouble));
  const std::vector<Input> inputs = {Input::Plain(x),
                                     Input::Inside("aten::mul", Split::AlongDims({1}), Baseline::Of(0.0))};
  EXPECT_TRUE(at::equal(model.Decompose(inputs, {}).outputs[0].value, first));
  EXPECT_TRUE(at::equal(h, first));
}

TEST(InsideState, RunsThatDifferAllTheSameAreAnError) {
  const auto calls = std::make_shared<double>(0);
  const TracedModel model(
      FromFunction([calls](const std::vector<Tensor>& in) { return at::tanh(in[0] * 2) + (*calls += 1); }));
  const std::vector<Input> inputs = {Input::Plain(Random({1, 4}, 1)),
                                     Input::Inside("aten::mul", Split::AlongDims({1}), Baseline::Of(0.0))};
  ExpectError(absl::StatusCode::kFailedPrecondition, {"two runs of the model give different results", "aten::add"},
              [&] { model.Decompose(inputs, {}); });
}

// A function does not tell what its modules returned: of "head", a tanh is behind the operator that reads its weight.
TEST(Untold, ModulesAreNoted) {
  const Tensor w = Random({3, 4}, 4);
  const TracedModel model(
      FromFunction([w](const std::vector<Tensor>& in) { return at::tanh(at::linear(at::gelu(in[0]), w)); },
                   {{"head.weight", w}}, {"head"}));
  const Tensor x = Random({1, 4}, 5);
  const Input split = SplitInput(x, {1});
  const auto noted =
      Contains(AllOf(HasSubstr("the model does not say which tensor head returned; the result of aten::linear"),
                     EndsWith(" is taken for it")));
  const auto any_noted = Contains(HasSubstr("does not say which tensor"));
  DecomposeOptions probed;
  probed.probes = {"head"};
  EXPECT_THAT(model.Decompose({split}, probed).report.notes, noted);
  probed.probes = {"#1", "aten::linear", "output"};
  EXPECT_THAT(model.Decompose({split}, probed).report.notes, Not(any_noted));
  AttributeOptions explained;
  explained.at = "head";
  EXPECT_THAT(Attribute(model, {split}, explained).report.notes, noted);
  explained.at = "aten::linear";
  EXPECT_THAT(Attribute(model, {split}, explained).report.notes, Not(any_noted));
  const auto inside = [&](const std::string& selector) -> std::vector<Input> {
    return {Input::Plain(x), Input::Inside(selector, Split::AlongDims({1}), Baseline::Of(0.0))};
  };
  EXPECT_THAT(model.Decompose(inside("head")).report.notes, noted);
  EXPECT_THAT(Attribute(model, inside("head"), AttributeOptions()).report.notes, noted);
  EXPECT_THAT(model.Decompose(inside("aten::linear")).report.notes, Not(any_noted));
}

}  // namespace
}  // namespace addend

// Targets that are no elements: against plain LibTorch at both ends, integrals of many points on the line, autograd at
// small moves, models that end in softmax or log_softmax, and each other.
#include "core/explain/target_numbers.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

Tensor PartsOf(const Contributions& target) { return at::tensor(target.contributions, at::kDouble); }

// The number that the text asks of logits [1, positions, classes], in plain LibTorch.
Tensor Plainly(const std::string& text, const Tensor& logits) {
  const Tensor log_p = logits[0].log_softmax(-1);
  if (text == "log_probability:2") return log_p[-1][2];
  if (text == "probability:1,2") return log_p[1][2].exp();
  if (text == "entropy") return -(log_p[-1].exp() * log_p[-1]).sum();
  if (text == "entropy:1") return -(log_p[1].exp() * log_p[1]).sum();
  if (text == "continuation:4,0") return log_p[1][4] + log_p[2][0];
  if (text == "sum:2-0+log_probability:0,1") return logits[0][3][2] - logits[0][3][0] + log_p[0][1];
  throw std::logic_error(text);
}

const std::vector<std::string>& Texts() {
  static const auto& texts =
      *new std::vector<std::string>{"log_probability:2", "probability:1,2",  "entropy",
                                    "entropy:1",         "continuation:4,0", "sum:2-0+log_probability:0,1"};
  return texts;
}

// The mean gradient on the line, by the trapezoid rule over many points.
Tensor MeanGradient(const std::string& text, const Tensor& value, const Tensor& reference) {
  constexpr int kSteps = 2000;
  Tensor mean = at::zeros_like(value);
  for (int k = 0; k <= kSteps; ++k) {
    const Tensor point = (reference + (value - reference) * (static_cast<double>(k) / kSteps)).requires_grad_();
    Plainly(text, point).backward();
    mean += point.grad() * ((k == 0 || k == kSteps ? 0.5 : 1.0) / kSteps);
  }
  return mean;
}

// Three components of logits [1, 4, 5] of this size.
Composition Parts(double size) {
  return Composition(Random({3, 1, 4, 5}, 1) * size, Random({1, 4, 5}, 2) * size, at::zeros({1, 4, 5}, at::kDouble));
}

// ---- what the contributions are

TEST(Contribute, GivesEachComponentItsPartOfTheLine) {
  for (const double size : {0.1, 1.0, 5.0, 20.0}) {
    const Composition parts = Parts(size);
    const Tensor value = parts.recovery();
    for (const std::string& text : Texts()) {
      const Contributions found = Contribute(value, parts, ParseTarget(text));
      const double end = Plainly(text, value).item<double>();
      const double begin = Plainly(text, parts.reference()).item<double>();
      EXPECT_NEAR(found.value, end, 1e-12 * (1 + size)) << text;
      EXPECT_NEAR(found.reference, begin, 1e-12 * (1 + size)) << text;
      // The leftover is the quadrature's error and nothing else.
      EXPECT_LE(std::abs(found.leftover), 1e-11 * (1 + size)) << text << " " << size;
      EXPECT_NEAR(PartsOf(found).sum().item<double>() + found.leftover, end - begin, 1e-12 * (1 + size)) << text;
      EXPECT_LE(std::abs(found.recovery - found.value), found.tolerance) << text;
      const Tensor gradient = MeanGradient(text, value, parts.reference());
      const Tensor expected = (parts.components() * gradient).sum(at::IntArrayRef({1, 2, 3}));
      EXPECT_LE(Apart(PartsOf(found), expected), 1e-6 * size * (1 + size * size)) << text << " " << size;
    }
  }
}

TEST(Contribute, OfASmallMoveIsTheGradient) {
  const Composition near = Parts(1);
  const Composition parts(near.components() * 1e-7, near.reference(), near.leftover());
  const Tensor value = parts.recovery();
  for (const std::string& text : Texts()) {
    const Tensor point = value.clone().requires_grad_();
    Plainly(text, point).backward();
    const Tensor expected = (near.components() * point.grad()).sum(at::IntArrayRef({1, 2, 3}));
    EXPECT_LE(Apart(PartsOf(Contribute(value, parts, ParseTarget(text))) * 1e7, expected), 1e-6) << text;
  }
}

// Leftover of the logits is leftover of the target, by the same weights.
TEST(Contribute, LeavesOverWhatTheTensorLeavesOver) {
  const Composition whole = Parts(1);
  const Tensor last = whole.components().narrow(0, 2, 1);
  const Composition less(whole.components().narrow(0, 0, 2), whole.reference(), last[0]);
  for (const std::string& text : Texts()) {
    const Contributions all = Contribute(whole.recovery(), whole, ParseTarget(text));
    const Contributions two = Contribute(whole.recovery(), less, ParseTarget(text));
    EXPECT_NEAR(two.leftover, all.contributions[2] + all.leftover, 1e-14) << text;
    EXPECT_EQ(two.contributions[0], all.contributions[0]);
  }
}

TEST(Contribute, OfAContinuationIsTheSumOverItsIds) {
  const Composition parts = Parts(3);
  const Tensor value = parts.recovery();
  const auto contributed = [&](const std::string& text) {
    return PartsOf(Contribute(value, parts, ParseTarget(text)));
  };
  const Tensor whole = contributed("continuation:3,4,0");
  const Tensor single =
      contributed("log_probability:0,3") + contributed("log_probability:1,4") + contributed("log_probability:2,0");
  EXPECT_LE(Apart(whole, single), 1e-10 * whole.abs().max().item<double>());
  EXPECT_LE(Apart(whole, contributed("sum:log_probability:0,3+log_probability:1,4+log_probability:2,0")), 1e-14);
}

// Both subtract the same normalizer.
TEST(Contribute, ContrastsLogProbabilitiesAsLogits) {
  const Composition parts = Parts(2);
  const Tensor value = parts.recovery();
  const auto contributed = [&](const std::string& text) {
    return PartsOf(Contribute(value, parts, ParseTarget(text)));
  };
  EXPECT_LE(Apart(contributed("log_probability:3") - contributed("log_probability:1"), contributed("3-1")), 1e-13);
}

// ---- masks

Composition Masked(const Composition& parts, const Tensor& mask, bool in_reference, bool in_value) {
  const Tensor reference = in_reference ? parts.reference().masked_fill(mask, -kInfinity) : parts.reference();
  const Tensor components = in_value == in_reference ? parts.components().masked_fill(mask, 0) : parts.components();
  return Composition(components, reference, parts.leftover());
}

TEST(Contribute, LeavesOutMaskedClasses) {
  const Composition parts = Parts(1);
  const Tensor mask = at::tensor({0, 1, 0, 0, 1}, at::kLong).to(at::kBool);
  const Composition masked = Masked(parts, mask, true, true);
  const Tensor value = parts.recovery().masked_fill(mask, -kInfinity);
  const auto narrow = [&](const Tensor& t) { return t.index_select(-1, at::tensor({0, 2, 3}, at::kLong)); };
  const Composition kept(narrow(parts.components()), narrow(parts.reference()), narrow(parts.leftover()));
  for (const auto& [text, among] :
       std::vector<std::pair<std::string, std::string>>{{"log_probability:2", "log_probability:1"},
                                                        {"probability:1,3", "probability:1,2"},
                                                        {"probability:0", "probability:0"},
                                                        {"entropy", "entropy"},
                                                        {"continuation:3,0", "continuation:2,0"}}) {
    const Contributions found = Contribute(value, masked, ParseTarget(text));
    const Contributions expected = Contribute(narrow(value), kept, ParseTarget(among));
    EXPECT_NEAR(found.value, expected.value, 1e-13) << text;
    EXPECT_NEAR(found.reference, expected.reference, 1e-13) << text;
    EXPECT_NEAR(found.leftover, expected.leftover, 1e-13) << text;
    EXPECT_LE(Apart(PartsOf(found), PartsOf(expected)), 1e-13) << text;
  }
  const Contributions none = Contribute(value, masked, ParseTarget("probability:4"));
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.leftover, 0);
  EXPECT_THAT(none.contributions, Each(0.0));
  EXPECT_THAT(MessageOf([&] { Contribute(value, masked, ParseTarget("log_probability:4")); }),
              HasSubstr("the logarithm of a probability of zero: class 4 is masked by -inf"));
}

TEST(Contribute, RefusesRowsThatAreInfiniteAtOneEnd) {
  const Composition parts = Parts(1);
  const Tensor mask = at::tensor({0, 1, 0, 0, 0}, at::kLong).to(at::kBool);
  const Tensor value = parts.recovery();
  for (const std::string& text : Texts()) {
    EXPECT_THAT(MessageOf([&] { Contribute(value, Masked(parts, mask, true, false), ParseTarget(text)); }),
                HasSubstr("NaN or infinite in the value or in the reference"));
    EXPECT_THAT(MessageOf([&] { Contribute(value.masked_fill(mask, -kInfinity), parts, ParseTarget(text)); }),
                HasSubstr("conditions=value keeps the value's masks"));
    EXPECT_THAT(MessageOf([&] { Contribute(value.masked_fill(mask, std::nan("")), parts, ParseTarget(text)); }),
                HasSubstr("NaN or infinite"));
  }
  const Tensor all = at::full_like(value, -kInfinity);
  EXPECT_THAT(MessageOf([&] {
                Contribute(all, Composition(parts.components(), all, parts.leftover()), ParseTarget("entropy"));
              }),
              HasSubstr("NaN or infinite"));
  // A mask near the lowest number in one of them is no line that can be followed.
  EXPECT_THAT(MessageOf([&] { Contribute(value.masked_fill(mask, -1e30), parts, ParseTarget("entropy")); }),
              HasSubstr("farther from the reference to the value than can be followed"));
}

TEST(Contribute, FollowsMasksOfOneEnd) {
  const Composition parts = Parts(1);
  const Tensor mask = at::tensor({0, 1, 0, 0, 0}, at::kLong).to(at::kBool);
  const Tensor value = parts.recovery().masked_fill(mask, -1e9);
  // The move of the mask is one more part: the leftover.
  const Composition masked(parts.components().masked_fill(mask, 0), parts.reference(),
                           (value - parts.reference()).masked_fill(mask.logical_not(), 0));
  for (const std::string& text : Texts()) {
    const Contributions found = Contribute(value, masked, ParseTarget(text));
    double sum = found.reference + found.leftover;
    for (const double part : found.contributions) sum += part;
    EXPECT_NEAR(sum, found.value, 1e-6) << text;
  }
}

// ---- both ways

// Logits [positions, classes] as a language model gives them, from inputs of the small models.
Tensor Logits(const Tensor& t) {
  return (at::linear(at::layer_norm(at::gelu(at::linear(t, Weight())), {6}), Weight()) * 3).unsqueeze(0);
}

std::vector<Target> Asked(const std::vector<std::string>& texts) {
  std::vector<Target> targets;
  for (const std::string& text : texts) targets.push_back(ParseTarget(text));
  return targets;
}

Policy PolicyOf(const std::vector<std::pair<std::string, std::string>>& choices) {
  Policy policy;
  for (const auto& [key, value] : choices) SetPolicyField(policy, key, value);
  return policy;
}

TEST(Attribute, FindsWhatDecomposeFindsForEveryQuantity) {
  const Input input = SplitInput(Random({4, 6}, 1), {0}, Random({4, 6}, 2));
  const std::vector<std::vector<std::pair<std::string, std::string>>> policies = {
      {{"preset", "faithful"}},
      {{"preset", "fast"}},
      {{"preset", "faithful"}, {"segments", "3"}},
      {{"preset", "fast"}, {"anchor", "residual"}},
      {{"preset", "faithful"}, {"nonlinearity", "gradient"}},
      {{"preset", "faithful"}, {"nonlinearity", "none"}},
      {{"preset", "faithful"}, {"check", "off"}}};
  for (const auto& choices : policies) {
    AttributeOptions options;
    options.policy = PolicyOf(choices);
    options.targets = Asked(Texts());
    const Attribution found = Attribute(ModelOf(Logits), {input}, options);
    DecomposeOptions forward;
    forward.policy = options.policy;
    const Decomposed whole = ModelOf(Logits).Decompose({input}, forward).outputs[0];
    ASSERT_EQ(found.targets.size(), Texts().size());
    for (size_t t = 0; t < found.targets.size(); ++t) {
      const Contributions& own = found.targets[t];
      const Contributions other = Contribute(whole.value, whole.composition, options.targets[t]);
      EXPECT_NEAR(own.value, Plainly(Texts()[t], found.value).item<double>(), 1e-12);
      EXPECT_NEAR(own.reference, other.reference, 1e-10) << Texts()[t];
      EXPECT_NEAR(own.leftover, other.leftover, 1e-10) << Texts()[t];
      EXPECT_LE(Apart(PartsOf(own), PartsOf(other)), 1e-10) << Texts()[t];
      EXPECT_NEAR(own.recovery, own.value, std::max(own.tolerance, 1e-12)) << Texts()[t];
      EXPECT_LE(Apart(found.inputs[0][static_cast<int64_t>(t)].sum(-1), PartsOf(own)), 1e-12);
    }
  }
}

// One sweep asks for the same as the rules of a softmax that the model has itself.
TEST(Attribute, IsThatOfAModelThatEndsInSoftmax) {
  const Input input = SplitInput(Random({4, 6}, 1) * 3, {0, 1}, Random({4, 6}, 2));
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    const auto attributed = [&](const std::function<Tensor(const Tensor&)>& model, const std::string& text) {
      AttributeOptions options;
      options.policy.preset = preset;
      options.targets = Asked({text});
      return Attribute(ModelOf(model), {input}, options);
    };
    const Attribution log = attributed(Logits, "log_probability:1,2");
    const Attribution log_inside = attributed([](const Tensor& t) { return Logits(t).log_softmax(-1); }, "1,2");
    EXPECT_LE(Apart(log.inputs[0], log_inside.inputs[0]), 1e-10);
    EXPECT_NEAR(log.targets[0].leftover, log_inside.targets[0].leftover, 1e-10);
    const Attribution plain = attributed(Logits, "probability:1,2");
    const Attribution inside = attributed([](const Tensor& t) { return Logits(t).softmax(-1); }, "1,2");
    EXPECT_LE(Apart(plain.inputs[0], inside.inputs[0]), 1e-10);
    EXPECT_THAT(plain.report.notes, Not(Contains(HasSubstr("probabilities already"))));
    const Attribution twice = attributed([](const Tensor& t) { return Logits(t).softmax(-1); }, "log_probability:1,2");
    EXPECT_THAT(twice.report.notes, Contains(HasSubstr("probabilities already; at=logits")));
  }
}

TEST(Attribute, GivesEachExampleItsOwnQuantity) {
  const Tensor x = Random({3, 4, 6}, 1);
  const Tensor b = Random({3, 4, 6}, 2);
  const auto run = [](const Tensor& t) { return at::linear(at::gelu(at::linear(t, Weight())), Weight()); };
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"log_probability:2", "entropy", "sum:1+continuation:3,0"},
        std::vector<std::string>{"continuation:4,0"}}) {
    AttributeOptions options;
    options.each_example = true;
    options.targets = Asked(texts);
    const Attribution batch = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
    for (int64_t i = 0; i < 3; ++i) {
      AttributeOptions alone;
      alone.targets = Asked({texts[texts.size() == 1 ? 0 : i]});
      const Attribution one = Attribute(ModelOf(run), {SplitInput(x.narrow(0, i, 1), {1}, b.narrow(0, i, 1))}, alone);
      EXPECT_LE(Apart(batch.inputs[0][i], one.inputs[0][0][0]), 1e-12);
      EXPECT_NEAR(batch.targets[i].value, one.targets[0].value, 1e-12);
      EXPECT_NEAR(batch.targets[i].leftover, one.targets[0].leftover, 1e-11);
    }
  }
}

TEST(Attribute, ComputesInTheDtypeOfTheModel) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Tensor weight = Weight().to(dtype);
    const auto run = [&](const Tensor& t) { return at::linear(at::gelu(at::linear(t, weight)), weight).unsqueeze(0); };
    AttributeOptions options;
    options.policy.preset = Preset::kFaithful;
    options.targets = Asked(Texts());
    const Attribution found =
        Attribute(ModelOf(run), {SplitInput(Random({4, 6}, 1).to(dtype), {0}, Random({4, 6}, 2).to(dtype))}, options);
    for (size_t t = 0; t < found.targets.size(); ++t) {
      const Contributions& own = found.targets[t];
      EXPECT_NEAR(own.value, Plainly(Texts()[t], found.value.to(at::kDouble)).item<double>(), 1e-12);
      EXPECT_LE(std::abs(own.recovery - own.value), own.tolerance) << Texts()[t];
      if (dtype != at::kBFloat16) {
        EXPECT_LE(std::abs(own.leftover), dtype == at::kFloat ? 1e-5 : 1e-12) << Texts()[t];
      }
    }
  }
}

TEST(Attribute, SaysWhereAContinuationIsNotWhatTheModelWasGiven) {
  const Tensor table = Random({6, 6}, 3);
  const TracedModel model(FromFunction(
      [&](const std::vector<Tensor>& in) { return at::linear(at::embedding(table, in[0]).cumsum(1), Weight()); }));
  Input ids;
  ids.value = at::tensor({1, 5, 2, 4, 0}, at::kLong).view({1, 5});
  ids.split = Split::AlongDims({1});
  ids.baseline = Baseline::Token(3);
  const auto notes = [&](const std::string& text) {
    AttributeOptions options;
    options.targets = Asked({text});
    return Attribute(model, {ids}, options).report.notes;
  };
  EXPECT_THAT(notes("continuation:4,0"), Not(Contains(HasSubstr("no input ends"))));
  EXPECT_THAT(notes("continuation:0,4"), Contains(HasSubstr("no input ends with the ids of continuation:0,4")));
}

// ---- many targets at once

// Rows of one batch take different nodes, as their moves are of different lengths.
TEST(Attribute, GivesManyExamplesWhatEachGetsAlone) {
  constexpr int64_t kExamples = 12;
  const Tensor lengths = at::logspace(-3, 1.2, kExamples, 10, at::kDouble).view({kExamples, 1, 1});
  const Tensor b = Random({kExamples, 1, 6}, 2);
  const Tensor x = b + Random({kExamples, 1, 6}, 1) * lengths;
  const auto run = [](const Tensor& t) {
    return (at::linear(at::gelu(at::linear(t, Weight())), Weight()) * 3).squeeze(1);
  };
  for (const std::string text : {"probability:2", "log_probability:0", "entropy", "top1", "probability:top1", "1-4"}) {
    AttributeOptions options;
    options.each_example = true;
    options.targets = Asked({text});
    const Attribution batch = Attribute(ModelOf(run), {SplitInput(x, {2}, b)}, options);
    ASSERT_EQ(batch.targets.size(), static_cast<size_t>(kExamples));
    for (int64_t i = 0; i < kExamples; ++i) {
      AttributeOptions alone;
      alone.targets = Asked({text});
      const Attribution one = Attribute(ModelOf(run), {SplitInput(x.narrow(0, i, 1), {2}, b.narrow(0, i, 1))}, alone);
      const double size = one.inputs[0].abs().max().item<double>() + 1e-6;
      EXPECT_LE(Apart(batch.inputs[0][i], one.inputs[0][0][0]), 1e-9 * size) << text << " " << i;
      if (text != "entropy") {
        EXPECT_EQ(batch.targets[i].target.index.back(), one.targets[0].target.index.back()) << text << " " << i;
      }
      EXPECT_EQ(batch.targets[i].target.index[0], i);
      EXPECT_NEAR(batch.targets[i].value, one.targets[0].value, 1e-12 * (1 + std::abs(one.targets[0].value)));
      EXPECT_LE(Apart(PartsOf(batch.targets[i]), PartsOf(one.targets[0])), 1e-9 * size) << text << " " << i;
    }
  }
}

TEST(Attribute, GivesEachExampleEveryTarget) {
  const Tensor x = Random({5, 6}, 1);
  const Tensor b = Random({5, 6}, 2);
  const auto run = [](const Tensor& t) { return at::linear(at::gelu(at::linear(t, Weight())), Weight()); };
  const std::vector<std::string> texts = {"2", "probability:top1", "0-3", "entropy"};
  AttributeOptions options;
  options.each_example = options.every_target = true;
  options.targets = Asked(texts);
  const Attribution all = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  ASSERT_EQ(all.targets.size(), 20u);
  ASSERT_EQ(all.inputs[0].sizes(), at::IntArrayRef({4, 5, 6}));
  for (size_t t = 0; t < texts.size(); ++t) {
    AttributeOptions single;
    single.each_example = true;
    single.targets = Asked({texts[t]});
    const Attribution own = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, single);
    EXPECT_LE(Apart(all.inputs[0][static_cast<int64_t>(t)], own.inputs[0]), 1e-13) << texts[t];
    for (size_t i = 0; i < 5; ++i) {
      const Contributions& found = all.targets[5 * t + i];
      EXPECT_TRUE(found.target == own.targets[i].target) << texts[t];
      EXPECT_EQ(found.value, own.targets[i].value);
      EXPECT_NEAR(found.leftover, own.targets[i].leftover, 1e-13);
      EXPECT_LE(Apart(PartsOf(found), PartsOf(own.targets[i])), 1e-13) << texts[t];
    }
  }
  AttributeOptions lonely;
  lonely.every_target = true;
  EXPECT_THAT(MessageOf([&] { Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, lonely); }),
              HasSubstr("every_target is for examples"));
}

// One sentence, whatever the number of examples.
TEST(Attribute, SaysOnceThatABatchIsOfProbabilities) {
  const auto run = [](const Tensor& t) { return at::linear(t, Weight()).softmax(-1); };
  AttributeOptions options;
  options.each_example = true;
  options.targets = Asked({"log_probability:2"});
  const Attribution found = Attribute(ModelOf(run), {SplitInput(Random({7, 6}, 1), {1}, Random({7, 6}, 2))}, options);
  EXPECT_THAT(found.report.notes,
              Contains(HasSubstr("target log_probability:0,2 (and 6 others) takes a softmax of are probabilities")));
}

// ---- elements

TEST(ReadTargets, ElementsAreOnes) {
  const Composition parts = Parts(1);
  const Target found = FindElements(parts.recovery(), ParseTarget("0,3-0,1"));
  const TargetNumbers numbers = ReadTargets(parts.recovery(), parts.reference(), {found});
  EXPECT_TRUE(numbers.rows.empty());
  Tensor expected = at::zeros({1, 1, 4, 5}, at::kDouble);
  expected[0][0][0][3] = 1;
  expected[0][0][0][1] = -1;
  EXPECT_TRUE(at::equal(numbers.Cotangent(1), expected));
  EXPECT_EQ(numbers.brackets[0], 0);
  EXPECT_THAT(NotesOfTarget(parts.recovery(), found, {}), IsEmpty());
}

}  // namespace
}  // namespace addend

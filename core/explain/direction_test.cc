// Components that come back from what is asked for: the same compositions as those that went forward, and what happens
// where they are not.
#include "core/linearize/direction.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"
#include "core/model/script_testing.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

void ExpectSame(const Decomposed& a, const Decomposed& b, double tolerance = 1e-10) {
  const Tensor& given = a.composition.components();
  const Tensor& wanted = b.composition.components();
  ASSERT_EQ(given.sizes(), wanted.sizes());
  ASSERT_EQ(given.scalar_type(), wanted.scalar_type());
  const double scale = std::max({wanted.abs().max().item<double>(), a.value.abs().max().item<double>(), 1.0});
  EXPECT_LE((given - wanted).abs().max().item<double>(), tolerance * scale);
  EXPECT_LE((a.composition.leftover() - b.composition.leftover()).abs().max().item<double>(), tolerance * scale);
  EXPECT_TRUE(at::equal(a.composition.reference(), b.composition.reference()));
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

Decomposition Explain(const Function& function, const std::vector<Input>& inputs, DecomposeOptions options,
                      Direction direction) {
  options.direction = direction;
  at::manual_seed(5);
  Decomposition result = TracedModel(FromFunction(function)).Decompose(inputs, options);
  if (direction != Direction::kAuto) {
    EXPECT_EQ(result.report.backward, direction == Direction::kBackward);
  }
  return result;
}

// Returns the one that came back.
Decomposition ExpectSameBothWays(const Function& function, const std::vector<Input>& inputs,
                                 const DecomposeOptions& options = {}, double tolerance = 1e-10) {
  const Decomposition forward = Explain(function, inputs, options, Direction::kForward);
  Decomposition backward = Explain(function, inputs, options, Direction::kBackward);
  EXPECT_EQ(backward.numc, forward.numc);
  EXPECT_EQ(backward.report.checks.size(), forward.report.checks.size());
  EXPECT_FALSE(forward.outputs.empty());
  EXPECT_EQ(backward.outputs.size(), forward.outputs.size());
  EXPECT_EQ(backward.probes.size(), forward.probes.size());
  for (size_t k = 0; k < forward.outputs.size(); ++k) ExpectSame(backward.outputs[k], forward.outputs[k], tolerance);
  for (size_t k = 0; k < forward.probes.size(); ++k) ExpectSame(backward.probes[k], forward.probes[k], tolerance);
  return backward;
}

class BothWays : public testing::TestWithParam<SmallModel> {};

TEST_P(BothWays, GiveTheSame) {
  Input input = SplitInput(Random({2, 6}, 1), {1});
  input.baseline = Baseline::Of(Random({2, 6}, 2));
  const Function model = [](const std::vector<Tensor>& in) { return GetParam().run(in[0].clone()); };
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    for (const Bias bias : {Bias::kResidual, Bias::kSignThreshold}) {
      for (const bool everything : {false, true}) {
        DecomposeOptions options;
        options.policy.preset = preset;
        options.policy.bias = bias;
        options.everything = everything;
        ExpectSameBothWays(model, {input}, options);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, BothWays, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

using DirectionsOfScripts = ScriptTest;

TEST_P(DirectionsOfScripts, GiveTheSame) {
  std::vector<Input> inputs;
  for (const Tensor& tensor : inputs_) {
    Input input;
    input.value = tensor;
    input.split = Split::AlongDims({1});
    inputs.push_back(input);
  }
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    DecomposeOptions options;
    options.policy.preset = preset;
    options.direction = Direction::kForward;
    const Decomposition forward = TracedModel(model_).Decompose(inputs, options);
    options.direction = Direction::kBackward;
    const Decomposition backward = TracedModel(model_).Decompose(inputs, options);
    EXPECT_TRUE(backward.report.backward);
    ASSERT_EQ(backward.outputs.size(), forward.outputs.size());
    for (size_t k = 0; k < forward.outputs.size(); ++k) ExpectSame(backward.outputs[k], forward.outputs[k], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, DirectionsOfScripts, testing::ValuesIn(ScriptCases()),
                         [](const auto& info) { return info.param.model; });

TEST(Directions, LabelsThatCountForNobodyGivenPartsAndProbes) {
  DecomposeOptions options;
  options.probes = {"aten::gelu", "aten::tanh"};
  ExpectSameBothWays(TanhTimesGelu, LabelledAndParts(), options);
}

TEST(Directions, IdsOfAnEmbedding) {
  Input ids;
  ids.value = at::tensor({4, 1, 0, 3, 2, 2}, at::kLong);
  ids.split = Split::AlongDims({0});
  ids.baseline = Baseline::Of(0.0);
  const Tensor weight = Random({5, 3}, 8);
  ExpectSameBothWays([&](const std::vector<Tensor>& in) { return at::embedding(weight, in[0]).cumsum(0).exp(); },
                     {ids});
}

TEST(Directions, SegmentsOfTheLine) {
  DecomposeOptions options;
  options.policy.segments = 3;
  ExpectSameBothWays([](const std::vector<Tensor>& in) { return at::sigmoid(in[0]) * in[0].sum(1, true).exp(); },
                     {SplitInput(Random({3, 7}, 9), {1})}, options);
}

TEST(Directions, ComplexNumbersHaveATargetForEachPart) {
  const Tensor phases = at::complex(Random({6, 4}, 14), Random({6, 4}, 15));
  const Function model = [&](const std::vector<Tensor>& in) {
    return at::matmul(in[0].to(at::kComplexDouble), phases);
  };
  const Decomposition result = ExpectSameBothWays(model, {SplitInput(Random({3, 6}, 16), {1})});
  EXPECT_TRUE(result.outputs[0].composition.components().is_complex());
}

TEST(Directions, SingleAndHalfPrecision) {
  const Function model = [](const std::vector<Tensor>& in) {
    return at::gelu(at::matmul(in[0], Random({6, 5}, 17).to(in[0].scalar_type())));
  };
  ExpectSameBothWays(model, {SplitInput(Random({3, 6}, 18).to(at::kFloat), {1})}, {}, 1e-5);
  ExpectSameBothWays(model, {SplitInput(Random({3, 6}, 18).to(at::kBFloat16), {1})}, {}, 1e-5);
}

TEST(Directions, WhatDoesNotDependOnTheInputIsAnErrorBothWays) {
  Input plain;
  plain.value = Random({1, 6}, 19);
  const Function model = [](const std::vector<Tensor>& in) { return in[1].mul(2); };
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const std::string error = MessageOf([&] {
      Explain(model, {SplitInput(Random({1, 6}, 20), {1}), plain}, DecomposeOptions(), direction);
    });
    EXPECT_THAT(error, HasSubstr("no component reaches output"));
  }
}

// Both infinities of a masked score are nobody's; what comes after them is finite again.
TEST(Directions, MasksOnTheWay) {
  const Tensor mask = at::tril(at::ones({6, 6})).eq(0);
  ExpectSameBothWays(
      [&](const std::vector<Tensor>& in) {
        const Tensor scores = at::matmul(in[0].t(), in[0]).masked_fill(mask, -std::numeric_limits<double>::infinity());
        return at::matmul(scores.softmax(1), in[0].t());
      },
      {SplitInput(Random({4, 6}, 21), {1})});
}

// ---- the choice

Tensor Classified(const std::vector<Tensor>& in) {
  return at::matmul(at::relu(at::matmul(in[0], Random({300, 500}, 11))), Random({500, 3}, 12));
}

TEST(Directions, BackwardWhereItSavesMuch) {
  const Input many = SplitInput(Random({4, 300}, 10), {1});
  const DecomposeOptions options;
  EXPECT_TRUE(Explain(Classified, {many}, options, Direction::kAuto).report.backward);
  // A small model has little to save.
  const Function small = [](const std::vector<Tensor>& in) { return in[0].exp().sum(); };
  EXPECT_FALSE(Explain(small, {SplitInput(Random({1, 20}, 10), {1})}, options, Direction::kAuto).report.backward);
  // Hidden numbers are as many as components are.
  DecomposeOptions probed;
  probed.probes = {"aten::relu"};
  EXPECT_FALSE(Explain(Classified, {many}, probed, Direction::kAuto).report.backward);
  DecomposeOptions everything;
  everything.everything = true;
  EXPECT_FALSE(Explain(Classified, {many}, everything, Direction::kAuto).report.backward);
  DecomposeOptions chunked;
  chunked.chunk = 100;
  EXPECT_FALSE(Explain(Classified, {many}, chunked, Direction::kAuto).report.backward);
  DecomposeOptions joint;
  joint.policy.nonlinearity = Nonlinearity::kAbsAffine;
  EXPECT_FALSE(Explain(Classified, {many}, joint, Direction::kAuto).report.backward);
}

TEST(Directions, WhatCannotBeDoneBackwardIsAnError) {
  DecomposeOptions options;
  options.direction = Direction::kBackward;
  options.policy.nonlinearity = Nonlinearity::kAbsAffine;
  const Input input = SplitInput(Random({4, 300}, 10), {1});
  try {
    TracedModel(FromFunction(Classified)).Decompose({input}, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(e.what(), HasSubstr("aten::relu"));
    EXPECT_THAT(e.what(), HasSubstr("cannot be found backward"));
  }
  options.policy.nonlinearity = Policy().nonlinearity;
  options.chunk = 7;
  EXPECT_THROW(TracedModel(FromFunction(Classified)).Decompose({input}, options), Error);
}

TEST(Directions, TheBudgetHoldsForCotangents) {
  const Input input = SplitInput(Random({4, 300}, 10), {1});
  std::vector<int64_t> steps;
  DecomposeOptions options;
  options.progress = [&](const std::string& stage, int64_t done, int64_t total) {
    if (stage != "sweep") return;
    EXPECT_LE(done, total);
    steps.back() = total;
  };
  const Decomposition forward = Explain(Classified, {input}, DecomposeOptions(), Direction::kForward);
  for (const int64_t bytes : {int64_t{0}, int64_t{1} << 20, int64_t{1} << 18}) {
    options.memory_bytes = bytes;
    steps.push_back(0);
    ExpectSame(Explain(Classified, {input}, options, Direction::kBackward).outputs[0], forward.outputs[0]);
  }
  options.memory_bytes = 1000;
  steps.push_back(0);
  try {
    Explain(Classified, {input}, options, Direction::kBackward);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("does not fit into 1000 bytes: that takes "));
  }
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_LT(steps[1], steps[2]);
}

// ---- failures

// Passes rows on, and gives back another multiple of cotangents.
class Crooked : public LinearMap {
 public:
  explicit Crooked(double forward) : forward_(forward) {}
  Rows Forward(const Rows& rows) const override { return {rows[0] * forward_}; }
  Rows Transpose(const Rows& cotangents) const override { return {cotangents[0] * 1.01}; }

 private:
  double forward_;
};

Registry WithClone(double forward) {
  Registry registry = Registry::Default();
  registry.Register(Rule{"aten::clone", Kind::kLinear, [forward](const RuleCall&) {
                           RuleResult result;
                           result.inputs = {0};
                           result.map = std::make_shared<Crooked>(forward);
                           return result;
                         }});
  return registry;
}

Tensor Cloned(const std::vector<Tensor>& in) { return in[0].clone().exp(); }

TEST(Directions, AWrongTransposeIsFoundAndNotUsed) {
  const Registry registry = WithClone(1);
  DecomposeOptions options;
  options.registry = &registry;
  options.direction = Direction::kBackward;
  const Input input = SplitInput(Random({2, 6}, 13), {1});
  const Decomposition result = TracedModel(FromFunction(Cloned)).Decompose({input}, options);
  EXPECT_FALSE(result.report.backward);
  EXPECT_THAT(result.report.notes, testing::Contains(HasSubstr("they were sent forward")));
  ExpectSame(result.outputs[0], Explain(Cloned, {input}, DecomposeOptions(), Direction::kForward).outputs[0]);
}

TEST(Directions, AWrongMapFailsAsItDoesForward) {
  const Registry registry = WithClone(1.01);
  DecomposeOptions options;
  options.registry = &registry;
  options.direction = Direction::kBackward;
  const Input input = SplitInput(Random({2, 6}, 13), {1});
  EXPECT_THROW(TracedModel(FromFunction(Cloned)).Decompose({input}, options), Error);
  options.policy.on_failure = OnFailure::kAbsorb;
  const Decomposition absorbed = TracedModel(FromFunction(Cloned)).Decompose({input}, options);
  EXPECT_FALSE(absorbed.report.backward);
  EXPECT_EQ(absorbed.report.failures.size(), 1u);
  EXPECT_LE((absorbed.outputs[0].composition.recovery() - absorbed.outputs[0].value).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace addend

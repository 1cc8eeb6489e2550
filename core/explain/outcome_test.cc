// Tests of what is said first: recovery by the output's own scale, conditioning, leftover, baselines that nobody gave,
// and masks that swallow what is added to them.
#include "core/explain/outcome.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/explain/output_scales.h"
#include "core/explain/several_baselines.h"
#include "core/explain/target_numbers.h"
#include "core/linearize/settle.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kLowest = std::numeric_limits<float>::lowest();

Input WithoutBaseline(const Tensor& value, std::vector<int64_t> dims) {
  Input input;
  input.value = value;
  input.split = Split::AlongDims(std::move(dims));
  return input;
}

double Apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// Every product shared by half, which is the ill-conditioned choice where norms start from nothing.
Policy ByHalf(Preset preset = Preset::kFaithful, OnFailure on_failure = OnFailure::kError) {
  Policy policy;
  policy.preset = preset;
  policy.content_first = kFreezeNothing;
  policy.on_failure = on_failure;
  return policy;
}

// ---- recovery by the output's own scale

TEST(OwnAllowance, IsHalfOfTheDigits) {
  EXPECT_DOUBLE_EQ(OwnAllowance(true, 2, 0, {}), 2e-3);
  EXPECT_DOUBLE_EQ(OwnAllowance(false, 2, 0, {}), 8e-8);
  EXPECT_DOUBLE_EQ(OwnAllowance(true, 2, 0, 0.5), 1);
  EXPECT_DOUBLE_EQ(OwnAllowance(true, 2, 0, 1e-9), 2e-3);
  // A reference is rounded as well, a thousand times less than what is allowed of a value.
  EXPECT_NEAR(OwnAllowance(true, 0, 1, {}), 1e-3, 1e-5);
  EXPECT_NEAR(OwnAllowance(true, 1e-9, 0.5, {}), 1e-6, 1e-7);
  EXPECT_EQ(OwnAllowance(true, 0, 0, {}), std::numeric_limits<double>::infinity());
}

TEST(RecoveryLimits, AreTheirDtypes) {
  EXPECT_EQ(RecoveryLimitsOf(true, {}).told, 1e-3);
  EXPECT_EQ(RecoveryLimitsOf(true, {}).failed, 1e-2);
  EXPECT_EQ(RecoveryLimitsOf(false, {}).told, 1e-9);
  EXPECT_EQ(RecoveryLimitsOf(false, {}).failed, 1e-8);
  EXPECT_EQ(RecoveryLimitsOf(true, 5e-3).told, 5e-3);
  EXPECT_EQ(RecoveryLimitsOf(true, 5e-3).failed, 1e-2);
  EXPECT_EQ(RecoveryLimitsOf(false, 1e-3).failed, 1e-3);
}

Target At(std::vector<int64_t> index, std::vector<int64_t> subtract = {}) {
  Target target;
  target.top1 = false;
  target.index = std::move(index);
  target.subtract = std::move(subtract);
  return target;
}

TEST(OutputScales, AreThoseOfRows) {
  const double infinity = std::numeric_limits<double>::infinity();
  const OutputScales table(at::tensor({1.0, -3.0, 20.0, infinity, 0.0, 0.0}, at::kDouble).view({3, 2}));
  EXPECT_EQ(table.Of(At({0, 0})), 3);
  EXPECT_EQ(table.Of(At({1, 1})), 20);
  EXPECT_EQ(table.Of(At({2, 0})), 20) << "a row of zeros has the scale of the whole output";
  EXPECT_EQ(table.Of(At({0, 0}, {1, 0})), 20);
  EXPECT_EQ(table.whole(), 20);
  // A regression gives one number for each row, which is its own scale; one dimension alone is a row, unless examples
  // have targets of their own.
  const Tensor two = at::tensor({1.0, -3.0}, at::kDouble);
  EXPECT_EQ(OutputScales(two).Of(At({0})), 3);
  EXPECT_EQ(OutputScales(two, /*each_example=*/true).Of(At({0})), 1);
  EXPECT_EQ(OutputScales(two.view({2, 1})).Of(At({0, 0})), 1);
  EXPECT_EQ(OutputScales(two.view({2, 1}), /*each_example=*/true).Of(At({1, 0})), 3);
  EXPECT_EQ(OutputScales(two.view({1, 2, 1})).Of(At({0, 0, 0})), 3);
  EXPECT_EQ(OutputScales(two.view({2, 1, 1, 1})).Of(At({0, 0, 0, 0})), 1);
  EXPECT_EQ(OutputScales(at::tensor(2.0, at::kDouble)).Of(At({})), 2);
  // Positions of a sequence, and images.
  const Tensor numbers = at::arange(1, 25, at::kDouble).view({2, 3, 4});
  EXPECT_EQ(OutputScales(numbers).Of(At({1, 1, 0})), 20);
  EXPECT_EQ(OutputScales(numbers.view({2, 3, 2, 2})).Of(At({0, 1, 0, 0})), 12);
  // Whatever their dtype and layout.
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kComplexFloat}) {
    EXPECT_EQ(OutputScales(numbers.to(dtype)).Of(At({1, 1, 0})), 20) << dtype;
    EXPECT_EQ(OutputScales(numbers.to(dtype).transpose(1, 2)).Of(At({1, 3, 0})), 24) << dtype;
  }
  EXPECT_EQ(OutputScales(at::empty({0, 3})).whole(), 0);
}

TEST(OutputScales, OfRegionsAndContinuationsAreTheirExamples) {
  const OutputScales scales(at::tensor({1.0, -2.0, 30.0, 40.0, 0.0, 0.0}, at::kDouble).view({3, 2, 1}), true);
  Target region;
  region.quantity = Target::Quantity::kRegion;
  region.region = {{0, std::nullopt, true}, {0, std::nullopt, false}, {0, std::nullopt, true}};
  EXPECT_EQ(scales.Of(region), 4);
  region.region[0] = {1, std::nullopt, true};
  EXPECT_EQ(scales.Of(region), 80);
  region.region[0] = {2, std::nullopt, true};
  EXPECT_EQ(scales.Of(region), 80) << "an example of zeros has the scale of the whole output";
  region.region[0] = {0, std::nullopt, false};
  EXPECT_EQ(scales.Of(region), 40 * 6);
  Target continuation = At({0});
  continuation.quantity = Target::Quantity::kContinuation;
  continuation.ids = {0, 0};
  EXPECT_EQ(scales.Of(continuation), 4);
  EXPECT_TRUE(scales.IsOfZeros(At({2, 1, 0})));
  EXPECT_FALSE(scales.IsOfZeros(At({1, 1, 0})));
  EXPECT_FALSE(scales.IsOfZeros(At({2, 1, 0}, {1, 0, 0})));
}

TEST(OutputScales, OfQuantitiesAreWhatTheyChangeWith) {
  const OutputScales table(at::tensor({101.0, 97.0, 20.0, 20.25}, at::kDouble).view({2, 2}));
  const auto of = [&](Target::Quantity quantity, std::vector<int64_t> index) {
    Target target = At(std::move(index));
    target.quantity = quantity;
    return table.Of(target);
  };
  EXPECT_EQ(of(Target::Quantity::kLogProbability, {0, 1}), 4);
  EXPECT_EQ(of(Target::Quantity::kEntropy, {1}), 0.25);
  EXPECT_EQ(of(Target::Quantity::kProbability, {0, 1}), 1);
  EXPECT_EQ(of(Target::Quantity::kProbability, {1, 0}), 0.25);
  Target continuation = At({});
  continuation.quantity = Target::Quantity::kContinuation;
  continuation.ids = {1, 0, 1};
  EXPECT_EQ(table.Of(continuation), 303);
  Target sum = At({});
  sum.quantity = Target::Quantity::kSum;
  sum.parts = {At({0, 0}), At({1, 0})};
  EXPECT_EQ(table.Of(sum), 121.25);
}

// Numbers of 1e6 that cancel leave a rounding which is no failure of their parts, whatever form the last operator has.
TEST(OwnTerms, AreThoseOfTheLastOperator) {
  const Tensor x = Random({2, 5}, 3, at::kFloat);
  const Tensor columns = at::zeros({5, 2}, at::kFloat);
  columns[0][0] = 1;
  columns[1][0] = -1;
  columns[2][1] = 1;
  columns[3][1] = -1;
  const Input of_x = SplitInput(x, {1}, x * 0.5);
  const auto far = [](const Tensor& t) { return t + 1e6; };
  const TracedModel plain = ModelOf([&](const Tensor& t) { return far(t) - 1e6; });
  const TracedModel viewed = ModelOf([&](const Tensor& t) { return (far(t) - 1e6).view({5, 2}); });
  const TracedModel product(FromFunction([&](const std::vector<Tensor>& in) { return at::matmul(far(in[0]), in[1]); }));
  const auto expect_no_failure = [](const TracedModel& model, const std::vector<Input>& inputs,
                                    const std::vector<int64_t>& memories) {
    for (const int64_t memory : memories) {
      AttributeOptions options;
      options.policy.preset = Preset::kFaithful;
      options.targets = {ParseTarget("0,0"), ParseTarget("1,1")};
      options.memory_bytes = memory;
      EXPECT_TRUE(Attribute(model, inputs, options).report.failures.empty());
    }
    DecomposeOptions options;
    options.policy.preset = Preset::kFaithful;
    EXPECT_TRUE(model.Decompose(inputs, options).report.failures.empty());
  };
  expect_no_failure(plain, {of_x}, {0, 1 << 20});
  expect_no_failure(viewed, {of_x}, {0, 1 << 20});
  expect_no_failure(product, {of_x, SplitInput(columns, {1})}, {0});
}

// A number that is zero is measured by what cancels in it.
TEST(RecoveryOfZeros, IsMeasuredByTheParts) {
  const TracedModel model(
      FromFunction([](const std::vector<Tensor>& in) { return (at::tanh(in[0]) - at::tanh(in[1])) * 2; }));
  const Tensor x = Random({3, 40}, 3, at::kFloat);
  const std::vector<Input> inputs = {SplitInput(x, {1}), SplitInput(x.clone(), {1})};
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  options.direction = Direction::kForward;
  const TracedModel sums(
      FromFunction([](const std::vector<Tensor>& in) { return (in[0].exp().sum(1) - in[1].exp().sum(1)) * 2; }));
  for (const TracedModel& one : {model, sums}) {
    const Decomposition found = one.Decompose(inputs, options);
    EXPECT_EQ(found.outputs[0].value.abs().max().item<double>(), 0);
    EXPECT_TRUE(found.report.failures.empty());
    EXPECT_THAT(found.report.notes, Not(Contains(HasSubstr("recovery is off"))));
  }
}

// Each row is judged by its own scale: a small one beside a large one.
TEST(RecoveryOfRows, IsSaidOfTheRow) {
  const TracedModel model = ModelOf([](const Tensor& x) {
    const Tensor far = (x + 3e4) - 3e4;  // two digits are lost
    return far * at::tensor({1.0, 1e6}, at::kFloat).view({2, 1});
  });
  DecomposeOptions options;
  options.policy = ByHalf(Preset::kFaithful, OnFailure::kWarn);
  options.policy.check = Check::kOutputs;
  const Tensor x = Random({2, 5}, 3, at::kFloat);
  const Decomposition result = model.Decompose({SplitInput(x, {1}, at::full({2, 5}, -3e4, at::kFloat))}, options);
  const Composition& parts = result.outputs[0].composition;
  const Tensor off = (parts.recovery() - parts.value()).abs().amax(1) / parts.value().abs().amax(1);
  const bool said = !result.report.notes.empty() && (result.report.notes[0].rfind("recovery is off", 0) == 0 ||
                                                     result.report.notes[0].rfind("tracing failure", 0) == 0);
  EXPECT_EQ(said, off.max().item<double>() > 1e-3) << off;
}

bool Flagged(const std::vector<std::string>& notes) {
  return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.rfind("recovery is off", 0) == 0 || note.rfind("tracing failure", 0) == 0;
  });
}

// Examples that have targets of their own are judged each by its own output, however small it is beside others, and
// whether the output has one number for each or one row.
TEST(RecoveryOfExamples, IsSaidOfEach) {
  constexpr double kSmall = 1e-4;
  for (const bool lost : {true, false}) {
    for (const int64_t classes : {0, 1, 3}) {  // 0: [examples]
      const Tensor weight = at::tensor({kSmall, 1.0, 1e4, 1.0}, at::kFloat).view({4, 1});
      const TracedModel model = ModelOf([&](const Tensor& x) {
        const Tensor far = lost ? (x + 3e4) - 3e4 : x * 2;  // two digits are lost
        const Tensor sums = far.sum(1, /*keepdim=*/true) * weight;
        return classes == 0 ? sums.squeeze(1) : sums.expand({4, classes}) * 1;
      });
      const Tensor x = Random({4, 5}, 3, at::kFloat);
      const Input input = SplitInput(x, {1}, at::full({4, 5}, lost ? -3e4 : -0.5, at::kFloat));
      AttributeOptions options;
      options.policy = ByHalf(Preset::kFaithful, OnFailure::kWarn);
      options.policy.check = Check::kOutputs;
      options.each_example = true;
      options.targets = {ParseTarget(classes == 0 ? "()" : "0")};
      const Attribution found = Attribute(model, {input}, options);
      double worst = 0;
      for (const Contributions& target : found.targets) {
        const double sum = std::accumulate(target.contributions.begin(), target.contributions.end(), target.reference);
        worst = std::max(worst, std::abs(target.value - sum) / std::abs(target.value));
      }
      if (lost) {
        EXPECT_GT(worst, 1e-3);
      } else {
        EXPECT_LT(worst, 1e-5);
      }
      EXPECT_EQ(Flagged(found.report.notes), lost) << classes << testing::PrintToString(found.report.notes);
    }
  }
}

// The sum that readers make of the parts of an explanation is judged as what was added in single precision: parts that
// happen to add up there need not do so as they stand.
TEST(RecoveryOfExplanations, IsThatOfTheNumbersThatStandThere) {
  const Tensor value = at::full({1}, 0.01, at::kFloat);
  // In single precision 1e4 + 1e-4 is 1e4.
  const Tensor components = at::full({200, 1}, 1e-4, at::kFloat);
  components[0][0] = 1e4;
  const Tensor reference = at::full({1}, -1e4 + 0.01, at::kFloat);
  Origin origin;
  origin.value = (components.sum(0) + reference).clone();
  const Composition parts = Composition::FromOperator(components, reference, at::zeros({1}, at::kFloat), origin);
  const Contributions numbers = Contribute(parts.value(), parts, ParseTarget("0"));
  const double off = std::abs(numbers.recovery - numbers.value) / std::abs(numbers.value);
  ASSERT_GT(off, 1e-3);
  const std::vector<std::string> notes = NotesOfRecovery("", {numbers}, nullptr);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("recovery is off: the parts of output at 0 differ from its value by"));
  EXPECT_THAT(notes[0], HasSubstr("compute_dtype=float64"));
  // A run that has said so of the output, or whose policy judges nothing, is asked no more.
  Report report;
  report.policy.on_failure = OnFailure::kWarn;
  EXPECT_EQ(NotesOfRecovery("", {numbers}, &report).size(), 1u);
  report.notes = {"recovery is off: the parts of output differ from its value by 5 %"};
  EXPECT_TRUE(NotesOfRecovery("", {numbers}, &report).empty());
  EXPECT_EQ(NotesOfRecovery("layer", {numbers}, &report).size(), 1u);
  report.policy.check = Check::kOff;
  EXPECT_TRUE(NotesOfRecovery("layer", {numbers}, &report).empty());
  // A recovery that adds up gives no note.
  const Composition whole = Composition::Diagonal(Random({5}, 3, at::kFloat), {0});
  EXPECT_TRUE(NotesOfRecovery("", {Contribute(whole.value(), whole, ParseTarget("2"))}, nullptr).empty());
}

// Both sums of a decomposition's parts are judged, in single precision and in double.
TEST(RecoveryOfOutputs, IsThatOfEitherSum) {
  const TracedModel model = ModelOf([](const Tensor& x) { return (x - 2000).sum(1, /*keepdim=*/true) * 3; });
  int off = 0;
  for (int64_t seed = 0; seed < 40; ++seed) {
    const Tensor x = Random({1, 8}, seed, at::kFloat) * 0.01 + 2000;
    DecomposeOptions options;
    options.policy = ByHalf(Preset::kFaithful, OnFailure::kWarn);
    const Decomposition found = model.Decompose({SplitInput(x, {1})}, options);
    const Composition& parts = found.outputs[0].composition;
    const double value = parts.value().item<double>();
    const double single = parts.recovery().item<double>();
    const double exact = parts.components().to(at::kDouble).sum().item<double>() +
                         parts.reference().to(at::kDouble).item<double>() +
                         parts.leftover().to(at::kDouble).item<double>();
    const double error = std::max(std::abs(single - value), std::abs(exact - value)) / std::abs(value);
    off += error > 1e-3;
    if (error > 1e-3) {
      EXPECT_TRUE(Flagged(found.report.notes)) << error;
    }
    if (error < 1e-5) {
      EXPECT_FALSE(Flagged(found.report.notes)) << error;
    }
  }
  EXPECT_GT(off, 0);
}

// The determinant of a singular matrix is the rounding of the products that it is made of.
TEST(Determinants, OfSingularMatricesAreHeldToTheirProducts) {
  const auto model = [](const Tensor& x) { return at::linalg_det(x); };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t n : {3, 6, 10}) {
      const Tensor thin = Random({4, n, n - 1}, 7, dtype) * 3;
      const Tensor singular = at::matmul(thin, thin.transpose(-2, -1));
      for (const Tensor& baseline : {at::zeros_like(singular), singular * 0.01, Random({4, n, n}, 8, dtype)}) {
        Input input = WithoutBaseline(singular, {1});
        input.baseline = Baseline::Of(baseline);
        for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
          DecomposeOptions options;
          options.direction = direction;
          const Decomposition found = ModelOf(model).Decompose({input}, options);
          EXPECT_TRUE(found.report.failures.empty()) << n;
          AttributeOptions asked;
          asked.targets = {ParseTarget("2")};
          EXPECT_TRUE(Attribute(ModelOf(model), {input}, asked).report.failures.empty()) << n;
        }
      }
    }
  }
}

enum class Norm { kInstance, kGroup, kLayer };

// Convolutions, or products, each behind the norm of the one before.
std::function<Tensor(const Tensor&)> NormStack(Norm norm, int depth, at::ScalarType dtype = at::kFloat) {
  std::vector<Tensor> weights;
  for (int k = 0; k < depth; ++k) weights.push_back(Random({8, 8, 3, 3}, 40 + k, dtype) * 0.2);
  return [=](const Tensor& x) {
    Tensor y = x;
    for (const Tensor& weight : weights) {
      y = at::conv2d(y, weight, {}, 1, 1);
      if (norm == Norm::kInstance) y = at::instance_norm(y, {}, {}, {}, {}, true, 0.1, 1e-5, false);
      if (norm == Norm::kGroup) y = at::group_norm(y, 4);
      if (norm == Norm::kLayer) y = at::layer_norm(y, {8, 6, 6});
      y = at::relu(y);
    }
    return y.mean({2, 3});
  };
}

class NormStacks : public testing::TestWithParam<Norm> {
 protected:
  NormStacks() : input_(SplitInput(Random({1, 8, 6, 6}, 5, at::kFloat), {2})) {}
  Decomposition Decompose(int depth, OnFailure on_failure, Direction direction = Direction::kForward) const {
    DecomposeOptions options;
    options.policy = ByHalf(Preset::kFaithful, on_failure);
    options.direction = direction;
    return ModelOf(NormStack(GetParam(), depth)).Decompose({input_}, options);
  }
  Input input_;
};

TEST_P(NormStacks, WhatIsOffByMoreThanTheOutputIsAFailure) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const std::string message = MessageOf([&] { Decompose(8, OnFailure::kError, direction); });
    EXPECT_THAT(message, HasSubstr("tracing failure: the parts of output differ from its value by"));
    EXPECT_THAT(message, HasSubstr("op #"));
    EXPECT_THAT(message, HasSubstr("float64"));
  }
  const Decomposition warned = Decompose(8, OnFailure::kWarn);
  const Composition& parts = warned.outputs[0].composition;
  ASSERT_GT(Apart(parts.recovery(), parts.value()), 1e-3 * parts.value().abs().max().item<double>());
  EXPECT_EQ(warned.report.failures.size(), 1u);
  EXPECT_GE(warned.report.conditioning, 1e3);
  EXPECT_THAT(warned.report.notes[0], HasSubstr("tracing failure: the parts of output"));
  EXPECT_THAT(warned.report.notes, Contains(HasSubstr("ill-conditioned")));
  const Decomposition ignored = Decompose(8, OnFailure::kIgnore);
  EXPECT_EQ(ignored.report.failures.size(), 1u);
  EXPECT_THAT(ignored.report.notes, Not(Contains(HasSubstr("tracing failure"))));
  const Decomposition absorbed = Decompose(8, OnFailure::kAbsorb);
  EXPECT_GE(absorbed.report.absorbed_failures, 1);
  EXPECT_THAT(absorbed.report.notes, Contains(HasSubstr("absorbed into the leftover")));
}

TEST_P(NormStacks, IsAFailureOfAttributionsToo) {
  AttributeOptions options;
  options.targets = {ParseTarget("0,1"), ParseTarget("0,3-0,2")};
  options.policy = ByHalf();
  const TracedModel model = ModelOf(NormStack(GetParam(), 8));
  const std::string message = MessageOf([&] { Attribute(model, {input_}, options); });
  EXPECT_THAT(message, HasSubstr("tracing failure"));
  options.policy = ByHalf(Preset::kFaithful, OnFailure::kWarn);
  const Attribution warned = Attribute(model, {input_}, options);
  EXPECT_GE(warned.report.failures.size(), 1u);
  EXPECT_GE(warned.report.conditioning, 1e3);
  EXPECT_THAT(warned.report.notes, Contains(HasSubstr("ill-conditioned: the parts of output come to")));
  options.policy = ByHalf(Preset::kFaithful, OnFailure::kAbsorb);
  const Attribution absorbed = Attribute(model, {input_}, options);
  EXPECT_GE(absorbed.report.absorbed_failures, 1);
}

// Norms of Llama and its kin compute in single precision, also in a model that is in double otherwise.
TEST(SinglePrecisionOnTheWay, IsAllowedItsRounding) {
  const Tensor weight = Random({6, 40}, 3);
  const auto model = [&](const Tensor& x) {
    const Tensor single = x.to(at::kFloat) + 64 - 64;  // rounded in the sixth digit
    const Tensor normed = single * at::rsqrt(single.pow(2).mean(-1, /*keepdim=*/true) + 1e-6);
    return at::matmul(weight, normed.to(at::kDouble));
  };
  const Tensor x = Random({40}, 4);
  Input input = WithoutBaseline(x, {0});
  input.baseline = Baseline::Of(Random({40}, 5));
  AttributeOptions options;
  for (int64_t k = 0; k < 6; ++k) options.targets.push_back(ParseTarget(std::to_string(k)));
  const Attribution found = Attribute(ModelOf(model), {input}, options);
  double missing = 0;
  for (const Contributions& target : found.targets) {
    missing = std::max(missing, std::abs(target.recovery - target.value));
    EXPECT_LE(std::abs(target.recovery - target.value), target.tolerance);
  }
  EXPECT_GT(missing, OwnAllowance(false, found.targets[0].scale, 0, {}));
  EXPECT_THAT(found.report.failures, testing::IsEmpty());
}

TEST_P(NormStacks, OfLaterBaselinesAreToldOnce) {
  AttributeOptions options;
  options.targets = {ParseTarget("0,1")};
  options.policy = ByHalf(Preset::kFaithful, OnFailure::kWarn);
  SeveralBaselines several;
  several.rows = at::zeros({3, 1, 8, 6, 6}, at::kFloat);
  const BaselinesAttribution found =
      AttributeBaselines(ModelOf(NormStack(GetParam(), 8)), {input_}, {several}, options, /*at_once=*/1);
  const std::vector<std::string>& notes = found.mean.report.notes;
  const auto told = std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("(in a run with a later baseline, and 2 more like it)") != std::string::npos;
  });
  EXPECT_EQ(told, 1) << testing::PrintToString(notes);
}

TEST_P(NormStacks, DoublePrecisionIsWhatHelps) {
  DecomposeOptions options;
  options.policy = ByHalf();
  const Input input = SplitInput(Random({1, 8, 6, 6}, 5), {2});
  const Decomposition result = ModelOf(NormStack(GetParam(), 3, at::kDouble)).Decompose({input}, options);
  const Composition& parts = result.outputs[0].composition;
  EXPECT_LE(Apart(parts.recovery(), parts.value()), 1e-8);
  // The number that is reported, from its definition.
  const double all = (parts.components().abs().sum() + parts.leftover().abs().sum()).item<double>();
  const double move = (parts.value() - parts.reference()).abs().sum().item<double>();
  const double reference = parts.reference().abs().sum().item<double>();
  const double conditioning = std::max(all, reference) / std::min(move, parts.value().abs().sum().item<double>());
  EXPECT_NEAR(result.report.conditioning, conditioning, 1e-9 * conditioning);
  ASSERT_GE(all / move, 1e3);
  EXPECT_THAT(result.report.notes, Contains(testing::AllOf(HasSubstr("ill-conditioned"), HasSubstr("grew most"))));
  EXPECT_EQ(result.report.failures.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, NormStacks, testing::Values(Norm::kInstance, Norm::kGroup, Norm::kLayer));

TEST(Outcome, SaysNothingOfAGoodRun) {
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  const Tensor weight = Weight();
  const TracedModel model = ModelOf([weight](const Tensor& x) { return at::tanh(at::linear(x, weight)); });
  const Decomposition result = model.Decompose({SplitInput(Random({2, 6}, 1), {1})}, options);
  EXPECT_TRUE(result.report.notes.empty()) << testing::PrintToString(result.report.notes);
  EXPECT_LT(result.report.conditioning, 20);
  EXPECT_LT(result.report.leftover_share, 1e-12);
}

TEST(Outcome, GrowthIsFoundWhereItIs) {
  // x times a million, less x times a million: the terms of the difference are a million times as large as x.
  const TracedModel model = ModelOf([](const Tensor& x) { return at::tanh(x) * 0.5 + (x * 1e6 - (x * 1e6 - 3 * x)); });
  DecomposeOptions options;
  options.policy.preset = Preset::kFaithful;
  const Tensor weights = Random({6, 1}, 3);
  const TracedModel cancels = ModelOf([&](const Tensor& x) {
    // One huge part more for each of two components, which cancel.
    const Tensor hidden = at::tanh(x);
    return hidden.mm(weights) + hidden.select(1, 0) * 1e7 - hidden.select(1, 1) * 1e7;
  });
  Tensor x = Random({1, 6}, 4);
  x[0][1] = x[0][0];
  const Decomposition result = cancels.Decompose({SplitInput(x, {1})}, options);
  EXPECT_GE(result.report.conditioning, 1e6);
  EXPECT_THAT(result.report.notes, Contains(testing::AllOf(HasSubstr("ill-conditioned"), HasSubstr("aten::"))));
  EXPECT_LT(model.Decompose({SplitInput(x, {1})}, options).report.conditioning, 20);
}

TEST(Outcome, ElementsMayCancelWhereComponentsDoNot) {
  const Tensor weights = at::tensor({1e4, -1e4, 0.01}, at::kFloat);
  const TracedModel model = ModelOf([&](const Tensor& x) { return at::mv(x, weights); });
  const auto notes_of = [&](const Tensor& x, const Tensor& labels) {
    AttributeOptions options;
    options.each_example = true;
    Input input = SplitInput(x, {1});
    input.split = Split::ByLabels(labels.expand(x.sizes()));
    return Attribute(model, {input}, options).report.notes;
  };
  const Tensor equal = at::tensor({0.5, 0.5, 1.0, 0.25, 0.25, 2.0}, at::kFloat).view({2, 3});
  const Tensor apart = at::tensor({0, 1, 2}, at::kLong);
  const Tensor together = at::tensor({0, 0, 1}, at::kLong);
  // 5e3 and 2.5e3, each twice, beside 0.01 and 0.02.
  EXPECT_THAT(notes_of(equal, together),
              Contains(HasSubstr("ill-conditioned: the parts of output, element by element, come to 500000 times")));
  EXPECT_THAT(notes_of(equal, apart), Contains(HasSubstr("ill-conditioned: the parts of output come to 500000 times")));
  EXPECT_THAT(notes_of(equal, apart), Not(Contains(HasSubstr("element by element"))));
  EXPECT_THAT(notes_of(at::tensor({0.5, 0.1, 1.0}, at::kFloat).view({1, 3}), together),
              Not(Contains(HasSubstr("ill-conditioned"))));
  // A target that is no number tells nothing of the others.
  const Tensor infinite = at::cat({equal, at::full({1, 3}, std::numeric_limits<float>::infinity())});
  EXPECT_THAT(notes_of(infinite, together), Contains(HasSubstr("output, element by element, come to 500000 times")));
}

TEST(Outcome, MuchLeftoverIsSaid) {
  DecomposeOptions options;
  options.policy = ByHalf(Preset::kFast);
  const TracedModel model = ModelOf([](const Tensor& x) { return at::layer_norm(x * x, {6}) + x.sum(); });
  const Decomposition result = model.Decompose({SplitInput(Random({2, 6}, 1), {1})}, options);
  const Composition& parts = result.outputs[0].composition;
  const double share = (parts.leftover().abs().sum() / (parts.value() - parts.reference()).abs().sum()).item<double>();
  EXPECT_NEAR(result.report.leftover_share, share, 1e-9);
  const bool said = testing::Value(result.report.notes, Contains(HasSubstr("is in no component")));
  EXPECT_EQ(said, share > 0.2) << share;
  // All of what rounding to whole numbers does is left over by its derivative.
  const TracedModel steps = ModelOf([](const Tensor& x) { return at::round(x * 10) + x; });
  options.policy = ByHalf();
  options.policy.nonlinearity = Nonlinearity::kGradient;
  EXPECT_THAT(steps.Decompose({SplitInput(Random({2, 6}, 1), {1})}, options).report.notes,
              Contains(HasSubstr("much is left over")));
  AttributeOptions backward;
  backward.policy = options.policy;
  backward.targets = {ParseTarget("0,0")};
  const Attribution found = Attribute(steps, {SplitInput(Random({2, 6}, 1), {1})}, backward);
  EXPECT_THAT(found.report.notes, Contains(HasSubstr("much is left over")));
}

TEST(Outcome, BaselinesThatNobodyGaveAreNamed) {
  DecomposeOptions options;
  const TracedModel model = ModelOf([](const Tensor& x) { return at::tanh(x); });
  const auto notes = [&](const Input& input) { return model.Decompose({input}, options).report.notes; };
  EXPECT_THAT(notes(WithoutBaseline(Random({2, 6}, 1), {1})),
              Contains(HasSubstr("no baseline was given: zero for input 0")));
  EXPECT_THAT(notes(SplitInput(Random({2, 6}, 1), {1})), Not(Contains(HasSubstr("no baseline"))));
  const Tensor table = Random({5, 3}, 2);
  const TracedModel embeds = ModelOf([&](const Tensor& ids) { return at::embedding(table, ids).sum(1); });
  Input ids = WithoutBaseline(at::tensor({4, 1, 2}, at::kLong).view({1, 3}), {1});
  ids.name = "words";
  EXPECT_THAT(embeds.Decompose({ids}, options).report.notes, Contains(HasSubstr("token 0 for words")));
  AttributeOptions backward;
  backward.targets = {ParseTarget("0,0")};
  EXPECT_THAT(Attribute(embeds, {ids}, backward).report.notes, Contains(HasSubstr("token 0 for words")));
}

// ---- masks

struct MaskCase {
  std::string name;
  double low;          // what masked keys get
  bool clamp = false;  // and the sum is not lower than that
  bool product = false;
};
void PrintTo(const MaskCase& mask, std::ostream* out) { *out << mask.name; }

// One head whose first two keys are padding, which the first two queries see nothing but.
class Masks : public testing::TestWithParam<MaskCase> {
 protected:
  static constexpr int64_t kLength = 5;
  static constexpr int64_t kPadding = 2;

  Masks() {
    for (int k = 0; k < 3; ++k) weights_.push_back(Random({4, 4}, 60 + k, at::kFloat));
    mask_ = at::full({kLength, kLength}, GetParam().low, at::kFloat).triu(1);
    mask_.narrow(1, 0, kPadding).fill_(GetParam().low);
  }
  TracedModel Model() const {
    return ModelOf([this](const Tensor& x) {
      const Tensor query = at::linear(x, weights_[0]);
      const Tensor key = at::linear(x, weights_[1]);
      const Tensor value = at::linear(x, weights_[2]);
      Tensor scores;
      if (GetParam().product) {
        scores = at::baddbmm(mask_.unsqueeze(0), query, key.transpose(1, 2));
      } else {
        scores = query.matmul(key.transpose(1, 2)) + mask_;
      }
      if (GetParam().clamp) scores = at::maximum(scores, at::full({}, GetParam().low, at::kFloat));
      return at::softmax(scores, -1).matmul(value);
    });
  }
  // The parts of a padded position's query: equal weights, whatever the scores are, so that a token gives a fifth of
  // its own value. [tokens, 4]
  Tensor PaddedParts(const Tensor& x) const { return at::linear(x[0], weights_[2]) / double(kLength); }

  std::vector<Tensor> weights_;
  Tensor mask_;
};

TEST_P(Masks, AreNeitherAFalseAlarmNorASilentError) {
  const Tensor x = Random({1, kLength, 4}, 7, at::kFloat);
  const bool swallows_all = std::abs(GetParam().low) > 1e8;
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    for (const OnFailure on_failure : {OnFailure::kError, OnFailure::kWarn, OnFailure::kAbsorb}) {
      DecomposeOptions options;
      options.policy = ByHalf(preset, on_failure);
      const Decomposition result = Model().Decompose({SplitInput(x, {1})}, options);
      const Composition& parts = result.outputs[0].composition;
      EXPECT_LE(Apart(parts.recovery(), parts.value()), 1e-5);
      EXPECT_TRUE(result.report.failures.empty()) << testing::PrintToString(result.report.notes);
      if (swallows_all) {
        for (int64_t q = 0; q < kPadding; ++q) {
          EXPECT_LE(Apart(parts.components().select(2, q).select(1, 0), PaddedParts(x)), 1e-5);
        }
        // A query sees no later key: padding is all that the first two see. Their scores are lost, where they are
        // looked at: attention that is frozen has no scores.
        const auto told = Contains(HasSubstr("in 10 elements of aten::"));
        if (preset == Preset::kFaithful) {
          EXPECT_THAT(result.report.notes, told);
        }
      }
    }
    AttributeOptions backward;
    backward.policy = ByHalf(preset);
    backward.targets = {ParseTarget("0,0,1"), ParseTarget("0,1,2"), ParseTarget("0,4,3")};
    DecomposeOptions options;
    options.policy = ByHalf(preset);
    const Decomposed forward = Model().Decompose({SplitInput(x, {1})}, options).outputs[0];
    const Attribution found = Attribute(Model(), {SplitInput(x, {1})}, backward);
    for (size_t t = 0; t < backward.targets.size(); ++t) {
      const Contributions expected = Contribute(forward.value, forward.composition, backward.targets[t]);
      for (size_t c = 0; c < expected.contributions.size(); ++c) {
        EXPECT_NEAR(found.targets[t].contributions[c], expected.contributions[c], 1e-5);
      }
      EXPECT_NEAR(found.targets[t].leftover, expected.leftover, 1e-5);
      EXPECT_NEAR(found.targets[t].recovery, found.targets[t].value, 1e-5);
    }
    EXPECT_TRUE(found.report.failures.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Masks,
                         testing::Values(MaskCase{"lowest", kLowest}, MaskCase{"lowest_clamped", kLowest, true},
                                         MaskCase{"billion", -1e9}, MaskCase{"ten_thousand", -1e4},
                                         MaskCase{"lowest_product", kLowest, false, true},
                                         MaskCase{"billion_clamped", -1e9, true}),
                         [](const auto& info) { return info.param.name; });

// A causal mask lets every query see a key, and then nobody misses what a masked score was: nothing is told.
TEST(Masks, ACausalMaskIsSilent) {
  const Tensor weight = Random({4, 4}, 8, at::kFloat);
  const Tensor mask = at::full({5, 5}, kLowest, at::kFloat).triu(1);
  const TracedModel model = ModelOf([&](const Tensor& x) {
    return at::softmax(at::linear(x, weight).matmul(x.transpose(1, 2)) + mask, -1).matmul(x);
  });
  DecomposeOptions options;
  options.policy = ByHalf();
  const Decomposition result = model.Decompose({SplitInput(Random({1, 5, 4}, 7, at::kFloat), {1})}, options);
  EXPECT_TRUE(result.report.notes.empty()) << testing::PrintToString(result.report.notes);
}

// Large numbers that are no masks keep their parts.
TEST(Masks, AnOffsetOfAThousandSwallowsNothing) {
  const TracedModel model = ModelOf([](const Tensor& x) { return (x + 1000) - 1000; });
  DecomposeOptions options;
  options.policy = ByHalf();
  const Decomposition result = model.Decompose({SplitInput(Random({1, 5}, 7, at::kDouble), {1})}, options);
  EXPECT_LE(Apart(result.outputs[0].composition.components().sum(0), Random({1, 5}, 7)), 1e-12);
}

}  // namespace
}  // namespace addend

// The model run on the baseline, and the reference compared with what it gives there.
#include "core/explain/verify.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/explain/live.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

using Function = std::function<Tensor(const Tensor&)>;

// Reports of a decomposition and of an attribution.
std::vector<Report> Reports(const TracedModel& model, const Input& input, bool verify = true) {
  DecomposeOptions options;
  options.verify_reference = verify;
  AttributeOptions asked;
  asked.verify_reference = verify;
  return {model.Decompose({input}, options).report, Attribute(model, {input}, asked).report};
}

TEST(VerifyReference, NothingIsSaidUnlessAsked) {
  for (const Report& report :
       Reports(ModelOf([](const Tensor& x) { return x.tanh(); }), SplitInput(Random({1, 4}, 1), {1}),
               /*verify=*/false)) {
    EXPECT_FALSE(report.reference_error.has_value());
  }
}

TEST(VerifyReference, AnOrdinaryModelIsEqual) {
  const Tensor weight = Random({4, 3}, 2);
  for (const Report& report : Reports(ModelOf([=](const Tensor& x) { return x.matmul(weight).tanh() + 1; }),
                                      SplitInput(Random({1, 4}, 1), {1}))) {
    EXPECT_EQ(report.reference_is_model_on_baseline, "yes");
    EXPECT_LE(report.reference_error.value(), 1e-14);
  }
}

// A number that leaves LibTorch without an operator is seen by no provenance: only the run tells.
TEST(VerifyReference, FindsWhatNoOperatorTells) {
  const auto scaled = [](const Tensor& x) { return x * (x.data_ptr<double>()[0] > 0 ? 2.0 : 5.0) + 1; };
  const auto shifted = [](const Tensor& x) { return x + (x.data_ptr<double>()[0] > 0 ? 2.0 : 5.0); };
  const Input input = SplitInput(Random({1, 4}, 1).abs() + 0.1, {1});
  for (const Report& report : Reports(ModelOf(shifted), input)) {
    EXPECT_EQ(report.reference_is_model_on_baseline, "no");
    EXPECT_NEAR(report.reference_error.value(), 3.0 / 5.0, 1e-12);
    EXPECT_THAT(report.reference_reason, HasSubstr("apart by 0.6"));
    EXPECT_THAT(report.notes[0], HasSubstr("not what the model gives on the baseline"));
  }
  // On a baseline of zero the factor does not matter.
  for (const Report& report : Reports(ModelOf(scaled), input)) {
    EXPECT_EQ(report.reference_is_model_on_baseline, "yes");
  }
}

TEST(VerifyReference, AgreesWithProvenance) {
  const auto masked = [](const Tensor& x) { return (x + 3) * x.gt(0.5); };
  const Input input = SplitInput(at::tensor({0.1, 0.7, 0.9, -2.0}, at::kDouble).view({1, 4}), {1});
  for (const bool verify : {false, true}) {
    for (const Report& report : Reports(ModelOf(masked), input, verify)) {
      EXPECT_EQ(report.reference_is_model_on_baseline, "no");
      EXPECT_THAT(report.reference_reason, HasSubstr("aten::gt"));
    }
  }
  DecomposeOptions options;
  options.verify_reference = true;
  options.policy.conditions = Conditions::kBaseline;
  const Report report = ModelOf(masked).Decompose({input}, options).report;
  EXPECT_EQ(report.reference_is_model_on_baseline, "yes");
  EXPECT_EQ(report.reference_error.value(), 0);
}

TEST(VerifyReference, AnOutputOfAnotherShapeIsAnotherAnswer) {
  const auto shorter = [](const Tensor& x) { return x.data_ptr<double>()[0] == 0 ? x.narrow(1, 0, 2) * 2 : x * 2; };
  for (const Report& report : Reports(ModelOf(shorter), SplitInput(Random({1, 4}, 1), {1}))) {
    EXPECT_EQ(report.reference_is_model_on_baseline, "no");
    EXPECT_THAT(report.reference_reason, HasSubstr("of shape [1, 2], not [1, 4]"));
  }
}

TEST(VerifyReference, DrawsTheSameNumbersAndLeavesTheGeneratorAsTheRunDid) {
  const auto noisy = [](const Tensor& x) { return x + at::randn({1, 4}, at::kDouble); };
  const Input input = SplitInput(Random({1, 4}, 1), {1});
  DecomposeOptions options;
  std::vector<Tensor> next;
  for (const bool verify : {false, true}) {
    at::manual_seed(7);
    options.verify_reference = verify;
    const Report report = ModelOf(noisy).Decompose({input}, options).report;
    if (verify) {
      EXPECT_EQ(report.reference_error.value(), 0);
    }
    next.push_back(at::randn({3}));
  }
  EXPECT_TRUE(at::equal(next[0], next[1]));
}

TEST(VerifyReference, PutsBackWhatTheModelWrites) {
  const Tensor calls = at::zeros({1}, at::kDouble);
  const auto counting = [calls](const Tensor& x) {
    calls.add_(1);
    return x.tanh() + 1;
  };
  DecomposeOptions options;
  options.verify_reference = true;
  const Report report =
      ModelOf(counting, {{"calls", calls}}).Decompose({SplitInput(Random({1, 4}, 1), {1})}, options).report;
  EXPECT_EQ(calls.item<double>(), 1);
  EXPECT_EQ(report.reference_is_model_on_baseline, "yes");
}

TEST(VerifyReference, AStateThatNobodyPutsBackIsAnError) {
  const auto calls = std::make_shared<double>(0);
  const auto model = ModelOf([calls](const Tensor& x) { return x.tanh() + (*calls += 1); });
  DecomposeOptions options;
  options.verify_reference = true;
  AttributeOptions asked;
  asked.verify_reference = true;
  const Input input = SplitInput(Random({1, 4}, 1), {1});
  const std::vector<std::string> said = {"two runs of the model give different results at output", "aten::add"};
  ExpectError(absl::StatusCode::kFailedPrecondition, said, [&] { model.Decompose({input}, options); });
  ExpectError(absl::StatusCode::kFailedPrecondition, said, [&] { Attribute(model, {input}, asked); });
}

TEST(VerifyReference, SaysThatTheModelFailsOnTheBaseline) {
  const auto model = ModelOf([](const Tensor& x) {
    if (x.data_ptr<double>()[0] == 0) throw std::runtime_error("no zeros");
    return x * 2;
  });
  DecomposeOptions options;
  options.verify_reference = true;
  ExpectError(absl::StatusCode::kInvalidArgument, {"the model fails on an input", "[1, 4]", ", the baseline: no zeros"},
              [&] {
                model.Decompose({SplitInput(Random({1, 4}, 1), {1})}, options);
              });
}

TEST(VerifyReference, IsRefusedWhereASplitIsInside) {
  const auto model = ModelOf([](const Tensor& x) { return (x * 2).tanh(); });
  Input plain;
  plain.value = Random({1, 4}, 1);
  DecomposeOptions options;
  options.verify_reference = true;
  const std::vector<Input> inputs = {plain, Input::Inside("aten::mul", Split::AlongDims({1}), Baseline::Of(0.0))};
  ExpectError(absl::StatusCode::kInvalidArgument, {"verify_reference", "inside"},
              [&] { model.Decompose(inputs, options); });
}

// ---- the same of a live model, which its owner runs

TEST(VerifyLive, ItsOwnerTellsWhatTheModelGaveOnTheBaseline) {
  const auto model = [](const Tensor& x) { return x + (x.data_ptr<double>()[0] > 0 ? 2.0 : 5.0); };
  const Input input = SplitInput(Random({1, 4}, 1).abs() + 0.1, {1});
  for (const bool told : {false, true}) {
    LiveTrace trace({input}, {}, DecomposeOptions());
    trace.AddOutput("y", model(input.value));
    if (told) {
      const Tensor baseline = trace.BaselineOf(0);
      EXPECT_TRUE(at::equal(baseline, at::zeros({1, 4}, at::kDouble)));
      trace.AddOnBaseline("y", model(baseline));
      ExpectError(absl::StatusCode::kNotFound, {"z"}, [&] { trace.AddOnBaseline("z", baseline); });
      ExpectError(absl::StatusCode::kInvalidArgument, {"no input 1"}, [&] { trace.BaselineOf(1); });
    } else {
      ExpectError(absl::StatusCode::kFailedPrecondition, {"still records"},
                  [&] { trace.AddOnBaseline("y", input.value); });
    }
    const Report report = trace.Finish().report;
    EXPECT_EQ(report.reference_is_model_on_baseline, told ? "no" : "yes");
    EXPECT_EQ(report.reference_error.has_value(), told);
  }
}

}  // namespace
}  // namespace addend

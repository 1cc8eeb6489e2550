// Plans: the bits of an attribution without a plan, or a refusal that says why.
#include "core/explain/plan.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/attribution_testing.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"
#include "core/model/script_testing.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;
using Plan = std::shared_ptr<const AttributionPlan>;

std::vector<Input> With(std::vector<Input> inputs, const std::vector<Tensor>& values) {
  for (size_t k = 0; k < inputs.size(); ++k) inputs[k].value = values[k];
  return inputs;
}

// Expects the same of a row with and without the plan.
void ExpectPlanChangesNothing(const Plan& plan, const TracedModel& model, const std::vector<Tensor>& values) {
  const Attribution expected = Attribute(model, With(plan->inputs(), values), plan->options());
  ExpectSameBits(plan->Attribute(values), expected);
}

Target First(const TracedModel& model, const std::vector<Input>& inputs) {
  Target first;
  first.top1 = false;
  first.index.assign(model.Decompose(inputs).outputs[0].value.dim(), 0);
  return first;
}

class SmallModelsPlanned : public testing::TestWithParam<SmallModel> {};

TEST_P(SmallModelsPlanned, HaveTheSameBits) {
  const std::map<std::string, std::string> refused = {{"dropout_in_training", "draws random numbers"}};
  const TracedModel model = ModelOf(GetParam().run);
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    for (const bool operators : {false, true}) {
      AttributeOptions options;
      options.policy.preset = preset;
      options.operators = operators;
      options.targets = {First(model, {input})};
      const auto make = [&] { return AttributionPlan::Make(model.model(), {input}, options); };
      if (refused.count(GetParam().name) > 0) {
        ExpectError(absl::StatusCode::kFailedPrecondition, {"cannot be planned", refused.at(GetParam().name)}, make);
        continue;
      }
      const Plan plan = make();
      if (GetParam().name == "branch_on_value") {
        // Another sum is another number that the program reads.
        ExpectPlanChangesNothing(plan, model, {input.value});
        ExpectError(absl::StatusCode::kFailedPrecondition,
                    {"does not hold for this input", "aten::_local_scalar_dense"}, [&] {
                      plan->Attribute({Random({2, 6}, 3)});
                    });
        continue;
      }
      for (int seed = 3; seed < 6; ++seed) ExpectPlanChangesNothing(plan, model, {Random({2, 6}, seed)});
      ExpectPlanChangesNothing(plan, model, {input.value});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, SmallModelsPlanned, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

using PlannedScripts = ScriptTest;

TEST_P(PlannedScripts, HaveTheSameBits) {
  const TracedModel model(model_);
  std::vector<Input> inputs;
  for (const Tensor& tensor : inputs_) inputs.push_back(SplitInput(tensor, {1}));
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    AttributeOptions options;
    options.policy.preset = preset;
    options.targets = {First(model, inputs)};
    const Plan plan = AttributionPlan::Make(model_, inputs, options);
    for (const double factor : {1.0, 0.5, 1.25}) {
      std::vector<Tensor> values;
      for (const Tensor& tensor : inputs_) {
        const bool ids = !tensor.is_floating_point();
        values.push_back(ids ? (factor == 1 ? tensor : tensor.flip({1}).contiguous()) : tensor * factor);
      }
      ExpectPlanChangesNothing(plan, model, values);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, PlannedScripts, testing::ValuesIn(ScriptCases()),
                         [](const auto& info) { return info.param.model; });

// Two layers on a float64 [rows, 6].
Tensor TwoLayers(const Tensor& x) { return at::tanh(at::relu(x.mm(Weight())).mm(Weight())); }

// A plan for the first element, unless the options ask for targets of each example.
Plan PlanOf(const TracedModel& model, const std::vector<Input>& inputs, AttributeOptions options = {}) {
  Weight();  // which is drawn when it is first asked for
  const bool asked = options.each_example || !options.targets[0].top1;
  if (!asked) options.targets = {First(model, inputs)};
  return AttributionPlan::Make(model.model(), inputs, options);
}

TEST(Plan, TakesBatchesOfAnotherSize) {
  const TracedModel model = ModelOf(TwoLayers);
  AttributeOptions options;
  options.each_example = true;
  const Input input = SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.25));
  const Plan plan = PlanOf(model, {input}, options);
  for (const int64_t rows : {3, 1, 7, 2, 7, 4, 5, 6, 8, 9, 10, 11, 1}) {
    SCOPED_TRACE(rows);
    ExpectPlanChangesNothing(plan, model, {Random({rows, 6}, static_cast<int>(rows) + 20)});
  }
  ExpectError(absl::StatusCode::kInvalidArgument,
              {"input 0 is f64[3, 5]", "the plan is for f64[3, 6]", "another number"}, [&] {
                plan->Attribute({Random({3, 5}, 1)});
              });
}

TEST(Plan, LabelsMeanTheSameOfAnyNumberOfExamples) {
  const TracedModel model = ModelOf(TwoLayers);
  AttributeOptions options;
  options.each_example = true;
  Input input = SplitInput(Random({2, 6}, 1), {1}, Baseline::Of(0.25));
  const Plan by_column = PlanOf(model, {input}, options);
  const Tensor labels = at::tensor({0, 0, 1, 1, 2, 2}, at::kLong);
  input.split = Split::ByLabels(labels);
  const Plan plan = PlanOf(model, {input}, options);
  for (const int64_t rows : {2, 1, 6, 7}) {
    SCOPED_TRACE(rows);
    const Tensor x = Random({rows, 6}, static_cast<int>(rows) + 20);
    const Attribution grouped = plan->Attribute({x});
    const Attribution single = by_column->Attribute({x});
    for (size_t r = 0; r < grouped.targets.size(); ++r) {
      const std::vector<double>& own = single.targets[r].contributions;
      ASSERT_EQ(grouped.targets[r].contributions.size(), 3u);
      for (size_t g = 0; g < 3; ++g)
        EXPECT_NEAR(grouped.targets[r].contributions[g], own[2 * g] + own[2 * g + 1], 1e-12);
    }
  }
  // Labels of as many examples as columns may be those of either.
  input.value = Random({6, 6}, 3);
  const auto asked = [&] { Attribute(model, {input}, options); };
  ExpectError(absl::StatusCode::kInvalidArgument, {"labels of input 0", "[6, 6]"}, asked);
  ExpectError(absl::StatusCode::kInvalidArgument, {"labels of input 0", "[6, 6]"},
              [&] { PlanOf(model, {input}, options); });
  input.split = Split::ByLabels(labels.unsqueeze(0));
  ExpectPlanChangesNothing(PlanOf(model, {input}, options), model, {Random({6, 6}, 4)});
}

TEST(Plan, RefusesOtherSizesAndTypes) {
  const Plan plan = PlanOf(ModelOf(TwoLayers), {SplitInput(Random({3, 6}, 1), {1})});
  const auto refuses = [&](const std::vector<Tensor>& values, const std::vector<std::string>& parts) {
    ExpectError(absl::StatusCode::kInvalidArgument, parts, [&] { plan->Attribute(values); });
  };
  refuses({Random({4, 6}, 1)}, {"input 0 is f64[4, 6]; the plan is for f64[3, 6]"});
  refuses({Random({3, 6}, 1).to(at::kFloat)}, {"input 0 is f32[3, 6] on cpu; the plan is for f64[3, 6] on cpu"});
  refuses({}, {"the plan is for 1 inputs, but 0 are given"});
  refuses({Tensor()}, {"input 0 is no tensor"});
  refuses({at::full({3, 6}, NAN, at::kDouble)}, {"input 0 holds NaN or infinity", "without one"});
}

TEST(Plan, KeepsPlainInputs) {
  const TracedModel model(
      FromFunction([](const std::vector<Tensor>& in) { return at::softmax(in[0].mm(Weight()) * in[1], 1); }));
  const Input plain = Input::Plain(Random({3, 6}, 2));
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1}), plain});
  ExpectPlanChangesNothing(plan, model, {Random({3, 6}, 5), plain.value.clone()});
  ExpectSameBits(plan->Attribute({Random({3, 6}, 5), Tensor()}), plan->Attribute({Random({3, 6}, 5), plain.value}));
  ExpectError(absl::StatusCode::kInvalidArgument, {"input 1 is plain and differs"}, [&] {
    plan->Attribute({Random({3, 6}, 5), Random({3, 6}, 3)});
  });
}

TEST(Plan, NoticesParametersThatWereWritten) {
  Tensor weight = Random({6, 6}, 4);
  const TracedModel model = ModelOf([&](const Tensor& x) { return at::tanh(x.mm(weight)); }, {{"weight", weight}});
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})});
  plan->Attribute({Random({3, 6}, 2)});
  weight.mul_(2);
  ExpectError(absl::StatusCode::kFailedPrecondition, {"weight was written since the plan was made"}, [&] {
    plan->Attribute({Random({3, 6}, 2)});
  });
}

// Operators of others that tell the program a number, alone or beside a tensor.
TORCH_LIBRARY(plan_test, library) {
  library.def("largest(Tensor self) -> float");
  library.def("twice(Tensor self) -> (Tensor, float)");
}
TORCH_LIBRARY_IMPL(plan_test, CPU, library) {
  library.impl("largest", [](const Tensor& x) { return x.max().item<double>(); });
  library.impl("twice", [](const Tensor& x) { return std::make_tuple(x * 2, x.max().item<double>()); });
}

std::vector<c10::IValue> CallOwn(const char* name, const Tensor& x) {
  std::vector<c10::IValue> stack = {x};
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack;
}

// Numbers that a program reads, by whatever operator, are those of the plan's input.
TEST(Plan, SeesEveryNumberThatIsRead) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> models = {
      {"aten::allclose",
       [](const Tensor& x) { return at::allclose(x.relu(), x) ? x.mm(Weight()) * 3 : x.mm(Weight()); }},
      {"aten::equal", [](const Tensor& x) { return x.relu().equal(x) ? x.mm(Weight()) * 3 : x.mm(Weight()); }},
      {"plan_test::largest",
       [](const Tensor& x) { return x.mm(Weight()) * CallOwn("plan_test::largest", x)[0].toDouble(); }},
      // A number that is read from conditions alone.
      {"aten::item", [](const Tensor& x) { return x.mm(Weight()) * x.gt(0).to(at::kDouble).sum().item<double>(); }},
  };
  for (const auto& [op, run] : models) {
    SCOPED_TRACE(op);
    const TracedModel model = ModelOf(run);
    const Input input = SplitInput(Random({3, 6}, 1).abs() + 0.1, {1}, Baseline::Of(-1.0));
    AttributeOptions options;
    options.targets = {First(model, {input})};
    const Report report = Attribute(model, {input}, options).report;
    EXPECT_NE(report.reference_is_model_on_baseline, "yes");
    const Plan plan = PlanOf(model, {input}, options);
    ExpectPlanChangesNothing(plan, model, {input.value});
    ExpectError(absl::StatusCode::kFailedPrecondition, {"does not hold for this input", op, "another number"},
                [&] { plan->Attribute({-input.value}); });
  }
  const TracedModel beside = ModelOf([](const Tensor& x) {
    const std::vector<c10::IValue> given = CallOwn("plan_test::twice", x);
    return given[0].toTensor().mm(Weight()) * given[1].toDouble();
  });
  AttributeOptions options;
  options.policy.missing_rule = MissingRule::kAbsorb;
  const Input input = SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.1));
  Target first;
  first.top1 = false;
  first.index = {0, 0};
  options.targets = {first};
  EXPECT_EQ(Attribute(beside, {input}, options).report.reference_is_model_on_baseline, "unknown");
  const Plan plan = PlanOf(beside, {input}, options);
  ExpectPlanChangesNothing(plan, beside, {input.value});
  ExpectError(absl::StatusCode::kFailedPrecondition, {"does not hold for this input", "plan_test::twice"},
              [&] { plan->Attribute({input.value * 2}); });
}

// A model may ask for the sign of a zero.
TEST(Plan, TellsZerosApart) {
  const TracedModel model = ModelOf(
      [](const Tensor& x) { return x.mm(Weight()) * std::copysign(1.0, x.select(0, 0).select(0, 0).item<double>()); });
  Tensor zero = Random({3, 6}, 1);
  zero[0][0] = 0.0;
  Tensor other = zero.clone();
  other[0][0] = -0.0;
  const Input input = SplitInput(zero, {1}, Baseline::Of(1.0));
  const Plan plan = PlanOf(model, {input});
  ExpectPlanChangesNothing(plan, model, {zero});
  ExpectError(absl::StatusCode::kFailedPrecondition, {"does not hold for this input"},
              [&] { plan->Attribute({other}); });
}

// Inputs that the model fails on give the same error as without a plan.
TEST(Plan, FailsAsTheModelDoes) {
  const Tensor table = Random({4, 6}, 7);
  const TracedModel model = ModelOf([=](const Tensor& ids) { return at::embedding(table, ids).sum(1); });
  const Input ids = SplitInput(at::tensor({1, 2, 3}, at::kLong).view({1, 3}), {1}, Baseline::Token(0));
  const Plan plan = PlanOf(model, {ids});
  const auto fails = [](const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(fails([&] { plan->Attribute({ids.value + 3}); }),
            fails([&] { Attribute(model, With({ids}, {ids.value + 3}), plan->options()); }));
}

TEST(Plan, RefusesWhatNoOperatorShows) {
  // Reads numbers by a pointer, past the dispatcher.
  const TracedModel model = ModelOf([](const Tensor& x) {
    const double read = *x.contiguous().data_ptr<double>();
    return x.mm(Weight()) * read;
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"cannot be planned", "does not see"}, [&] {
    PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})});
  });
}

TEST(Plan, RefusesWritesOfItsOwnMemory) {
  Tensor steps = at::zeros({1}, at::kDouble);
  const TracedModel counts = ModelOf([&](const Tensor& x) {
    steps.add_(1);
    return x * steps;
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"aten::add_", "writes memory that was there before the run"},
              [&] {
                PlanOf(counts, {SplitInput(Random({3, 6}, 1), {1})});
              });
  Tensor cache = at::zeros({3, 6}, at::kDouble);
  const TracedModel caches = ModelOf([&](const Tensor& x) {
    cache.copy_(x);
    return cache * 2;
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"aten::copy_", "writes memory that was there before the run"},
              [&] {
                PlanOf(caches, {SplitInput(Random({3, 6}, 1), {1})});
              });
  Tensor mean = at::zeros({6}, at::kDouble);
  Tensor variance = at::ones({6}, at::kDouble);
  const TracedModel trains = ModelOf([&](const Tensor& x) {
    return at::batch_norm(x, Weight()[0], Weight()[1], mean, variance, /*training=*/true, 0.1, 1e-5, false);
  });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"updates running statistics", "evaluation mode"}, [&] {
    PlanOf(trains, {SplitInput(Random({3, 6}, 1), {1})});
  });
}

TEST(Plan, RefusesSizesThatDependOnElements) {
  const TracedModel model = ModelOf([](const Tensor& x) { return x.masked_select(x.gt(0)).sum(); });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"aten::masked_select", "a size that depends on elements"}, [&] {
    PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})});
  });
}

TEST(Plan, RefusesWhatItCannotKeep) {
  const TracedModel model = ModelOf(TwoLayers);
  AttributeOptions options;
  options.memory_bytes = 1000;
  ExpectError(absl::StatusCode::kInvalidArgument, {"memory limit"}, [&] {
    PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})}, options);
  });
  Input parts;
  parts.value = Random({3, 6}, 1);
  parts.split = Split::Parts(parts.value.unsqueeze(0));
  ExpectError(absl::StatusCode::kInvalidArgument, {"explicit parts"}, [&] { PlanOf(model, {parts}); });
}

// Conditions that are computed of the input are those of each row.
TEST(Plan, FollowsConditions) {
  const TracedModel model = ModelOf([](const Tensor& x) {
    const Tensor mask = x.gt(0.2);
    const Tensor scores = at::where(mask, x.mm(Weight()), x.mm(Weight()) * 0.1).masked_fill(mask, -3.0);
    return scores * at::rsub(mask.to(at::kDouble) * 0.5, 1);
  });
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.1))});
  for (int seed = 2; seed < 6; ++seed) ExpectPlanChangesNothing(plan, model, {Random({3, 6}, seed)});
}

TEST(Plan, FollowsConditionsOfTheBaseline) {
  const TracedModel model =
      ModelOf([](const Tensor& x) { return at::where(x.gt(0.2), x.mm(Weight()), x.mm(Weight()) * 0.1); });
  AttributeOptions options;
  options.policy.conditions = Conditions::kBaseline;
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.1))}, options);
  for (int seed = 2; seed < 6; ++seed) ExpectPlanChangesNothing(plan, model, {Random({3, 6}, seed)});
}

// One baseline for a part of the elements; the others are the row's own, and so is what the model makes of them.
TEST(Plan, FollowsReferencesThatDependOnTheRow) {
  const TracedModel model = ModelOf(TwoLayers);
  Input some = SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.25));
  some.split = Split::ByLabels(at::tensor({0, -1, 1, 1, -1, 0}, at::kLong).expand({3, 6}).contiguous());
  const Plan plan = PlanOf(model, {some});
  for (int seed = 2; seed < 6; ++seed) ExpectPlanChangesNothing(plan, model, {Random({3, 6}, seed)});
  const TracedModel of_images =
      ModelOf([](const Tensor& x) { return at::tanh(x.select(0, 0).matmul(Weight())).sum(1); });
  const Plan mean = PlanOf(of_images, {SplitInput(Random({1, 2, 3, 6}, 1), {1}, Baseline::Named("mean"))});
  for (int seed = 2; seed < 6; ++seed) ExpectPlanChangesNothing(mean, of_images, {Random({1, 2, 3, 6}, seed)});
}

// The number that the model reads is the same, and that on the baseline is not.
TEST(Plan, FollowsNumbersOnReferencesThatDependOnTheRow) {
  const TracedModel model = ModelOf([](const Tensor& x) {
    const bool positive = (x.select(1, 0) + x.select(1, 1)).gt(0).all().item<bool>();
    return positive ? x.mm(Weight()) * 3 : x.mm(Weight());
  });
  Input some = SplitInput(at::ones({3, 6}, at::kDouble), {1}, Baseline::Of(-5.0));
  some.value.select(1, 0).fill_(10);
  some.split = Split::ByLabels(at::tensor({-1, 0, 1, 1, 2, 3}, at::kLong).expand({3, 6}).contiguous());
  const Plan plan = PlanOf(model, {some});
  EXPECT_EQ(plan->Attribute({some.value}).report.reference_is_model_on_baseline, "yes");
  const Tensor ones = at::ones({3, 6}, at::kDouble);
  EXPECT_EQ(plan->Attribute({ones}).report.reference_is_model_on_baseline, "unknown");
  for (const Tensor& row : {some.value, ones, some.value, ones}) ExpectPlanChangesNothing(plan, model, {row});
}

// Columns of categories with offsets into one table, beside numbers.
TEST(Plan, FollowsIds) {
  const Tensor table = Random({12, 4}, 7);
  const Tensor offsets = at::tensor({0, 4, 8}, at::kLong);
  const TracedModel model(FromFunction([=](const std::vector<Tensor>& in) {
    const Tensor vectors = at::embedding(table, in[0] + offsets);
    const Tensor crossed = (vectors.sum(1).square() - vectors.square().sum(1)) * 0.5;
    return crossed.sum(1) + at::relu(in[1].mm(Weight())).sum(1);
  }));
  Input ids = SplitInput(at::tensor({1, 2, 3, 0, 3, 1}, at::kLong).view({2, 3}), {1}, Baseline::Token(0));
  const Plan plan = PlanOf(model, {ids, SplitInput(Random({2, 6}, 1), {1})});
  for (int64_t k = 0; k < 4; ++k) {
    const Tensor others = (ids.value + k).remainder(4);
    ExpectPlanChangesNothing(plan, model, {others, Random({2, 6}, static_cast<int>(k) + 2)});
  }
}

TEST(Plan, RefusesPlacesThatDependOnIds) {
  const Tensor table = Random({12, 4}, 7);
  const Tensor order = at::tensor({3, 0, 2, 1}, at::kLong);
  const TracedModel model = ModelOf([=](const Tensor& ids) {
    return at::embedding(table, ids).sum(1) + at::embedding(table, order.index({ids})).sum(1);
  });
  // Here they are where they are on the baseline.
  const Input ids = SplitInput(at::zeros({2, 3}, at::kLong), {1}, Baseline::Token(0));
  ExpectError(absl::StatusCode::kFailedPrecondition, {"cannot be planned", "places that depend on ids"},
              [&] { PlanOf(model, {ids}); });
}

TEST(Plan, RefusesAttentionUnderMasksOfTheInput) {
  const auto attention = [](const Tensor& x, const Tensor& hidden) {
    const Tensor scores = at::matmul(x.matmul(Weight()), x.transpose(-2, -1)) * 0.5;
    return at::matmul(at::softmax(scores.masked_fill(hidden, -INFINITY), -1), x);
  };
  const TracedModel fixed = ModelOf([&](const Tensor& x) { return attention(x, at::ones({4, 4}, at::kBool).triu(1)); });
  const Input input = SplitInput(Random({2, 4, 6}, 1), {1}, Baseline::Of(0.1));
  const Plan plan = PlanOf(fixed, {input});
  ExpectPlanChangesNothing(plan, fixed, {Random({2, 4, 6}, 2)});
  const TracedModel moves = ModelOf(
      [&](const Tensor& x) { return attention(x, x.select(-1, 0).gt(x.select(-1, 0).mean(-1, true)).unsqueeze(1)); });
  ExpectError(absl::StatusCode::kFailedPrecondition, {"cannot be planned", "whose mask is computed of the input"},
              [&] { PlanOf(moves, {input}); });
}

TEST(Plan, SegmentsAndStandInsHaveTheSameBits) {
  const TracedModel model = ModelOf([](const Tensor& x) { return at::log(x.square()).mm(Weight()); });
  AttributeOptions options;
  options.policy.segments = 3;
  for (const AttributeOptions& own : {AttributeOptions(), options}) {
    const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1}, Baseline::Of(0.0))}, own);
    for (int seed = 2; seed < 4; ++seed) ExpectPlanChangesNothing(plan, model, {Random({3, 6}, seed)});
  }
}

TEST(Plan, ExplainsAnInnerTensorAndReportsItsReference) {
  const TracedModel model = ModelOf([](const Tensor& x) { return at::softmax(TwoLayers(x), 1); });
  AttributeOptions options;
  options.at = "logits";
  options.verify_reference = true;
  Target difference;
  difference.top1 = false;
  difference.index = {1, 2};
  difference.subtract = {1, 0};
  options.targets = {difference};
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})}, options);
  ExpectPlanChangesNothing(plan, model, {Random({3, 6}, 2)});
  EXPECT_EQ(plan->Attribute({Random({3, 6}, 2)}).name, "logits");
}

TEST(Plan, ServesThreads) {
  const TracedModel model = ModelOf(TwoLayers);
  AttributeOptions options;
  options.each_example = true;
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})}, options);
  std::vector<Attribution> expected;
  for (int k = 0; k < 8; ++k) {
    expected.push_back(Attribute(model, {SplitInput(Random({2 + k % 3, 6}, 30 + k), {1})}, options));
  }
  std::vector<std::vector<Attribution>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<Attribution>& own : found) {
    threads.emplace_back([&plan, &own] {
      for (int round = 0; round < 20; ++round) {
        for (int k = 0; k < 8; ++k) {
          Attribution one = plan->Attribute({Random({2 + k % 3, 6}, 30 + k)});
          if (round == 19) own.push_back(std::move(one));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Attribution>& own : found) {
    for (int k = 0; k < 8; ++k) ExpectSameBits(own[k], expected[k]);
  }
}

// Found once for each size, and said of every row since.
TEST(Plan, SaysThatExamplesInfluenceEachOther) {
  const auto model = [weight = Random({6, 6}, 9)](bool mixes) {
    return ModelOf([weight, mixes](const Tensor& t) {
      const Tensor own = at::softmax(t.mm(weight), 1);
      return mixes ? own + 0.1 * t.roll(1, 0) : own;
    });
  };
  AttributeOptions options;
  options.each_example = true;
  const auto influence = testing::Contains(HasSubstr("the examples influence each other"));
  for (const bool mixes : {true, false}) {
    const Plan plan = PlanOf(model(mixes), {SplitInput(Random({3, 6}, 1), {1})}, options);
    for (const int64_t rows : {3, 4, 3, 4}) {
      const std::vector<std::string> notes = plan->Attribute({Random({rows, 6}, rows)}).report.notes;
      if (mixes) {
        EXPECT_THAT(notes, influence);
      } else {
        EXPECT_THAT(notes, testing::Not(influence));
      }
    }
  }
}

// Every operator is a step at which it may end, also while another number of examples is recorded.
TEST(Plan, CanBeCancelled) {
  const TracedModel model = ModelOf(TwoLayers);
  AttributeOptions options;
  options.each_example = true;
  const Plan plan = PlanOf(model, {SplitInput(Random({3, 6}, 1), {1})}, options);
  for (const int64_t rows : {3, 4}) {
    std::vector<std::string> stages;
    plan->Attribute({Random({rows, 6}, 2)},
                    [&](const std::string& stage, int64_t, int64_t) { stages.push_back(stage); });
    // Products and functions of both layers.
    EXPECT_GE(std::count(stages.begin(), stages.end(), "trace"), rows == 3 ? 4 : 16);
  }
  for (const int64_t rows : {3, 5}) {
    for (size_t last = 0; last < 4; ++last) {
      SCOPED_TRACE(last);
      size_t steps = 0;
      const auto end = [&](const std::string&, int64_t, int64_t) {
        if (steps++ == last) throw Error(absl::StatusCode::kCancelled, "enough");
      };
      ExpectError(absl::StatusCode::kCancelled, {"enough"}, [&] { plan->Attribute({Random({rows, 6}, 2)}, end); });
    }
    ExpectPlanChangesNothing(plan, model, {Random({rows, 6}, 2)});
  }
}

}  // namespace
}  // namespace addend

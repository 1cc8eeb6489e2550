// Both truths on small models that write, alias, branch and mask: recovery equals what the model computed, the
// reference equals the model run on the baseline, and under `faithful` nothing is left over.
#include "core/explain/decompose.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"
#include "core/rules/registry.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

class BothTruths : public testing::TestWithParam<SmallModel> {
 protected:
  Tensor value_ = Random({2, 6}, 1);
  Tensor baseline_ = Random({2, 6}, 2);

  // The dropout model draws random numbers: value and baseline draw the same where the seed is the same.
  Tensor Run(const Tensor& x) {
    at::manual_seed(5);
    return GetParam().run(x.clone());
  }

  Decomposition Decompose(const DecomposeOptions& options) {
    Input input;
    input.value = value_;
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(baseline_);
    at::manual_seed(5);
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return GetParam().run(in[0]); }))
        .Decompose({input}, options);
  }
};

TEST_P(BothTruths, FaithfulPartsSumToTheDifference) {
  DecomposeOptions options;
  options.everything = true;  // every operator is checked, also those that the output does not need
  const Decomposition result = Decompose(options);
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::equal(result.outputs[0].value, Run(value_)));
  EXPECT_TRUE(at::equal(parts.reference(), Run(baseline_)));
  const double scale = std::max(result.outputs[0].value.abs().max().item<double>(), 1.0);
  EXPECT_LE((parts.recovery() - result.outputs[0].value).abs().max().item<double>(), 1e-12 * scale);
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-10 * scale);
  EXPECT_EQ(parts.numc(), 6);
  EXPECT_TRUE(result.report.failures.empty());
}

TEST_P(BothTruths, FastStillRecoversAndKeepsTheReference) {
  DecomposeOptions options;
  options.policy.preset = Preset::kFast;
  const Decomposition result = Decompose(options);
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::equal(parts.reference(), Run(baseline_)));
  const double scale = std::max(result.outputs[0].value.abs().max().item<double>(), 1.0);
  EXPECT_LE((parts.recovery() - result.outputs[0].value).abs().max().item<double>(), 1e-12 * scale);
}

INSTANTIATE_TEST_SUITE_P(Small, BothTruths, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

// ---- rounding is no failure, however much cancels

class NoFalseAlarm : public testing::TestWithParam<SmallModel> {};

TEST_P(NoFalseAlarm, InSinglePrecision) {
  Input input;
  input.value = Random({2, 6}, 1, at::kFloat);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  DecomposeOptions options;
  options.everything = true;
  const auto model = FromFunction([](const std::vector<Tensor>& in) { return GetParam().run(in[0]); });
  EXPECT_NO_THROW(TracedModel(model).Decompose({input}, options));
}

INSTANTIATE_TEST_SUITE_P(
    Cancelling, NoFalseAlarm,
    testing::Values(SmallModel{"layer_norm_of_a_constant_baseline",
                               [](const Tensor& x) { return at::layer_norm(x, {6}); }},
                    SmallModel{"mean_of_the_centred", [](const Tensor& x) { return (x - x.mean(1, true)).mean(1); }},
                    SmallModel{"softmax_sums_to_one", [](const Tensor& x) { return at::softmax(x, 1).sum(1) - 1; }},
                    SmallModel{"masked_logarithm",
                               [](const Tensor& x) {
                                 const Tensor y = at::relu(x + 0.1);
                                 return at::where(y.gt(0), at::log(y), at::zeros_like(y));
                               }},
                    SmallModel{"selu_of_little", [](const Tensor& x) { return at::selu(x * 1e-3); }},
                    SmallModel{"share_of_the_sum", [](const Tensor& x) { return x.abs() / x.abs().sum(1, true); }},
                    SmallModel{"root_of_relu", [](const Tensor& x) { return at::relu(x).sqrt(); }}),
    [](const auto& info) { return info.param.name; });

// ---- what the parts are

TEST(Decompose, LinearModelGivesWeightTimesInput) {
  const Tensor x = Random({4}, 3);
  const Tensor w = Random({3, 4}, 4);
  const Tensor bias = Random({3}, 5);
  const auto result = DecomposeFunction([&](const Tensor& t) { return at::linear(t, w, bias); }, SplitInput(x, {0}));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::allclose(parts.components(), (w * x).t(), 0, 1e-14));
  EXPECT_TRUE(at::equal(parts.reference(), bias));
}

// Aumann-Shapley values of a product of two: both get half.
TEST(Decompose, ProductOfTwoInputsIsShared) {
  const Tensor x = at::tensor({3.0, 5.0});
  const auto result = DecomposeFunction([](const Tensor& t) { return t[0] * t[1]; }, SplitInput(x, {0}));
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.components(), at::tensor({7.5, 7.5})));
}

TEST(Decompose, SeveralInputsShareTheComponentAxis) {
  const Tensor a = Random({2, 3}, 6);
  const Tensor b = Random({2, 2}, 7);
  const auto model = FromFunction([](const std::vector<Tensor>& in) { return in[0].sum(1) * in[1].sum(1); });
  const auto result = TracedModel(model).Decompose({SplitInput(a, {1}), SplitInput(b, {1})});
  ASSERT_EQ(result.numc, 5);
  const Tensor expected_a = a.t() * b.sum(1) / 2;
  const Tensor expected_b = b.t() * a.sum(1) / 2;
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.components(), at::cat({expected_a, expected_b}), 0, 1e-12));
}

// The model itself would have seen in the one what it writes into the other.
TEST(Decompose, SharedMemoryThatIsWrittenIsReported) {
  const auto writes = [](const std::vector<Tensor>& in) { return Tensor(in[0]).mul_(2) + in[1]; };
  const auto reads = [](const std::vector<Tensor>& in) { return in[0] * 2 + in[1]; };
  const Tensor x = Random({2, 3}, 1);
  const auto notes = [&](const auto& model, const Tensor& other, const Tensor& first) {
    const std::vector<Input> inputs = {SplitInput(first, {1}), SplitInput(other, {0})};
    AttributeOptions options;
    options.targets[0].top1 = false;
    options.targets[0].index = {0, 0};
    const TracedModel traced(FromFunction(model));
    return testing::PrintToString(traced.Decompose(inputs).report.notes) +
           testing::PrintToString(Attribute(traced, inputs, options).report.notes);
  };
  const std::string shared = notes(writes, x, x);
  EXPECT_THAT(shared, HasSubstr("input 0 and input 1 share memory, and the model writes input 0: it was given copies"));
  EXPECT_THAT(notes(writes, x.clone(), x), testing::Not(HasSubstr("share memory")));
  const Tensor wide = Random({2, 6}, 2);
  const auto columns = [&](int64_t from) { return wide.narrow(1, from, 3); };
  EXPECT_THAT(notes(writes, columns(1), columns(0)), HasSubstr("share memory"));
  EXPECT_THAT(notes(writes, columns(3), columns(0)), testing::Not(HasSubstr("share memory")));
  EXPECT_THAT(notes(reads, x, x), testing::Not(HasSubstr("share memory")));
  EXPECT_TRUE(at::equal(x, Random({2, 3}, 1)));
}

TEST(Decompose, PlainInputsTakePartInTheReference) {
  const Tensor a = Random({2, 3}, 8);
  const Tensor b = Random({2, 3}, 9);
  const auto model = FromFunction([](const std::vector<Tensor>& in) { return in[0] * in[1] + in[1]; });
  const auto result = TracedModel(model).Decompose({SplitInput(a, {1}), Input::Plain(b)});
  EXPECT_TRUE(at::equal(result.outputs[0].composition.reference(), b));
}

TEST(Decompose, GivenPartsKeepTheirResidualAsReference) {
  const Composition given = Composition::FromParts({Random({3}, 1), Random({3}, 2)}, Random({3}, 3));
  const auto result = DecomposeFunction([](const Tensor& t) { return t * 2; }, Input::Of(given));
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.components(), given.components() * 2));
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.reference(), given.residual() * 2));
}

// ---- ids and labels

TEST(Decompose, LabelsFollowViewsIntoEveryEmbedding) {
  const Tensor table = Random({10, 4}, 1);
  const Tensor ids = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3});
  Input input;
  input.value = ids;
  input.split = Split::ByLabels(at::tensor({0, 0, 1, 2, 2, -1}, at::kLong).view({2, 3}));
  input.baseline = Baseline::Token(0);
  const auto result = DecomposeFunction(
      [&](const Tensor& t) {
        const Tensor flat = t.t().reshape({6}).clone();  // copies and views of ids keep the labels
        return at::embedding(table, flat).sum(0) + at::embedding(table * 2, t[0]).sum(0);
      },
      input);
  const Composition& parts = result.outputs[0].composition;
  const auto move = [&](int64_t id) { return table[id] - table[0]; };
  const Tensor zero = move(3) * 3 + move(1) * 3;
  const Tensor one = move(4) * 3;
  const Tensor two = move(1) + move(5);
  EXPECT_TRUE(at::allclose(parts.components(), at::stack({zero, one, two}), 0, 1e-12));
  // The label -1 keeps its id in the reference.
  EXPECT_TRUE(at::allclose(parts.reference(), table[0] * 5 + table[9] + table[0] * 6, 0, 1e-12));
  EXPECT_TRUE(result.report.notes.size() == 1) << testing::PrintToString(result.report.notes);
}

TEST(Decompose, OtherUsesOfIdsAreReported) {
  const Tensor table = Random({10, 4}, 1);
  Input input;
  input.value = at::tensor({3, 1, 4}, at::kLong);
  input.split = Split::AlongDims({0});
  const auto result = DecomposeFunction(
      [&](const Tensor& t) { return at::embedding(table, t) * t.cumsum(0).to(at::kDouble).unsqueeze(1); }, input);
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("ids are used in ways in which no component"));
}

// A mask that is the same on the baseline takes nothing from any component, whatever integers are made of it.
TEST(Decompose, MixturesThatDoNotMoveAreNotReported) {
  const auto counted = [](const Tensor& x) { return x * x.ne(0).to(at::kInt).sum({1}, /*keepdim=*/true); };
  const auto notes = [&](const std::vector<double>& baseline) {
    Input input;
    input.value = at::tensor({3.0, 1.0, 4.0, 0.0}).reshape({2, 2});
    input.split = Split::AlongDims({0, 1});
    input.baseline = Baseline::Of(at::tensor(baseline).reshape({2, 2}));
    const auto result = DecomposeFunction(counted, input);
    EXPECT_EQ(result.report.unattributed, baseline[1] == 0 ? 1 : 0);
    return testing::PrintToString(result.report.notes);
  };
  EXPECT_THAT(notes({2, 5, 7, 0}), testing::Not(HasSubstr("ids are used in ways")));
  EXPECT_THAT(notes({2, 0, 7, 0}), HasSubstr("ids are used in ways in which no component"));
}

// ---- references that are not finite

TEST(Decompose, StandInsReplaceReferencesThatAreNotFinite) {
  const Tensor x = Random({2, 4}, 3).abs() + 0.5;
  const auto result = DecomposeFunction(
      [](const Tensor& t) {
        Tensor y = at::log(t);  // -inf on the baseline 0
        y.mul_(2).add_(t);
        Tensor z = at::zeros_like(t);
        z.slice(1, 0, 2).copy_(y.slice(1, 1, 3));
        return at::linear(z, Weight().slice(1, 0, 4)).relu() + t.sum();
      },
      SplitInput(x, {1}));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_EQ(result.report.stand_in_references, 1);
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("not finite on the baseline"));
  EXPECT_TRUE(at::isfinite(parts.reference()).all().item<bool>());
  EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value, 0, 1e-12));
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-12);
}

// The tangent of log at x passes X / x; log x - 1 stands in for the logarithm of zero.
TEST(Decompose, StandInMeetsTheValueAlongTheTangent) {
  const Tensor x = at::tensor({2.0, 3.0});
  const auto result = DecomposeFunction([](const Tensor& t) { return at::log(t) * 5; }, SplitInput(x, {0}));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::allclose(parts.components(), at::diag(at::full({2}, 5.0, at::kDouble))));
  EXPECT_TRUE(at::allclose(parts.reference(), (at::log(x) - 1) * 5));
}

// ---- policies, reports, probes

TEST(Decompose, AutoIsFaithfulOnlyWithABaseline) {
  Input input = SplitInput(Random({4}, 3), {0});
  EXPECT_EQ(DecomposeFunction([](const Tensor& t) { return t.relu(); }, input).report.policy.preset, Preset::kFaithful);
  input.baseline = {};
  EXPECT_EQ(DecomposeFunction([](const Tensor& t) { return t.relu(); }, input).report.policy.preset, Preset::kFast);
}

TEST(Decompose, StepsBelongToWhatCrossesThem) {
  const auto result =
      DecomposeFunction([](const Tensor& t) { return at::round(t); }, SplitInput(at::tensor({0.6, 2.2}), {0}));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_EQ(parts.leftover().abs().max().item<double>(), 0);
  EXPECT_TRUE(at::allclose(parts.components(), at::diag(at::tensor({1.0, 2.0}))));
}

// A layer that is quantised while the model runs: all inputs have parts, by whichever of two spellings it is written.
TEST(Decompose, FloatsThatAreReadBackFromIntegersAreSteps) {
  const auto steps = [](const Tensor& x) { return (x * x.sum() * 10).trunc() / 10; };
  const auto integers = [](const Tensor& x) {
    return (x * x.sum() * 10).to(at::kInt).to(at::kShort).view({3, 1}).to(at::kDouble).view({3}) / 10;
  };
  const Input input = SplitInput(at::tensor({0.6, 2.2, -1.1}, at::kDouble), {0});
  const auto expected = DecomposeFunction(steps, input);
  const auto found = DecomposeFunction(integers, input);
  EXPECT_EQ(found.report.reference_is_model_on_baseline, "yes");
  EXPECT_LE(found.report.leftover_share, 1e-12);
  EXPECT_TRUE(at::equal(found.outputs[0].composition.components(), expected.outputs[0].composition.components()));
  EXPECT_GT(found.outputs[0].composition.components().abs().sum({1}).min().item<double>(), 0.1);
  // Numbers that the integers do not hold are steps too, whatever they become.
  const auto overflows = [](const Tensor& x) { return (x * x.sum() * 1000).to(at::kChar).to(at::kDouble) + x; };
  const auto small = DecomposeFunction(overflows, input);
  EXPECT_EQ(small.report.reference_is_model_on_baseline, "yes");
  EXPECT_LE(small.report.leftover_share, 1e-12);
  EXPECT_TRUE(at::equal(small.outputs[0].composition.reference(), overflows(at::zeros({3}, at::kDouble))));
  // Half types, and integers that are read in another order.
  const auto halves = [](const Tensor& x) {
    return (x * x.sum()).to(at::kHalf).view({3, 1}).t().to(at::kInt).to(at::kHalf).to(at::kDouble);
  };
  EXPECT_LE(DecomposeFunction(halves, input).report.leftover_share, 1e-3);
  const auto bytes = [](const Tensor& x) {
    return (x * x.sum()).to(at::kInt).view(at::kShort).to(at::kDouble).sum() + x;
  };
  EXPECT_EQ(DecomposeFunction(bytes, input).report.reference_is_model_on_baseline, "no");
  // Integers that somebody wrote to meanwhile are a condition as before.
  const auto written = [](const Tensor& x) { return (x * x.sum() * 10).to(at::kInt).add_(1).to(at::kDouble) + x; };
  const auto condition = DecomposeFunction(written, input);
  EXPECT_EQ(condition.report.reference_is_model_on_baseline, "no");
  EXPECT_THAT(condition.report.notes, testing::Contains(testing::HasSubstr("conditions or indices")));
}

TEST(Decompose, MissingRuleNamesOperatorAndPage) {
  const auto run = [](const DecomposeOptions& options) {
    return DecomposeFunction([](const Tensor& t) { return at::special_airy_ai(t.abs() + 1) * 2; },
                             SplitInput(Random({3}, 1), {0}), options);
  };
  EXPECT_EQ(MessageOf([&] { run({}); }),
            "no composition rule for aten::special_airy_ai (op #2); see docs/extending.md, or choose policy "
            "missing_rule=absorb, which leaves over all that the operator gives (it has no derivative, by which "
            "missing_rule=path would find parts)");
  DecomposeOptions absorb;
  absorb.policy.missing_rule = MissingRule::kAbsorb;
  const auto result = run(absorb);
  EXPECT_EQ(result.report.absorbed, 1);
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("aten::special_airy_ai"));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value));
  EXPECT_EQ(parts.components().abs().max().item<double>(), 0);
}

TEST(Decompose, MissingRuleNamesThePolicyThatWorks) {
  const auto run = [](const DecomposeOptions& options) {
    return DecomposeFunction([](const Tensor& t) { return at::igamma(at::ones({3}, at::kDouble), t.abs() + 1) * 2; },
                             SplitInput(Random({3}, 1), {0}), options);
  };
  EXPECT_EQ(MessageOf([&] { run({}); }),
            "no composition rule for aten::igamma (op #3); see docs/extending.md, or choose policy missing_rule=path, "
            "which finds the parts by the operator's derivative, or missing_rule=absorb, which leaves over all that "
            "the operator gives");
  DecomposeOptions path;
  path.policy.missing_rule = MissingRule::kPath;
  const auto result = run(path);
  const Composition& parts = result.outputs[0].composition;
  const Tensor missed = parts.components().sum(0) + parts.reference() - result.outputs[0].value;
  EXPECT_LE(missed.abs().max().item<double>(), 1e-10);
}

TEST(Decompose, KernelsOutsideTheDispatcherAreRefused) {
  // On the CPU max_pool1d fills its result by pointer where no gradient is wanted. It has a rule for that reason.
  Registry without;
  for (const Rule* rule : Registry::Default().All()) {
    if (rule->name != "aten::max_pool1d") without.Register(*rule);
  }
  DecomposeOptions options;
  const auto run = [&] {
    DecomposeFunction([](const Tensor& t) { return at::max_pool1d(t, {2}) * t.sum(); },
                      SplitInput(Random({1, 1, 6}, 1, at::kFloat), {2}), options);
  };
  EXPECT_EQ(MessageOf(run), "(no error)");
  options.registry = &without;
  EXPECT_THAT(MessageOf(run), HasSubstr("max_pool1d"));
}

// The operator runs once more on the reference, but the model's buffers see the values only.
TEST(Decompose, TrainingModeOfBatchNormUpdatesItsBuffersOnce) {
  const Tensor mean = at::zeros({3}, at::kDouble);
  const Tensor variance = at::ones({3}, at::kDouble);
  const Tensor x = Random({4, 3}, 1);
  const auto result = DecomposeFunction(
      [&](const Tensor& t) { return at::batch_norm(t, {}, {}, mean, variance, true, 0.1, 1e-5, false); },
      SplitInput(x, {1}));
  EXPECT_TRUE(at::allclose(mean, x.mean(0) * 0.1));
  EXPECT_TRUE(at::allclose(variance, x.var(0) * 0.1 + 0.9));
  const Tensor expected = (x - x.mean(0)) / (x.var(0, /*unbiased=*/false) + 1e-5).sqrt();
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.recovery(), expected));
}

TEST(Decompose, GuardsAreReported) {
  const auto result = DecomposeFunction([](const Tensor& t) { return t.sum().item<double>() > 0 ? t * 2 : t * 3; },
                                        SplitInput(at::ones({3}), {0}));
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("branch"));
}

// Conditions are taken from the value and hold for the reference too, which is then not the model's on the baseline.
TEST(Decompose, ConditionsHoldForEveryRowAndAreReported) {
  const Tensor x = at::tensor({1.0, -1.0});
  const auto result = DecomposeFunction(
      [](const Tensor& t) { return at::where(t.gt(0).logical_not(), t * 2, t * 3 + 1); }, SplitInput(x, {0}));
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::equal(parts.components(), at::diag(at::tensor({3.0, -2.0}))));
  EXPECT_TRUE(at::equal(parts.reference(), at::tensor({1.0, 0.0})));
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("conditions"));
}

TEST(Decompose, FrozenKindsFollowViewsAndScales) {
  const Tensor x = Random({2, 3, 4}, 1);
  DecomposeOptions fast;
  fast.policy.preset = Preset::kFast;
  const auto model = [](const Tensor& t) {
    const Tensor weights = (at::softmax(t.matmul(t.transpose(1, 2)), -1) * 1.0).view({2, 3, 3});
    return weights.matmul(t);
  };
  const auto result = DecomposeFunction(model, SplitInput(x, {1}), fast);
  // With frozen attention each token's part is its own value, weighted.
  const Tensor weights = at::softmax(x.matmul(x.transpose(1, 2)), -1);
  const Tensor expected = weights.unsqueeze(-1).mul(x.unsqueeze(1)).permute({2, 0, 1, 3});
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.components(), expected, 0, 1e-12));
  EXPECT_EQ(result.report.operators_by_kind.count("Path"), 0u);  // nobody reads the rows of softmax
}

TEST(Decompose, ProbesByIndexNameAndLogits) {
  const Tensor w = Random({3, 4}, 4);
  const auto model =
      FromFunction([w](const std::vector<Tensor>& in) { return at::softmax(at::linear(at::gelu(in[0]), w), -1); },
                   {{"head.weight", w}}, {"head"});
  DecomposeOptions options;
  options.probes = {"#0", "aten::gelu", "head", "logits"};
  const Tensor x = Random({1, 4}, 5);
  const auto result = TracedModel(model).Decompose({SplitInput(x, {1})}, options);
  ASSERT_EQ(result.probes.size(), 4u);
  EXPECT_TRUE(at::equal(result.probes[0].value, at::gelu(x)));
  EXPECT_TRUE(at::equal(result.probes[1].value, at::gelu(x)));
  EXPECT_TRUE(at::equal(result.probes[2].value, at::linear(at::gelu(x), w)));
  EXPECT_TRUE(at::equal(result.probes[3].value, at::linear(at::gelu(x), w)));
  for (const Decomposed& probe : result.probes) {
    EXPECT_TRUE(at::allclose(probe.composition.recovery(), probe.value)) << probe.name;
  }
  for (const auto& [selector, message] :
       std::vector<std::pair<std::string, std::string>>{{"#99", "there is no operator #99"},
                                                        {"tail", "nothing inside the model is called tail"},
                                                        {"aten::relu", "does not call aten::relu"},
                                                        {"aten::gelu:4", "only 1 times"}}) {
    options.probes = {selector};
    EXPECT_THAT(MessageOf([&] { TracedModel(model).Decompose({SplitInput(x, {1})}, options); }), HasSubstr(message));
  }
}

// A probe shows its tensor as it was then, whatever is written over it later.
TEST(Decompose, ProbesAreTakenInTime) {
  DecomposeOptions options;
  options.probes = {"#0"};
  const Tensor x = Random({4}, 5);
  const auto result = DecomposeFunction(
      [](const Tensor& t) {
        Tensor y = t * 2;
        return y.add_(1).relu_();
      },
      SplitInput(x, {0}), options);
  EXPECT_TRUE(at::equal(result.probes[0].value, x * 2));
  EXPECT_TRUE(at::allclose(result.probes[0].composition.components(), at::diag(x * 2)));
}

TEST(Decompose, RunIsThePlainModel) {
  const Tensor w = Random({50, 40}, 4, at::kFloat);
  const Tensor x = Random({3, 40}, 5, at::kFloat);
  const TracedModel model(FromFunction([w](const std::vector<Tensor>& in) { return at::gelu(at::linear(in[0], w)); }));
  EXPECT_TRUE(at::equal(model.Run({x}).toTensor(), at::gelu(at::linear(x, w))));
  EXPECT_EQ(model.Decompose({SplitInput(x, {1})}).numc, 40);
}

// Numbers beside tensors that have no parts.
class ModelOfSeveralResults : public Model {
 public:
  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    const Tensor x = inputs[0].toTensor();
    return c10::ivalue::Tuple::create({x.argmax(), x * 2, at::tensor(3), x.sum()});
  }
};

TEST(Decompose, OutputsAreNamedByTheirPlaceAmongAllTensors) {
  const Tensor x = Random({4}, 5);
  const Decomposition found = TracedModel(std::make_shared<ModelOfSeveralResults>()).Decompose({SplitInput(x, {0})});
  ASSERT_EQ(found.outputs.size(), 2u);
  EXPECT_EQ(found.outputs[0].name, "output.1");
  EXPECT_EQ(found.outputs[1].name, "output.3");
  ASSERT_EQ(found.plain.size(), 2u);
  EXPECT_EQ(found.plain[0].name, "output");
  EXPECT_EQ(found.plain[1].name, "output.2");
}

TEST(Decompose, HalfInputsHaveSinglePrecisionParts) {
  const Tensor x = Random({2, 8}, 5).to(at::kBFloat16);
  const Tensor w = Random({8, 8}, 4).to(at::kBFloat16);
  DecomposeOptions options;
  options.policy.tolerance = 0.05;  // the model itself rounds to 8 bits after every operator
  options.policy.on_failure = OnFailure::kWarn;
  const auto result =
      DecomposeFunction([w](const Tensor& t) { return t.matmul(w).relu(); }, SplitInput(x, {1}), options);
  EXPECT_EQ(result.outputs[0].value.scalar_type(), at::kBFloat16);
  EXPECT_EQ(result.outputs[0].composition.components().scalar_type(), at::kFloat);
}

// ---- bad input

TEST(DecomposeErrors, NameTheInputAndTheReason) {
  const auto decompose = [](const Input& input) {
    return MessageOf([&] { DecomposeFunction([](const Tensor& t) { return t * 2; }, input); });
  };
  const Tensor x = Random({2, 3}, 1);
  EXPECT_THAT(decompose(Input::Plain(x)), HasSubstr("no input is split"));
  EXPECT_THAT(decompose(SplitInput(x, {2})), HasSubstr("input 0 of shape f64[2, 3] has no dimension 2"));
  Input baseline = SplitInput(x, {1});
  baseline.baseline = Baseline::Of(at::zeros({4}));
  EXPECT_THAT(decompose(baseline), HasSubstr("a baseline of shape f32[4] does not fit"));
  baseline.baseline = Baseline::Of(at::zeros({3}, at::kComplexFloat));
  EXPECT_THAT(decompose(baseline), HasSubstr("dtype c64"));
  baseline.baseline = Baseline::Of(at::zeros({3}, at::kLong));  // whole numbers
  EXPECT_EQ(decompose(baseline), "(no error)");
  const Tensor bytes = at::zeros({1, 3}, at::kByte);
  EXPECT_THAT(decompose(SplitInput(bytes, {1}, at::full({3}, 300, at::kLong))),
              HasSubstr("input 0: the baseline holds a number that u8, the dtype of the input, does not hold"));
  EXPECT_THAT(decompose(SplitInput(bytes, {1}, at::full({3}, 0.5))), HasSubstr("dtype f32"));
  Input labels;
  labels.value = x;
  labels.split = Split::ByLabels(at::zeros({4}, at::kLong));
  EXPECT_THAT(decompose(labels), HasSubstr("labels of shape i64[4] do not fit"));
  labels.split = Split::ByLabels(at::full({2, 3}, -2, at::kLong));
  EXPECT_THAT(decompose(labels), HasSubstr("count from 0"));
  Input parts;
  parts.value = x;
  parts.split = Split::Parts(at::zeros({2, 3, 2}));
  EXPECT_THAT(decompose(parts), HasSubstr("do not fit [components, *input]"));
  parts.split = Split::Parts(at::ones({2, 2, 3}, at::kDouble));
  parts.baseline = Baseline::Of(0.0);
  EXPECT_THAT(decompose(parts), HasSubstr("do not sum"));
  parts.value = x.clone();
  parts.value[1][2] = std::nan("");
  EXPECT_THAT(decompose(parts), HasSubstr("NaN or infinity, first at [1, 2]"));
}

// ---- NaN, infinity and nothing at all

const double kInfinity = std::numeric_limits<double>::infinity();

// NaN and infinity included.
void ExpectSame(const Tensor& a, const Tensor& b) {
  EXPECT_TRUE(at::allclose(a, b, 1e-12, 1e-12, /*equal_nan=*/true)) << a << "\n" << b;
}

TEST(NotFinite, ElementsOfAnInputAreReference) {
  const Tensor x = at::tensor({1.0, std::nan(""), 3.0, -kInfinity}, at::kDouble).view({2, 2});
  const auto model = [](const Tensor& t) { return t.cumsum(1) * 2; };
  const auto result = DecomposeFunction(model, SplitInput(x, {1}));
  const Composition& parts = result.outputs[0].composition;
  ExpectSame(parts.recovery(), model(x));
  ExpectSame(parts.reference(), model(at::tensor({0.0, std::nan(""), 0.0, -kInfinity}, at::kDouble).view({2, 2})));
  EXPECT_EQ(parts.numc(), 2);
  ExpectSame(parts.component(0).select(1, 0), at::tensor({2.0, 6.0}, at::kDouble));
  EXPECT_THAT(result.report.notes, testing::Contains(HasSubstr("an input holds NaN or infinity, first at [0, 1]; ")));
}

// The reference has NaN where the baseline has none.
TEST(NotFinite, TheReferenceIsNotWhatTheModelGivesOnTheBaseline) {
  const Tensor x = at::tensor({1.0, std::nan(""), 3.0, 4.0}, at::kDouble).view({2, 2});
  const auto report_of = [&](const std::function<Tensor(const Tensor&)>& model, const Input& input, bool verify) {
    DecomposeOptions options;
    options.verify_reference = verify;
    return DecomposeFunction(model, input, options).report;
  };
  const auto sums = [](const Tensor& t) { return t.cumsum(1) * 2; };
  const auto skips = [](const Tensor& t) { return t.nan_to_num(0).cumsum(1) * 2; };  // 0 is what the baseline has
  const Input asked = SplitInput(x, {1});
  for (const auto& model : {std::function<Tensor(const Tensor&)>(sums), std::function<Tensor(const Tensor&)>(skips)}) {
    const Report unseen = report_of(model, asked, false);
    EXPECT_EQ(unseen.reference_is_model_on_baseline, "unknown");
    EXPECT_THAT(unseen.reference_reason, HasSubstr("an input is NaN or infinite"));
  }
  const Report other = report_of(sums, asked, true);
  EXPECT_EQ(other.reference_is_model_on_baseline, "no");
  EXPECT_THAT(other.reference_reason, HasSubstr("NaN or infinite in one of both only; where an input is NaN"));
  EXPECT_EQ(report_of(skips, asked, true).reference_is_model_on_baseline, "yes");

  Input shared = asked;  // a baseline that has the same NaN
  shared.baseline = Baseline::Of(at::tensor({0.0, std::nan(""), 0.0, 0.0}, at::kDouble).view({2, 2}));
  Input unlabelled = asked;  // an element that is to stay what it is
  unlabelled.split = Split::ByLabels(at::tensor({0, -1, 0, 1}, at::kLong).view({2, 2}));
  for (const Input& input : {shared, unlabelled}) {
    for (const bool verify : {false, true}) {
      EXPECT_EQ(report_of(sums, input, verify).reference_is_model_on_baseline, "yes");
    }
  }
}

TEST(NotFinite, ResultsOfFiniteInputsAreLeftover) {
  Input input = SplitInput(at::tensor({-0.5, 0.3, 2.0}, at::kDouble), {0});
  input.baseline = Baseline::Of(0.25);
  const auto result = DecomposeFunction([](const Tensor& t) { return at::special_entr(t); }, input);
  const Composition& parts = result.outputs[0].composition;
  ExpectSame(parts.recovery(), at::special_entr(input.value));
  EXPECT_EQ(parts.leftover()[0].item<double>(), -kInfinity);
  EXPECT_TRUE(at::isfinite(parts.components()).all().item<bool>());
  EXPECT_THAT(result.report.notes, testing::Contains("output is NaN or infinite where its reference is not; all of "
                                                     "that is leftover"));
}

// |x|^-1 is infinite at 0 and finite everywhere else, and the norm is finite throughout.
TEST(NotFinite, WhatIsFiniteAgainIsLeftover) {
  const auto model = [](const Tensor& t) { return at::norm(t, -1, {1}); };
  for (const Check check : {Check::kEveryOp, Check::kOutputs}) {
    Input input = SplitInput(at::tensor({0.0, 2.0, 1.0, 3.0}, at::kDouble).view({2, 2}), {1});
    input.baseline = Baseline::Of(1.0);
    DecomposeOptions options;
    options.policy.check = check;
    const auto result = DecomposeFunction(model, input, options);
    const Composition& parts = result.outputs[0].composition;
    ExpectSame(parts.recovery(), model(input.value));
    ExpectSame(parts.reference(), model(at::ones_like(input.value)));
    EXPECT_NEAR(parts.leftover()[0].item<double>(), -0.5, 1e-12);
    EXPECT_NEAR(parts.leftover()[1].item<double>(), 0, 1e-12);
    EXPECT_THAT(result.report.notes,
                testing::Contains(HasSubstr("reads NaN or infinity where the reference is finite")));
    EXPECT_TRUE(result.report.failures.empty());
  }
}

TEST(Empty, InputsGiveEmptyResults) {
  const auto model = [](const Tensor& t) {
    return at::cat({t.relu().matmul(at::ones({3, 2}, at::kDouble)), t.exp()}, 1);
  };
  for (const auto& [dim, numc] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 3}}) {
    const auto result = DecomposeFunction(model, SplitInput(at::zeros({0, 3}, at::kDouble), {dim}));
    const Composition& parts = result.outputs[0].composition;
    EXPECT_EQ(parts.numc(), numc);
    EXPECT_EQ(parts.components().sizes(), at::IntArrayRef({numc, 0, 5}));
    EXPECT_EQ(parts.recovery().sizes(), at::IntArrayRef({0, 5}));
  }
  Input labels;
  labels.value = at::zeros({0, 3}, at::kDouble);
  labels.split = Split::ByLabels(at::zeros({0, 3}, at::kLong));
  EXPECT_EQ(DecomposeFunction(model, labels).numc, 0);
}

TEST(Empty, SumsOfThemAreReference) {
  const auto result =
      DecomposeFunction([](const Tensor& t) { return t.sum(0) + 1; }, SplitInput(at::zeros({0, 3}, at::kDouble), {1}));
  const Composition& parts = result.outputs[0].composition;
  ExpectSame(parts.reference(), at::ones({3}, at::kDouble));
  ExpectSame(parts.components(), at::zeros({3, 3}, at::kDouble));
}

TEST(Precision, SinglePrecisionOnTheWayIsSaid) {
  const auto result = DecomposeFunction([](const Tensor& t) { return t.to(at::kFloat).exp().to(at::kDouble); },
                                        SplitInput(Random({2, 3}, 1), {1}));
  EXPECT_THAT(result.report.notes, testing::Contains(HasSubstr("went through single precision")));
  const auto exact = DecomposeFunction([](const Tensor& t) { return t.exp(); }, SplitInput(Random({2, 3}, 1), {1}));
  EXPECT_THAT(exact.report.notes, testing::Not(testing::Contains(HasSubstr("single precision"))));
}

TEST(DecomposeErrors, ModelFailuresAreOneLine) {
  const std::string message = MessageOf([] {
    DecomposeFunction(
        [](const Tensor& t) {
          return t.mm(at::ones({5, 5}, at::kDouble));
        },
        SplitInput(Random({2, 3}, 1), {1}));
  });
  EXPECT_THAT(message, testing::AllOf(HasSubstr("the model fails on an input f64[2, 3]: "),
                                      HasSubstr("mat1 and mat2 shapes cannot be multiplied")));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

// A layer norm on its way from zero errs by the rounding of terms a hundred times as large as its value. What follows
// hands that on, and is no failure of it. Few components, so that they are not large themselves.
TEST(Checks, WhatOperandsMissIsNoFailureOfTheNextOperator) {
  const Tensor weight = Random({128, 64}, 3).to(at::kFloat) / 8;
  const Tensor back = Random({64, 128}, 4).to(at::kFloat) / 8;
  const Tensor bias = Random({128}, 5).to(at::kFloat) / 8;
  const auto model = [&](const std::vector<Tensor>& in) {
    const Tensor hidden = at::linear(at::layer_norm(in[0], {64}), weight).add_(bias);
    return at::add(in[0], at::linear(at::gelu(hidden), back));
  };
  for (const int64_t numc : {1, 2, 32}) {
    Input input;
    input.value = Random({32, 64}, 1).to(at::kFloat);
    input.split =
        Split::ByLabels((at::arange(32) * numc).div(32, "floor").to(at::kLong).view({32, 1}).expand({32, 64}));
    input.baseline = Baseline::Of(0.0);
    DecomposeOptions options;
    options.policy.preset = Preset::kFaithful;
    for (const Check check : {Check::kEveryOp, Check::kOutputs}) {
      options.policy.check = check;
      const Decomposition result = TracedModel(FromFunction(model)).Decompose({input}, options);
      EXPECT_LT(result.report.worst_recovery_error, 1e-3) << numc;
      EXPECT_TRUE(result.report.failures.empty()) << numc;
    }
  }
}

}  // namespace
}  // namespace addend

// Contributions found by one sweep back: against decompositions, against autograd, and against each other.
#include "core/explain/attribute.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/error_testing.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"
#include "core/recording/record_program.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

Target Element(std::vector<int64_t> index, std::vector<int64_t> subtract = {}) {
  Target target;
  target.top1 = false;
  target.index = std::move(index);
  target.subtract = std::move(subtract);
  return target;
}

Tensor PartsOf(const Contributions& target) { return at::tensor(target.contributions, at::kDouble); }

double Apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

void ExpectSame(const Contributions& own, const Contributions& other, double tolerance) {
  EXPECT_EQ(TargetText(own.target), TargetText(other.target));
  EXPECT_NEAR(own.value, other.value, tolerance);
  EXPECT_NEAR(own.reference, other.reference, tolerance);
  EXPECT_NEAR(own.leftover, other.leftover, tolerance);
  EXPECT_NEAR(own.recovery, other.recovery, tolerance);
  EXPECT_NEAR(own.mass, other.mass, tolerance * own.contributions.size());
  ASSERT_EQ(own.contributions.size(), other.contributions.size());
  EXPECT_LE(Apart(PartsOf(own), PartsOf(other)), tolerance);
}

class SmallModelsBothWays : public testing::TestWithParam<SmallModel> {};

TEST_P(SmallModelsBothWays, AttributesWhatDecomposeFinds) {
  const Input input = SplitInput(Random({2, 6}, 1), {1}, Random({2, 6}, 2));
  const TracedModel model = ModelOf(GetParam().run);
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    DecomposeOptions forward;
    forward.policy.preset = preset;
    at::manual_seed(5);
    const Decomposed whole = model.Decompose({input}, forward).outputs[0];
    const at::IntArrayRef sizes = whole.value.sizes();
    const std::vector<int64_t> first(sizes.size(), 0);
    std::vector<int64_t> last;
    for (const int64_t size : sizes) last.push_back(size - 1);
    AttributeOptions options;
    options.policy.preset = preset;
    options.targets = {Element(first), Element(last), Element(last, first)};
    at::manual_seed(5);
    const Attribution found = Attribute(model, {input}, options);
    EXPECT_EQ(found.numc, 6);
    EXPECT_TRUE(at::equal(found.value, whole.value));
    ASSERT_EQ(found.targets.size(), 3u);
    ASSERT_EQ(found.inputs[0].sizes(), at::IntArrayRef({3, 2, 6}));
    for (size_t t = 0; t < 3; ++t) {
      ExpectSame(found.targets[t], Contribute(whole.value, whole.composition, options.targets[t]), 1e-10);
      EXPECT_LE(Apart(found.inputs[0][static_cast<int64_t>(t)].sum(0), PartsOf(found.targets[t])), 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, SmallModelsBothWays, testing::ValuesIn(SmallModels()),
                         [](const auto& info) { return info.param.name; });

// ---- what the contributions are

TEST(Attribute, OfALinearModelIsWeightTimesMove) {
  const Tensor x = Random({4, 3}, 1);
  const Tensor b = Random({4, 3}, 2);
  const Tensor w = Random({5, 3}, 3);
  const Tensor bias = Random({5}, 4);
  AttributeOptions options;
  options.targets = {Element({2, 4}), Element({0, 1}, {3, 2})};
  const Attribution found =
      Attribute(ModelOf([&](const Tensor& t) { return at::linear(t, w, bias); }), {SplitInput(x, {1}, b)}, options);
  Tensor expected = at::zeros({2, 4, 3}, at::kDouble);
  expected[0][2] = w[4] * (x - b)[2];
  expected[1][0] = w[1] * (x - b)[0];
  expected[1][3] = -w[2] * (x - b)[3];
  EXPECT_LE(Apart(found.inputs[0], expected), 1e-14);
  EXPECT_NEAR(found.targets[0].reference, at::linear(b, w, bias)[2][4].item<double>(), 1e-14);
  EXPECT_NEAR(found.targets[0].leftover, 0, 1e-14);
}

// Cut into more and more pieces, secants become derivatives on the line: integrated gradients.
TEST(Attribute, ManySegmentsAreIntegratedGradients) {
  const Tensor x = Random({2, 6}, 1);
  const Tensor b = Random({2, 6}, 2);
  const auto run = [](const Tensor& t) {
    return at::softmax(at::linear(at::layer_norm(at::gelu(at::linear(t, Weight())), {6}), Weight()), 1);
  };
  Tensor mean = at::zeros_like(x);
  const int points = 2000;
  for (int k = 0; k < points; ++k) {
    const Tensor at_point = (b + (x - b) * ((k + 0.5) / points)).requires_grad_();
    run(at_point)[1][2].backward();
    mean += at_point.grad() / points;
  }
  const Tensor integrated = mean * (x - b);
  double before = integrated.abs().max().item<double>();
  for (const int64_t segments : {4, 16, 64}) {
    AttributeOptions options;
    options.policy.segments = segments;
    options.policy.content_first = kFreezeNothing;  // by half the error is of second order
    options.targets = {Element({1, 2})};
    const Attribution found = Attribute(ModelOf(run), {SplitInput(x, {0, 1}, b)}, options);
    const double apart = Apart(found.inputs[0][0], integrated);
    EXPECT_LE(apart, before / 3) << segments;
    before = apart;
    EXPECT_NEAR(found.inputs[0].sum().item<double>(), (run(x) - run(b))[1][2].item<double>(), 1e-10);
  }
}

TEST(Attribute, NumbersThatAreNotFiniteAreNoted) {
  const auto notes = [](double divisor) {
    AttributeOptions options;
    options.targets = {Element({0, 1})};
    const auto divide = [&](const Tensor& t) { return t / divisor; };
    const Input input = SplitInput(at::tensor({1.0, 2.0}).view({1, 2}), {1}, Baseline::Of(0.5));
    return testing::PrintToString(Attribute(ModelOf(divide), {input}, options).report.notes);
  };
  EXPECT_THAT(notes(0), testing::HasSubstr("contributions to 1 target in output are NaN or infinite"));
  EXPECT_THAT(notes(2), testing::Not(testing::HasSubstr("NaN")));
}

TEST(Attribute, FastLeavesSomethingOverAndSaysHowMuch) {
  const auto run = [](const Tensor& t) { return at::layer_norm(t.mm(Weight()), {6}); };
  const Tensor x = Random({2, 6}, 1);
  const Tensor b = Random({2, 6}, 2);
  AttributeOptions options;
  options.targets = {Element({0, 3})};
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    options.policy.preset = preset;
    const Contributions target = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options).targets[0];
    EXPECT_NEAR(target.reference, run(b)[0][3].item<double>(), 1e-14);
    EXPECT_NEAR(PartsOf(target).sum().item<double>() + target.leftover, (run(x) - run(b))[0][3].item<double>(), 1e-12);
    EXPECT_EQ(std::abs(target.leftover) > 1e-3, preset == Preset::kFast);
  }
}

TEST(Attribute, BeforeAFinalSoftmax) {
  const auto scores = [](const Tensor& t) { return at::linear(at::gelu(t), Weight()); };
  const Input input = SplitInput(Random({1, 6}, 1), {1}, Random({1, 6}, 2));
  AttributeOptions options;
  options.at = "logits";
  const Attribution before =
      Attribute(ModelOf([&](const Tensor& t) { return at::softmax(scores(t), -1); }), {input}, options);
  options.at = "output";
  const Attribution without = Attribute(ModelOf(scores), {input}, options);
  EXPECT_EQ(before.name, "logits");
  EXPECT_EQ(before.targets[0].target.index.back(), scores(input.value).argmax().item<int64_t>());
  ExpectSame(before.targets[0], without.targets[0], 1e-12);
}

// ---- what goes in comes out

TEST(Attribute, EveryInputGetsATensorOfItsShape) {
  const Tensor table = Random({10, 4}, 1);
  Input ids;
  ids.value = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3});
  ids.split = Split::ByLabels(at::tensor({0, 0, 1, 2, 2, -1}, at::kLong).view({2, 3}));
  ids.baseline = Baseline::Token(0);
  const Input numbers = SplitInput(Random({2, 3, 4}, 2), {1}, Random({2, 3, 4}, 3));
  const Input plain = Input::Plain(Random({4}, 4));
  Input parts;
  const Tensor given = Random({2, 2, 3, 4}, 5);
  parts.value = given.sum(0) + 1;
  parts.split = Split::Parts(given);
  const TracedModel model(FromFunction([table](const std::vector<Tensor>& in) {
    // The ids are read through copies and views of other shapes.
    const Tensor embedded = at::embedding(table, in[0].t().clone()).transpose(0, 1);
    return at::layer_norm(embedded * in[1] + in[3].tanh(), {4}).matmul(in[2]).sum(1);
  }));
  const std::vector<Input> inputs = {ids, numbers, plain, parts};
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    AttributeOptions options;
    options.policy.preset = preset;
    options.targets = {Element({0}), Element({1}), Element({1}, {0})};
    const Attribution found = Attribute(model, inputs, options);
    DecomposeOptions forward;
    forward.policy.preset = preset;
    const Decomposition whole = model.Decompose(inputs, forward);
    ASSERT_EQ(found.numc, 3 + 3 + 2);
    ASSERT_EQ(found.inputs.size(), 4u);
    EXPECT_EQ(found.inputs[0].sizes(), at::IntArrayRef({3, 2, 3}));
    EXPECT_EQ(found.inputs[1].sizes(), at::IntArrayRef({3, 2, 3, 4}));
    EXPECT_FALSE(found.inputs[2].defined());
    EXPECT_EQ(found.inputs[3].sizes(), at::IntArrayRef({3, 2, 3, 4}));
    for (int64_t t = 0; t < 3; ++t) {
      const Contributions& target = found.targets[t];
      ExpectSame(target, Contribute(whole.outputs[0].value, whole.outputs[0].composition, options.targets[t]), 1e-11);
      const Tensor own = PartsOf(target);
      const Tensor of_ids = found.inputs[0][t].reshape({6});
      const Tensor by_label = at::stack({of_ids[0] + of_ids[1], of_ids[2], of_ids[3] + of_ids[4]});
      EXPECT_LE(Apart(by_label, own.slice(0, 0, 3)), 1e-12);
      EXPECT_EQ(of_ids[5].item<double>(), 0);  // the label -1
      EXPECT_LE(Apart(found.inputs[1][t].sum(at::IntArrayRef({0, 2})), own.slice(0, 3, 6)), 1e-12);
      EXPECT_LE(std::abs((found.inputs[3][t].sum() - own.slice(0, 6, 8).sum()).item<double>()), 1e-12);
    }
  }
}

// ---- one target for each example

TEST(Attribute, ExamplesOfABatchGetWhatTheyGetAlone) {
  const Tensor x = Random({5, 6}, 1);
  const Tensor b = Random({6}, 2);
  const auto run = [](const Tensor& t) { return at::linear(at::layer_norm(at::gelu(t.mm(Weight())), {6}), Weight()); };
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    AttributeOptions options;
    options.policy.preset = preset;
    options.each_example = true;
    options.targets = {Element({2}), Element({0}, {5}), Target(), Element({1}), Element({3})};
    const Attribution batch = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
    ASSERT_EQ(batch.targets.size(), 5u);
    ASSERT_EQ(batch.inputs[0].sizes(), x.sizes());
    double leftover = 0;
    for (int64_t i = 0; i < 5; ++i) {
      AttributeOptions alone;
      alone.policy.preset = preset;
      alone.targets = {options.targets[i]};
      const Attribution one = Attribute(ModelOf(run), {SplitInput(x.narrow(0, i, 1), {1}, b)}, alone);
      EXPECT_LE(Apart(batch.inputs[0][i], one.inputs[0][0][0]), 1e-12);
      Contributions own = batch.targets[i];
      EXPECT_EQ(own.target.index.front(), i);
      own.target.index.front() = 0;
      if (!own.target.subtract.empty()) own.target.subtract.front() = 0;
      ExpectSame(own, one.targets[0], 1e-11);
      leftover += own.leftover;
    }
    EXPECT_EQ(std::abs(leftover) > 1e-3, preset == Preset::kFast);
  }
  // One target for all of them.
  AttributeOptions options;
  options.each_example = true;
  options.targets = {Element({4})};
  const Attribution all = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(all.targets[i].target.index, (std::vector<int64_t>{i, 4}));
}

TEST(Attribute, ARowThatIsNotFiniteIsOneRow) {
  const auto run = [](const Tensor& t) { return t.mm(Weight()); };
  Tensor x = Random({3, 6}, 1);
  const Tensor b = Random({6}, 2);
  AttributeOptions options;
  options.each_example = true;
  options.targets = {Element({2})};
  const Attribution whole = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  x[1][3] = std::nan("");
  const Attribution found = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  EXPECT_TRUE(std::isnan(found.targets[1].value));
  EXPECT_THAT(found.report.notes, testing::Contains(HasSubstr("NaN or infinity, first at [1, 3]")));
  EXPECT_EQ(whole.report.reference_is_model_on_baseline, "yes");
  EXPECT_EQ(found.report.reference_is_model_on_baseline, "unknown");
  for (const size_t i : {0, 2}) ExpectSame(found.targets[i], whole.targets[i], 1e-12);
}

// A batch in which every example is given something of another one, and then by the statistics of the batch.
TEST(Attribute, ExamplesThatInfluenceEachOtherAreNoted) {
  const Tensor x = Random({4, 6}, 1);
  const Tensor b = Random({6}, 2);
  const auto notes = [&](const std::function<Tensor(const Tensor&)>& run, Preset preset, const Tensor& value) {
    AttributeOptions options;
    options.policy.preset = preset;
    options.each_example = true;
    options.targets = {Element({0}), Element({1})};
    options.every_target = true;
    return Attribute(ModelOf(run), {SplitInput(value, {1}, b)}, options).report.notes;
  };
  const auto influence = testing::Contains(HasSubstr("the examples influence each other"));
  const auto normalized = [](bool training) {
    return [training](const Tensor& t) {
      const Tensor mean = at::zeros({6}, at::kDouble);
      return at::relu(
          at::batch_norm(t.mm(Weight()), {}, {}, mean, at::ones({6}, at::kDouble), training, 0.1, 1e-5, false));
    };
  };
  const auto alone = [](const Tensor& t) { return at::relu(t.mm(Weight())); };
  for (const Preset preset : {Preset::kFaithful, Preset::kFast}) {
    EXPECT_THAT(notes([](const Tensor& t) { return 2 * t + 0.4 * t.roll(1, 0); }, preset, x), influence);
    EXPECT_THAT(notes([](const Tensor& t) { return t - t.mean(0, true); }, preset, x), influence);
    EXPECT_THAT(notes(normalized(true), preset, x), influence);
    EXPECT_THAT(notes(normalized(false), preset, x), testing::Not(influence));
    EXPECT_THAT(notes(alone, preset, x), testing::Not(influence));
    // One example has no others.
    EXPECT_THAT(notes(alone, preset, x.narrow(0, 0, 1)), testing::Not(influence));
    // Statistics of each example are its own.
    EXPECT_THAT(notes(
                    [](const Tensor& t) {
                      const Tensor own = t.view({t.size(0), 2, 3});
                      return at::instance_norm(own, {}, {}, {}, {}, true, 0.1, 1e-5, false).view({t.size(0), 6});
                    },
                    preset, x),
                testing::Not(influence));
  }
}

// Operators of these models leave something over, so that a leftover tells nothing.
TEST(Attribute, InfluenceIsNotedBesideALeftoverOfOperators) {
  const auto model = [](const Tensor& t) { return at::softmax(t.mm(Weight()), 1); };
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> influenced = {
      {"the one before", [&](const Tensor& t) { return model(t) + 0.4 * t.roll(1, 0); }},
      {"the second before", [&](const Tensor& t) { return model(t) + 0.4 * t.roll(2, 0); }},
      {"all before", [&](const Tensor& t) { return model(t).cumsum(0); }},
      {"all behind", [&](const Tensor& t) { return model(t).flip(0).cumsum(0).flip(0); }},
      {"the one opposite", [&](const Tensor& t) { return model(t) + 0.4 * t.flip(0); }},
      {"attention", [&](const Tensor& t) { return model(t) + at::softmax(t.mm(t.t()), -1).mm(t); }},
      {"the first, little", [&](const Tensor& t) { return model(t) + 1e-6 * t.narrow(0, 0, 1); }},
  };
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> independent = {
      {"softmax", model},
      {"layer norm", [&](const Tensor& t) { return model(at::layer_norm(t, {6})); }},
      {"attention of each",
       [&](const Tensor& t) {
         const Tensor own = t.view({t.size(0), 2, 3});
         return at::softmax(own.matmul(own.transpose(1, 2)), -1).matmul(own).reshape({t.size(0), 6});
       }},
      {"infinite scores",
       [&](const Tensor& t) {
         const Tensor low = at::zeros({6}, at::kDouble).masked_fill(at::arange(6).ge(4), -INFINITY);
         return model(at::softmax(t + low, -1));
       }},
  };
  const auto influence = testing::Contains(HasSubstr("the examples influence each other"));
  std::vector<AttributeOptions> ways(5);
  ways[0].policy.preset = Preset::kFaithful;
  ways[1].policy.preset = Preset::kFast;
  ways[2].policy.segments = 3;
  ways[3].every_target = true;
  ways[4].memory_bytes = 1;
  for (const int64_t rows : {2, 3, 4, 8, 16, 33}) {
    const Tensor x = Random({rows, 6}, 1);
    const Tensor b = Random({6}, 2);
    for (size_t k = 0; k < ways.size(); ++k) {
      const auto notes = [&](const std::function<Tensor(const Tensor&)>& run) {
        AttributeOptions options = ways[k];
        options.each_example = true;
        options.targets = {Element({0})};
        return Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options).report.notes;
      };
      for (const auto& [name, run] : influenced) {
        if (rows == 2 && name == "the second before") continue;  // which is its own
        EXPECT_THAT(notes(run), influence) << name << ", " << rows << " rows, way " << k;
      }
      for (const auto& [name, run] : independent) {
        EXPECT_THAT(notes(run), testing::Not(influence)) << name << ", " << rows << " rows, way " << k;
      }
    }
  }
  // One row alone: the operators do leave something over, if only by rounding, which may come to nothing in one of
  // them.
  AttributeOptions one;
  one.targets = {Element({0, 0})};
  size_t leaving = 0;
  for (const auto& [name, run] : independent) {
    const Attribution alone = Attribute(ModelOf(run), {SplitInput(Random({1, 6}, 1), {1}, Random({6}, 2))}, one);
    leaving += alone.targets[0].leftover != 0 ? 1 : 0;
  }
  EXPECT_GE(leaving + 1, independent.size());
}

// Each example gets as much from the others as it gives to them, so that no leftover tells of it.
TEST(Attribute, InfluenceIsNotedWhereExamplesGetWhatTheyGive) {
  const auto equal = [](int64_t rows) { return at::ones({rows, 6}, at::kDouble); };
  const auto drawn = [](int64_t rows) { return Random({rows, 6}, 1); };
  struct Case {
    std::string name;
    std::function<Tensor(const Tensor&)> run;
    std::function<Tensor(int64_t)> rows;
    bool influence;
  };
  const std::vector<Case> cases = {
      {"products of all pairs", [](const Tensor& t) { return t.mm(t.t()).sum(1, true); }, drawn, true},
      {"products with the one opposite", [](const Tensor& t) { return t * t.flip(0); }, drawn, true},
      {"products with the sum of all", [](const Tensor& t) { return t.sum(1, true) * t.sum(); }, drawn, true},
      {"examples that are equal", [](const Tensor& t) { return t + 0.4 * t.roll(1, 0); }, equal, true},
      {"products within an example", [](const Tensor& t) { return t * t.flip(1); }, drawn, false},
      {"terms that cancel", [](const Tensor& t) { return (t * 1e4 + t.mm(Weight())) - t * 1e4; }, drawn, false},
      {"equal, each by itself", [](const Tensor& t) { return at::tanh(t.mm(Weight())); }, equal, false},
  };
  const auto influence = testing::Contains(HasSubstr("the examples influence each other"));
  for (const Case& one : cases) {
    for (const int64_t rows : {2, 3, 4, 16, 40}) {
      AttributeOptions options;
      options.each_example = true;
      options.targets = {Element({0})};
      options.policy.preset = Preset::kFaithful;
      const Input input = SplitInput(one.rows(rows), {1}, at::zeros({6}, at::kDouble));
      const Attribution found = Attribute(ModelOf(one.run), {input}, options);
      if (one.influence) {
        for (const Contributions& target : found.targets) EXPECT_NEAR(target.leftover, 0, 1e-10) << one.name;
        EXPECT_THAT(found.report.notes, influence) << one.name << ", " << rows << " rows";
      } else {
        EXPECT_THAT(found.report.notes, testing::Not(influence)) << one.name << ", " << rows << " rows";
      }
    }
  }
}

// Sequences of ids given to a model that takes the first dimension for positions: attention goes between the examples.
TEST(Attribute, InfluenceBetweenExamplesOfIdsIsNoted) {
  const Tensor table = Random({10, 6}, 3);
  Input ids;
  ids.value = at::tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, at::kLong).view({4, 3});
  ids.split = Split::AlongDims({1});
  const auto attend = [](const Tensor& t) { return at::softmax(t.matmul(t.transpose(-2, -1)), -1).matmul(t); };
  const auto notes = [&](bool positions_first) {
    AttributeOptions options;
    options.each_example = true;
    options.targets = {Element({0})};
    const TracedModel model(FromFunction([&](const std::vector<Tensor>& in) {
      const Tensor embedded = at::embedding(table, in[0]);  // [examples, positions, 6]
      return (positions_first ? attend(embedded.transpose(0, 1)).transpose(0, 1) : attend(embedded)).mean(1);
    }));
    return Attribute(model, {ids}, options).report.notes;
  };
  const auto influence = testing::Contains(HasSubstr("the examples influence each other"));
  EXPECT_THAT(notes(true), influence);
  EXPECT_THAT(notes(false), testing::Not(influence));
}

// ---- operators

TEST(Attribute, OperatorsTellWhatPassesThroughThem) {
  const auto run = [](const Tensor& t) { return at::gelu(t.mm(Weight())) * 2 + at::tanh(t); };
  AttributeOptions options;
  options.operators = true;
  options.targets = {Element({0, 1})};
  const Tensor x = Random({2, 6}, 1);
  const Tensor b = Random({2, 6}, 2);
  const Attribution found = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  std::map<std::string, double> passed;
  for (const OperatorRelevance& one : found.operators) passed[one.position.op] = one.passed.at(0);
  const double left = (at::gelu(x.mm(Weight())) - at::gelu(b.mm(Weight())))[0][1].item<double>() * 2;
  const double right = (at::tanh(x) - at::tanh(b))[0][1].item<double>();
  EXPECT_EQ(passed.size(), 5u);
  for (const char* op : {"aten::mm", "aten::gelu", "aten::mul"}) EXPECT_NEAR(passed[op], left, 1e-12) << op;
  EXPECT_NEAR(passed["aten::tanh"], right, 1e-12);
  EXPECT_NEAR(passed["aten::add"], left + right, 1e-12);
  EXPECT_THAT(found.operators.back().call, HasSubstr("add.Tensor(f64[2, 6], f64[2, 6]"));
  options.operators = false;
  EXPECT_TRUE(Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options).operators.empty());
}

// Composites that the tracer takes apart have one call in the program; the numbers are worked out from the modules.
TEST(Attribute, OperatorsFindTheirCallsInTheRecordedProgram) {
  const Tensor kernel = Random({3, 1, 2, 2}, 5);
  const Tensor weight = Random({4, 12}, 6);
  const auto run = [&](const Tensor& t) {
    const Tensor image = at::conv2d(t.view({1, 1, 3, 3}), kernel);
    const Tensor masked = at::relu(image.flatten(1)).mul_(2);
    return at::linear(masked, weight);
  };
  const Tensor x = Random({1, 9}, 1);
  const Tensor b = Random({1, 9}, 2);
  const std::shared_ptr<const RecordedProgram> program =
      Record(*FromFunction([&](const std::vector<Tensor>& in) { return run(in[0]); }), {x}).program;
  AttributeOptions options;
  options.operators = true;
  options.targets = {Element({0, 1}), Element({0, 3})};
  const Attribution found = Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options);
  const std::vector<std::vector<double>> passed = PassedByCall(found, program->calls.size());
  ASSERT_EQ(passed.size(), 2u);
  std::map<std::string, int> calls;
  for (size_t c = 0; c < program->calls.size(); ++c) calls[program->calls[c].op.schema().name()] = static_cast<int>(c);
  for (const OperatorRelevance& one : found.operators) {
    const std::string own = one.position.op == "aten::convolution" ? "aten::conv2d" : one.position.op;
    EXPECT_EQ(calls.at(own), one.program_call) << one.call;
  }
  for (int t : {0, 1}) {
    // A chain: everything passes through every operator.
    const double whole = found.targets[t].value - found.targets[t].reference;
    for (const char* op : {"aten::conv2d", "aten::relu", "aten::mul_", "aten::linear"}) {
      ASSERT_TRUE(calls.count(op)) << op;
      EXPECT_NEAR(passed[t][calls[op]], whole, 1e-12) << op;
    }
    EXPECT_TRUE(std::isnan(passed[t][calls["aten::view"]]));
  }
  EXPECT_THAT(MessageOf([&] { PassedByCall(found, 2); }), HasSubstr("record the same model"));
}

// ---- reports and errors

TEST(Attribute, ReportsAsDecompositionsDo) {
  Input input = SplitInput(Random({1, 6}, 1), {1}, at::zeros({6}, at::kDouble));
  std::vector<std::string> stages;
  AttributeOptions options;
  options.progress = [&](const std::string& stage, int64_t, int64_t) {
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
  };
  const Attribution found = Attribute(ModelOf([](const Tensor& t) { return t.relu().mm(Weight()); }), {input}, options);
  EXPECT_EQ(stages, (std::vector<std::string>{"trace", "linearize", "sweep"}));
  EXPECT_EQ(found.report.operators, 2);
  EXPECT_EQ(found.report.nodes, 2);
  EXPECT_EQ(found.report.policy.preset, Preset::kFaithful);
  EXPECT_LE(found.report.worst_recovery_error, 1e-12);
  EXPECT_THAT(MessageOf([&] {
                Attribute(ModelOf([](const Tensor&) { return at::ones({1, 3}); }), {input}, {});
              }),
              HasSubstr("no component reaches output: the model computes it without the split inputs"));
}

TEST(AttributeErrors, SayWhatToDo) {
  const Tensor x = Random({4, 6}, 1);
  const Tensor b = at::zeros({6}, at::kDouble);
  const auto run = [](const Tensor& t) { return at::tanh(t.mm(Weight())); };
  const auto message = [&](const AttributeOptions& options) {
    return MessageOf([&] { Attribute(ModelOf(run), {SplitInput(x, {1}, b)}, options); });
  };
  AttributeOptions options;
  EXPECT_THAT(message(options), HasSubstr("more than one largest element"));
  options.targets = {Element({4, 0})};
  EXPECT_THAT(message(options), HasSubstr("target 4,0 does not fit an output of shape [4, 6]"));
  options.targets = {};
  EXPECT_THAT(message(options), HasSubstr("no target"));
  options.each_example = true;
  options.targets = {Element({1}), Element({1})};
  EXPECT_THAT(message(options), HasSubstr("there are 2 targets for an output of shape [4, 6]; give one for each of "
                                          "its 4 rows, or one for all"));
  options.targets = {Element({1})};
  EXPECT_EQ(message(options), "(no error)");
  options.at = "output.1";
  EXPECT_THAT(message(options), HasSubstr("the model has no output.1 that is floating-point; it has output"));
  options.at = "head";
  EXPECT_THAT(message(options), HasSubstr("nothing inside the model is called head"));
  options.at = "";
  options.policy.nonlinearity = Nonlinearity::kAbsAffine;
  EXPECT_THAT(message(options), HasSubstr("nonlinearity=abs_affine looks at all components together"));
  EXPECT_THAT(MessageOf([&] {
                Attribute(ModelOf([](const Tensor& t) { return t.sum(0); }), {SplitInput(x, {1}, b)}, [&] {
                  AttributeOptions each;
                  each.each_example = true;
                  each.targets = {Element({})};
                  return each;
                }());
              }),
              HasSubstr("do not hold equally many examples"));
  EXPECT_THAT(MessageOf([&] {
                Attribute(ModelOf([](const Tensor& t) { return at::fft_fft(t); }), {SplitInput(x, {1}, b)}, {});
              }),
              HasSubstr("the output is complex"));
}

}  // namespace
}  // namespace addend

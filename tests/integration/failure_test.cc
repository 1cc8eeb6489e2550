// Tracing failures, by rules that are broken on purpose, under each of the policies that say what follows.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/explain/decompose.h"
#include "core/program/random_testing.h"
#include "core/rules/kinds.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// linear, tanh (#1: the broken one), in-place scaling, sum of squares
Tensor Network(const Tensor& x) {
  Tensor y = at::linear(x, Random({5, 4}, 3)).tanh().mul_(2);
  return y.square().sum(1);
}

class DamagedMap : public LinearMap {
 public:
  using Damage = std::function<void(at::Tensor&)>;  // of the rows [numc + 2, *S]: components, leftover, move
  DamagedMap(std::shared_ptr<const LinearMap> inner, Damage damage)
      : inner_(std::move(inner)), damage_(std::move(damage)) {}
  Rows Forward(const Rows& rows) const override {
    Rows out = inner_->Forward(rows);
    for (Tensor& t : out) {
      t = t.clone();
      damage_(t);
    }
    return out;
  }
  Rows Transpose(const Rows& cotangents) const override { return inner_->Transpose(cotangents); }

 private:
  std::shared_ptr<const LinearMap> inner_;
  Damage damage_;
};

struct Damage {
  const char* name;
  DamagedMap::Damage apply;
  bool bracket_fails;
  bool finite;  // the damaged rows are
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

// The second of several rows; one row alone is no component but what an operand misses.
Tensor SecondRow(const Tensor& rows) {
  const int64_t several = rows.size(0) > 1 ? 1 : 0;
  return rows.narrow(0, several, several);
}

std::vector<Damage> Damages() {
  return {
      {"WrongCoefficient", [](Tensor& rows) { rows.mul_(1.5); }, true, true},
      {"DroppedRow", [](Tensor& rows) { SecondRow(rows).zero_(); }, false, true},
      {"NanRow", [](Tensor& rows) { SecondRow(rows).select(-1, 2).fill_(kNan); }, false, false},
      {"InfiniteRow",
       [](Tensor& rows) { rows.select(0, 0).select(-1, 0).fill_(std::numeric_limits<double>::infinity()); }, false,
       false},
      // Also the move row: the bracket is NaN.
      {"NanEverywhere", [](Tensor& rows) { rows.fill_(kNan); }, true, false},
  };
}

class FailureTest : public testing::TestWithParam<Damage> {
 protected:
  Decomposition Decompose(OnFailure on_failure, Check check = Check::kEveryOp) {
    Registry registry = Registry::Default();
    Rule rule = *registry.Find("aten::tanh", "aten::tanh");
    rule.build = [build = rule.build](const RuleCall& call) {
      RuleResult result = build(call);
      result.map = std::make_shared<DamagedMap>(result.map, GetParam().apply);
      return result;
    };
    registry.Register(rule);
    Input input;
    input.value = x_;
    input.split = Split::AlongDims({1});
    input.baseline = Baseline::Of(b_);
    DecomposeOptions options;
    options.registry = &registry;
    options.everything = true;
    options.policy.on_failure = on_failure;
    options.policy.check = check;
    options.probes = {"aten::tanh", "aten::mul_"};
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return Network(in[0]); }))
        .Decompose({input}, options);
  }

  Tensor x_ = Random({3, 4}, 1);
  Tensor b_ = Random({3, 4}, 2);
};

TEST_P(FailureTest, ErrorNamesTheOperator) {
  try {
    Decompose(OnFailure::kError);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("aten::tanh"));
    EXPECT_THAT(e.what(), HasSubstr("#"));
    EXPECT_THAT(e.what(), HasSubstr("on_failure=absorb"));
  }
}

TEST_P(FailureTest, WarnReportsAndChangesNothing) {
  for (const OnFailure on_failure : {OnFailure::kWarn, OnFailure::kIgnore}) {
    const Decomposition result = Decompose(on_failure);
    ASSERT_GE(result.report.failures.size(), 1u);
    const OperatorReport& first = result.report.failures[0];
    EXPECT_EQ(first.position.op, "aten::tanh");
    EXPECT_EQ(first.check.bracket_holds, !GetParam().bracket_fails);
    EXPECT_FALSE(first.check.recovered);
    EXPECT_FALSE(first.check.absorbed);
    EXPECT_EQ(result.report.absorbed_failures, 0);
    const std::string notes = testing::PrintToString(result.report.notes);
    EXPECT_EQ(notes.find("tracing failures") != std::string::npos, on_failure == OnFailure::kWarn) << notes;
    const Composition& parts = result.outputs[0].composition;
    EXPECT_FALSE(at::allclose(parts.recovery(), result.outputs[0].value, 1e-6, 1e-6));
  }
}

// Absorbing does what the page on variable tracing does by hand: residual += value - recovery, and on with the next.
TEST_P(FailureTest, AbsorbMendsTheOperatorThatFailed) {
  const Decomposition warned = Decompose(OnFailure::kWarn);
  const Decomposition result = Decompose(OnFailure::kAbsorb);
  // Only the broken operator failed: the later ones were fed a true recovery, and are right themselves.
  ASSERT_EQ(result.report.failures.size(), 1u);
  const OperatorReport& failure = result.report.failures[0];
  EXPECT_EQ(failure.position.op, "aten::tanh");
  EXPECT_FALSE(failure.check.recovered);
  EXPECT_TRUE(failure.check.absorbed);
  EXPECT_EQ(result.report.absorbed_failures, 1);
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("absorbed into the leftover: aten::tanh"));
  int64_t checked = 0;
  for (const OperatorReport& check : result.report.checks) {
    if (check.position.op == "aten::tanh") continue;
    ++checked;
    EXPECT_TRUE(check.check.ok()) << check.call;
    EXPECT_LE(check.check.recovery_error, 1e-13) << check.call;
  }
  EXPECT_GE(checked, 3);

  // Right after the operator: finite elements keep their components and their leftover takes what is missing.
  const Decomposed& before = warned.probes[0];
  const Decomposed& after = result.probes[0];
  const Tensor value = after.value;
  const Tensor reference = at::linear(b_, Random({5, 4}, 3)).tanh();
  EXPECT_TRUE(at::allclose(after.composition.reference(), reference, 0, 0));
  const Tensor broken = at::isfinite(before.composition.recovery()).logical_not();
  EXPECT_EQ(broken.any().item<bool>(), !GetParam().finite);
  const Tensor components = before.composition.components().masked_fill(broken, 0);
  EXPECT_TRUE(at::equal(after.composition.components(), components));
  const Tensor by_hand = value - reference - components.sum(0);
  EXPECT_TRUE(at::allclose(after.composition.leftover(), by_hand, 0, 1e-14));

  for (const Decomposed* one : {&after, &result.probes[1], &result.outputs[0]}) {
    EXPECT_TRUE(at::allclose(one->composition.recovery(), one->value, 0, 1e-13)) << one->name;
    EXPECT_TRUE(at::isfinite(one->composition.components()).all().item<bool>()) << one->name;
  }
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.reference(), Network(b_), 1e-14, 0));
  const double largest = result.outputs[0].composition.components().abs().max().item<double>();
  if (broken.all().item<bool>()) {
    EXPECT_EQ(largest, 0) << "no row is left to pass on";
  } else {
    EXPECT_GT(largest, 0.01 * GetParam().finite);
  }
}

// An output that is off makes every operator be looked at, and mended where it fails.
TEST_P(FailureTest, AbsorbOfOutputs) {
  const Decomposition result = Decompose(OnFailure::kAbsorb, Check::kOutputs);
  const Decomposed& output = result.outputs[0];
  EXPECT_TRUE(at::allclose(output.composition.recovery(), output.value, 0, 1e-13));
  EXPECT_GE(result.report.absorbed_failures, 1);
  EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("absorbed into the leftover"));
}

TEST_P(FailureTest, NothingIsLookedAtWhereTheCheckIsOff) {
  const Decomposition result = Decompose(OnFailure::kAbsorb, Check::kOff);
  EXPECT_EQ(result.report.absorbed_failures, 0);
  EXPECT_FALSE(at::allclose(result.outputs[0].composition.recovery(), result.outputs[0].value, 1e-6, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(All, FailureTest, testing::ValuesIn(Damages()),
                         [](const auto& info) { return info.param.name; });

// ---------------------------------------------------------------------------------------------------- user's tolerance

TEST(ToleranceTest, AUserMayAllowMoreOrLess) {
  Registry registry = Registry::Default();
  Rule rule = *registry.Find("aten::tanh", "aten::tanh");
  rule.build = [build = rule.build](const RuleCall& call) {
    RuleResult result = build(call);
    result.map = std::make_shared<DamagedMap>(result.map, [](Tensor& rows) { rows.mul_(1 + 1e-5); });
    return result;
  };
  registry.Register(rule);
  Input input;
  input.value = Random({3, 4}, 1);
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  DecomposeOptions options;
  options.registry = &registry;
  options.policy.on_failure = OnFailure::kWarn;
  const auto failures = [&](const Registry* own, std::optional<double> tolerance) {
    options.registry = own;
    options.policy.tolerance = tolerance;
    return TracedModel(FromFunction([](const std::vector<Tensor>& in) { return Network(in[0]); }))
        .Decompose({input}, options)
        .report.failures.size();
  };
  EXPECT_GT(failures(&registry, std::nullopt), 0u);
  EXPECT_GT(failures(&registry, 1e-7), 0u);
  EXPECT_EQ(failures(&registry, 1e-3), 0u);
  EXPECT_EQ(failures(nullptr, std::nullopt), 0u);
  EXPECT_GT(failures(nullptr, 1e-30), 0u);
}

// -------------------------------------------------------------------------------------------------------- what
// succeeds

struct Stepping {
  const char* name;
  std::function<Tensor(const Tensor&)> run;
  // Some of the input passes by the gradient. Where none does, there are only steps: all of them pass by the secant.
  bool passes;
};

void PrintTo(const Stepping& stepping, std::ostream* out) { *out << stepping.name; }

class SteppingTest : public testing::TestWithParam<Stepping> {};

// The operators of which that page says that they fail, and their kind: both truths hold under every preset.
TEST_P(SteppingTest, BothTruthsHold) {
  Input input;
  input.value = Random({3, 4}, 1) * 3;
  input.split = Split::AlongDims({1});
  const Tensor baseline = Random({3, 4}, 2) * 3;
  input.baseline = Baseline::Of(baseline);
  Policy faithful, fast, gradient;
  fast.preset = Preset::kFast;
  gradient.nonlinearity = Nonlinearity::kGradient;
  for (const Policy& policy : {faithful, fast, gradient}) {
    DecomposeOptions options;
    options.policy = policy;
    const Decomposition result = TracedModel(FromFunction([](const std::vector<Tensor>& in) {
                                   return GetParam().run(in[0]);
                                 })).Decompose({input}, options);
    const Composition& parts = result.outputs[0].composition;
    EXPECT_TRUE(result.report.failures.empty());
    EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value, 0, 1e-13));
    EXPECT_TRUE(at::allclose(parts.reference(), GetParam().run(baseline), 0, 1e-14));
    const bool by_gradient = policy.nonlinearity == Nonlinearity::kGradient;
    EXPECT_EQ(parts.components().abs().max().item<double>() > 0, !by_gradient || GetParam().passes);
    if (!GetParam().passes && policy.preset == Preset::kFaithful && !by_gradient) {
      EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SteppingTest,
    testing::Values(Stepping{"MaskedFill",
                             [](const Tensor& x) {
                               return x.masked_fill(Random({3, 4}, 9).gt(0), 1.0);
                             },
                             true},
                    Stepping{"MaskedFillInPlace",
                             [](const Tensor& x) {
                               return x.clone().masked_fill_(Random({3, 4}, 9).gt(0), -2.5);
                             },
                             true},
                    Stepping{"Round", [](const Tensor& x) { return x.round(); }, false},
                    Stepping{"RoundDecimals", [](const Tensor& x) { return x.round(1); }, false},
                    Stepping{"Floor", [](const Tensor& x) { return x.floor(); }, false},
                    Stepping{"FloorInPlace", [](const Tensor& x) { return x.clone().floor_(); }, false},
                    Stepping{"Ceil", [](const Tensor& x) { return x.ceil(); }, false},
                    Stepping{"Trunc", [](const Tensor& x) { return x.trunc(); }, false},
                    Stepping{"Sign", [](const Tensor& x) { return x.sign(); }, false},
                    Stepping{"Frac", [](const Tensor& x) { return x.frac(); }, true},
                    Stepping{"FracThenProduct", [](const Tensor& x) { return x.frac() * x; }, true},
                    Stepping{"Heaviside", [](const Tensor& x) { return at::heaviside(x, x.new_full({}, 0.5)); }, false},
                    Stepping{"FloorDivide", [](const Tensor& x) { return x.floor_divide(0.7); }, false},
                    Stepping{"FloorDivideBy", [](const Tensor& x) { return at::floor_divide(x, x.square() + 1); },
                             false},
                    Stepping{"DivFloor", [](const Tensor& x) { return at::div(x, x.square() + 1, "floor"); }, false},
                    Stepping{"DivTrunc", [](const Tensor& x) { return at::div(x, 0.3, "trunc"); }, false},
                    Stepping{"Remainder", [](const Tensor& x) { return x.remainder(0.7); }, true},
                    Stepping{"RemainderBy", [](const Tensor& x) { return at::remainder(x, x.square() + 0.5); }, true},
                    Stepping{"Fmod", [](const Tensor& x) { return at::fmod(x, x.square() + 0.5); }, true},
                    Stepping{"FmodInPlace", [](const Tensor& x) { return x.clone().fmod_(0.7); }, true}),
    [](const auto& info) { return info.param.name; });

// -------------------------------------------------------------------------------------------------------- half types

// A value of a half type is rounded to fewer digits than its rows have: that rounding, and no more, is left over.
TEST(HalfTest, RecoveryIsExactAndTheRestIsRounding) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const bool brain = dtype == at::kBFloat16;
    const double eps = brain ? 0x1p-8 : 0x1p-11;
    const auto convert = [dtype](const Tensor& t) { return t.to(dtype); };
    const auto run = [&](const Tensor& x) {
      // On the CPU half floats have few operators; the other half type has them all.
      Tensor y = brain ? at::linear(x, convert(Random({5, 4}, 3))) : x * convert(Random({4}, 3));
      return brain ? (at::tanh(y) * y + 1).sum(1).sigmoid() : (y * y + 1).sum(1);
    };
    Input input;
    input.value = convert(Random({3, 4}, 1));
    input.split = Split::AlongDims({1});
    const Tensor baseline = convert(Random({3, 4}, 2));
    input.baseline = Baseline::Of(baseline);
    DecomposeOptions options;
    options.everything = true;
    const Decomposition result = TracedModel(FromFunction([&](const std::vector<Tensor>& in) {
                                   return run(in[0]);
                                 })).Decompose({input}, options);
    const Decomposed& output = result.outputs[0];
    EXPECT_EQ(output.value.scalar_type(), dtype);
    EXPECT_EQ(output.composition.components().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::allclose(output.composition.recovery(), output.value.to(at::kFloat), 1e-5, 1e-6));
    EXPECT_TRUE(at::equal(output.composition.reference(), run(baseline).to(at::kFloat)));
    EXPECT_LE(output.composition.leftover().abs().max().item<double>(), 60 * eps);
    // Nearly what the model gives in double precision.
    Input exact = input;
    exact.value = input.value.to(at::kDouble);
    exact.baseline = Baseline::Of(baseline.to(at::kDouble));
    const auto in_double = [&](const Tensor& x) {
      const Tensor w = convert(Random(brain ? at::IntArrayRef({5, 4}) : at::IntArrayRef({4}), 3)).to(at::kDouble);
      Tensor y = brain ? at::linear(x, w) : x * w;
      return brain ? (at::tanh(y) * y + 1).sum(1).sigmoid() : (y * y + 1).sum(1);
    };
    const Decomposition expected = TracedModel(FromFunction([&](const std::vector<Tensor>& in) {
                                     return in_double(in[0]);
                                   })).Decompose({exact}, options);
    const Tensor difference = (expected.outputs[0].composition.components() - output.composition.components()).abs();
    EXPECT_LE(difference.max().item<double>(), 20 * eps);
  }
}

// Near to the baseline a secant of rounded numbers would be noise.
TEST(HalfTest, SmallMovesHaveSlopesAllTheSame) {
  Input input;
  input.value = at::full({1, 8}, 1.0, at::kBFloat16) + at::arange(8, at::kBFloat16) / 64;
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(at::ones({1, 8}, at::kBFloat16));
  const Decomposition result =
      TracedModel(FromFunction([](const std::vector<Tensor>& in) { return in[0].exp(); })).Decompose({input});
  const Tensor move = (input.value.to(at::kDouble) - 1).squeeze(0);
  const Tensor slope = result.outputs[0].composition.components().squeeze(1).diagonal().to(at::kDouble) / move;
  const Tensor expected = (at::expm1(move) * M_E) / move;
  EXPECT_TRUE(at::allclose(slope.slice(0, 1), expected.slice(0, 1), 1e-4, 0)) << slope << expected;
}

// ------------------------------------------------------------------------------------------------------------- poles

// 1/x and x/y across zero: linearized at the value, and the model goes on from the reference that fits to that.
TEST(PoleTest, OnTheLineIsLinearizedAtTheValueAndCounted) {
  const std::vector<std::function<Tensor(const Tensor&)>> models = {
      [](const Tensor& x) { return x.reciprocal().tanh(); }, [](const Tensor& x) { return x.pow(-1.0).tanh(); },
      [](const Tensor& x) { return (1.5 / x).tanh(); },      [](const Tensor& x) { return ((x + 1) / x).tanh(); },
      [](const Tensor& x) { return x.pow(-4).exp(); },
  };
  for (size_t k = 0; k < models.size(); ++k) {
    SCOPED_TRACE(k);
    Input input;
    input.value = at::tensor({2.0, 2.0, -1.0}, at::kDouble);
    input.split = Split::AlongDims({0});
    input.baseline = Baseline::Of(at::tensor({1.0, -1.0, -3.0}, at::kDouble));
    DecomposeOptions options;
    options.everything = true;
    options.policy.content_first = kFreezeNothing;
    const Decomposition result = TracedModel(FromFunction([&](const std::vector<Tensor>& in) {
                                   return models[k](in[0]);
                                 })).Decompose({input}, options);
    EXPECT_EQ(result.report.stand_in_references, 1);
    EXPECT_TRUE(result.report.failures.empty());
    const Composition& parts = result.outputs[0].composition;
    EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value, 0, 1e-14));
    EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-14);
    const Tensor reference = models[k](input.baseline.tensor);
    EXPECT_NEAR(parts.reference()[0].item<double>(), reference[0].item<double>(), 1e-15);
    EXPECT_NEAR(parts.reference()[2].item<double>(), reference[2].item<double>(), 1e-15);
    EXPECT_NE(parts.reference()[1].item<double>(), reference[1].item<double>());
    EXPECT_THAT(testing::PrintToString(result.report.notes), HasSubstr("linearized at the value"));
  }
}

// Content first, a quotient has nothing of its divisor's reference in it but its own reference: no pole is met, and the
// reference is the model on the baseline.
TEST(PoleTest, IsNoneForAQuotientContentFirst) {
  const auto model = [](const Tensor& x) { return ((x + 1) / x).tanh(); };
  Input input;
  input.value = at::tensor({2.0, 2.0, -1.0}, at::kDouble);
  input.split = Split::AlongDims({0});
  input.baseline = Baseline::Of(at::tensor({1.0, -1.0, -3.0}, at::kDouble));
  const Decomposition result =
      TracedModel(FromFunction([&](const std::vector<Tensor>& in) { return model(in[0]); })).Decompose({input});
  EXPECT_EQ(result.report.stand_in_references, 0);
  const Composition& parts = result.outputs[0].composition;
  EXPECT_TRUE(at::equal(parts.reference(), model(input.baseline.tensor)));
  EXPECT_TRUE(at::allclose(parts.recovery(), result.outputs[0].value, 0, 1e-14));
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-14);
}

}  // namespace
}  // namespace addend

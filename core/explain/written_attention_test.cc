// Attention that a model writes out, linearized whole: what its own operators give one by one, and what comes of their
// forms that are not to be taken whole.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/policy_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose_testing.h"
#include "core/rules/registry.h"
#include "core/rules/rule.h"

namespace addend {
namespace {

using at::Tensor;

constexpr int64_t kTokens = 6;
constexpr int64_t kWidth = 8;
constexpr int64_t kHeads = 2;

// Function of the scores before their softmax.
using Scores = std::function<Tensor(const Tensor&)>;

struct Form {
  std::string name;
  std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)> attend;
  bool whole = true;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

Tensor Weigh(const Tensor& q, const Tensor& k, const Scores& scores) {
  return at::softmax(scores(at::matmul(q, k.transpose(-2, -1))), -1);
}

Form Of(std::string name, Scores scores, bool whole = true) {
  const auto attend = [scores](const Tensor& q, const Tensor& k, const Tensor& v) {
    return at::matmul(Weigh(q, k, scores), v);
  };
  return {std::move(name), attend, whole};
}

Tensor Later() { return at::ones({kTokens, kTokens}, at::kBool).triu(1); }

// Numbers that are added, of the dtype of scores.
Tensor Slopes(const Tensor& s) {
  return at::arange(kHeads * kTokens * kTokens, s.options()).sin().view({1, kHeads, kTokens, kTokens});
}

Tensor Lowered(const Tensor& s, double by) {
  return at::zeros({kTokens, kTokens}, s.options()).masked_fill(Later(), by);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Form> Forms() {
  const Tensor last = at::arange(kTokens).eq(kTokens - 1).view({1, 1, 1, kTokens});
  const double lowest = -std::numeric_limits<float>::max();
  std::vector<Form> forms = {
      Of("Plain", [](const Tensor& s) { return s; }),
      Of("Scaled", [](const Tensor& s) { return s * 0.35; }),
      Of("Divided", [](const Tensor& s) { return s / at::full({}, 2.0, s.options()); }),
      Of("ScaledTwice", [](const Tensor& s) { return at::full({}, 0.5, s.options()) * (s / 2); }),
      Of("InPlace",
         [](const Tensor& s) {
           Tensor own = s;
           own.div_(2).add_(Slopes(s));
           return own.masked_fill_(Later(), -kInfinity);
         }),
      Of("Slopes", [](const Tensor& s) { return Slopes(s) + s * 0.5; }),
      Of("Causal", [](const Tensor& s) { return s.masked_fill(Later(), -kInfinity); }),
      Of("CausalByLowest", [=](const Tensor& s) { return s.masked_fill(Later(), lowest); }),
      Of("CausalByTensor", [=](const Tensor& s) { return s.masked_fill(Later(), at::full({}, -1e4, s.options())); }),
      Of("CausalBySum", [=](const Tensor& s) { return s + Lowered(s, lowest); }),
      Of("CausalByInfiniteSum", [](const Tensor& s) { return s + Lowered(s, -kInfinity); }),
      Of("CausalByChoice",
         [=](const Tensor& s) { return at::where(Later().logical_not(), s, at::full({}, lowest, s.options())); }),
      Of("CausalByChoiceOfMany",
         [=](const Tensor& s) { return at::where(Later().logical_not(), s, at::full_like(s, lowest)); }),
      Of("AllMasks",
         [=](const Tensor& s) {
           const Tensor chosen = at::where(Later().logical_not(), s * 0.5, at::full({}, lowest, s.options()));
           return (chosen + Slopes(s))
               .masked_fill(last.logical_and(at::arange(kTokens).ne(kTokens - 1).view({-1, 1})), -kInfinity);
         }),
      // Forms that are not attention as a whole.
      Of(
          "ScaledBehindItsMask", [](const Tensor& s) { return s.masked_fill(Later(), -kInfinity) * 0.5; }, false),
      Of(
          "SoftCap", [](const Tensor& s) { return at::tanh(s / 3) * 3; }, false),
      Of(
          "MaskOfSmallNumbers", [](const Tensor& s) { return s.masked_fill(Later(), -2.0); }, false),
      Of(
          "NothingToSee", [=](const Tensor& s) { return s.masked_fill(at::ones_like(last), lowest); }, false),
      Of(
          "TwoSums", [](const Tensor& s) { return s + Slopes(s) + Lowered(s, -kInfinity); }, false),
      Of(
          "SumWithItself", [](const Tensor& s) { return s + s; }, false),
      Of(
          "MaskThatMoves", [](const Tensor& s) { return s + s.mean(-1, true) * Slopes(s); }, false),
      Of(
          "SmallFill", [](const Tensor& s) { return at::where(Later(), at::full({}, 0.5, s.options()), s); }, false),
  };
  forms.push_back({"ThreeDimensions", [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     const auto flat = [](const Tensor& t) { return t.reshape({-1, t.size(-2), t.size(-1)}); };
                     const Tensor weights = at::softmax(at::bmm(flat(q), flat(k).transpose(1, 2)), -1);
                     return at::bmm(at::dropout(weights, 0.1, /*train=*/false), flat(v)).view(v.sizes());
                   }});
  forms.push_back({"OneKeyForAll", [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     return at::matmul(Weigh(q, k.narrow(1, 0, 1), [](const Tensor& s) { return s; }),
                                       v.narrow(1, 0, 1));
                   }});
  forms.push_back({"WeightsUsedTwice", [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     const Tensor weights = Weigh(q, k, [](const Tensor& s) { return s * 0.5; });
                     return at::matmul(weights, v) + at::matmul(weights, v.sin()) + weights.amax(-1, true);
                   }});
  forms.push_back({"QueryWrittenBetween",
                   [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     Tensor own = q.clone();
                     const Tensor weights = Weigh(own, k, [](const Tensor& s) { return s; });
                     own.mul_(3);
                     return at::matmul(weights, v) + own;
                   },
                   false});
  forms.push_back({"WeightsWrittenBetween",
                   [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     Tensor weights = Weigh(q, k, [](const Tensor& s) { return s; });
                     weights.select(-1, 0).mul_(0.5);
                     return at::matmul(weights, v);
                   },
                   false});
  forms.push_back({"SoftmaxOverQueries",
                   [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     return at::matmul(at::softmax(at::matmul(q, k.transpose(-2, -1)), -2), v);
                   },
                   false});
  forms.push_back({"InfiniteValue", [](const Tensor& q, const Tensor& k, const Tensor& v) {
                     const Tensor far = at::where(v.gt(3), at::full({}, kInfinity, v.options()), v);
                     return at::matmul(Weigh(q, k, [](const Tensor& s) { return s; }), far / far.add(1).abs());
                   }});
  return forms;
}

TracedModel ModelOfForm(const Form& form) {
  return ModelOf([form](const Tensor& x) {
    const auto heads = [&](const Tensor& t) { return t.view({x.size(0), x.size(1), kHeads, -1}).transpose(1, 2); };
    const auto projected = [&](uint64_t seed) {
      return heads(at::matmul(x, Random({kWidth, kWidth}, seed).to(x.scalar_type()) * 0.4));
    };
    const Tensor all = form.attend(projected(1), projected(2), projected(3));
    return (all.transpose(1, 2).reshape({x.size(0), x.size(1), kWidth}) + x).mean(1);
  });
}

Input InputOf(at::ScalarType dtype) {
  return SplitInput(Random({2, kTokens, kWidth}, 11).to(dtype), {1}, Random({2, kTokens, kWidth}, 12).to(dtype));
}

AttributeOptions OptionsFor(const PolicyFields& fields) {
  AttributeOptions options;
  options.policy = PolicyOf(fields);
  options.targets.clear();
  for (const int64_t element : {0, 3, 7}) {
    Target target;
    target.top1 = false;
    target.index = {1, element};
    options.targets.push_back(target);
  }
  return options;
}

int64_t Rewritten(const Attribution& attribution) {
  const auto& kinds = attribution.report.operators_by_kind;
  const auto found = kinds.find(KindName(Kind::kRewrite));
  return found == kinds.end() ? 0 : found->second;
}

// One by one: what passes through each operator is asked for.
void ExpectTheSameOneByOne(const TracedModel& model, const Input& input, AttributeOptions options, bool whole) {
  const double tolerance = input.value.scalar_type() == at::kDouble ? 1e-11 : 5e-6;
  options.operators = false;
  const Attribution own = Attribute(model, {input}, options);
  EXPECT_EQ(Rewritten(own) > 0, whole);
  options.operators = true;
  const Attribution other = Attribute(model, {input}, options);
  EXPECT_EQ(Rewritten(other), 0);
  EXPECT_TRUE(at::equal(own.value, other.value));
  ASSERT_EQ(own.targets.size(), other.targets.size());
  for (size_t t = 0; t < own.targets.size(); ++t) {
    double scale = 0;
    for (const double part : other.targets[t].contributions) scale = std::max(scale, std::abs(part));
    ASSERT_EQ(own.targets[t].contributions.size(), other.targets[t].contributions.size());
    for (size_t k = 0; k < own.targets[t].contributions.size(); ++k) {
      EXPECT_NEAR(own.targets[t].contributions[k], other.targets[t].contributions[k], tolerance * scale) << k;
    }
    EXPECT_NEAR(own.targets[t].leftover, other.targets[t].leftover, tolerance * scale);
    EXPECT_EQ(own.targets[t].reference, other.targets[t].reference);
  }
}

class WrittenAttentionTest : public testing::TestWithParam<Form> {};

TEST_P(WrittenAttentionTest, IsWhatItsOperatorsAre) {
  const TracedModel model = ModelOfForm(GetParam());
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    for (const PolicyFields& policy : std::vector<PolicyFields>{{},
                                                                {{"preset", "fast"}},
                                                                {{"content_first", "none"}},
                                                                {{"by_magnitude", "attention"}},
                                                                {{"freeze", "normalizer"}, {"content_first", "gate"}},
                                                                {{"nonlinearity", "gradient"}},
                                                                {{"conditions", "baseline"}}}) {
      SCOPED_TRACE(policy.empty() ? "faithful" : policy[0].first + "=" + policy[0].second);
      ExpectTheSameOneByOne(model, InputOf(dtype), OptionsFor(policy), GetParam().whole);
    }
  }
}

TEST_P(WrittenAttentionTest, HasTheSameBitsWithinALimit) {
  const TracedModel model = ModelOfForm(GetParam());
  AttributeOptions options = OptionsFor({});
  const Attribution whole = Attribute(model, {InputOf(at::kFloat)}, options);
  for (const int64_t bytes : {256, 4096, 1 << 20}) {
    options.memory_bytes = bytes;
    const Attribution limited = Attribute(model, {InputOf(at::kFloat)}, options);
    EXPECT_EQ(Rewritten(limited), Rewritten(whole));
    for (size_t t = 0; t < whole.targets.size(); ++t) {
      EXPECT_EQ(limited.targets[t].contributions, whole.targets[t].contributions);
      EXPECT_EQ(limited.targets[t].leftover, whole.targets[t].leftover);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WrittenAttentionTest, testing::ValuesIn(Forms()),
                         [](const auto& info) { return info.param.name; });

// Policies that one map cannot serve.
TEST(WrittenAttention, IsTakenOneByOneWhereOneMapIsNotEnough) {
  const TracedModel model = ModelOfForm(Forms()[1]);
  for (const PolicyFields& policy : std::vector<PolicyFields>{{{"segments", "3"}}, {{"anchor", "residual"}}}) {
    SCOPED_TRACE(policy[0].first);
    EXPECT_EQ(Rewritten(Attribute(model, {InputOf(at::kDouble)}, OptionsFor(policy))), 0);
  }
}

// A rule of the caller's own for one of the operators is not passed over.
TEST(WrittenAttention, IsTakenOneByOneWhereTheCallerHasRulesOfHisOwn) {
  const TracedModel model = ModelOfForm(Forms()[1]);
  const Rule& known = *Registry::Default().Find("aten::softmax", "aten::softmax.int");
  Registry registry = Registry::Default();
  registry.Register({"aten::softmax", Kind::kPath, [&](const RuleCall& call) {
                       RuleResult result = known.build(call);
                       result.map = nullptr;
                       result.inputs.clear();
                       result.quadrature = 0;
                       return result;
                     }});
  AttributeOptions options = OptionsFor({});
  options.registry = &registry;
  const Attribution own = Attribute(model, {InputOf(at::kDouble)}, options);
  EXPECT_EQ(Rewritten(own), 0);
  EXPECT_GT(std::abs(own.targets[0].leftover), 1e-3);
}

// One weight is asked for: nobody needs the product behind it.
TEST(WrittenAttention, AnswersWhyAPositionWasAttended) {
  const TracedModel model = ModelOfForm(Forms()[1]);
  AttributeOptions options = OptionsFor({});
  options.at = "aten::softmax";
  options.targets.resize(1);
  options.targets[0].index = {1, 0, 2, 4};
  const Attribution own = Attribute(model, {InputOf(at::kDouble)}, options);
  EXPECT_EQ(Rewritten(own), 0);
  double sum = own.targets[0].reference + own.targets[0].leftover;
  for (const double part : own.targets[0].contributions) sum += part;
  EXPECT_NEAR(sum, own.targets[0].value, 1e-12);
  EXPECT_NEAR(own.targets[0].leftover, 0, 1e-11);
}

// The product with a vector begins no attention, and has nothing to transpose.
TEST(WrittenAttention, LeavesProductsWithVectorsAlone) {
  constexpr int64_t kLong = int64_t{1} << 22;
  // Small integers, whose sums no order of adding rounds.
  const Tensor vector = at::arange(kLong, at::kDouble).remainder(5);
  const Tensor x = at::ones({2, 3, kLong}, at::kDouble);
  const TracedModel model = ModelOf([vector](const Tensor& given) { return at::matmul(given, vector); });
  AttributeOptions options;
  options.targets.resize(1);
  options.targets[0].top1 = false;
  options.targets[0].index = {1, 2};
  const Attribution found = Attribute(model, {SplitInput(x, {0, 1}, at::zeros_like(x))}, options);
  const std::vector<double>& contributions = found.targets[0].contributions;
  const double value = vector.sum().item<double>();
  for (size_t c = 0; c < 6; ++c) EXPECT_NEAR(contributions[c], c == 5 ? value : 0, 1e-12 * value);
}

// The product is still found by the name that the model calls it by.
TEST(WrittenAttention, KeepsTheNamesOfItsOperators) {
  const TracedModel model = ModelOfForm(Forms()[1]);
  AttributeOptions options = OptionsFor({});
  options.at = "aten::matmul:4";
  options.targets.resize(1);
  options.targets[0].index = {1, 0, 2, 1};
  const Attribution own = Attribute(model, {InputOf(at::kDouble)}, options);
  EXPECT_EQ(own.value.sizes(), at::IntArrayRef({2, kHeads, kTokens, kWidth / kHeads}));
  EXPECT_EQ(Rewritten(own), 1);
}

}  // namespace
}  // namespace addend

// The second truth, "the reference is the model on the baseline", where a model derives ids, conditions and indices
// from what is split: components follow ids wherever they come from one component; where they do not, that is said; and
// with conditions=baseline the reference is the model on the baseline all the same.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_testing.h"
#include "core/explain/attribute.h"
#include "core/explain/decompose.h"
#include "core/explain/decompose_testing.h"
#include "core/linearize/small_models.h"

namespace addend {
namespace {

using at::Tensor;
using testing::HasSubstr;

using Function = std::function<Tensor(const Tensor&)>;

struct NamedFunction {
  std::string name;
  Function run;
};

std::string NameOf(const testing::TestParamInfo<NamedFunction>& info) { return info.param.name; }

Decomposition Decompose(const Function& function, const Input& input, Conditions conditions = Conditions::kValue) {
  DecomposeOptions options;
  options.policy.conditions = conditions;
  return ModelOf(function).Decompose({input}, options);
}

std::string Notes(const Decomposition& result) { return testing::PrintToString(result.report.notes); }

void ExpectRecovery(const Decomposition& result) {
  const Decomposed& output = result.outputs[0];
  EXPECT_TRUE(at::allclose(output.composition.recovery(), output.value, 1e-12, 1e-12));
}

// The contributions that one sweep back finds to the number at 0 are those of the decomposition.
void ExpectAttributionAgrees(const Function& function, const Input& input, const Decomposition& result,
                             Conditions conditions = Conditions::kValue, int64_t segments = 1) {
  AttributeOptions options;
  options.policy.conditions = conditions;
  options.policy.segments = segments;
  Target target;
  target.top1 = false;
  target.index.assign(result.outputs[0].value.dim(), 0);
  options.targets = {target};
  const Attribution found = Attribute(ModelOf(function), {input}, options);
  const Tensor parts = result.outputs[0].composition.components().flatten(1).select(1, 0);
  const Tensor swept = at::tensor(found.targets[0].contributions, at::kDouble);
  EXPECT_TRUE(at::allclose(swept, parts, 1e-10, 1e-12)) << swept << parts;
  EXPECT_NEAR(found.targets[0].leftover, result.outputs[0].composition.leftover().flatten()[0].item<double>(), 1e-10);
}

// ---- ids

Tensor Table() { return Random({20, 4}, 1); }
Tensor Ids() { return at::tensor({7, 8, 9, 10}, at::kLong).view({1, 4}); }

Input SplitIds() {
  Input input;
  input.value = Ids();
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Token(3);
  return input;
}

// Functions that make ids of ids: [1, 4] -> [1, *].
const std::vector<NamedFunction>& WaysOfIds() {
  static const auto& ways = *new std::vector<NamedFunction>{
      {"as_they_are", [](const Tensor& i) { return i; }},
      {"padded",
       [](const Tensor& i) {
         return at::constant_pad_nd(i, {1, 2}, 5);
       }},
      {"joined",
       [](const Tensor& i) {
         return at::cat({at::full({1, 1}, 2, i.options()), i}, 1);
       }},
      {"stacked",
       [](const Tensor& i) {
         return at::stack({i, i}, 1).flatten(1);
       }},
      {"copied", [](const Tensor& i) { return i.clone(); }},
      {"narrower_type", [](const Tensor& i) { return i.to(at::kInt); }},
      {"there_and_back", [](const Tensor& i) { return i.to(at::kInt).to(at::kLong); }},
      {"repeated",
       [](const Tensor& i) {
         return i.repeat({1, 2});
       }},
      {"selected",
       [](const Tensor& i) {
         return i.index_select(1, at::tensor({1, 0, 1}, at::kLong));
       }},
      {"indexed",
       [](const Tensor& i) {
         return i.index({at::indexing::Slice(), at::tensor({3, 0}, at::kLong)});
       }},
      {"gathered",
       [](const Tensor& i) {
         return i.gather(1, at::tensor({0, 2}, at::kLong).view({1, 2}));
       }},
      {"turned", [](const Tensor& i) { return i.flip({1}); }},
      {"rolled", [](const Tensor& i) { return i.roll({1}, {1}); }},
      {"clamped", [](const Tensor& i) { return i.clamp(0, 9); }},
      {"shifted",
       [](const Tensor& i) {
         return i + at::tensor({0, 1, 2, 3}, at::kLong);
       }},
      {"scaled", [](const Tensor& i) { return i * 2 - 1; }},
      {"hashed", [](const Tensor& i) { return i.remainder(6) + i.div(6, "floor"); }},
      {"masked_by_itself", [](const Tensor& i) { return i.masked_fill(i.eq(8), 0); }},
      {"chosen_by_itself", [](const Tensor& i) { return at::where(i.gt(8), i, at::zeros_like(i)); }},
      {"written_into_another",
       [](const Tensor& i) {
         Tensor shifted = at::zeros_like(i);
         shifted.narrow(1, 1, 3).copy_(i.narrow(1, 0, 3));
         shifted.select(1, 0).fill_(2);
         return shifted;
       }},
      {"added_to_in_place",
       [](const Tensor& i) {
         Tensor own = i.clone();
         own.narrow(1, 1, 2).add_(3);
         return own;
       }},
      {"scattered",
       [](const Tensor& i) {
         return at::zeros({1, 6}, i.options()).scatter(1, at::tensor({5, 4, 1, 0}, at::kLong).view({1, 4}), i);
       }},
  };
  return ways;
}

class IdsKeepTheirComponents : public testing::TestWithParam<NamedFunction> {};

// Vectors that are looked up one by one and added up: what a component gives is what its id changes alone. That is
// found here by running the model on ids of which one is the sample's.
TEST_P(IdsKeepTheirComponents, OnTheWayToAnEmbedding) {
  const Function model = [](const Tensor& i) { return at::embedding(Table(), GetParam().run(i)).sum(1); };
  const Decomposition result = Decompose(model, SplitIds());
  const Composition& parts = result.outputs[0].composition;
  const Tensor reference = model(at::full({1, 4}, 3, at::kLong));
  ExpectRecovery(result);
  EXPECT_TRUE(at::equal(parts.reference(), reference));
  EXPECT_EQ(result.report.reference_is_model_on_baseline, "yes");
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-12);
  for (int64_t c = 0; c < 4; ++c) {
    Tensor one = at::full({1, 4}, 3, at::kLong);
    one[0][c] = Ids()[0][c];
    EXPECT_TRUE(at::allclose(parts.components()[c], model(one) - reference, 1e-12, 1e-12)) << "component " << c;
  }
  ExpectAttributionAgrees(model, SplitIds(), result);
}

INSTANTIATE_TEST_SUITE_P(Ways, IdsKeepTheirComponents, testing::ValuesIn(WaysOfIds()), NameOf);

// Functions in which ids become numbers otherwise than in an embedding.
const std::vector<NamedFunction>& StartsOfIds() {
  static const auto bag = [](const Tensor& i, int64_t mode, const Tensor& weights, int64_t padding) {
    return std::get<0>(at::_embedding_bag(Table(), i.flatten(), at::tensor({0, 3}, at::kLong), false, mode, false,
                                          weights, false, padding));
  };
  static const auto& ways = *new std::vector<NamedFunction>{
      {"one_hot", [](const Tensor& i) { return at::one_hot(i, 20).to(at::kDouble).matmul(Table()).sum(1); }},
      {"one_hot_times_plain",
       [](const Tensor& i) {
         return (at::one_hot(i, 4 + 7 + 9) * Random({4, 20}, 3)).sum(1);
       }},
      {"cast", [](const Tensor& i) { return i.to(at::kDouble).matmul(Table().narrow(0, 0, 4)); }},
      {"divided",
       [](const Tensor& i) {
         return i.div(at::full({1}, 7.0, at::kDouble)).matmul(Random({4, 2}, 6));
       }},
      {"bags_of_sums", [](const Tensor& i) { return bag(i, 0, {}, -1); }},
      {"bags_of_means", [](const Tensor& i) { return bag(i, 1, {}, -1); }},
      {"bags_with_weights", [](const Tensor& i) { return bag(i, 0, Random({4}, 5), -1); }},
  };
  return ways;
}

class IdsBecomeNumbers : public testing::TestWithParam<NamedFunction> {};

TEST_P(IdsBecomeNumbers, InTheirComponents) {
  const Function& model = GetParam().run;
  const Decomposition result = Decompose(model, SplitIds());
  const Composition& parts = result.outputs[0].composition;
  const Tensor reference = model(at::full({1, 4}, 3, at::kLong));
  ExpectRecovery(result);
  EXPECT_TRUE(at::equal(parts.reference(), reference));
  EXPECT_LE(parts.leftover().abs().max().item<double>(), 1e-12);
  for (int64_t c = 0; c < 4; ++c) {
    Tensor one = at::full({1, 4}, 3, at::kLong);
    one[0][c] = Ids()[0][c];
    EXPECT_TRUE(at::allclose(parts.components()[c], model(one) - reference, 1e-9, 1e-9)) << "component " << c;
  }
  ExpectAttributionAgrees(model, SplitIds(), result);
}

// Ids are the same in every piece of the line, which has its share of what they move.
TEST_P(IdsBecomeNumbers, AsMuchInPiecesOfTheLine) {
  const Function& model = GetParam().run;
  DecomposeOptions options;
  options.policy.segments = 3;
  const Decomposition whole = Decompose(model, SplitIds());
  const Decomposition pieces = DecomposeFunction(model, SplitIds(), options);
  EXPECT_TRUE(at::allclose(pieces.outputs[0].composition.components(), whole.outputs[0].composition.components()));
  ExpectAttributionAgrees(model, SplitIds(), pieces, Conditions::kValue, 3);
}

INSTANTIATE_TEST_SUITE_P(Ways, IdsBecomeNumbers, testing::ValuesIn(StartsOfIds()), NameOf);

// A run of one bag has no operator that parts pass through.
TEST(Ids, ThatMissTheirSumAreBlamedOnTheModel) {
  const Function& model = StartsOfIds().back().run;
  AttributeOptions options;
  options.policy.tolerance = 0;
  options.targets.clear();
  for (const int64_t column : {0, 1, 2, 3}) {
    Target target;
    target.top1 = false;
    target.index = {0, column};
    options.targets.push_back(target);
  }
  for (const OnFailure on_failure : {OnFailure::kWarn, OnFailure::kIgnore, OnFailure::kAbsorb}) {
    options.policy.on_failure = on_failure;
    const Report report = Attribute(ModelOf(model), {SplitIds()}, options).report;
    ASSERT_FALSE(report.failures.empty());
    EXPECT_EQ(report.failures[0].call, "the model");
    EXPECT_EQ(testing::PrintToString(report.notes).find("the model") != std::string::npos,
              on_failure != OnFailure::kIgnore);
  }
}

TEST(Ids, OfPaddingLeaveTheirBags) {
  const Function model = [](const Tensor& i) {
    return std::get<0>(
        at::_embedding_bag(Table(), i.flatten(), at::tensor({0, 3}, at::kLong), false, 1, false, {}, false, 9));
  };
  const Decomposition result = Decompose(model, SplitIds());
  ExpectRecovery(result);
  EXPECT_TRUE(at::allclose(result.outputs[0].composition.reference(), model(at::full({1, 4}, 3, at::kLong))));
}

TEST(Ids, ThatDependOnSeveralAreLeftOverAndNamed) {
  const Function model = [](const Tensor& i) { return at::embedding(Table(), i.cumsum(1).remainder(20)).sum(1); };
  Input input = SplitIds();
  const std::string error = MessageOf([&] { Decompose(model, input); });
  EXPECT_THAT(error, HasSubstr("no component reaches output"));
  EXPECT_THAT(error, HasSubstr("aten::cumsum"));
  const Function both = [&](const Tensor& i) { return model(i) + at::embedding(Table(), i).sum(1); };
  const Decomposition result = Decompose(both, input);
  ExpectRecovery(result);
  EXPECT_THAT(Notes(result), HasSubstr("aten::cumsum"));
  EXPECT_EQ(result.report.reference_is_model_on_baseline, "no");
  const Decomposition equal = Decompose(both, input, Conditions::kBaseline);
  ExpectRecovery(equal);
  EXPECT_TRUE(at::equal(equal.outputs[0].composition.reference(), both(at::full({1, 4}, 3, at::kLong))));
  EXPECT_EQ(equal.report.reference_is_model_on_baseline, "yes");
  ExpectAttributionAgrees(both, input, equal, Conditions::kBaseline);
}

// A comparison is no id: with the baseline's conditions its step is leftover, as numbers and as rows of a table.
TEST(Ids, ThatAComparisonMadeConditionsStartNoRows) {
  for (const bool looked_up : {false, true}) {
    const Function condition = [looked_up](const Tensor& i) {
      const Tensor above = i.gt(8);
      return looked_up ? at::embedding(Table(), above.to(at::kLong))
                       : above.to(at::kDouble).unsqueeze(2).mul(Table()[0]);
    };
    const Function model = [&](const Tensor& i) { return condition(i) + at::embedding(Table(), i); };
    const Input input = SplitIds();
    const Decomposition result = Decompose(model, input, Conditions::kBaseline);
    ExpectRecovery(result);
    const Composition& composition = result.outputs[0].composition;
    const Tensor baseline = at::full({1, 4}, 3, at::kLong);
    EXPECT_TRUE(at::equal(composition.reference(), model(baseline)));
    EXPECT_TRUE(at::allclose(composition.leftover(), condition(Ids()) - condition(baseline), 1e-12, 1e-12));
    ExpectAttributionAgrees(model, input, result, Conditions::kBaseline);
  }
}

// ---- conditions and indices

Tensor Value() { return Random({4, 3}, 1).abs() + 0.5; }
Tensor Far() { return at::zeros({4, 3}, at::kDouble) - 0.25; }

Input SplitNumbers(const Tensor& baseline) {
  Input input;
  input.value = Value();
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(baseline);
  return input;
}

// Behind the dot: the operator that derives the condition. Each is added to the input, so that components arrive.
struct WithCondition {
  std::string name;
  std::string origin;
  Function run;
};

Tensor Codes() { return Random({6, 3}, 2); }

const std::vector<WithCondition>& ModelsWithConditions() {
  static const auto& models = *new std::vector<WithCondition>{
      {"mask_as_numbers", "aten::gt", [](const Tensor& x) { return x.gt(0.3).to(at::kDouble) * 2 + x; }},
      {"mask_times", "aten::gt", [](const Tensor& x) { return x * x.gt(0.3); }},
      {"where", "aten::gt", [](const Tensor& x) { return at::where(x.gt(0.3), x, x * 2 + 1); }},
      {"where_of_constants", "aten::lt",
       [](const Tensor& x) {
         return x + at::where(x.lt(0), at::full({}, 2.0, x.options()), at::ones({}, x.options()));
       }},
      {"filled", "aten::le", [](const Tensor& x) { return x.masked_fill(x.le(0), -1) * 2; }},
      {"both_conditions", "aten::gt", [](const Tensor& x) { return x * x.gt(0.3).logical_and(x.lt(9)); }},
      {"looked_up", "aten::argmin",
       [](const Tensor& x) { return at::embedding(Codes(), at::cdist(x, Codes()).argmin(1)) + x; }},
      {"code_book", "aten::argmin",
       [](const Tensor& x) {
         const Tensor nearest = at::cdist(x, Codes()).argmin(1, true);
         return at::zeros({4, 6}, x.options()).scatter_(1, nearest, 1.0).matmul(Codes()) + x;
       }},
      {"best", "aten::topk",
       [](const Tensor& x) { return at::embedding(Codes(), std::get<1>(x.topk(1, 1))).squeeze(1) + x; }},
      {"counted", "aten::gt", [](const Tensor& x) { return x.sum(1) / x.gt(0.0).sum(1).clamp_min(1); }},
      // Behind arithmetic of integers, a cast that is read back is a condition.
      {"cast", "aten::_to_copy",
       [](const Tensor& x) { return x + ((x.sum(1, true) * 2).to(at::kLong) + 1).to(at::kDouble); }},
  };
  return models;
}

class DerivedConditions : public testing::TestWithParam<WithCondition> {};

TEST_P(DerivedConditions, AreNamedAndAnswerForTheReference) {
  const Function& model = GetParam().run;
  const Decomposition result = Decompose(model, SplitNumbers(Far()));
  ExpectRecovery(result);
  EXPECT_THAT(Notes(result), HasSubstr("conditions or indices depend on the input"));
  EXPECT_THAT(Notes(result), HasSubstr(GetParam().origin));
  const bool equal = at::equal(result.outputs[0].composition.reference(), model(Far()));
  EXPECT_EQ(result.report.reference_is_model_on_baseline == "yes", equal);
  EXPECT_EQ(result.report.reference_is_model_on_baseline == "no", !equal);
  EXPECT_FALSE(equal) << "the case has no other condition on the baseline";
  EXPECT_THAT(result.report.reference_reason, HasSubstr(GetParam().origin));
}

TEST_P(DerivedConditions, OfTheBaselineMakeTheReferenceTheModelsOwn) {
  const Function& model = GetParam().run;
  const Decomposition result = Decompose(model, SplitNumbers(Far()), Conditions::kBaseline);
  ExpectRecovery(result);
  EXPECT_TRUE(at::equal(result.outputs[0].composition.reference(), model(Far())));
  EXPECT_EQ(result.report.reference_is_model_on_baseline, "yes") << result.report.reference_reason;
  EXPECT_THAT(Notes(result), HasSubstr("the step between both is leftover"));
  EXPECT_GT(result.outputs[0].composition.leftover().abs().max().item<double>(), 1e-3);
  ExpectAttributionAgrees(model, SplitNumbers(Far()), result, Conditions::kBaseline);
}

TEST_P(DerivedConditions, ThatAreTheSameOnTheBaselineHarmNothing) {
  const Function& model = GetParam().run;
  const Tensor near = Value() + 1e-9;
  for (const Conditions conditions : {Conditions::kValue, Conditions::kBaseline}) {
    const Decomposition result = Decompose(model, SplitNumbers(near), conditions);
    ExpectRecovery(result);
    EXPECT_TRUE(at::equal(result.outputs[0].composition.reference(), model(near)));
    EXPECT_EQ(result.report.reference_is_model_on_baseline, "yes") << result.report.reference_reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DerivedConditions, testing::ValuesIn(ModelsWithConditions()),
                         [](const auto& info) { return info.param.name; });

TEST(Conditions, OfOtherSizesCannotBeTheBaselines) {
  const Function model = [](const Tensor& x) {
    return x + x.flatten().index_select(0, x.flatten().gt(0.7).nonzero().squeeze(1)).sum();
  };
  const Decomposition result = Decompose(model, SplitNumbers(Far()));
  ExpectRecovery(result);
  EXPECT_EQ(result.report.reference_is_model_on_baseline, "no");
  EXPECT_THAT(MessageOf([&] { Decompose(model, SplitNumbers(Far()), Conditions::kBaseline); }),
              HasSubstr("choose policy conditions=value"));
}

// A mask of the baseline's that finds more elements, or fewer.
TEST(Conditions, ThatSelectOtherSizesCannotBeTheBaselines) {
  const Tensor value = at::tensor({0., 1., 0.1}, at::kDouble);
  for (const Function& model : std::vector<Function>{[](const Tensor& x) { return x.index({x.gt(0.2)}).sum(); },
                                                     [](const Tensor& x) { return x.masked_select(x.gt(0.2)).sum(); },
                                                     [](const Tensor& x) {
                                                       Tensor y = x.clone();
                                                       y.index_put_({y.gt(0.2)}, y.index({y.gt(0.2)}) * 0.1);
                                                       return y.sum();
                                                     }}) {
    for (const Tensor& baseline : {at::tensor({0.5, 0.6, 0.3}, at::kDouble), at::zeros({3}, at::kDouble)}) {
      const Decomposition result = Decompose(model, SplitInput(value, {0}, baseline));
      ExpectRecovery(result);
      EXPECT_EQ(result.report.reference_is_model_on_baseline, "no");
      ExpectError(absl::StatusCode::kFailedPrecondition, {"other sizes", "choose policy conditions=value"},
                  [&] { Decompose(model, SplitInput(value, {0}, baseline), Conditions::kBaseline); });
    }
    // A baseline whose mask has as many elements as the value's: the reference is the model on the baseline.
    const Tensor as_many = at::tensor({0.1, 0., 0.7}, at::kDouble);
    const Decomposition result = Decompose(model, SplitInput(value, {0}, as_many), Conditions::kBaseline);
    ExpectRecovery(result);
    EXPECT_NEAR(result.outputs[0].composition.reference().item<double>(), model(as_many).item<double>(), 1e-12);
    EXPECT_EQ(result.report.reference_is_model_on_baseline, "yes") << result.report.reference_reason;
  }
}

TEST(Conditions, ThatAProgramReadsAreNotKnownOnTheBaseline) {
  for (const Function& model :
       std::vector<Function>{[](const Tensor& x) { return x.sum().item<double>() > 0.1 ? x * 2 : x * 3; },
                             [](const Tensor& x) { return x.gt(0.1).any().item<bool>() ? x * 2 : x * 3; },
                             [](const Tensor& x) { return x.argmax().item<int64_t>() > 0 ? x * 2 : x * 3; },
                             [](const Tensor& x) { return at::equal(x, at::zeros_like(x)) ? x * 3 : x * 2; }}) {
    const Decomposition result = Decompose(model, SplitNumbers(at::zeros({4, 3}, at::kDouble)));
    ExpectRecovery(result);
    EXPECT_THAT(Notes(result), HasSubstr("the model reads numbers that depend on the input"));
    EXPECT_EQ(result.report.reference_is_model_on_baseline, "unknown");
  }
  const Function model = [](const Tensor& x) { return x.gt(-9).all().item<bool>() ? x * 2 : x * 3; };
  const Decomposition same = Decompose(model, SplitNumbers(Far()));
  EXPECT_THAT(Notes(same), HasSubstr("on the baseline they are the same"));
  EXPECT_EQ(same.report.reference_is_model_on_baseline, "yes");
}

// How many elements are found steers the model as much as an element does that it reads.
TEST(Conditions, OfSizesAreNumbersThatAProgramReads) {
  Tensor few = at::zeros({4, 3}, at::kDouble);
  few[0][0] = 1;
  const auto found = [](const Tensor& x) { return x.gt(0.05).nonzero().size(0); };
  const auto kinds = [](const Tensor& x) { return std::get<0>(at::_unique2(x.gt(0.05).to(at::kLong))).size(0); };
  const auto classes = [](const Tensor& x) { return at::one_hot(x.gt(0.05).sum().to(at::kLong)).size(0); };
  for (const auto& count : std::vector<std::function<int64_t(const Tensor&)>>{found, kinds, classes}) {
    ASSERT_NE(count(few), count(Value()));
    const Function model = [&](const Tensor& x) { return x + static_cast<double>(count(x)); };
    const Decomposition result = Decompose(model, SplitNumbers(few));
    ExpectRecovery(result);
    EXPECT_EQ(result.report.reference_is_model_on_baseline, "unknown");
    EXPECT_THAT(Notes(result), HasSubstr("the model reads numbers that depend on the input"));
    const Decomposition same = Decompose(model, SplitNumbers(Value().flip(0)));
    EXPECT_EQ(same.report.reference_is_model_on_baseline, "yes");
  }
}

TEST(Conditions, AreWhereComponentsEnd) {
  EXPECT_THAT(
      MessageOf([] { Decompose([](const Tensor& x) { return x.gt(1).to(at::kDouble); }, SplitNumbers(Far())); }),
      testing::AllOf(HasSubstr("no component reaches output"), HasSubstr("aten::gt")));
}

TEST(Conditions, SizesAreNone) {
  const Decomposition result =
      Decompose([](const Tensor& x) { return x * at::ones_like(x, x.options().dtype(at::kLong)) + x.new_zeros({3}); },
                SplitNumbers(Far()));
  EXPECT_EQ(result.report.reference_is_model_on_baseline, "yes");
  EXPECT_TRUE(result.report.notes.size() == 1) << Notes(result);  // the preset
}

}  // namespace
}  // namespace addend

// Reasons: against sums by hand.
#include "core/document/reasons.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error_testing.h"
#include "core/model/model.h"

namespace addend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Writer kWriter = {"1.2.3", "", "9.8"};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Concepts Described(const std::string& keys) {
  return ReadConcepts(
      absl::StrCat("{\"format\": \"addend.concepts\", \"version\": 1", keys.empty() ? "" : ", ", keys, "}"));
}

std::string Refused(const std::string& keys) {
  return MessageOf([&] { Described(keys); });
}

// The columns of the rows of a batch, against a baseline row; what they contribute is as given.
struct TableRows {
  ExplainedRun run;
  Attribution attribution;
};

// values: [rows, columns]; contributions: [rows][columns].
TableRows MakeRows(const at::Tensor& values, const at::Tensor& baseline, const std::vector<std::string>& names,
                   const std::vector<std::vector<double>>& contributions) {
  TableRows rows;
  Input input;
  input.name = "x";
  input.value = values;
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(baseline);
  rows.run.inputs = {DescribeInput(input)};
  rows.run.inputs[0].names = names;
  rows.run.components = NameComponents(rows.run.inputs, values.size(1));
  rows.run.report.policy.preset = Preset::kFaithful;
  rows.attribution.numc = values.size(1);
  rows.attribution.value = at::zeros({values.size(0), 1}, at::kDouble);
  for (size_t i = 0; i < contributions.size(); ++i) {
    Contributions numbers;
    numbers.target.top1 = false;
    numbers.target.index = {static_cast<int64_t>(i), 0};
    numbers.contributions = contributions[i];
    numbers.reference = 1;
    for (const double c : contributions[i]) numbers.value += c;
    numbers.value += 1;
    AddUp(numbers);
    rows.attribution.targets.push_back(numbers);
  }
  return rows;
}

// One row of age, two columns of housing, debt and an unnamed rest.
TableRows OneRow(const std::vector<double>& contributions) {
  return MakeRows(at::tensor({41.0, 0.0, 1.0, -0.5, 7.0}, at::kDouble).view({1, 5}),
                  at::tensor({30.0, 0.25, 0.75, 0.0, 0.0}, at::kDouble).view({1, 5}),
                  {"age", "housing_own", "housing_rent", "debt", "rest"}, {contributions});
}

Reasons Find(const TableRows& rows, const Concepts& concepts) {
  return FindReasons(rows.attribution, /*each_example=*/true, "", rows.run, concepts, kWriter);
}

std::vector<std::string> NamesOf(const Reasons& reasons, size_t decision = 0) {
  std::vector<std::string> names;
  for (const Reason& reason : reasons.decisions[decision].reasons) {
    names.push_back(reasons.concepts[reason.concept_number].name);
  }
  return names;
}

std::vector<std::string> TextsOf(const Reasons& reasons, size_t decision = 0) {
  std::vector<std::string> texts;
  for (const Reason& reason : reasons.decisions[decision].reasons) texts.push_back(reason.text);
  return texts;
}

constexpr char kHousing[] =
    R"json("concepts": [{"name": "Housing", "components": ["housing_*"], "values": "one_hot",
                     "words": {"housing_rent": "rented"}, "text": "{concept}: {value} (usual: {baseline})"},
                    {"name": "Debt", "code": "R7", "components": ["debt"], "unit": "EUR", "scale": 1000, "offset": 2000,
                     "text": "{concept} of {value} {unit}, usually {baseline}: {contribution}"}])json";

TEST(FindReasons, SumsConceptsAndGivesThoseOfTheSignAskedForInOrderOfSize) {
  const TableRows rows = OneRow({0.5, -0.75, 0.25, -2, -0.25});
  const Reasons reasons = Find(rows, Described(kHousing));
  ASSERT_EQ(reasons.decisions.size(), 1u);
  EXPECT_THAT(NamesOf(reasons), ElementsAre("Debt", "Housing", "rest"));
  const Decision& own = reasons.decisions[0];
  EXPECT_EQ(own.reasons[0].contribution, -2);
  EXPECT_EQ(own.reasons[1].contribution, -0.5);
  EXPECT_EQ(own.reasons[2].contribution, -0.25);
  EXPECT_EQ(own.others, 0.5);
  EXPECT_EQ(own.passing, 3);
  EXPECT_EQ(own.value, 1 + 0.5 - 0.75 + 0.25 - 2 - 0.25);
  EXPECT_EQ(own.name, "output [0, 0]");
  EXPECT_THAT(own.notes, IsEmpty());
  EXPECT_THAT(TextsOf(reasons), ElementsAre("Debt of 1500 EUR, usually 2000: -2",
                                            "Housing: rented (usual: housing_own 0.25, rented 0.75)", "rest"));
  const Reasons other = Find(rows, Described(absl::StrCat("\"side\": \"favourable\", ", kHousing)));
  EXPECT_THAT(NamesOf(other), ElementsAre("age"));
  const Reasons turned = Find(rows, Described(absl::StrCat("\"adverse\": \"positive\", ", kHousing)));
  EXPECT_THAT(NamesOf(turned), ElementsAre("age"));
}

TEST(FindReasons, BreaksTiesByTheDescription) {
  const TableRows rows = OneRow({-1, -1, 0, -1, -1});
  EXPECT_THAT(NamesOf(Find(rows, Described(kHousing))), ElementsAre("Housing", "Debt", "age", "rest"));
  EXPECT_THAT(NamesOf(Find(rows, Described("\"at_most\": 2"))), ElementsAre("age", "housing_own"));
  const std::string other =
      R"("concepts": [{"name": "Debt", "components": ["debt"]}, {"name": "Age", "components": ["age"]}])";
  EXPECT_THAT(NamesOf(Find(rows, Described(other))), ElementsAre("Debt", "Age", "housing_own", "rest"));
}

TEST(FindReasons, FillsNothingUpBelowTheThreshold) {
  const TableRows rows = OneRow({-0.5, -0.25, 0, -2, 0});  // moves by -2.75
  const auto names = [&](const std::string& keys) { return NamesOf(Find(rows, Described(keys))); };
  EXPECT_THAT(names("\"threshold\": 0.5"), ElementsAre("debt", "age"));  // what reaches it passes
  EXPECT_THAT(names("\"threshold\": 0.501"), ElementsAre("debt"));
  EXPECT_THAT(names("\"threshold_share\": 0.2"), ElementsAre("debt"));  // 0.55
  EXPECT_THAT(names("\"threshold_share\": 0.18"), ElementsAre("debt", "age"));
  EXPECT_THAT(names("\"threshold\": 0.1, \"threshold_share\": 0.2"), ElementsAre("debt"));
  EXPECT_THAT(names("\"at_most\": 1"), ElementsAre("debt"));
  EXPECT_THAT(names(""), ElementsAre("debt", "age", "housing_own"));  // nothing is no reason
  const Reasons none = Find(rows, Described("\"threshold\": 3"));
  EXPECT_EQ(none.decisions[0].outcome, Decision::Outcome::kNoPrincipalReason);
  EXPECT_THAT(none.decisions[0].reasons, IsEmpty());
  EXPECT_EQ(none.decisions[0].others, -2.75);
  EXPECT_THAT(none.decisions[0].notes,
              ElementsAre("no principal reason: no adverse contribution of a concept reaches 3"));
  EXPECT_THAT(Find(OneRow({1, 1, 1, 1, 1}), Described("")).decisions[0].notes,
              ElementsAre("no principal reason: no adverse contribution of a concept reaches more than 0"));
}

TEST(FindReasons, SaysWhereTheSumLeavesMoreOpenThanAReason) {
  TableRows rows = OneRow({-0.5, 0, 0, -2, 0});
  Contributions& numbers = rows.attribution.targets[0];
  numbers.leftover = 0.75;
  numbers.value += 0.75 - 0.6;
  AddUp(numbers);
  const Decision two = Find(rows, Described("")).decisions[0];
  EXPECT_EQ(two.leftover, 0.75);
  EXPECT_NEAR(two.recovery_error, 0.6, 1e-12);
  EXPECT_THAT(two.notes, ElementsAre("the leftover (0.75) is larger than the smallest reason given (-0.5)",
                                     "the recovery error (0.6) is larger than the smallest reason given (-0.5)"));
  EXPECT_THAT(Find(rows, Described("\"at_most\": 1")).decisions[0].notes, IsEmpty());
  numbers.mass = 5000 * std::abs(numbers.value - numbers.reference) + std::abs(numbers.reference);
  EXPECT_THAT(Find(rows, Described("\"at_most\": 1")).decisions[0].notes,
              ElementsAre(HasSubstr("5000 times the move")));
}

TEST(FindReasons, TellsEachRowWithItsOwnValues) {
  const at::Tensor values = at::tensor({1.0, 2.0, 3.0, 4.0, kNan, 6.0}, at::kDouble).view({3, 2});
  const TableRows rows =
      MakeRows(values, at::tensor({0.0, 9.0}, at::kDouble).view({1, 2}), {"a", "b"}, {{-1, -2}, {-2, -1}, {0, -1}});
  const Reasons reasons = Find(rows, Described("\"text\": \"{concept} {value} {baseline}\""));
  EXPECT_THAT(TextsOf(reasons, 0), ElementsAre("b 2 9", "a 1 0"));
  EXPECT_THAT(TextsOf(reasons, 1), ElementsAre("a 3 0", "b 4 9"));
  EXPECT_THAT(TextsOf(reasons, 2), ElementsAre("b 6 9"));
  EXPECT_EQ(reasons.decisions[2].name, "output [2, 0]");
  TableRows broken = rows;
  broken.attribution.targets[1].contributions[0] = kNan;
  const Reasons partly = Find(broken, Described(""));
  EXPECT_EQ(partly.decisions[1].outcome, Decision::Outcome::kNotFinite);
  EXPECT_THAT(NamesOf(partly, 0), ElementsAre("b", "a"));
  EXPECT_THAT(NamesOf(partly, 2), ElementsAre("b"));
}

TEST(FindReasons, OfALinearModelAreWeightTimesMove) {
  const at::Tensor weight = at::tensor({2.0, -1.0, 0.5}, at::kDouble).view({3, 1});
  const TracedModel model(
      FromFunction([weight](const std::vector<at::Tensor>& in) { return at::matmul(in[0], weight); }));
  Input input;
  input.value = at::tensor({1.0, 3.0, -4.0, -1.0, 0.0, 2.0}, at::kDouble).view({2, 3});
  input.split = Split::AlongDims({1});
  input.baseline = Baseline::Of(0.0);
  AttributeOptions options;
  options.each_example = true;
  options.targets = {ParseTarget("0")};
  const Attribution found = Attribute(model, {input}, options);
  ExplainedRun run;
  run.report = found.report;
  run.inputs = {DescribeInput(input)};
  run.components = NameComponents(run.inputs, found.numc);
  const Concepts concepts = Described(R"("text": "{concept} {value} {contribution}")");
  const Reasons reasons = FindReasons(found, true, "", run, concepts, kWriter);
  EXPECT_THAT(TextsOf(reasons, 0), ElementsAre("column 1 3 -3", "column 2 -4 -2"));
  EXPECT_THAT(TextsOf(reasons, 1), ElementsAre("column 0 -1 -2"));
  // One example alone is the same.
  Explanation one;
  one.run = std::make_shared<const ExplainedRun>(run);
  one.targets = {DescribeTarget(found.value, "", {}, found.targets[1])};
  one.example = BatchExample{1, 2};
  EXPECT_THAT(TextsOf(FindReasons(one, concepts, kWriter)), ElementsAre("column 0 -1 -2"));
}

TEST(FindReasons, ReadsStoredExplanations) {
  const TableRows rows = OneRow({0.5, -0.75, 0.25, -2, -0.25});
  ExplainedRun run = rows.run;
  AddValues(run.inputs, Prepare({run.inputs[0].input}), run.components);
  run.report.notes = {"a note"};
  Explanation live;
  live.run = std::make_shared<const ExplainedRun>(run);
  live.targets = {DescribeTarget(rows.attribution.value, "", {}, rows.attribution.targets[0])};
  const std::string stored = Dump(ExplanationJson(live, kWriter));
  const Concepts concepts = Described(kHousing);
  const Reasons of_live = FindReasons(live, concepts, kWriter);
  const Reasons of_stored = FindReasons(ReadExplanation(stored), concepts, kWriter);
  EXPECT_EQ(Dump(ReasonsJson(of_live)), Dump(ReasonsJson(of_stored)));
  EXPECT_THAT(TextsOf(of_stored), ElementsAre("Debt of 1500 EUR, usually 2000: -2",
                                              "Housing: rented (usual: housing_own 0.25, rented 0.75)", "rest"));
  // Values that a document does not tell are asked for in vain, unless nothing comes of their component.
  Json without = Json::parse(stored);
  without["components"][3]["value"] = nullptr;
  EXPECT_THAT(MessageOf([&] { FindReasons(ReadExplanation(Dump(without)), concepts, kWriter); }),
              HasSubstr("the text of Debt asks for {value} or {baseline}, but debt is no number"));
  without["targets"][0]["contributions"][3] = 0;
  EXPECT_THAT(NamesOf(FindReasons(ReadExplanation(Dump(without)), concepts, kWriter)), ElementsAre("Housing", "rest"));
}

TEST(FindReasons, RefusesTextsWithoutValues) {
  TableRows rows = OneRow({-1, 0, 0, 0, 0});
  rows.run.inputs[0].input.inside = "layer";
  EXPECT_THAT(MessageOf([&] { Find(rows, Described(kHousing)); }), HasSubstr("is no number of an input"));
  EXPECT_THAT(TextsOf(Find(rows, Described(""))), ElementsAre("age"));
  EXPECT_THAT(MessageOf([&] {
                Find(OneRow({0, 0, 0, 0, 0}), Described("\"text\": \"{concept} {unit}\""));
              }),
              HasSubstr("age is in no concept"));
}

TEST(BindConcepts, PutsEveryComponentInExactlyOne) {
  const std::vector<std::string> names = {"a", "b_1", "b_2", "c*"};
  const auto bind = [&](const std::string& list) {
    const Concepts concepts = Described(absl::StrCat("\"concepts\": [", list, "]"));
    return BindConcepts(concepts, names);
  };
  const auto told = [&](const std::string& list) { return MessageOf([&] { bind(list); }); };
  const std::string both = R"({"name": "B", "components": ["b_*"]})";
  const auto bound = bind(both);
  ASSERT_EQ(bound.size(), 3u);
  EXPECT_THAT(bound[0].components, ElementsAre(1, 2));
  EXPECT_EQ(bound[1].name, "a");
  EXPECT_EQ(bound[2].name, "c*");
  EXPECT_EQ(bind(R"({"name": "C", "components": ["c*"]})")[0].components, std::vector<int64_t>{3});  // exact
  EXPECT_THAT(told(both + R"(, {"name": "D", "components": ["b_1"]})"),
              HasSubstr("the component b_1 is in the concepts B and D"));
  EXPECT_THAT(told(R"({"name": "D", "components": ["d"]})"), HasSubstr("names the component d, which does not exist"));
  EXPECT_THAT(told(R"({"name": "D", "components": ["d*"]})"), HasSubstr("there are a, b_1, b_2, c*"));
  EXPECT_THAT(told(R"({"name": "a", "components": ["b_1"]})"), HasSubstr("has the name of a component"));
}

TEST(ReadConcepts, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(MessageOf([] { ReadConcepts("{"); }), HasSubstr("is no JSON"));
  EXPECT_THAT(MessageOf([] { ReadConcepts("concepts.json"); }), HasSubstr("give the text that the file holds"));
  EXPECT_THAT(MessageOf([] { ReadConcepts("[]"); }), HasSubstr("a JSON object is expected"));
  EXPECT_THAT(MessageOf([] { ReadConcepts("{}"); }), HasSubstr("\"format\" is \"addend.concepts\""));
  EXPECT_THAT(MessageOf([] { ReadConcepts(R"({"format": "addend.concepts", "version": 2})"); }), HasSubstr("version"));
  EXPECT_THAT(Refused("\"thresold\": 1"), HasSubstr("there is no \"thresold\"; there are"));
  EXPECT_THAT(Refused("\"threshold\": -1"), HasSubstr("\"threshold\" is not negative"));
  EXPECT_THAT(Refused("\"threshold\": \"1\""), HasSubstr("\"threshold\" is a number"));
  EXPECT_THAT(Refused("\"at_most\": 0"), HasSubstr("whole number from 1"));
  EXPECT_THAT(Refused("\"at_most\": 1.5"), HasSubstr("whole number from 1"));
  EXPECT_THAT(Refused("\"adverse\": \"neg\""), HasSubstr("\"adverse\" is \"negative\" or \"positive\""));
  EXPECT_THAT(Refused("\"text\": \"{vlaue}\""),
              HasSubstr("{vlaue}; there are {concept}, {value}, {unit}, {contribution}, {baseline}"));
  EXPECT_THAT(Refused("\"text\": \"a } b\""), HasSubstr("a single }"));
  EXPECT_THAT(Refused("\"text\": \"a { b\""), HasSubstr("a single {"));
  const auto one = [](const std::string& keys) {
    return Refused(absl::StrCat("\"concepts\": [{\"name\": \"A\", \"components\": [\"a\"]", keys, "}]"));
  };
  EXPECT_EQ(one(""), "(no error)");
  EXPECT_THAT(one(", \"text\": \"{x}\""), HasSubstr("the text of the concept A has the placeholder {x}"));
  EXPECT_THAT(one(", \"text\": \"{unit}\""), HasSubstr("asks for {unit}, which it does not have"));
  EXPECT_EQ(one(", \"text\": \"{{{unit}}}\", \"unit\": \"\""), "(no error)");
  EXPECT_THAT(one(", \"words\": {\"1\": 2}"), HasSubstr("maps values to words"));
  EXPECT_THAT(one(", \"values\": \"onehot\""), HasSubstr("\"numbers\" or \"one_hot\""));
  EXPECT_THAT(one(", \"values\": \"one_hot\", \"scale\": 2"), HasSubstr("neither"));
  EXPECT_THAT(one(", \"decimals\": 13"), HasSubstr("from 0 to 12"));
  EXPECT_THAT(one("}, {\"name\": \"A\", \"components\": [\"b\"]"), HasSubstr("two concepts A"));
  EXPECT_THAT(one("}, {\"name\": \"B\", \"components\": [\"a\"]"), HasSubstr("both name the component a"));
  EXPECT_THAT(Refused("\"concepts\": [{\"components\": [\"a\"]}]"), HasSubstr("concept 0: \"name\""));
  EXPECT_THAT(Refused("\"concepts\": [{\"name\": \"A\", \"component\": [\"a\"]}]"),
              HasSubstr("concept 0: there is no \"component\"; there are code, components"));
  EXPECT_THAT(Refused("\"concepts\": [{\"name\": \"A\", \"components\": []}]"), HasSubstr("a list of names"));
}

TEST(ShownNumber, KeepsWholeNumbersWhole) {
  EXPECT_EQ(ShownNumber(41, std::nullopt), "41");
  EXPECT_EQ(ShownNumber(12345678, std::nullopt), "12345678");
  EXPECT_EQ(ShownNumber(12345678.9, std::nullopt), "12345679");
  EXPECT_EQ(ShownNumber(static_cast<double>(0.1F), std::nullopt), "0.1");
  EXPECT_EQ(ShownNumber(-2.5, std::nullopt), "-2.5");
  EXPECT_EQ(ShownNumber(2.0 / 3, 2), "0.67");
  EXPECT_EQ(ShownNumber(1e-7, std::nullopt), "1e-07");
  // No sign where nothing but zeros is shown.
  EXPECT_EQ(ShownNumber(-0.0, std::nullopt), "0");
  EXPECT_EQ(ShownNumber(-0.001, 2), "0.00");
  EXPECT_EQ(ShownNumber(-0.01, 2), "-0.01");
}

TEST(ReasonsHtml, HoldsTheDocumentAndNothingElse) {
  const TableRows rows = OneRow({-1, 0, 0, 0, 0});
  const std::string json = Dump(ReasonsJson(Find(rows, Described("\"text\": \"</script>{concept}\""))));
  const std::string page = ReasonsHtml(json);
  EXPECT_THAT(page, HasSubstr("\\u003c/script>age"));
  EXPECT_EQ(page.find("__ADDEND_DATA__"), std::string::npos);
  EXPECT_THAT(MessageOf([] { ReasonsHtml("{}"); }), HasSubstr("no document of reasons"));
  EXPECT_THAT(MessageOf([] { ReasonsHtml("x"); }), HasSubstr("json is no JSON"));
}

}  // namespace
}  // namespace addend

#include "core/document/explanation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/error_testing.h"
#include "core/explain/decompose.h"
#include "core/explain/notes.h"
#include "core/explain/target_numbers.h"

namespace addend {
namespace {

using testing::HasSubstr;

const Writer kWriter = {"1.2.3", "", "9.8"};

at::Tensor Scores() { return at::tensor({1.0, 4.0, 2.0}, at::kDouble).view({1, 3}); }

// Two components of half of the scores each.
Composition Halves() { return Composition(at::stack({Scores() / 2, Scores() / 2}), at::zeros({1, 3}, at::kDouble)); }

std::shared_ptr<ExplainedRun> RunWith(const Input& input) {
  auto run = std::make_shared<ExplainedRun>();
  run->inputs = {DescribeInput(input)};
  run->components = NameComponents(run->inputs, NumComponents(input));
  run->report.operators = 100;
  run->report.policy.preset = Preset::kFaithful;
  return run;
}

Input Columns() {
  Input input;
  input.name = "x";
  input.value = at::tensor({1.0, 2.0}, at::kDouble).view({1, 2});
  input.split = Split::AlongDims({1});
  return input;
}

TEST(DescribeTarget, NamesElementsAndDifferences) {
  const auto name = [](const std::string& target, const std::string& at) {
    return DescribeTarget(Scores(), at, {}, Contribute(Scores(), Halves(), ParseTarget(target))).name;
  };
  EXPECT_EQ(name("top1", ""), "output [0, 1]");
  EXPECT_EQ(name("0-2", "layer"), "layer [0, 0] minus [0, 2]");
  const at::Tensor one = at::full({}, 2.0, at::kDouble);
  const Composition whole(one.view({1}), at::zeros({}, at::kDouble));
  EXPECT_EQ(DescribeTarget(one, "", {}, Contribute(one, whole, Target())).name, "output");
}

TEST(DescribeTarget, KnowsClassesAndTheirProbabilities) {
  const std::vector<std::string> classes = {"ant", "bee", "cat"};
  const auto describe = [&](const std::string& target, const std::string& at) {
    return DescribeTarget(Scores(), at, classes, Contribute(Scores(), Halves(), ParseTarget(target)));
  };
  const ExplainedTarget bee = describe("1", "");
  EXPECT_TRUE(bee.named);
  EXPECT_EQ(bee.name, "bee");
  const double sum = std::exp(1.0) + std::exp(4.0) + std::exp(2.0);
  EXPECT_NEAR(bee.probability.value(), std::exp(4.0) / sum, 1e-12);
  EXPECT_EQ(describe("1-0", "").name, "bee minus ant");
  EXPECT_FALSE(describe("1-0", "").probability.has_value());
  EXPECT_FALSE(describe("1", "layer").named);
  EXPECT_FALSE(describe("1", "layer").probability.has_value());
  // Scores by their name are scores without classes, too.
  EXPECT_TRUE(DescribeTarget(Scores(), "logits", {}, Contribute(Scores(), Halves(), Target())).probability);
  EXPECT_TRUE(AreProbabilities(at::tensor({0.25, 0.75}), {1}));
  EXPECT_FALSE(AreProbabilities(Scores(), {0, 1}));
}

TEST(DescribeTarget, NamesWhatDistributionsSay) {
  const at::Tensor logits = at::arange(12, at::kDouble).view({1, 4, 3});
  const Composition parts(logits.unsqueeze(0), at::zeros({1, 4, 3}, at::kDouble));
  const auto describe = [&](const std::string& target, const std::string& at, const std::vector<std::string>& classes) {
    return DescribeTarget(logits, at, classes, Contribute(logits, parts, ParseTarget(target)));
  };
  const auto name = [&](const std::string& target) { return describe(target, "", {}).name; };
  EXPECT_EQ(name("log_probability:1"), "log-probability of 1 at position 3");
  EXPECT_EQ(name("probability:0,0,2"), "probability of 2 at position 0");
  EXPECT_EQ(name("entropy"), "entropy at position 3");
  EXPECT_EQ(name("continuation:2,0"), "log-probability of the continuation 2, 0");
  EXPECT_EQ(name("sum:0,1+entropy:2"), "output [0, 0, 1] + entropy at position 2");
  EXPECT_EQ(describe("log_probability:1", "layer", {}).name, "log-probability of 1 of layer at position 3");
  const std::vector<std::string> classes = {"ant", "bee", "cat"};
  const ExplainedTarget cat = describe("log_probability:2", "", classes);
  EXPECT_EQ(cat.name, "log-probability of cat at position 3");
  EXPECT_FALSE(cat.named);
  EXPECT_NEAR(cat.probability.value(), std::exp(cat.numbers.value), 1e-15);
  EXPECT_EQ(describe("probability:2", "", classes).probability, describe("probability:2", "", {}).numbers.value);
  EXPECT_FALSE(describe("entropy", "", classes).probability.has_value());
  EXPECT_EQ(describe("continuation:2,0", "", classes).name, "log-probability of the continuation cat, ant");
  const auto elements = [&](const std::string& target) {
    return DescribeElements(describe(target, "", {}).numbers.target);
  };
  EXPECT_EQ(elements("log_probability:1"), "log-probability of [0, 3, 1]");
  EXPECT_EQ(elements("entropy:0"), "entropy of [0, 0]");
  EXPECT_EQ(elements("continuation:2,0"), "log-probability of the continuation 2, 0");
  EXPECT_EQ(elements("sum:1-0+probability:2"), "[0, 3, 1] minus [0, 3, 0] + probability of [0, 3, 2]");
  // One row: no position.
  EXPECT_EQ(DescribeTarget(Scores(), "", {}, Contribute(Scores(), Halves(), ParseTarget("log_probability:1"))).name,
            "log-probability of 1");
}

TEST(Explain, SaysWhereProbabilitiesAreTakenASoftmaxOf) {
  const at::Tensor p = at::tensor({0.25, 0.75}, at::kDouble).view({1, 2});
  const Composition parts(p.unsqueeze(0), at::zeros({1, 2}, at::kDouble));
  EXPECT_THAT(Explain(parts, ParseTarget("log_probability:1"), "", nullptr).notes,
              testing::ElementsAre(HasSubstr("probabilities already")));
  EXPECT_TRUE(Explain(parts, ParseTarget("1"), "", nullptr).notes.empty());
}

TEST(Explain, HasTheToleranceOfItsRun) {
  const std::shared_ptr<ExplainedRun> run = RunWith(Columns());
  const auto tolerance = [](const Explanation& explanation) { return explanation.targets.at(0).numbers.tolerance; };
  const Target target;
  const double of_run = tolerance(Explain(Halves(), target, "", run));
  Contributions numbers = Contribute(Scores(), Halves(), target);
  EXPECT_EQ(of_run, RecoveryAllowance(numbers, at::kDouble, 100, std::nullopt));
  EXPECT_EQ(ExplanationJson(Explain(Halves(), target, "", run), kWriter)["targets"][0]["tolerance"], of_run);
  // Without a run only what the composition knows counts, and that is nothing.
  EXPECT_EQ(tolerance(Explain(Halves(), target, "", nullptr)),
            RecoveryAllowance(numbers, at::kDouble, 0, std::nullopt));
  run->report.policy.tolerance = 1e-3;
  EXPECT_EQ(tolerance(Explain(Halves(), target, "", run)), RecoveryAllowance(numbers, at::kDouble, 100, 1e-3));
}

TEST(Explain, OfAnAttributionHasTheSameTolerance) {
  Input input = Columns();
  const TracedModel model(FromFunction([](const std::vector<at::Tensor>& in) { return in[0].tanh() * 2; }));
  const Attribution attribution = Attribute(model, {input});
  auto run = RunWith(input);
  run->report = attribution.report;
  const Explanation explanation = Explain(attribution, /*asked=*/false, "", run);
  EXPECT_FALSE(explanation.operators.has_value());
  const Contributions& numbers = explanation.targets.at(0).numbers;
  EXPECT_GT(numbers.tolerance, 0);
  EXPECT_EQ(numbers.tolerance,
            RecoveryAllowance(numbers, at::kDouble, attribution.report.operators, attribution.report.policy.tolerance));
  const Decomposition decomposed = model.Decompose({input});
  run->report = decomposed.report;
  EXPECT_NEAR(Explain(decomposed.outputs[0].composition, Target(), "", run).targets[0].numbers.tolerance,
              numbers.tolerance, 1e-3 * numbers.tolerance);
}

TEST(ExplanationJson, NamesComponentsAsTheRunDoes) {
  const Explanation known = Explain(Halves(), Target(), "", RunWith(Columns()));
  const Json record = ExplanationJson(known, kWriter);
  EXPECT_EQ(record["format"], "addend.explanation");
  EXPECT_EQ(record["version"], 1);
  EXPECT_EQ(record["kind"], "table");
  EXPECT_EQ(record["components"][1]["name"], "column 1");
  EXPECT_EQ(record["addend"]["version"], "1.2.3");
  EXPECT_EQ(record["addend"]["sha256"], nullptr);
  EXPECT_EQ(record["libtorch"]["version"], "9.8");
  EXPECT_EQ(record.count("operators"), 0u);
  // Components of a composition that no run gave.
  const Json alone = ExplanationJson(Explain(Halves(), Target(), "", nullptr), kWriter);
  EXPECT_EQ(alone["components"][1]["name"], "component 1");
  EXPECT_EQ(alone["inputs"], Json::array());
}

TEST(ExplanationJson, CallsOperatorsAsReportsDo) {
  Explanation explanation = Explain(Halves(), Target(), "", RunWith(Columns()));
  OperatorRelevance one;
  one.position.op = "aten::relu";
  one.position.module_path = "body";
  one.passed = {1};
  one.leftover = {0};
  explanation.operators = std::vector<OperatorRelevance>{one};
  const Json relevance = ExplanationJson(explanation, kWriter)["operators"][0];
  Report report;
  report.checks.emplace_back();
  report.checks[0].position = one.position;
  const Json check = ReportJson(report, Preset::kAuto)["checks"][0];
  for (const char* key : {"index", "operator", "call", "program_call", "module_path", "leftover"}) {
    ASSERT_EQ(relevance.count(key), 1u) << key;
    ASSERT_EQ(check.count(key), 1u) << key;
  }
  EXPECT_EQ(relevance["operator"], check["operator"]);
  EXPECT_EQ(relevance["module_path"], check["module_path"]);
}

TEST(ReadExplanation, GivesBackWhatWasWritten) {
  const Explanation written = Explain(Halves(), ParseTarget("1-0"), "layer", RunWith(Columns()));
  const std::string text = Dump(ExplanationJson(written, kWriter));
  const Explanation read = ReadExplanation(text);
  EXPECT_EQ(read.at, "layer");
  EXPECT_EQ(NameOf(read, 1), "column 1");
  const Contributions& numbers = read.targets.at(0).numbers;
  EXPECT_EQ(DescribeElements(numbers.target), "[0, 1] minus [0, 0]");
  EXPECT_EQ(numbers.contributions, written.targets[0].numbers.contributions);
  EXPECT_EQ(numbers.tolerance, written.targets[0].numbers.tolerance);
  EXPECT_EQ(Dump(ExplanationJson(read, kWriter)), text);
}

TEST(ReadExplanation, KnowsTheQuantity) {
  for (const char* target : {"log_probability:1", "entropy", "sum:1+probability:0"}) {
    const Explanation written = Explain(Halves(), ParseTarget(target), "", RunWith(Columns()));
    const Explanation read = ReadExplanation(Dump(ExplanationJson(written, kWriter)));
    EXPECT_EQ(TargetText(read.targets.at(0).numbers.target), TargetText(written.targets[0].numbers.target));
    EXPECT_EQ(DescribeElements(read.targets[0].numbers.target), DescribeElements(written.targets[0].numbers.target));
  }
}

TEST(ReadExplanation, TakesAllTargetsOfAnAttribution) {
  Json record = ExplanationJson(Explain(Halves(), ParseTarget("1-0"), "", RunWith(Columns())), kWriter);
  record["targets"].push_back(record["targets"][0]);
  record["targets"][1]["index"] = {0, 0};
  record["targets"][1]["subtract"] = nullptr;
  const std::string text = Dump(record);
  const Explanation read = ReadExplanation(text);
  ASSERT_EQ(read.targets.size(), 2u);
  EXPECT_EQ(DescribeElements(read.targets[0].numbers.target), "[0, 1] minus [0, 0]");
  EXPECT_EQ(DescribeElements(read.targets[1].numbers.target), "[0, 0]");
  EXPECT_EQ(Dump(ExplanationJson(read, kWriter)), text);
  record["targets"][1]["contributions"].push_back(1.0);
  EXPECT_THAT(MessageOf([&] { ReadExplanation(Dump(record)); }), HasSubstr("no explanation"));
}

TEST(ReadExplanation, TakesOlderDocumentsAndNoOthers) {
  Json record = ExplanationJson(Explain(Halves(), Target(), "", RunWith(Columns())), kWriter);
  const auto message = [&] { return MessageOf([&] { ReadExplanation(Dump(record)); }); };
  record["version"] = 2;
  EXPECT_THAT(message(), HasSubstr("its version is 2, and this library reads 1"));
  record["version"] = 1;
  record["format"] = "addend.report";
  EXPECT_THAT(message(), HasSubstr("no explanation"));
  record.erase("format");
  record.erase("version");
  EXPECT_EQ(ReadExplanation(Dump(record)).targets[0].numbers.value, 4);
  record["targets"] = Json::array();
  EXPECT_THAT(message(), HasSubstr("it has no target"));
  EXPECT_THAT(MessageOf([] { ReadExplanation("{}"); }), HasSubstr("no explanation"));
}

TEST(ExplanationHtml, HoldsTheDocument) {
  const std::string page = ExplanationHtml(Explain(Halves(), Target(), "", RunWith(Columns())), kWriter);
  EXPECT_THAT(page, HasSubstr("\"format\":\"addend.explanation\""));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

TEST(ExplanationHtml, ShowsFirstWhatSpoilsNumbers) {
  const std::string page = ExplanationHtml(Explain(Halves(), Target(), "", RunWith(Columns())), kWriter);
  EXPECT_THAT(page, HasSubstr("/^(" + absl::StrJoin(SpoilingBeginnings(), "|") + ")/.test(note)"));
}

TEST(WarningsAmong, LeavesOutRemarks) {
  const std::vector<std::string> warnings = {
      "the examples influence each other: one", "recovery is off: by much",
      "conditions or indices depend on the input; they are the value's for the reference too; on the baseline some are "
      "others: aten::gt",
      "what nobody has thought of yet"};
  std::vector<std::string> notes = {
      "preset auto: faithful, because a baseline was given",
      "the model does not take several examples at once (it is for one); they were attributed one by one",
      "conditions or indices depend on the input; they are the value's for the reference too; on the baseline they are "
      "the same: aten::gt"};
  notes.insert(notes.end(), warnings.begin(), warnings.end());
  EXPECT_EQ(WarningsAmong(notes), warnings);
}

}  // namespace
}  // namespace addend

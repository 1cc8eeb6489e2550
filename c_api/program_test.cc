// Recorded programs: kept, printed, checked, run again, and in place of their models.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kModels = "tests/conformance/models/";

class ProgramTest : public CApiTest {};

// Multiples of 1/64, different for each row.
Tensor Table(int64_t rows, double sign = 1) {
  std::vector<float> numbers(rows * 6);
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<float>(sign * static_cast<double>(k + 1) / 64);
  return Tensor::Copy(numbers, {rows, 6});
}

Request TableRequest(const Tensor& table) {
  Request request;
  request.Input(table);
  return request;
}

TEST_F(ProgramTest, ReplaysTheModelWithoutIt) {
  const Model mlp = Model::Load(kModels + "mlp.pt");
  const Program program = mlp.Record(TableRequest(Table(2)));
  EXPECT_EQ(program.num_operators(), 5u);
  EXPECT_THAT(program.Names("input"), ElementsAre("table"));
  EXPECT_THAT(program.Names("parameter"), testing::SizeIs(6));
  const Request other = TableRequest(Table(2, -1));
  const Results replayed = program.Replay(other);
  ASSERT_EQ(replayed.size(), 1u);
  EXPECT_EQ(replayed.name(0), "output");
  EXPECT_EQ(Numbers(replayed.tensor()), Numbers(mlp.Run(other).tensor()));
  const json summary = json::parse(program.SummaryJson());
  EXPECT_EQ(summary["operators"], 5);
  EXPECT_EQ(summary["inputs"][0]["name"], "table");
  EXPECT_EQ(summary["values"].size(), addend_program_num_values(program.get()));
  EXPECT_TRUE(summary["free"].empty());
  // Other sizes were not learned.
  EXPECT_THAT([&] { program.Replay(TableRequest(Table(3))); }, testing::ThrowsMessage<Error>(HasSubstr("[3, 6]")));
}

TEST_F(ProgramTest, GivesInnerValuesByName) {
  const Program program = Model::Load(kModels + "mlp.pt").Record(TableRequest(Table(2)));
  const Request request = TableRequest(Table(2, -1));
  const Results some = program.Replay(request, R"({"values": ["relu", "linear"]})");
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some.name(1), "relu");
  EXPECT_EQ(some.name(2), "linear");
  std::vector<double> rectified = Numbers(some.tensor(2));
  for (double& number : rectified) number = std::max(number, 0.0);
  EXPECT_EQ(Numbers(some.tensor(1)), rectified);
  const Results all = program.Replay(request, R"({"every_value": true})");
  EXPECT_EQ(all.size(), 1 + addend_program_num_values(program.get()));
}

TEST_F(ProgramTest, LearnsSizesFromFurtherExamples) {
  const Model mlp = Model::Load(kModels + "mlp.pt");
  Request examples = TableRequest(Table(2));
  examples.NextExample().Input(Table(3));
  const Program program = mlp.Record(examples);
  const json summary = json::parse(program.SummaryJson());
  ASSERT_EQ(summary["free"].size(), 1u);
  EXPECT_EQ(summary["free"][0]["input"], "table");
  EXPECT_EQ(summary["free"][0]["dim"], 0);
  const Request five = TableRequest(Table(5));
  EXPECT_EQ(Numbers(program.Replay(five).tensor()), Numbers(mlp.Run(five).tensor()));
  // What takes one example refuses more.
  addend_results* none = nullptr;
  EXPECT_THAT(Outcome(addend_model_run(mlp.get(), examples.get(), &none)).message, HasSubstr("has 2 examples"));
  examples.NextExample();
  EXPECT_THAT([&] { mlp.Record(examples); }, testing::ThrowsMessage<Error>(HasSubstr("has no input")));
  EXPECT_EQ(Outcome(addend_request_next_example(examples.get())).code, ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(Outcome(addend_request_next_example(Request().get())).code, ADDEND_FAILED_PRECONDITION);
}

TEST_F(ProgramTest, StopsWhereTheRunWouldHaveGoneAnotherWay) {
  const Model awkward = Model::Load(kModels + "awkward.pt");
  const Request request = TableRequest(Table(2));
  const Program program = awkward.Record(request);
  EXPECT_FALSE(json::parse(program.SummaryJson())["guards"].empty());
  EXPECT_EQ(Numbers(program.Replay(request).tensor()), Numbers(awkward.Run(request).tensor()));
  const Request other = TableRequest(Table(2, -1));
  try {
    program.Replay(other);
    FAIL() << "the branch was not taken in the recording";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ADDEND_FAILED_PRECONDITION);
    EXPECT_NE(error.payload("op_index"), "");
  }
  EXPECT_NE(Numbers(program.Replay(other, R"({"guards": false})").tensor()), Numbers(awkward.Run(other).tensor()));
  // The check finds the same.
  Request both = TableRequest(Table(2));
  both.NextExample().Input(Table(2, -1));
  const json report = json::parse(awkward.CheckTrace(both));
  EXPECT_EQ(report["ok"], false);
  const json& findings = report["findings"];
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const json& finding) {
    return finding["error"] == true && finding["kind"] == "guard" && finding["input_set"] == 0;
  })) << report.dump(1);
  EXPECT_EQ(json::parse(Model::Load(kModels + "mlp.pt").CheckTrace(both))["ok"], true);
}

TEST_F(ProgramTest, IsKeptInAFolder) {
  const std::string folder = testing::TempDir() + "/kept";
  const Request request = TableRequest(Table(2));
  std::vector<double> expected;
  {
    const Model mlp = Model::Load(kModels + "mlp.pt");
    mlp.Record(request).Save(folder);
    expected = Numbers(mlp.Run(request).tensor());
  }
  const Program program = Program::Load(folder);
  EXPECT_EQ(Numbers(program.Replay(request).tensor()), expected);
  EXPECT_TRUE(std::filesystem::exists(folder + "/program.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/weights.safetensors"));
  EXPECT_THROW(Program::Load(folder + "/nowhere"), Error);
}

TEST_F(ProgramTest, StandsForTheModel) {
  const Model digits = Model::Load(kDigits);
  const Model program = digits.Record(DigitRequest()).AsModel();
  ASSERT_EQ(addend_model_num_inputs(program.get()), 1u);
  EXPECT_STREQ(addend_model_input_name(program.get(), 0), addend_model_input_name(digits.get(), 0));
  const auto expected = Numbers(digits.Decompose(DigitRequest()).composition().components());
  EXPECT_EQ(Numbers(program.Decompose(DigitRequest()).composition().components()), expected);
  EXPECT_EQ(Numbers(program.Attribute(DigitRequest()).input()), Numbers(digits.Attribute(DigitRequest()).input()));
  EXPECT_EQ(json::parse(program.CheckTrace(DigitRequest()))["ok"], true);
}

TEST_F(ProgramTest, IsPrinted) {
  const Program program = Model::Load(kModels + "mlp.pt").Record(TableRequest(Table(2)));
  const std::string text = program.CodeText();
  EXPECT_THAT(text, HasSubstr("# relu(f32[2, "));
  EXPECT_THAT(text, Not(HasSubstr("table: f32[2, 6]")));
  EXPECT_THAT(program.CodeText(R"({"names": true})"), HasSubstr("table: f32[2, 6]"));
  EXPECT_THAT(
      program.CodeText(R"({"numbers": [{"name": "time", "unit": "seconds", "values": [0.001, null, 2, 3, 4]}]})"),
      HasSubstr("[time 1"));
  const json code = json::parse(program.CodeJson());
  EXPECT_EQ(code["format"], "addend.code_trace");
  EXPECT_EQ(code["calls"].size(), 5u);
  const json graph = json::parse(program.GraphJson());
  EXPECT_EQ(graph["format"], "addend.graph");
  EXPECT_THAT(program.GraphDot(), HasSubstr("digraph"));
  EXPECT_THAT(program.GraphDot(), Not(HasSubstr("shape=note")));
  EXPECT_THAT(program.GraphDot(R"({"sources": true})"), HasSubstr("shape=note"));
  const std::string page = program.GraphHtml(R"({"title": "a <title>"})");
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, HasSubstr("a \\u003ctitle>"));
}

TEST_F(ProgramTest, OutlivesItsModelAndIsOutlivedByItsResults) {
  addend_model* model = nullptr;
  ExpectOk(addend_model_load(kDigits, 0, &model));
  addend_program* program = nullptr;
  ExpectOk(addend_model_record(model, DigitRequest().get(), &program));
  addend_model_release(model);
  addend_model* replayed = nullptr;
  ExpectOk(addend_program_model(program, &replayed));
  addend_results* results = nullptr;
  ExpectOk(addend_program_replay(program, DigitRequest().get(), R"({"every_value": true})", &results));
  addend_program_release(program);
  addend_attribution* attribution = nullptr;
  ExpectOk(addend_model_attribute(nullptr, replayed, DigitRequest().get(), &attribution));
  addend_model_release(replayed);
  addend_explanation* explanation = nullptr;
  ExpectOk(addend_attribution_explain(attribution, 0, &explanation));
  addend_attribution_release(attribution);
  EXPECT_EQ(addend_explanation_numc(explanation), 64);
  addend_explanation_release(explanation);
  addend_tensor* last = nullptr;
  ExpectOk(addend_results_tensor(results, addend_results_size(results) - 1, &last));
  addend_results_release(results);
  EXPECT_FALSE(Numbers(Tensor(last)).empty());
}

// ---- attributions

TEST_F(ProgramTest, AttributionsAddUpToTheDecomposition) {
  const Model digits = Model::Load(kDigits, ADDEND_FLOAT64);
  Request request;
  const auto pixels = Numbers(TensorFile::Read(kDigitsSample).tensor("input"));
  request.Input(Tensor::Copy(pixels, {1, 1, 8, 8})).SplitAlong({2, 3}).Baseline(0.0).Target("8").Target("8-3");
  request.Operators();
  const Attribution attribution = digits.Attribute(request);
  ASSERT_EQ(attribution.num_targets(), 2u);
  EXPECT_EQ(attribution.input().sizes(), (std::vector<int64_t>{2, 1, 1, 8, 8}));
  const Results decomposed = digits.Decompose(request);
  for (size_t t = 0; t < 2; ++t) {
    const Explanation expected = decomposed.Explain(t == 0 ? "8" : "8-3");
    const Explanation found = attribution.Explain(t);
    EXPECT_EQ(found.target(), expected.target());
    EXPECT_NEAR(found.value(), expected.value(), 1e-12);
    EXPECT_NEAR(found.reference(), expected.reference(), 1e-12);
    EXPECT_NEAR(found.leftover(), expected.leftover(), 1e-10);
    EXPECT_NEAR(found.recovery(), found.value(), 1e-10);
    const auto elements = Numbers(attribution.input());
    for (int64_t c = 0; c < 64; ++c) {
      const double contribution = addend_explanation_contribution(expected.get(), c);
      EXPECT_NEAR(addend_explanation_contribution(found.get(), c), contribution, 1e-10);
      EXPECT_NEAR(elements[t * 64 + c], contribution, 1e-10);
    }
  }
  const json record = json::parse(attribution.Json());
  EXPECT_EQ(record["targets"].size(), 2u);
  EXPECT_FALSE(record["operators"].empty());
  EXPECT_EQ(record["operators"][0]["passed"].size(), 2u);
  EXPECT_THAT(attribution.Html(), HasSubstr("</html>"));
  const Results results = attribution.results();
  EXPECT_EQ(results.name(0), "output");
  EXPECT_GT(results.report("operators"), 0);
  EXPECT_EQ(json::parse(results.ReportJson())["preset"], "faithful");
  addend_explanation* none = nullptr;
  EXPECT_EQ(Outcome(addend_attribution_explain(attribution.get(), 2, &none)).code, ADDEND_OUT_OF_RANGE);
}

TEST_F(ProgramTest, EachExampleHasATargetOfItsOwn) {
  const Model mlp = Model::Load(kModels + "mlp.pt", ADDEND_FLOAT64);
  std::vector<double> numbers = Numbers(Table(3));
  Request request;
  request.Input(Tensor::Copy(numbers, {3, 6})).SplitAlong({0, 1}).EachExample().Target("1").Target("0").Target("1-0");
  const Attribution together = mlp.Attribute(request);
  ASSERT_EQ(together.num_targets(), 3u);
  EXPECT_EQ(together.input().sizes(), (std::vector<int64_t>{3, 6}));
  const auto elements = Numbers(together.input());
  const char* targets[] = {"1", "0", "1-0"};
  for (size_t row = 0; row < 3; ++row) {
    Request own;
    own.Input(Tensor::Copy(std::vector<double>(numbers.begin() + row * 6, numbers.begin() + row * 6 + 6), {1, 6}))
        .SplitAlong({1})
        .Target(targets[row]);
    const Attribution alone = mlp.Attribute(own);
    ExpectNear({elements.begin() + row * 6, elements.begin() + row * 6 + 6}, Numbers(alone.input()), 1e-12);
    EXPECT_NEAR(together.Explain(row).leftover(), alone.Explain().leftover(), 1e-12);
  }
  request.Target("1");
  EXPECT_THAT([&] { mlp.Attribute(request); }, testing::ThrowsMessage<Error>(HasSubstr("4 targets")));
}

TEST_F(ProgramTest, PlainInputsHaveNoElementsAndInnerTensorsMayBeExplained) {
  const Model mixed = Model::Load(kModels + "mixed.pt");
  const TensorFile file = TensorFile::Read(kModels + "mixed.safetensors");
  Request request;
  request.Input(file.tensor("image"), "image").SplitAlong({2, 3}).Input(file.tensor("tokens"), "tokens");
  request.Input(file.tensor("table"), "table").SplitAlong({1}).Target("0,0").Explained("output");
  const Attribution attribution = mixed.Attribute(request);
  const Results results = attribution.results();
  // In the order of the model's arguments.
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results.name(1), "table");
  EXPECT_EQ(results.name(2), "image");
  EXPECT_EQ(results.kind(3), ADDEND_RESULT_NONE);
  EXPECT_EQ(attribution.input(0).sizes(), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(attribution.input(1).sizes(), (std::vector<int64_t>{1, 2, 1, 6, 6}));
  EXPECT_EQ(json::parse(attribution.Json())["at"], "output");
  EXPECT_EQ(json::parse(attribution.Json()).count("operators"), 0u);
  request.Explained("nowhere");
  EXPECT_THAT([&] { mixed.Attribute(request); }, testing::ThrowsMessage<Error>(HasSubstr("nowhere")));
}

TEST_F(ProgramTest, ProgressAndCancellationEndAttributions) {
  const Model digits = Model::Load(kDigits);
  addend_context_options* made = nullptr;
  ExpectOk(addend_context_options_create(&made));
  const Handle<addend_context_options, addend_context_options_release> options(made);
  ExpectOk(addend_context_options_set_progress(
      made, [](void*, const char* stage, int64_t, int64_t) { return std::string(stage) == "sweep" ? 5 : 0; }, nullptr,
      nullptr));
  addend_context* created = nullptr;
  ExpectOk(addend_context_create(made, &created));
  const Context context(created);
  addend_attribution* none = nullptr;
  addend_status* status = addend_model_attribute(context.get(), digits.get(), DigitRequest().get(), &none);
  EXPECT_EQ(addend_status_code(status), ADDEND_CANCELLED);
  EXPECT_STREQ(addend_status_payload(status, "callback"), "5");
  addend_status_release(status);
  addend_cancellation* cancellation = nullptr;
  ExpectOk(addend_cancellation_create(&cancellation));
  addend_cancellation_cancel(cancellation);
  const Request request = DigitRequest();
  ExpectOk(addend_request_set_cancellation(request.get(), cancellation));
  EXPECT_EQ(Outcome(addend_model_attribute(nullptr, digits.get(), request.get(), &none)).code, ADDEND_CANCELLED);
  addend_cancellation_release(cancellation);
  // A choice without adjoint is told.
  EXPECT_EQ(
      Outcome(addend_model_attribute(Context::Of({{"bias", "abs"}}).get(), digits.get(), DigitRequest().get(), &none))
          .code,
      ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace addend::api

// The C++ face: what the other tests of the C interface, which are written in it, do not call.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "c_api/testing.h"

namespace addend::api {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

class CppTest : public CApiTest {
 protected:
  const Tensor x_ = Tensor::Copy<double>({1, -2, 3}, {3});
};

TEST_F(CppTest, TheLibraryTellsItsVersionsAndItsOperators) {
  EXPECT_THAT(Version(), MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
  EXPECT_THAT(LibTorchVersion(), MatchesRegex("[0-9]+[.][0-9]+.*"));
  EXPECT_NO_THROW(CheckLibTorch());
  EXPECT_THROW(SetNumThreads(0), Error);
  const std::string config = ShowConfig();
  EXPECT_THAT(config, HasSubstr("Addend " + Version() + "\n  interface: ABI "));
  EXPECT_THAT(config, HasSubstr(".so, for LibTorch " + LibTorchVersion() + "\nLibTorch "));
  EXPECT_THAT(config, HasSubstr("\n  library: "));
  EXPECT_THAT(config, Not(HasSubstr("refused")));
  EXPECT_THAT(Operators(), Contains(Field(&Operator::name, "aten::softmax")));
  EXPECT_THAT(Operators(), Not(Contains(Field(&Operator::kind, ""))));
}

TEST_F(CppTest, TensorsLieOnTheCallersMemory) {
  auto numbers = std::make_shared<std::vector<double>>(std::vector<double>{0, 1, 2, 3, 4, 5});
  {
    const Tensor rows = Tensor::Wrap(numbers->data(), {2, 3}, {}, numbers);
    const Tensor columns = Tensor::Wrap(numbers->data(), {3, 2}, {1, 3}, numbers);
    EXPECT_EQ(numbers.use_count(), 3);
    (*numbers)[5] = 9;
    EXPECT_EQ(Numbers(rows), (std::vector<double>{0, 1, 2, 3, 4, 9}));
    EXPECT_EQ(Numbers(columns), (std::vector<double>{0, 3, 1, 4, 2, 9}));
    EXPECT_THROW(Tensor::Wrap(numbers->data(), {2, -3}, {}, numbers), Error);
    EXPECT_THROW(Tensor::Wrap(numbers->data(), {2}, {-1}, numbers), Error);
    EXPECT_THROW(Tensor::Wrap(numbers->data(), {2, 2}, {1}, numbers), Error);
    EXPECT_EQ(numbers.use_count(), 3) << "memory that was refused is not kept";
    const Tensor none = Tensor::Wrap<double>(nullptr, {0, 3});
    EXPECT_THAT(none.sizes(), ElementsAre(0, 3));
  }
  EXPECT_EQ(numbers.use_count(), 1);
}

TEST_F(CppTest, AnExplanationIsToldInOneLine) {
  Request request;
  request.Input(x_).SplitAlong({0}).Baseline(0.0).Names({"a", "b", "c"});
  TracingScope scope(request);
  scope.AddOutput("y", Call("aten::relu", Arguments().Add(x_)).tensor());
  const Explanation explanation = scope.End().Explain("2");
  EXPECT_EQ(explanation.ToString(), "[2]: value 3 = reference 0 + 3 contributions 3 + leftover 0");
  EXPECT_EQ(explanation.Top(1)[0].name, "c");
  EXPECT_EQ(Numbers(TensorFile::Create().Add("first", x_).First()), Numbers(x_));
  EXPECT_THROW(TensorFile::Create().First(), Error);
}

TEST_F(CppTest, LiveModelsAreAttributedAndVerified) {
  Request request;
  request.Input(x_, "x").SplitAlong({0}).Baseline(0.5).Target("0");
  const auto run = [](const Tensor& x) { return Call("aten::mul", Arguments().Add(x).Add(2.0)).tensor(); };
  AttributionScope attributing(request);
  const Tensor y = run(x_);
  attributing.AddOutput("y", y);
  EXPECT_EQ(Numbers(attributing.End().input()), (std::vector<double>{1, 0, 0}));

  TracingScope tracing(request);
  const Tensor again = run(x_);
  tracing.AddOutput("y", again);
  const Tensor baseline = tracing.Baseline(0);
  EXPECT_EQ(Numbers(baseline), (std::vector<double>{0.5, 0.5, 0.5}));
  tracing.AddOnBaseline("y", run(baseline));
  EXPECT_EQ(tracing.End().report("reference_error"), 0);
}

TEST_F(CppTest, LiveModelsRunAgainForWhatIsInside) {
  Request request;
  request.Input(x_, "x").Inside("aten::mul").SplitAlong({0});
  TracingScope scope(request);
  for (const bool second : {false, true}) {
    if (second) scope.RunAgain();
    const Tensor doubled = Call("aten::mul", Arguments().Add(x_).Add(2.0)).tensor();
    scope.AddOutput("y", Call("aten::relu", Arguments().Add(doubled)).tensor());
  }
  EXPECT_EQ(Numbers(scope.End().composition().components()), (std::vector<double>{2, 0, 0, 0, 0, 0, 0, 0, 6}));
}

TEST_F(CppTest, CompositionsTellWhatTheyAre) {
  const Composition x = Composition::Diagonal(x_, {0});
  EXPECT_EQ(x.dtype(), ADDEND_FLOAT64);
  EXPECT_EQ(x.device(), "cpu");
  const Composition last = x.Select({-1});
  EXPECT_EQ(last.numc(), 1);
  EXPECT_EQ(Numbers(last.components()), (std::vector<double>{0, 0, 3}));
}

TEST_F(CppTest, TensorsShareMemoryOfTheCaller) {
  std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  int released = 0;
  {
    const Tensor turned = Tensor::Wrap(numbers.data(), 24, ADDEND_FLOAT32, {3, 2}, [&] { ++released; }, {1, 3});
    EXPECT_EQ(turned.To<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    numbers[3] = 7;
    EXPECT_EQ(turned.To<float>()[1], 7);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_THROW(Tensor::Wrap(numbers.data(), 20, ADDEND_FLOAT32, {6}, [&] { ++released; }), Error);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Tensor::Wrap(numbers.data(), 24, ADDEND_FLOAT32, {6}).num_bytes(), 24u);
}

TEST_F(CppTest, DlpackThereAndBack) {
  const Tensor tensor = Tensor::Copy<double>({1, 2, 3}, {3});
  const Tensor newer = Tensor::FromDlpack(tensor.ToDlpack());
  const Tensor older = Tensor::FromDlpack(tensor.ToOlderDlpack());
  EXPECT_EQ(addend_tensor_data(newer.get()), addend_tensor_data(tensor.get()));
  EXPECT_EQ(addend_tensor_data(older.get()), addend_tensor_data(tensor.get()));
}

TEST_F(CppTest, GradientsFollowCalls) {
  const Tensor parts = Tensor::Copy<double>({1, 2, 3, 4}, {2, 2});
  const Composition x = Composition::FromTensors(parts, {}, {}, /*in_graph=*/true);
  const Composition y = Call("aten::mul", Arguments().Add(x).Add(3.0)).composition();
  const Composition ones = Composition::FromTensors(Tensor::Copy<double>({1, 1, 1, 1}, {2, 2}));
  EXPECT_EQ(Numbers(y.Gradient(ones, x).components()), (std::vector<double>{3, 3, 3, 3}));
}

TEST_F(CppTest, ExplanationsAreReadBack) {
  const Explanation told = Composition::Diagonal(x_, {0}).Explain("2");
  const Explanation read = Explanation::Read(told.Json());
  EXPECT_EQ(read.value(), 3);
  EXPECT_EQ(read.Json(), told.Json());
  EXPECT_THROW(Explanation::Read("{}"), Error);
}

TEST_F(CppTest, CancelledRunsEnd) {
  const Model model = Model::Load(kDigits);
  EXPECT_EQ(model.input_names().size(), 1u);
  Cancellation cancellation;
  Request request = DigitRequest();
  request.CancelledBy(cancellation);
  EXPECT_EQ(model.Decompose(request).size(), 1u);
  cancellation.Cancel();
  try {
    model.Decompose(request);
    FAIL() << "the run was not ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ADDEND_CANCELLED);
  }
}

TEST_F(CppTest, ContextsSayWhatARunDoes) {
  std::vector<std::string> lines;
  std::vector<std::string> stages;
  ContextOptions options;
  options.Policy("preset", "auto").Log([&](int32_t, const std::string& line) { lines.push_back(line); });
  options.Progress([&](const std::string& stage, int64_t, int64_t) {
    stages.push_back(stage);
    return true;
  });
  const Context context = Context::Of(options);
  EXPECT_THAT(context.PolicyJson(), HasSubstr("\"preset\":\"auto\""));
  const Model model = Model::Load(kDigits);
  model.Decompose(DigitRequest(), context);
  EXPECT_THAT(lines, Contains(HasSubstr("preset auto")));
  EXPECT_THAT(stages, Contains("sweep"));

  options.Progress([](const std::string&, int64_t, int64_t) { return false; });
  options.Detail();
  try {
    model.Decompose(DigitRequest(), Context::Of(options));
    FAIL() << "the run was not ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ADDEND_CANCELLED);
    EXPECT_EQ(error.payload("callback"), "1");
    EXPECT_THAT(error.payload_keys(), Contains("callback"));
  }
}

TEST_F(CppTest, RulesOfOperatorsAreReplaced) {
  const Composition x = Composition::Diagonal(x_, {0});
  const Context opaque = Context::Of(ContextOptions().Rules({{"aten::tanh", "opaque"}}));
  const Composition y = Call("aten::tanh", Arguments().Add(x), opaque).composition();
  EXPECT_EQ(Numbers(y.components()), std::vector<double>(9, 0.0));
  EXPECT_THROW(ContextOptions().Rules({{"aten::tanh", "sideways"}}), Error);
}

TEST_F(CppTest, ProgramsKnowParametersAndBuffersByName) {
  const Tensor scale = Tensor::Copy<double>({2, 2, 2}, {3});
  const Tensor mean = Tensor::Copy<double>({1, 1, 1}, {3});
  Request request;
  request.Input(x_, "x").Parameter("norm.scale", scale).Buffer("norm.mean", mean);
  RecordingScope scope(request);
  const Tensor centred = Call("aten::sub", Arguments().Add(x_).Add(mean)).tensor();
  scope.AddOutput(Call("aten::mul", Arguments().Add(centred).Add(scale)).tensor());
  const Program program = scope.End();
  EXPECT_THAT(program.Names("parameter"), ElementsAre("norm.scale"));
  EXPECT_THAT(program.Names("buffer"), ElementsAre("norm.mean"));
}

TEST_F(CppTest, TheReportHasEveryFieldOfTheList) {
  Request request = DigitRequest();
  request.VerifyReference();
  const Results results = Model::Load(kDigits).Decompose(request);
  std::ifstream list("core/explain/fields.txt");
  const std::regex field("  field (\\w+) \\((\\w+).*");
  std::string record;
  std::smatch match;
  int fields = 0;
  for (std::string line; std::getline(list, line);) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') record = line;
    if (record != "Report" || !std::regex_match(line, match, field) || match[2] == "texts") continue;
    ++fields;
    if (match[2] == "text") {
      EXPECT_NE(addend_results_report_text(results.get(), match[1].str().c_str()), nullptr) << line;
    } else {
      EXPECT_FALSE(std::isnan(results.report(match[1]))) << line;
    }
  }
  EXPECT_GT(fields, 15);
}

TEST_F(CppTest, TracesTakeNotes) {
  Request request;
  request.Input(x_).SplitAlong({0}).Baseline(0.0);
  TracingScope scope(request);
  scope.AddOutput("y", Call("aten::mul", Arguments().Add(x_).Add(2.0)).tensor());
  scope.AddNote("dropout was switched off");
  EXPECT_THAT(scope.End().notes(), Contains("dropout was switched off"));
}

// Two rows of two columns under the weights 2 and -1, by hand.
TEST_F(CppTest, ReasonsAreToldInConceptsRowByRow) {
  auto numbers = std::make_shared<std::vector<double>>(std::vector<double>{1, 3, -2, 5});
  const Tensor rows = Tensor::Wrap(numbers->data(), {2, 2}, {}, numbers);
  const Tensor weights = Tensor::Copy<double>({2, -1}, {2, 1});
  Request request;
  request.Input(rows, "x").SplitAlong({1}).Baseline(0.0).Name("debt").Name("age").Target("0").EachExample();
  AttributionScope attributing(request);
  attributing.AddOutput("y", Call("aten::matmul", Arguments().Add(rows).Add(weights)).tensor());
  const Attribution found = attributing.End();
  // Callers use their memory again.
  *numbers = {0, 0, 0, 0};
  const Concepts concepts = Concepts::Read(
      R"({"format": "addend.concepts", "version": 1, "concepts": [{"name": "Debt", "components": ["debt"], "unit": "EUR",
          "text": "{concept} {value} {unit}: {contribution}"}, {"name": "Age", "components": ["a*"]}]})");
  const std::string all = found.ReasonsJson(concepts);
  EXPECT_THAT(all, HasSubstr(R"("reasons":[{"concept":"Age","code":"","contribution":-3.0,"value":"3","unit":null,)"
                             R"("baseline":"0","text":"Age"}],"others":2.0)"));
  EXPECT_THAT(all, HasSubstr(R"("text":"Age"},{"concept":"Debt","code":"","contribution":-4.0,"value":"-2",)"
                             R"("unit":"EUR","baseline":"0","text":"Debt -2 EUR: -4"}],"others":0.0)"));
  const std::string second = found.Explain(1).ReasonsJson(concepts);
  EXPECT_THAT(second, HasSubstr(R"("text":"Debt -2 EUR: -4"}],"others":0.0)"));
  EXPECT_THAT(second, Not(HasSubstr(R"("value":"3")")));
  EXPECT_THAT(ReasonsHtml(all), HasSubstr("Debt -2 EUR"));
  EXPECT_THROW(ReasonsHtml("{}"), Error);
  EXPECT_THROW(Concepts::Read(R"({"format": "addend.concepts", "version": 1, "text": "{x}"})"), Error);
}

// The interface hands the numbers over; tests of the core check them.
TEST_F(CppTest, InteractionsAndSeveralBaselines) {
  const std::string folder = "docs/examples/models/breast_cancer/";
  const Model model = Model::Load(folder + "model.pt");
  const Tensor sample = TensorFile::Read(folder + "sample.safetensors").tensor("input");
  const Tensor rows = TensorFile::Read(folder + "heldout.safetensors").tensor("input");
  Request request;
  request.Input(sample).SplitAlong({1}).Baseline(0.0).Target("0");
  const Concepts concepts = Concepts::Read(
      R"({"format": "addend.concepts", "version": 1, "concepts": [{"name": "Tens", "components": ["column 1*"]}]})");
  const std::string found = model.InteractionsJson(request, concepts);
  EXPECT_THAT(found, HasSubstr(R"("format":"addend.interactions")"));
  EXPECT_THAT(found, HasSubstr(R"("name":"Tens","components":["column 1","column 10",)"));
  EXPECT_THAT(InteractionsHtml(found), HasSubstr("addend.interactions"));
  EXPECT_THROW(InteractionsHtml("{}"), Error);

  Request several;
  several.Input(sample).SplitAlong({1}).Baselines(rows).Target("0");
  const Explanation mean = model.Attribute(several).Explain(0);
  EXPECT_EQ(mean.num_baselines(), rows.sizes()[0]);
  EXPECT_THAT(mean.StandardErrors(), AllOf(SizeIs(30), Each(Ge(0))));
  EXPECT_THAT(mean.SameSign(), AllOf(SizeIs(30), Each(AllOf(Ge(0), Le(1)))));
  EXPECT_NEAR(mean.recovery(), mean.value(), 1e-4 * std::abs(mean.value()) + 1e-4);
  EXPECT_THROW(model.Decompose(several), Error);
  EXPECT_THROW(model.InteractionsJson(several), Error);
  const AuditLog log(testing::TempDir() + "several.jsonl");
  EXPECT_THROW(log.Append(model.Attribute(several)), Error);
  several.Baseline(0.0);  // in their place
  EXPECT_EQ(model.Attribute(several).Explain(0).num_baselines(), 1);
}

}  // namespace
}  // namespace addend::api

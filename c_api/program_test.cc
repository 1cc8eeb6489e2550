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
  const std::vector<Program::Output> outputs = program.outputs();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].name, replayed.name(0));
  EXPECT_EQ(outputs[0].dtype, ADDEND_FLOAT32);
  EXPECT_EQ(outputs[0].sizes, replayed.tensor().sizes());
  EXPECT_EQ(replayed.sizes(), outputs[0].sizes);
  EXPECT_EQ(addend_program_output_size(program.get(), 0, 2), -1);
  EXPECT_EQ(addend_program_output_name(program.get(), 1), nullptr);
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
  // Functions that take one example refuse more.
  addend_results* none = nullptr;
  EXPECT_THAT(Outcome(addend_model_run(mlp.get(), examples.get(), &none)).message, HasSubstr("has 2 examples"));
  examples.NextExample();
  EXPECT_THAT([&] { mlp.Record(examples); }, testing::ThrowsMessage<Error>(HasSubstr("has no input")));
  EXPECT_EQ(Outcome(addend_request_next_example(examples.get())).code, ADDEND_FAILED_PRECONDITION);
  EXPECT_EQ(Outcome(addend_request_next_example(Request().get())).code, ADDEND_FAILED_PRECONDITION);
}

TEST_F(ProgramTest, LearnsSizesFromOneExample) {
  const Model mlp = Model::Load(kModels + "mlp.pt");
  const std::string exported = testing::TempDir() + "/sizes.pt";
  const auto record = [&](bool learn) {
    Request request = TableRequest(Table(2));
    return mlp.Record(request.LearnSizes(learn));
  };
  for (const int64_t rows : {2, 5, 40}) {
    const Request asked = TableRequest(Table(rows));
    const auto expected = Numbers(mlp.Run(asked).tensor());
    for (const bool learn : {false, true}) {
      const Program program = record(learn);
      program.ExportTorchScript(exported);
      const Model file = Model::Load(exported);
      if (rows == 2 || (learn && rows == 5)) {
        EXPECT_EQ(Numbers(program.Replay(asked).tensor()), expected) << rows;
        EXPECT_EQ(Numbers(file.Run(asked).tensor()), expected) << rows;
        continue;
      }
      const char* const why = learn ? "sizes from 1 to 9 were tried" : "recorded";
      EXPECT_THAT([&] { program.Replay(asked); }, testing::ThrowsMessage<Error>(HasSubstr(why))) << rows;
      EXPECT_THAT([&] { file.Run(asked); }, testing::ThrowsMessage<Error>(HasSubstr(why))) << rows;
    }
  }
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

TEST_F(ProgramTest, IsReplayedOutOfPlace) {
  const Model awkward = Model::Load(kModels + "awkward.pt");
  const Request request = TableRequest(Table(2));
  const Program program = awkward.Record(request);
  const std::vector<double> expected = Numbers(awkward.Run(request).tensor());
  const auto replay = [&](const char* options) { return program.Replay(request, options); };
  EXPECT_EQ(Numbers(replay(R"({"out_of_place": true})").tensor()), expected);
  EXPECT_EQ(Numbers(replay(R"({"out_of_place": true, "every_value": true})").tensor()), expected);
  EXPECT_THAT([&] { replay(R"({"out_of_place": 1})"); },
              testing::ThrowsMessage<Error>(HasSubstr("\"out_of_place\" is true or false")));
  EXPECT_EQ(json::parse(awkward.CheckTrace(request, R"({"out_of_place": true})"))["ok"], true);
}

TEST_F(ProgramTest, RunsInAnotherDtype) {
  const Model mlp = Model::Load(kModels + "mlp.pt");
  const Program program = mlp.Record(TableRequest(Table(2)));
  const Program exact = program.To(ADDEND_FLOAT64);
  const Request request = TableRequest(Tensor::Copy(Numbers(Table(2, -1)), {2, 6}));
  // The oracle: LibTorch with the parameters converted when the file was read.
  const Tensor expected = Model::Load(kModels + "mlp.pt", ADDEND_FLOAT64).Run(request).tensor();
  const Tensor replayed = exact.Replay(request).tensor();
  EXPECT_EQ(addend_tensor_dtype(replayed.get()), ADDEND_FLOAT64);
  EXPECT_EQ(Numbers(replayed), Numbers(expected));
  EXPECT_THAT([&] { exact.Replay(TableRequest(Table(2))); }, testing::ThrowsMessage<Error>(HasSubstr("f64[2, 6]")));
  for (const int32_t dtype : {static_cast<int32_t>(ADDEND_INT64), 0, 77}) {
    addend_program* none = nullptr;
    EXPECT_EQ(Outcome(addend_program_to(program.get(), dtype, &none)).code, ADDEND_INVALID_ARGUMENT) << dtype;
    EXPECT_EQ(none, nullptr);
  }
}

TEST_F(ProgramTest, IsExportedForLibTorchAlone) {
  const std::string path = testing::TempDir() + "/exported.pt";
  const Model mlp = Model::Load(kModels + "mlp.pt");
  mlp.Record(TableRequest(Table(2))).ExportTorchScript(path);
  const Model plain = Model::Load(path);
  EXPECT_STREQ(addend_model_input_name(plain.get(), 0), "table");
  const Request other = TableRequest(Table(2, -1));
  EXPECT_EQ(Numbers(plain.Run(other).tensor()), Numbers(mlp.Run(other).tensor()));
  // A program that depends on elements is refused: it would go the recorded way without a word.
  const Program guarded = Model::Load(kModels + "awkward.pt").Record(TableRequest(Table(2)));
  const Outcome refused(addend_program_export_torchscript(guarded.get(), path.c_str()));
  EXPECT_EQ(refused.code, ADDEND_FAILED_PRECONDITION) << refused.message;
  const Program program = mlp.Record(TableRequest(Table(2)));
  EXPECT_EQ(Outcome(addend_program_export_torchscript(program.get(), "/nowhere/p.pt")).code, ADDEND_NOT_FOUND);
  EXPECT_EQ(Outcome(addend_program_export_torchscript(program.get(), nullptr)).code, ADDEND_INVALID_ARGUMENT);
}

TEST_F(ProgramTest, TellsWhatARunLacks) {
  const Model mlp = Model::Load(kModels + "mlp.pt");
  EXPECT_TRUE(json::parse(mlp.Requirements(TableRequest(Table(2))))["unmet"].empty());
  const json few = json::parse(mlp.Requirements(Request()));
  EXPECT_EQ(few["format"], "addend.requirements");
  ASSERT_EQ(few["unmet"].size(), 1u);
  EXPECT_EQ(few["unmet"][0]["kind"], "input");
  EXPECT_EQ(few["unmet"][0]["error"], true);
  EXPECT_THAT(few["unmet"][0]["message"].get<std::string>(), HasSubstr("takes 1 inputs (table: Tensor), not 0"));
  const Program program = mlp.Record(TableRequest(Table(2)));
  const json shape = json::parse(program.Requirements(TableRequest(Table(3))));
  ASSERT_EQ(shape["unmet"].size(), 1u);
  EXPECT_THAT(shape["unmet"][0]["message"].get<std::string>(), HasSubstr("f32[3, 6], recorded was f32[2, 6]"));
  // A model that stands for a program is read as that.
  EXPECT_EQ(json::parse(program.AsModel().Requirements(TableRequest(Table(3)))), shape);
}

// ---- inputs that are no tensors, other methods

class StructuredTest : public ProgramTest {
 protected:
  static constexpr char kArguments[] = R"([{"tuple": [{"tensor": 0}, {"tensor": 1}]},
      {"dict": {"keep": {"tensor": 2}, "drop": {"tensor": 3}}},
      {"list": [{"tuple": [{"tensor": 4}, 2]}, {"tuple": [{"tensor": 5}, -1]}]}, 0.5, null, "each"])";

  Request Flat(const std::vector<const char*>& names = {"table", "memory", "keep", "drop", "step_0", "step_1"}) const {
    Request request;
    for (const char* name : names) request.Input(file_.tensor(name));
    return request;
  }
  Request Structured(const std::string& structure = kArguments) const {
    Request request = Flat();
    request.Structure(structure);
    return request;
  }
  std::vector<double> Expected(const char* name) const { return Numbers(file_.tensor(name)); }
  void ExpectRefused(const std::string& structure, const std::string& message) const {
    const Request request = Flat();
    Outcome outcome(addend_request_set_structure(request.get(), structure.c_str()));
    if (outcome.code == ADDEND_OK) {
      addend_results* none = nullptr;
      outcome = Outcome(addend_model_run(model_.get(), request.get(), &none));
    }
    EXPECT_EQ(outcome.code, ADDEND_INVALID_ARGUMENT) << structure;
    EXPECT_THAT(outcome.message, HasSubstr(message)) << structure;
  }

  // The file also holds the results of plain PyTorch for these inputs.
  const Model model_ = Model::Load(kModels + "structured.pt");
  const TensorFile file_ = TensorFile::Read(kModels + "structured.safetensors");
};

TEST_F(StructuredTest, RunRecordReplayAndKeep) {
  ExpectNear(Numbers(model_.Run(Structured()).tensor()), Expected("output"), 1e-6);
  const Program program = model_.Record(Structured());
  ExpectNear(Numbers(program.Replay(Structured()).tensor()), Expected("output"), 1e-6);
  EXPECT_EQ(json::parse(program.SummaryJson())["inputs"].size(), 6u);
  const std::string folder = testing::TempDir() + "/structured";
  program.Save(folder);
  ExpectNear(Numbers(Program::Load(folder).Replay(Structured()).tensor()), Expected("output"), 1e-6);
  ExpectNear(Numbers(program.AsModel().Run(Structured()).tensor()), Expected("output"), 1e-6);
  EXPECT_EQ(json::parse(model_.CheckTrace(Structured()))["ok"], true);
  EXPECT_TRUE(json::parse(model_.Requirements(Structured()))["unmet"].empty());
  // Another structure than that of the recording is told.
  const std::string other = std::string(kArguments).replace(std::string(kArguments).rfind("0.5"), 3, "0.25");
  EXPECT_THAT([&] { program.Replay(Structured(other)); }, testing::ThrowsMessage<Error>(HasSubstr("0.25, not 0.5")));
  EXPECT_THAT(program.Requirements(Structured(other)), HasSubstr("0.25, not 0.5"));
  EXPECT_THAT([&] { program.Replay(Flat()); },
              testing::ThrowsMessage<Error>(HasSubstr("pair is a tensor, not a tuple")));
}

TEST_F(StructuredTest, ArgumentsMayBeNamedAndLeftOut) {
  Request request = Flat({"table", "memory", "keep", "drop", "step_0", "step_1", "bias"});
  request.Structure(R"({"bias": {"tensor": 6}, "scale": 0.5, "pair": {"tuple": [{"tensor": 0}, {"tensor": 1}]},
      "masks": {"dict": {"keep": {"tensor": 2}, "drop": {"tensor": 3}}},
      "steps": {"list": [{"tuple": [{"tensor": 4}, 2]}, {"tuple": [{"tensor": 5}, -1]}]}})");
  ExpectNear(Numbers(model_.Run(request).tensor()), Expected("biased"), 1e-6);
  ExpectNear(Numbers(model_.Record(request).Replay(request).tensor()), Expected("biased"), 1e-6);
}

TEST_F(StructuredTest, ExamplesHaveTheirOwn) {
  Request request = Structured();
  request.NextExample();
  for (const char* name : {"table", "memory", "keep", "drop", "step_0", "step_1"}) request.Input(file_.tensor(name));
  EXPECT_EQ(json::parse(model_.CheckTrace(request))["ok"], false);
  request.Structure(kArguments);
  EXPECT_EQ(json::parse(model_.CheckTrace(request))["ok"], true);
}

TEST_F(StructuredTest, IsDecomposedAndAttributed) {
  const Model exact = Model::Load(kModels + "structured.pt", ADDEND_FLOAT64);
  Request request;
  for (const char* name : {"table", "memory", "keep", "drop", "step_0", "step_1"}) {
    const Tensor given = file_.tensor(name);
    request.Input(Tensor::Copy(Numbers(given), given.sizes()));
    if (name == std::string("table") || name == std::string("step_0")) request.SplitAlong({1});
  }
  request.Structure(kArguments).Target("1,2");
  const Composition composition = exact.Decompose(request).composition();
  ASSERT_EQ(addend_composition_numc(composition.get()), 4 + 3);
  ExpectNear(Numbers(composition.recovery()), Expected("output"), 1e-6);
  // A step goes straight to its own column, twice, and is halved: component 4 + column.
  const std::vector<double> components = Numbers(composition.components());
  const std::vector<double> step = Expected("step_0");
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      for (int64_t c = 0; c < 3; ++c) {
        const double given = c == column ? step[row * 3 + column] : 0;
        EXPECT_NEAR(components[((4 + c) * 2 + row) * 3 + column], given, 1e-12);
      }
    }
  }
  const Attribution attribution = exact.Attribute(request);
  ASSERT_EQ(addend_results_size(attribution.results().get()), 7u);
  EXPECT_NEAR(Numbers(attribution.input(4))[5], step[5], 1e-12);
}

TEST_F(StructuredTest, LiveTracesBecomeProgramsOfThem) {
  const Tensor a = Tensor::Copy<float>({1, 2}, {2});
  const Tensor b = Tensor::Copy<float>({3, 5}, {2});
  Request request;
  request.Input(a).Input(b).Structure(R"({"pair": {"tuple": [{"tensor": 0}, {"tensor": 1}]}, "scale": 2.0})");
  RecordingScope scope(request);
  const Results sum = Call("aten::add.Tensor", Arguments().Add(a).Add(b));
  scope.AddOutput(sum.tensor());
  const Program program = scope.End();
  EXPECT_EQ(json::parse(program.SummaryJson())["inputs"].size(), 2u);
  EXPECT_EQ(json::parse(program.SummaryJson())["inputs"][0]["name"], "pair");
  EXPECT_EQ(Numbers(program.Replay(request).tensor()), (std::vector<double>{4, 7}));
}

TEST_F(StructuredTest, NonsenseIsRefused) {
  for (const char* none : {"", "3", "null", "\"a\"", "[", "{\"a\": }"}) ExpectRefused(none, "neither a JSON list nor");
  for (const char* form : {"[{}]", "[[1]]", "[{\"tenser\": 0}]", "[{\"tensor\": 0, \"type\": \"int\"}]",
                           "[{\"list\": [], \"tuple\": []}]"}) {
    ExpectRefused(form, "argument 0 is none of");
  }
  ExpectRefused(R"([{"list": [1, {"tensor": -1}]}])", "argument 0[1] calls a tensor by something else");
  ExpectRefused(R"([{"tensor": 0.0}])", "something else");
  ExpectRefused(R"([{"tensor": 1e300}])", "something else");
  ExpectRefused(R"([{"tuple": {"a": 1}}])", "JSON list");
  ExpectRefused(R"([{"dict": [1]}])", "JSON object");
  ExpectRefused(R"([{"type": "long", "list": []}])", "another \"type\"");
  ExpectRefused(R"([{"float": "1"}])", "\"nan\"");
  ExpectRefused("[18446744073709551615]", "too large");
  ExpectRefused(R"([{"tensor": 6}])", "there is no input 6; the request has 6");
  ExpectRefused(R"([{"tensor": 0}])", "leaves out input 1");
  ExpectRefused(
      "{\"scale\": {\"list\": [{\"tensor\":0},{\"tensor\":1},{\"tensor\":2},{\"tensor\":3},{\"tensor\":4},"
      "{\"tensor\":5}]}}",
      "lacks the argument pair");
  ExpectRefused(
      "{\"nobody\": {\"list\": [{\"tensor\":0},{\"tensor\":1},{\"tensor\":2},{\"tensor\":3},{\"tensor\":4},"
      "{\"tensor\":5}]}}",
      "no argument nobody");
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "[";
  ExpectRefused(deep, "too deeply");
  // LibTorch refuses what the model does not take.
  ExpectRefused(R"([{"list": [{"tensor":0},{"tensor":1},{"tensor":2},{"tensor":3},{"tensor":4},{"tensor":5}]}])",
                "the model fails");
  // A structure is taken back.
  const Request request = Structured("[1]");
  ExpectOk(addend_request_set_structure(request.get(), nullptr));
  EXPECT_THAT([&] { model_.Run(request); }, testing::ThrowsMessage<Error>(HasSubstr("the model fails")));
}

TEST_F(StructuredTest, OtherMethodsThanForward) {
  ExpectNear(Numbers(model_.Methods({"encode"}).Run(Flat({"table"})).tensor()), Expected("encoded"), 1e-6);
  const Model both = model_.Methods({"encode", "decode"});
  EXPECT_STREQ(addend_model_input_name(both.get(), 0), "encode.table");
  EXPECT_STREQ(addend_model_input_name(both.get(), 1), "decode.states");
  const Request request = Flat({"table", "step_0"});
  const Results replayed = both.Record(request).Replay(request);
  ASSERT_EQ(replayed.size(), 2u);
  ExpectNear(Numbers(replayed.tensor(0)), Expected("encoded"), 1e-6);
  ExpectNear(Numbers(replayed.tensor(1)), Expected("decoded"), 1e-6);
  EXPECT_THAT(
      [&] {
        both.Run(Flat({"table", "step_0", "step_1"}));
      },
      testing::ThrowsMessage<Error>(HasSubstr("take fewer than 3")));
  addend_model* none = nullptr;
  EXPECT_EQ(Outcome(addend_model_methods(model_.get(), "encode,missing", &none)).code, ADDEND_NOT_FOUND);
  for (const char* nonsense : {"", ",", "encode,", "encode, decode"}) {
    EXPECT_NE(Outcome(addend_model_methods(model_.get(), nonsense, &none)).code, ADDEND_OK) << nonsense;
  }
  const Model program = both.Record(request).AsModel();
  EXPECT_EQ(Outcome(addend_model_methods(program.get(), "encode", &none)).code, ADDEND_UNIMPLEMENTED);
  EXPECT_EQ(none, nullptr);
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
  request.EveryTarget();
  const Attribution every = mlp.Attribute(request);
  ASSERT_EQ(every.num_targets(), 9u);
  EXPECT_EQ(every.input().sizes(), (std::vector<int64_t>{3, 3, 6}));
  const auto of_every = Numbers(every.input());
  for (size_t k = 0; k < 3; ++k) {  // the target of the list that a row had above
    const auto own = of_every.begin() + static_cast<int64_t>((k * 3 + k) * 6);
    ExpectNear({own, own + 6}, {elements.begin() + k * 6, elements.begin() + k * 6 + 6}, 1e-12);
    EXPECT_EQ(every.Explain(k * 3 + k).value(), together.Explain(k).value());
  }
  request.EveryTarget(false).Target("1");
  EXPECT_THAT([&] { mlp.Attribute(request); }, testing::ThrowsMessage<Error>(HasSubstr("4 targets")));
  EXPECT_THAT([&] { mlp.Attribute(request.EachExample(false).EveryTarget()); },
              testing::ThrowsMessage<Error>(HasSubstr("every_target is for examples")));
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
